//! Every recorded case of the reference, run through the state machine. Prints a table, a row a file.
//!
//! Expected values come from running the reference; the runner compares whole answers and whole decision
//! requests. A second runner, in `ratoon-models`, repeats the wire cases over HTTP.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use ratoon::count::{CountError, Messages, NamedCounter, TokenCounter};
use ratoon::model::{Answer, FailureKind, ModelError, Reply};
use ratoon::problems::Step;
use ratoon::{Compaction, CompactionError, Reading, Request, RequestError, Settings};
use ratoon_testing::comparison::{compare_answer, differences};
use ratoon_testing::data::{Case, conformance, conformance_files};
use ratoon_testing::hash_model::{Planned, PlannedAnswer, plan};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let (mut passed, mut failed) = (0, Vec::new());
    let mut rows = format!("{:<20} {:>6} {:>6} {:>6}\n", "conformance", "cases", "equal", "differ");
    for file in conformance_files().iter().filter(|file| *file != "wire.jsonl") {
        let cases = conformance(file);
        let mut different = 0;
        for case in &cases {
            let found = run(case);
            if found.is_empty() {
                passed += 1;
            } else {
                different += 1;
                failed.push(format!("{file} {}:\n    {}", case.name, found.join("\n    ")));
            }
        }
        rows += &format!("{file:<20} {:>6} {:>6} {:>6}\n", cases.len(), cases.len() - different, different);
    }
    let over_http = conformance("wire.jsonl").len();
    rows += &format!(
        "{:<20} {over_http:>6} over HTTP, in ratoon-models: wire::recorded_cases_come_out\n",
        "wire.jsonl"
    );
    rows += &format!(
        "{:<20} {:>6} {:>6} {:>6}\n",
        "all without a wire",
        passed + failed.len(),
        passed,
        failed.len()
    );
    let report = format!("{rows}\n{}\n\n{passed} passed, {} failed\n", failed.join("\n"), failed.len());
    out.write_all(report.as_bytes()).expect("standard output takes the report");
    if failed.is_empty() && passed > 400 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A counter that fails, as a host's function may.
#[derive(Debug)]
struct Failing;

impl TokenCounter for Failing {
    fn count(&self, _: &Messages<'_>) -> Result<u64, CountError> {
        Err(CountError::Failed("out of order".into()))
    }
}

/// A counter that answers with something that is not a count.
#[derive(Debug)]
struct NotANumber;

impl TokenCounter for NotANumber {
    fn count(&self, _: &Messages<'_>) -> Result<u64, CountError> {
        Err(CountError::Invalid)
    }
}

fn counter(name: Option<&str>) -> Option<&'static dyn TokenCounter> {
    match name {
        Some("chars4") => Some(&NamedCounter::Chars4),
        Some("raises") => Some(&Failing),
        Some(name) if name.starts_with("returns:") => Some(&NotANumber),
        // Rust has no counter that cannot be called.
        Some("not_callable") | None => None,
        Some(other) => panic!("unknown counter {other}"),
    }
}

/// What differs from the recorded outcome.
fn run(case: &Case) -> Vec<String> {
    let bytes = case.request.get().as_bytes();
    let request = match Request::parse(bytes) {
        Ok(request) => request,
        Err(error) => return refused(case, &error),
    };
    let counter = counter(case.token_counter.as_deref());
    let settings = Settings::default();
    let compaction = match Compaction::new(&request, counter, Reading::State, &settings) {
        Ok(compaction) => compaction,
        Err(error) => return failed(case, &error),
    };
    let (requests, answers) = ask(case, &compaction);
    let mut found = differences(&case.expect["decision_requests"], &Value::Array(requests));
    let proposal = match compaction.finish(answers, "recorded", Duration::ZERO) {
        Ok(proposal) => proposal,
        Err(error) => return failed(case, &error),
    };
    let answer = ratoon_testing::exact::value(&proposal.answer_json());
    if case.expect.get("answer").is_none() {
        return vec!["an error was expected, but there is an answer".to_owned()];
    }
    found.extend(compare_answer(&case.expect["answer"], &answer));
    found
}

/// Answers all requests as the recorded model did; a request that hangs is overtaken by the deadline.
fn ask(case: &Case, compaction: &Compaction<'_, '_>) -> (Vec<Value>, ratoon::Answers) {
    let model = plan(&case.model);
    let mut answers = compaction.answers();
    let mut requests = Vec::new();
    let mut hangs = false;
    for index in 0..compaction.requests() {
        let request = compaction.request(index);
        let ids: Vec<&str> = request.questions.iter().map(|question| question.id).collect();
        match model.reply(&ids, &request.state.json()) {
            Planned::Answers(planned, usage) => {
                let usage = usage.map(|usage| serde_json::value::to_raw_value(&usage).expect("a JSON value"));
                let usable = planned.into_iter().filter_map(|(id, answer)| match answer {
                    PlannedAnswer::Binary(value) => Some((id, Answer::Binary(value))),
                    PlannedAnswer::Unusable => Some((id, Answer::Unusable)),
                    PlannedAnswer::Missing => None,
                });
                answers.record(index, Ok(Reply { answers: usable.collect(), usage }));
            }
            Planned::Fail => {
                answers.record(index, Err(ModelError::new(FailureKind::Provider, "the provider failed", 1)));
            }
            Planned::Hang => hangs = true,
        }
        let questions: serde_json::Map<String, Value> = ids
            .iter()
            .map(|id| ((*id).to_owned(), json!({"type": "binary", "instructions": "<instructions>"})))
            .collect();
        requests.push(
            json!({"state": ratoon_testing::exact::value(&request.state.json()), "questions": questions}),
        );
    }
    if hangs {
        answers.expire();
    }
    (requests, answers)
}

/// Compares a refusal: every recorded place must be one of ours, or ours must lie inside it, and the other way
/// round. The reference reports all faults of `messages` at the list; we name the message.
fn refused(case: &Case, error: &RequestError) -> Vec<String> {
    let RequestError::Invalid(problems) = error else { return vec![format!("refused with: {error}")] };
    let expected = &case.expect["error"];
    if expected["kind"] != "invalid_request" {
        return vec![format!("refused with: {error}")];
    }
    let recorded: Vec<&Vec<Value>> =
        expected["problems"].as_array().into_iter().flatten().filter_map(|p| p["loc"].as_array()).collect();
    let ours: Vec<Vec<Value>> = problems
        .found()
        .iter()
        .map(|problem| {
            let steps = problem.place.steps().iter();
            steps
                .map(|step| match step {
                    Step::Key(key) => json!(key),
                    Step::Index(index) => json!(index),
                    _ => Value::Null,
                })
                .collect()
        })
        .collect();
    let unmatched = recorded.iter().filter(|place| !ours.iter().any(|our| our.starts_with(place)));
    let mut found: Vec<String> = unmatched.map(|place| format!("no problem reported at {place:?}")).collect();
    let surplus = ours.iter().filter(|our| !recorded.iter().any(|place| our.starts_with(place)));
    found.extend(surplus.map(|our| format!("a problem reported at {our:?}")));
    found
}

fn failed(case: &Case, error: &CompactionError) -> Vec<String> {
    let kind = match error {
        CompactionError::TokenCounterRequired => "token_counter_required",
        CompactionError::Count(CountError::Invalid) => "invalid_token_count",
        CompactionError::Count(CountError::Failed(_)) => "token_counter_failed",
        _ => "another error",
    };
    if case.expect["error"]["kind"] == kind {
        Vec::new()
    } else {
        vec![format!("failed with {kind}: {error}")]
    }
}
