//! One way to carry a request through the library with a decision model that is a function.

use std::collections::HashMap;
use std::time::Duration;

use ratoon::count::TokenCounter;
use ratoon::{
    Answer, Compaction, CompactionError, DecisionRequest, ModelError, Reading, Reply, Request, Settings,
};
use ratoon_testing::hash_model::Rule;
use ratoon_testing::rules::check_general_rules;
use serde_json::Value;
use serde_json::value::RawValue;

/// A decision model: what it replies to a request.
pub(crate) type Model<'m> = &'m dyn Fn(&DecisionRequest<'_>) -> Result<Reply, ModelError>;

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The answer as JSON text.
    pub(crate) answer: String,
    /// The proposed message list as JSON text.
    pub(crate) messages: String,
    /// The document that was given, with the proposed messages in it.
    pub(crate) document: Vec<u8>,
    /// The states that were sent.
    pub(crate) states: Vec<String>,
    /// The texts of all questions.
    pub(crate) questions: Vec<String>,
    /// The ids of all units that were asked about.
    pub(crate) asked_units: Vec<String>,
}

/// Plans, asks and finishes.
pub(crate) fn run_with(
    request: &Request<'_>,
    counter: Option<&dyn TokenCounter>,
    settings: &Settings,
    model: Model<'_>,
) -> Result<Ran, CompactionError> {
    let compaction = Compaction::new(request, counter, Reading::State, settings)?;
    let mut answers = compaction.answers();
    let (mut states, mut questions, mut asked_units) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..compaction.requests() {
        let asked = compaction.request(index);
        answers.record(index, model(&asked));
        asked_units.extend(asked.questions.iter().map(|question| question.id.to_owned()));
        questions.extend(asked.questions.into_iter().map(|question| question.instructions));
        states.push(asked.state.json());
    }
    let proposal = compaction.finish(answers, "a test", Duration::ZERO)?;
    let mut document = Vec::new();
    proposal.write_document(&mut document).expect("memory takes the document");
    Ok(Ran {
        answer: proposal.answer_json(),
        messages: proposal.messages_json(),
        document,
        states,
        questions,
        asked_units,
    })
}

/// Carries a request through that is expected to be valid.
pub(crate) fn run(request: &[u8], model: Model<'_>) -> Ran {
    let request = parsed(request);
    run_with(&request, None, &Settings::default(), model).expect("nothing can fail here")
}

/// A request that is expected to be valid.
pub(crate) fn parsed(request: &[u8]) -> Request<'_> {
    Request::parse(request).unwrap_or_else(|error| panic!("refused: {error}"))
}

/// The same probability for everything.
pub(crate) fn always(probability: f64) -> impl Fn(&DecisionRequest<'_>) -> Result<Reply, ModelError> {
    move |asked| {
        let answers =
            asked.questions.iter().map(|question| (question.id.to_owned(), Answer::Binary(probability)));
        Ok(reply(answers.collect()))
    }
}

/// Probabilities by the hash rule of the recorded cases.
pub(crate) fn by_hash(rule: Rule) -> impl Fn(&DecisionRequest<'_>) -> Result<Reply, ModelError> {
    move |asked| {
        let state: Value = serde_json::from_str(&asked.state.json()).expect("a state is JSON");
        let units = state["evidence_units"].as_array().expect("the units are a list");
        let text = |unit: &Value, key: &str| unit[key].as_str().expect("a text").to_owned();
        let answer = |unit: &Value| {
            let probability = rule.probability(&text(unit, "id"), &text(unit, "tool"), &text(unit, "input"));
            (text(unit, "id"), Answer::Binary(probability))
        };
        Ok(reply(units.iter().map(answer).collect()))
    }
}

/// A reply without usage.
pub(crate) fn reply(answers: Vec<(String, Answer)>) -> Reply {
    Reply { answers, usage: None }
}

impl Ran {
    /// The answer, read.
    pub(crate) fn value(&self) -> Value {
        ratoon_testing::exact::value(&self.answer)
    }

    /// Whether anything was cut back.
    pub(crate) fn changed(&self) -> bool {
        self.verdict().changed
    }

    /// What the answer says besides its messages. Also readable where the messages are not (lone surrogates).
    pub(crate) fn verdict(&self) -> Verdict {
        serde_json::from_str(&self.answer).unwrap_or_else(|error| panic!("unreadable answer: {error}"))
    }

    /// The call ids of all units that were asked about, found by way of the decisions.
    pub(crate) fn asked_calls(&self) -> Vec<String> {
        let decisions = self.verdict().decisions;
        let call_of = |unit: &String| {
            let decision = decisions.iter().find(|decision| decision.id == *unit);
            decision.unwrap_or_else(|| panic!("{unit} was asked about but not decided")).call_id.clone()
        };
        self.asked_units.iter().map(call_of).collect()
    }

    /// The decision about a call.
    pub(crate) fn decision(&self, call_id: &str) -> Decision {
        let found = self.verdict().decisions.into_iter().find(|decision| decision.call_id == call_id);
        found.unwrap_or_else(|| panic!("no decision about {call_id}"))
    }

    /// What breaks the general rules.
    pub(crate) fn violations(&self, request: &Request<'_>) -> Vec<String> {
        let references: HashMap<String, String> = request
            .source_refs
            .iter()
            .map(|(id, reference)| (id.clone().into_owned(), reference.clone().into_owned()))
            .collect();
        check_general_rules(request.snapshot.json(), &self.answer, &references, &self.states)
    }
}

/// The part of an answer that is not messages.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Verdict {
    pub(crate) decisions: Vec<Decision>,
    pub(crate) changed: bool,
    pub(crate) reason: String,
    pub(crate) budget_met: Option<bool>,
    pub(crate) stats: Stats,
}

/// One decision of an answer.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub(crate) struct Decision {
    pub(crate) id: String,
    pub(crate) call_id: String,
    pub(crate) action: String,
    pub(crate) reason: String,
    pub(crate) probability: Option<f64>,
    pub(crate) source_ref: Option<String>,
}

/// The stats of an answer, as far as tests look at them.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Stats {
    pub(crate) chars_before: u64,
    pub(crate) chars_after: u64,
    pub(crate) tokens_before: Option<u64>,
    pub(crate) tokens_after: Option<u64>,
    pub(crate) candidates: u64,
    pub(crate) protected: u64,
    pub(crate) requests: u64,
    skipped: Vec<Skipped>,
    protections: Vec<Protection>,
    pub(crate) failures: Vec<Value>,
}

impl Stats {
    /// The skipped calls and results as (spelling of the id, reason).
    pub(crate) fn skipped(&self) -> Vec<(&str, &str)> {
        self.skipped.iter().map(|entry| (entry.call_id.get(), entry.reason.as_str())).collect()
    }

    /// The protected units as (id, reason).
    pub(crate) fn protections(&self) -> Vec<(&str, &str)> {
        self.protections.iter().map(|entry| (entry.id.as_str(), entry.reason.as_str())).collect()
    }
}

/// A call or result that is part of no pair.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skipped {
    call_id: Box<RawValue>,
    reason: String,
}

/// A pair that was kept without being asked about.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Protection {
    id: String,
    reason: String,
}

/// A call of the tool `grep` that ran to its end, and its result; id and output as JSON.
pub(crate) fn pair(id: &str, output: &str) -> String {
    format!("{},{}", call(id, "{}"), result(id, output))
}

/// A call of the tool `grep` that ran to its end; the id as JSON, the arguments as text.
pub(crate) fn call(id: &str, input: &str) -> String {
    let input = Value::from(input);
    format!(r#"{{"type":"tool_call","id":{id},"name":"grep","input":{input},"state":"finished"}}"#)
}

/// A result of the tool `grep` that reports success; id and output as JSON.
pub(crate) fn result(id: &str, output: &str) -> String {
    format!(r#"{{"type":"tool_result","id":{id},"name":"grep","output":{output},"state":"success"}}"#)
}

/// A message with these blocks.
pub(crate) fn message(role: &str, blocks: &[&str]) -> String {
    format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
}

/// A block of text.
pub(crate) fn text(said: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, Value::from(said))
}

/// A message list: the task, an assistant message with these blocks, and a word from the user.
pub(crate) fn history(blocks: &[&str]) -> String {
    let task = message("user", &[&text("The build fails. Find out why.")]);
    format!("[{task},{},{}]", message("assistant", blocks), message("user", &[&text("And?")]))
}

/// A request about messages: calls `c1` to `c9` of the tool `grep` may go, no message is recent, and excerpts have
/// ten characters. `options` are more members of that object, each behind a comma.
pub(crate) fn request(messages: &str, options: &str) -> String {
    let references: Vec<String> = (1..10).map(|n| format!(r#""c{n}":"archive/c{n}""#)).collect();
    let references = references.join(",");
    format!(
        r#"{{"messages":{messages},"goal":"Find the bug","next_action":"Run the tests","source_refs":{{{references}}},"eligible_tool_names":["grep"],"options":{{"preserve_recent_messages":0,"preview_chars":10{options}}}}}"#
    )
}

/// A text of a hundred characters, as JSON.
pub(crate) fn long() -> String {
    format!(r#""{}""#, "0123456789".repeat(10))
}

/// What is left of [`long`] in a request made by [`request`], as JSON.
pub(crate) fn cut(call_id: &str) -> String {
    format!(r#""0123\n…\n789\n[Compacted output. Recover from: archive/{call_id}]""#)
}
