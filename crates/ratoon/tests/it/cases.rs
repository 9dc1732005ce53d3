//! Every hostile case of `testdata/cases`: what is right for the user, as its file says, and the general rules.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ratoon::count::{NamedCounter, TokenCounter};
use ratoon::{Answer, DecisionRequest, FailureKind, ModelError, Reply, Request, RequestError, Settings};
use ratoon_testing::case_model::{self, CaseModel};
use ratoon_testing::data::{HostileCase, cases};
use ratoon_testing::exact;
use ratoon_testing::hash_model::{Planned, PlannedAnswer};
use serde_json::{Map, Value};

use crate::support::{Ran, run_with};

#[test]
fn every_case_comes_out_right_for_the_user() {
    let mut ran = 0;
    let mut failed = Vec::new();
    for case in cases() {
        ran += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&case))) {
            let reason = panic.downcast_ref::<String>().cloned();
            let reason = reason.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            failed.push(format!("{} ({}): {}", case.name, case.level, reason.unwrap_or_default()));
        }
    }
    assert_eq!(ran, 32, "all case files run");
    assert!(failed.is_empty(), "{} cases fail:\n{}", failed.len(), failed.join("\n"));
}

fn check(case: &HostileCase) {
    let bytes = case.request.get().as_bytes().to_vec();
    let expect = Expectation::of(&case.expect);
    if expect.fields.get("status").is_some_and(|status| status == "rejected") {
        let Err(error) = Request::parse(&bytes) else { panic!("accepted, but must be refused") };
        let RequestError::Invalid(problems) = error else { panic!("refused without a place: {error}") };
        assert!(!problems.found().is_empty(), "refused without saying why");
        expect.only(&["status", "model_requests"]);
        return;
    }
    let first = pass(case, &bytes);
    expect.check(&bytes, &first);

    let Some(second) = case.expect.get("second_pass") else { return };
    let overridden = with_overrides(first.document, second.get("request_overrides"));
    let ran = pass(case, &overridden);
    Expectation::of(&second["expect"]).check(&overridden, &ran);
    if let Some(better) = case.expect.get("second_pass_should") {
        Expectation::of(better).check(&overridden, &ran);
    }
}

/// One pass with the case's model and counter, held against the general rules.
fn pass(case: &HostileCase, bytes: &[u8]) -> Ran {
    let request = Request::parse(bytes).unwrap_or_else(|error| panic!("refused: {error}"));
    let counter: Option<&dyn TokenCounter> = case.token_counter.as_deref().map(|name| {
        let counter = NamedCounter::ALL.iter().find(|counter| counter.name() == name);
        counter.unwrap_or_else(|| panic!("unknown counter {name}")) as &dyn TokenCounter
    });
    let model = case_model::plan(&case.decision_model);
    let before = messages_of(bytes);
    let ran = run_with(&request, counter, &Settings::default(), &|asked| answer(&model, asked))
        .unwrap_or_else(|error| panic!("failed: {error}"));
    assert_eq!(ran.violations(&request), [""; 0], "general rules");
    assert_eq!(request.snapshot.json(), before, "the input is what it was");
    ran
}

/// The spelling of the `messages` of a request.
fn messages_of(bytes: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Messages<'a> {
        #[serde(borrow)]
        messages: &'a serde_json::value::RawValue,
    }
    let request: Messages<'_> = serde_json::from_slice(bytes).expect("a request is a JSON object");
    request.messages.get().to_owned()
}

fn answer(model: &CaseModel, asked: &DecisionRequest<'_>) -> Result<Reply, ModelError> {
    let ids: Vec<&str> = asked.questions.iter().map(|question| question.id).collect();
    let call_id_of = |id: &str| {
        let question = asked.questions.iter().find(|question| question.id == id)?;
        asked.pairs[question.pair].call_id.decode().map(|id| id.into_owned())
    };
    match model.reply(&ids, &asked.state.json(), call_id_of) {
        Planned::Answers(planned, _) => {
            let answers = planned.into_iter().filter_map(|(id, answer)| match answer {
                PlannedAnswer::Binary(value) => Some((id, Answer::Binary(value))),
                PlannedAnswer::Unusable => Some((id, Answer::Unusable)),
                PlannedAnswer::Missing => None,
            });
            Ok(Reply { answers: answers.collect(), usage: None })
        }
        Planned::Fail | Planned::Hang => Err(ModelError::new(FailureKind::Provider, "out of order", 1)),
    }
}

/// The document with some fields set; of an object only the members given.
fn with_overrides(document: Vec<u8>, overrides: Option<&Value>) -> Vec<u8> {
    let Some(overrides) = overrides.and_then(Value::as_object) else { return document };
    let text = String::from_utf8(document).expect("the document is text");
    let mut request = exact::value(&text);
    let fields = request.as_object_mut().expect("a request is an object");
    for (name, value) in overrides {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(present)), Value::Object(given)) => present.extend(given.clone()),
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    request.to_string().into_bytes()
}

/// The `expect` object of a case.
struct Expectation<'e> {
    fields: &'e Map<String, Value>,
}

const KNOWN: [&str; 19] = [
    "keep",
    "preview",
    "either",
    "changed",
    "budget_met",
    "model_requests",
    "asked",
    "not_asked",
    "sent",
    "not_sent",
    "goal_sent",
    "decision_reason_in",
    "listed",
    "listed_should",
    "output_exact",
    "output_has",
    "output_lacks",
    "second_pass",
    "second_pass_should",
];

impl<'e> Expectation<'e> {
    fn of(expect: &'e Value) -> Expectation<'e> {
        Expectation { fields: expect.as_object().expect("an expectation is an object") }
    }

    /// Every key must be one that is looked at, so that none is passed over in silence.
    fn only(&self, known: &[&str]) {
        for key in self.fields.keys() {
            assert!(known.contains(&key.as_str()), "nothing checks the expectation {key:?}");
        }
    }

    fn list(&self, key: &str) -> &'e [Value] {
        self.fields.get(key).map_or(&[], |value| value.as_array().expect("a list"))
    }

    fn texts(&self, key: &str) -> Vec<&'e str> {
        self.list(key).iter().map(|value| value.as_str().expect("a list of texts")).collect()
    }

    fn by_call(&self, key: &str) -> impl Iterator<Item = (&'e String, &'e Value)> {
        self.fields.get(key).and_then(Value::as_object).into_iter().flatten()
    }

    fn check(&self, input: &[u8], ran: &Ran) {
        self.only(&KNOWN);
        let input = exact::value(std::str::from_utf8(input).expect("a request is text"));
        let answer = ran.value();
        self.check_outputs(&input["messages"], &answer["messages"]);
        if let Some(changed) = self.fields.get("changed") {
            assert_eq!(&answer["changed"], changed, "changed");
        }
        if let Some(met) = self.fields.get("budget_met") {
            assert_eq!(&answer["budget_met"], met, "budget_met");
        }
        if let Some(requests) = self.fields.get("model_requests") {
            assert_eq!(ran.states.len() as u64, requests.as_u64().expect("a number"), "model_requests");
            assert_eq!(&answer["stats"]["requests"], requests, "stats.requests");
        }
        self.check_asked(ran);
        self.check_sent(ran);
        self.check_account(&answer);
    }

    fn check_outputs(&self, before: &Value, after: &Value) {
        for id in self.list("keep") {
            assert!(!outputs(before, id).is_empty(), "the case has no result {id}");
            assert_eq!(outputs(after, id), outputs(before, id), "{id} must stay");
        }
        for id in self.list("preview") {
            let (old, new) = (only_output(before, id), only_output(after, id));
            assert_ne!(old, new, "{id} must be cut back");
            assert!(text_of(new).chars().count() < text_of(old).chars().count(), "{id} must be shorter");
        }
        for id in self.list("either") {
            assert_eq!(outputs(before, id).len(), outputs(after, id).len(), "results of {id}");
        }
        for (id, exact) in self.by_call("output_exact") {
            assert_eq!(only_output(after, &Value::from(id.as_str())), exact, "the output of {id}");
        }
        for (id, texts) in self.by_call("output_has") {
            let output = text_of(only_output(after, &Value::from(id.as_str())));
            for text in texts.as_array().expect("a list") {
                assert!(output.contains(text.as_str().expect("a text")), "{id} must hold {text}: {output}");
            }
        }
        for (id, texts) in self.by_call("output_lacks") {
            let output = text_of(only_output(after, &Value::from(id.as_str())));
            for text in texts.as_array().expect("a list") {
                assert!(!output.contains(text.as_str().expect("a text")), "{id} must not hold {text}");
            }
        }
    }

    fn check_asked(&self, ran: &Ran) {
        let asked = ran.asked_calls();
        for id in self.texts("asked") {
            assert!(asked.iter().any(|call| call == id), "{id} must be asked about: {asked:?}");
        }
        for id in self.texts("not_asked") {
            assert!(!asked.iter().any(|call| call == id), "{id} must not be asked about");
        }
    }

    fn check_sent(&self, ran: &Ran) {
        let states: Vec<Value> = ran.states.iter().map(|state| exact::value(state)).collect();
        let mut sent = Vec::new();
        states.iter().for_each(|state| collect_texts(state, &mut sent));
        sent.extend(ran.questions.iter().map(String::as_str));
        for text in self.texts("sent") {
            assert!(sent.iter().any(|sent| sent.contains(text)), "{text:?} must be sent");
        }
        for text in self.texts("not_sent") {
            assert!(!sent.is_empty(), "nothing was sent, so that nothing is shown");
            assert!(!sent.iter().any(|sent| sent.contains(text)), "{text:?} must not be sent");
        }
        if let Some(goal) = self.fields.get("goal_sent") {
            let goal = goal.as_str().expect("a text");
            assert!(!states.is_empty(), "nothing was sent");
            for state in &states {
                let sent = state["goal"].as_str().expect("a goal is text");
                assert!(sent.contains(goal), "the goal must hold {goal:?}: {sent:?}");
            }
        }
    }

    fn check_account(&self, answer: &Value) {
        let decisions = answer["decisions"].as_array().expect("a list");
        let skipped = answer["stats"]["skipped"].as_array().expect("a list");
        for (id, allowed) in self.by_call("decision_reason_in") {
            let decision = decisions.iter().find(|decision| decision["call_id"] == id.as_str());
            let reason = &decision.unwrap_or_else(|| panic!("no decision about {id}"))["reason"];
            assert!(allowed.as_array().expect("a list").contains(reason), "{id} is decided for {reason}");
        }
        for id in self.list("listed") {
            assert!(decisions.iter().any(|decision| decision["call_id"] == *id), "{id} must be decided");
        }
        for id in self.list("listed_should") {
            let mut listed = decisions.iter().chain(skipped);
            assert!(listed.any(|entry| entry["call_id"] == *id), "{id} must be listed");
        }
    }
}

/// The outputs of all results with an id.
fn outputs<'v>(messages: &'v Value, id: &Value) -> Vec<&'v Value> {
    let blocks = messages
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|message| message["content"].as_array().expect("the content is a list"));
    blocks
        .filter(|block| block["type"] == "tool_result" && block["id"] == *id)
        .map(|block| &block["output"])
        .collect()
}

fn only_output<'v>(messages: &'v Value, id: &Value) -> &'v Value {
    match outputs(messages, id).as_slice() {
        [output] => output,
        found => panic!("{} results with the id {id}", found.len()),
    }
}

/// The text of an output that is text or a list of text blocks.
fn text_of(output: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    match output {
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().map(|block| text(&block["text"])).collect();
            texts.join("\n")
        }
        other => text(other),
    }
}

fn collect_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}
