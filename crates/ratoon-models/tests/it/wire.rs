//! The recorded wire cases over real HTTP.

use std::time::Duration;

use ratoon::Request;
use ratoon_models::ModelSettings;
use ratoon_testing::comparison::compare_answer;
use ratoon_testing::data::{Case, conformance, testdata};
use ratoon_testing::exact;
use ratoon_testing::fake_provider::FakeProvider;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{local, model, propose, wire_case};
use crate::servers::post;

/// Cases in which the reference loses a whole batch over one malformed answer, because its client validates replies
/// as a whole. Here such an answer costs its own unit. The outcome is the one recorded for the same request with a
/// number out of range, which the reference, too, holds against its own unit only.
const ONE_BAD_ANSWER: [&str; 4] =
    ["wire-answer-neg_inf", "wire-answer-string", "wire-answer-null", "wire-answer-huge"];
const ONE_BAD_ANSWER_OUTCOME: &str = "wire-answer-above_one";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_cases_come_out() {
    let cases = conformance("wire.jsonl");
    assert_eq!(cases.len(), 39);
    assert!(cases.iter().all(|case| case.server["rule"] == "hash"), "one provider serves all cases");
    let provider = FakeProvider::start("hash", &Value::Null);
    let mut found = Vec::new();
    for case in &cases {
        post(provider.base_url(), "/_fake/script", &script(&case.name));
        provider.reset();
        found.extend(run(case, &provider).await.into_iter().map(|found| format!("{}: {found}", case.name)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn deviations_only_change_the_malformed_unit() {
    let (ok, outcome) = (wire_case("wire-ok"), wire_case(ONE_BAD_ANSWER_OUTCOME));
    let decisions = |case: &Case| case.expect["answer"]["decisions"].clone();
    let mut expected = decisions(&ok);
    expected[0]["action"] = json!("keep");
    expected[0]["reason"] = json!("invalid_answer");
    expected[0]["probability"] = Value::Null;
    assert_eq!(decisions(&outcome), expected);
    for case in ONE_BAD_ANSWER.map(wire_case) {
        assert!(case.advisory);
        assert_eq!(case.request.get(), ok.request.get(), "{}", case.name);
        assert_eq!(case.request.get(), outcome.request.get(), "{}", case.name);
    }
}

/// The script of a case as it stands in the file: as a value, a usage of 31 digits would become a float.
fn script(name: &str) -> String {
    #[derive(Deserialize)]
    struct Line {
        name: String,
        server: Server,
    }
    #[derive(Deserialize)]
    struct Server {
        script: Box<RawValue>,
    }
    let text =
        std::fs::read_to_string(testdata().join("conformance/wire.jsonl")).expect("the cases are there");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Line>(line).expect("a wire case"));
    lines.find(|line| line.name == name).expect("a case of that name").server.script.get().to_owned()
}

async fn run(case: &Case, provider: &FakeProvider) -> Vec<String> {
    let request = Request::parse(case.request.get().as_bytes()).expect("a request");
    let proposal = propose(&request, &*model(client(case, provider.base_url()))).await;
    let outcome =
        if ONE_BAD_ANSWER.contains(&&*case.name) { &wire_case(ONE_BAD_ANSWER_OUTCOME) } else { case };
    let mut found = compare_answer(&outcome.expect["answer"], &exact::value(&proposal.answer_json()));
    let calls = provider.stats()["calls"].clone();
    if calls != case.expect["http_calls"] {
        found.push(format!("{calls} calls instead of {}", case.expect["http_calls"]));
    }
    let expected = &case.expect["first_call_body"];
    // Requests that are started together arrive in any order, so the first one is found by what it asks.
    let same_questions = |body: &Value| {
        let ids = |body: &Value| {
            body["questions"].as_object().map(|asked| asked.keys().cloned().collect::<Vec<_>>())
        };
        ids(body) == ids(expected)
    };
    let requests = provider.requests();
    let mut bodies = requests.as_array().expect("a list").iter().map(|request| &request["body"]);
    let first = bodies.find(|body| same_questions(body)).cloned().map_or(Value::Null, hide_instructions);
    // As text, so that the order of the keys counts.
    let (first, expected) = (first.to_string(), expected.to_string());
    if first != expected {
        found.push(format!("the first body is {first}"));
    }
    found
}

fn client(case: &Case, base_url: &str) -> ModelSettings {
    let seconds = |name: &str| Duration::from_secs_f64(case.client[name].as_f64().expect("seconds"));
    let mut settings = local(base_url);
    settings.timeout = seconds("timeout");
    settings.retry_delay = seconds("retry_delay");
    settings.max_retries = case.client["max_retries"].as_u64().expect("a count") as u32;
    settings
}

fn hide_instructions(mut body: Value) -> Value {
    for question in body["questions"].as_object_mut().into_iter().flat_map(|questions| questions.values_mut())
    {
        let instructions = question["instructions"].as_str().expect("instructions are text");
        assert!(instructions.len() > 100, "{instructions}");
        question["instructions"] = json!("<instructions>");
    }
    body
}
