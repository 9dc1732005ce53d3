//! Requests to compact and models to ask, as several test modules need them.

use std::time::{Duration, Instant};

use ratoon::{DecisionModel, Proposal, Request, Settings};
use ratoon_models::{Backend, ModelSettings, SecretString, build, compact};
use ratoon_testing::data::{Case, conformance};
use serde_json::{Map, Value, json};

/// A recorded wire case.
pub(crate) fn wire_case(name: &str) -> Case {
    let mut cases = conformance("wire.jsonl").into_iter();
    cases.find(|case| case.name == name).unwrap_or_else(|| panic!("no case {name}"))
}

/// The request of a recorded case that needs six decision requests (`t1` to `t6`), with other options.
pub(crate) fn six_requests(options: &Value) -> String {
    let mut request = ratoon_testing::exact::value(wire_case("wire-ok-six-batches").request.get());
    let given = request["options"].as_object_mut().expect("the case has options");
    given.extend(options.as_object().expect("options are an object").clone());
    request.to_string()
}

/// The request of a recorded case that needs one decision request (`t1` and `t2`).
pub(crate) fn one_request() -> String {
    wire_case("wire-ok").request.get().to_owned()
}

/// A history of finished calls, all in one message that is neither first nor recent: tool, arguments, output.
pub(crate) fn history(calls: &[(&str, Value, Value)]) -> String {
    let mut blocks = Vec::new();
    let mut references = Map::new();
    for (at, (tool, arguments, output)) in calls.iter().enumerate() {
        let id = format!("c{}", at + 1);
        references.insert(id.clone(), json!(format!("archive/{id}")));
        blocks.push(json!({"type": "tool_call", "id": id, "name": tool, "input": arguments.to_string(),
            "state": "finished"}));
        blocks.push(
            json!({"type": "tool_result", "id": id, "name": tool, "output": output, "state": "success"}),
        );
    }
    let mut tools: Vec<&str> = calls.iter().map(|(tool, _, _)| *tool).collect();
    tools.sort_unstable();
    tools.dedup();
    let text = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    json!({"messages": [text("user", "Start"), {"role": "assistant", "content": blocks}, text("user", "Go on")],
        "goal": "Repair the build", "next_action": "", "source_refs": references, "eligible_tool_names": tools,
        "options": {"preserve_recent_messages": 1}})
    .to_string()
}

/// Settings for a local System One server that fail fast.
pub(crate) fn local(base_url: &str) -> ModelSettings {
    let mut settings = ModelSettings::new(Backend::SystemOne);
    settings.base_url = Some(base_url.to_owned());
    settings.api_key = Some(SecretString::from("test"));
    settings.retry_delay = Duration::from_millis(20);
    settings
}

/// The model with these settings.
pub(crate) fn model(settings: ModelSettings) -> Box<dyn DecisionModel> {
    build(settings).expect("the settings are good")
}

/// A whole call that starts at this moment and is watched by nobody.
pub(crate) async fn propose<'r, 'a>(request: &'r Request<'a>, model: &dyn DecisionModel) -> Proposal<'r, 'a> {
    compact(request, model, None, &Settings::default(), Instant::now(), &|_| {}).await.expect("a proposal")
}

/// The reasons of all decisions, in their order.
pub(crate) fn reasons(proposal: &Proposal<'_, '_>) -> Vec<&'static str> {
    proposal.decisions.iter().map(|decision| decision.reason.as_str()).collect()
}
