//! A whole call about a history that was bent a little: options, budget, answers, failures and the deadline come
//! from the input as well. What the library promises must hold for all of it.
#![no_main]

mod history;

use std::collections::HashMap;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use ratoon::count::NamedCounter;
use ratoon::snapshot::{Block, BlockId};
use ratoon::{
    Answer, Compaction, Document, FailureKind, ModelError, Overrides, Reading, Reply, Request, Settings,
    Template,
};
use ratoon_testing::rules::check_general_rules;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The bytes in front of the input that decide everything but the history; see the README.
const CONTROL: usize = 32;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((control, rest)) = bytes.split_at_checked(CONTROL) else { return Corpus::Reject };
    let Some(messages) = history::history(control[0], rest) else { return Corpus::Reject };
    let Ok(transcript) = Document::parse(messages.as_bytes(), &Overrides::default()) else {
        return Corpus::Reject;
    };
    let choice = Choice { control };
    let document = choice.request(&messages, &transcript.into_request());
    let request = match Request::parse(document.as_bytes()) {
        Ok(request) => request,
        Err(error) => panic!("a good request is refused: {error}"),
    };
    let mut fates = HashMap::new();
    let first = carry_out(&request, &choice, &mut fates, false);
    let promised = check(&request, &first);
    let after = Request::parse(&first.document).expect("what is proposed is a request");
    assert_eq!(after.snapshot.size(), promised.chars_after);
    assert_eq!(after.snapshot.json(), first.messages);
    let second = carry_out(&after, &choice, &mut fates, true);
    check(&after, &second);
    check_second(&request, &first, &second);
    check_smaller(&choice, &first, &mut fates);
    Corpus::Keep
});

/// What the control bytes choose.
struct Choice<'c> {
    control: &'c [u8],
}

const PREVIEW_CHARS: [&str; 8] = ["300", "0", "1", "2", "3", "10", "40", "100000000000000000000"];
const EVIDENCE_CHARS: [&str; 6] = ["2000", "1", "2", "3", "20", "100000000000000000000"];
const PRESERVE: [&str; 5] = ["6", "0", "1", "2", "100000000000000000000"];
const THRESHOLDS: [&str; 5] = ["0.1", "0", "0.05", "0.5", "1"];
const BUDGETS: [u64; 5] = [1, 200, 1000, 5000, u64::MAX];
const CEILINGS: [(u64, u64); 5] = [(25_000, 30_000), (1, 30_000), (25_000, 400), (200, 700), (500, 1000)];
const REFERENCES: [&str; 6] = [
    "archive/1",
    "r",
    "a \"quoted\"\\ref\n\u{1}",
    "參照\u{1f600}",
    "[Compacted output. Recover from: x]",
    "]\n",
];

impl Choice<'_> {
    fn pick<T: Copy>(&self, at: usize, from: &[T]) -> T {
        from[usize::from(self.control[at]) % from.len()]
    }

    fn flag(&self, at: usize, bit: u8) -> bool {
        self.control[at] & (1 << bit) != 0
    }

    fn request(&self, messages: &str, transcript: &Request<'_>) -> String {
        let (mut references, mut tools, mut protected) = (json!({}), Vec::new(), Vec::new());
        for (at, block) in transcript.snapshot.blocks().iter().enumerate() {
            let Block::Call(call) = block else { continue };
            tools.extend(call.name.and_then(|name| name.decode()).map(|name| name.into_owned()));
            let BlockId::Usable(id) = call.id else { continue };
            let id = id.decode().expect("a usable id is Unicode").into_owned();
            if id.trim().is_empty() {
                continue;
            }
            if self.flag(28, (at % 8) as u8) {
                protected.push(id.clone());
            }
            if !self.flag(29, (at % 8) as u8) {
                let mut reference = self.pick(27, &REFERENCES).to_owned();
                if self.flag(26, 0) {
                    reference.push_str(&id);
                }
                references[id] = json!(reference);
            }
        }
        if self.flag(26, 1) {
            tools.truncate(1);
        }
        let mut options = format!(
            r#""preview_chars":{},"evidence_chars":{},"preserve_recent_messages":{},"drop_threshold":{}"#,
            self.pick(2, &PREVIEW_CHARS),
            self.pick(3, &EVIDENCE_CHARS),
            self.pick(4, &PRESERVE),
            self.pick(5, &THRESHOLDS),
        );
        for (bit, option) in [
            r#","recent_unit":"step""#,
            r#","protect_unread":true"#,
            r#","skip_unshortenable":true"#,
            r#","keep_output_shape":true"#,
            r#","profile":"recommended""#,
        ]
        .iter()
        .enumerate()
        {
            if self.flag(1, bit as u8) {
                options.push_str(option);
            }
        }
        let (state, whole) = self.pick(7, &CEILINGS);
        options.push_str(&format!(r#","max_state_tokens":{state},"max_request_tokens":{whole}"#));
        if self.budget().is_some() {
            let limit = if self.flag(26, 2) {
                transcript.snapshot.size().saturating_sub(u64::from(self.control[6])).max(1)
            } else {
                self.pick(6, &BUDGETS)
            };
            options.push_str(&format!(r#","max_output_tokens":{limit}"#));
        }
        let goal = if self.flag(26, 3) { "" } else { "Find the bug" };
        let next_action = if self.flag(26, 4) { "" } else { "Run the tests" };
        let counter = self.budget().map(NamedCounter::name);
        // White space and order that nobody writes, around messages that must not notice.
        format!(
            "\u{feff} {{\"options\" : {{{options}}},\r\n \"messages\":\t{messages} , \"goal\":{},\"next_action\":{},\
             \"source_refs\":{references},\"protected_call_ids\":{},\"eligible_tool_names\":{},\"token_counter\":{}}}\n",
            json!(goal),
            json!(next_action),
            json!(protected),
            json!(tools),
            json!(counter),
        )
    }

    fn budget(&self) -> Option<NamedCounter> {
        match self.control[1] >> 5 & 3 {
            1 => Some(NamedCounter::Chars4),
            2 => Some(NamedCounter::JsonChars),
            _ => None,
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.question = if self.flag(8, 0) { Template::Criteria } else { Template::Plain };
        settings.mask_credentials = !self.flag(8, 1);
        settings
    }

    /// What the model says about a unit.
    fn fate(&self, unit: &str) -> Fate {
        let number: usize = unit[1..].parse().expect("a unit is t and a number");
        match self.control[10 + number % 16] {
            byte @ 0..=127 => Fate::Said(f64::from(byte & 7) / 40.0),
            byte @ 128..=191 => Fate::Said(f64::from(byte) / 191.0),
            192..=199 => Fate::Said(f64::NAN),
            200..=207 => Fate::Said(-0.0),
            208..=215 => Fate::Said(1.000_001),
            216..=223 => Fate::Said(0.05),
            224..=231 => Fate::Unusable,
            232..=239 => Fate::Twice,
            _ => Fate::Silence,
        }
    }
}

/// What becomes of a question.
#[derive(Clone, Copy)]
enum Fate {
    Said(f64),
    Unusable,
    Twice,
    Silence,
}

/// What came out.
struct Outcome {
    answer: String,
    messages: String,
    document: Vec<u8>,
    states: Vec<String>,
}

/// Carries a request out. The first time requests may fail or time out; the second time every unit meets the fate
/// it met before, whatever request it is in now.
fn carry_out(
    request: &Request<'_>,
    choice: &Choice<'_>,
    fates: &mut HashMap<String, Fate>,
    again: bool,
) -> Outcome {
    let settings = choice.settings();
    let compaction = Compaction::new(request, None, Reading::State, &settings);
    let compaction = compaction.expect("built-in counters do not fail");
    let mut answers = compaction.answers();
    let mut states = Vec::new();
    let mut order: Vec<usize> = (0..compaction.requests()).collect();
    if choice.flag(9, 0) {
        order.reverse();
    }
    for index in order {
        let asked = compaction.request(index);
        let lost = !again && choice.flag(9, 1) && choice.flag(30, (index % 8) as u8);
        let mut reply = Reply::default();
        for question in &asked.questions {
            let id = question.id;
            let fate = match (again, lost) {
                (true, _) => fates.get(id).copied().unwrap_or(Fate::Silence),
                (false, true) => Fate::Silence,
                (false, false) => choice.fate(id),
            };
            if !again {
                fates.insert(id.to_owned(), fate);
            }
            match fate {
                Fate::Said(value) => reply.answers.push((id.to_owned(), Answer::Binary(value))),
                Fate::Unusable => reply.answers.push((id.to_owned(), Answer::Unusable)),
                Fate::Twice => {
                    reply.answers.extend([0.0, 0.5].map(|value| (id.to_owned(), Answer::Binary(value))))
                }
                Fate::Silence => {}
            }
        }
        reply.answers.push(("t0".to_owned(), Answer::Binary(0.0)));
        reply.usage = serde_json::value::to_raw_value(&json!({"n": index})).ok();
        states.push(asked.state.json());
        if !lost {
            answers.record(index, Ok(reply));
        } else if choice.flag(9, 2) {
            answers.record(index, Err(ModelError::new(FailureKind::Provider, "down \"\u{1}", 3)));
        }
    }
    // A request that was lost without an error is one that the deadline overtook.
    if !again && choice.flag(9, 1) && (!choice.flag(9, 2) || choice.flag(9, 3)) {
        answers.expire();
    }
    let proposal =
        compaction.finish(answers, "fuzz", Duration::from_millis(3)).expect("built-in counters count");
    let mut document = Vec::new();
    proposal.write_document(&mut document).expect("memory takes it");
    let (answer, messages) = (proposal.answer_json(), proposal.messages_json());
    let span = request.snapshot.span();
    let input = request.snapshot.input();
    let around = [&input[..span.start], &messages, &input[span.end..]].concat();
    assert_eq!(around.as_bytes(), document, "something around the messages changed");
    Outcome { answer, messages, document, states }
}

/// The part of an answer that is checked here.
#[derive(serde::Deserialize)]
struct Verdict {
    decisions: Vec<Decision>,
    changed: bool,
    budget_met: Option<bool>,
    stats: Stats,
}

#[derive(serde::Deserialize)]
struct Decision {
    call_id: String,
    action: String,
    reason: String,
}

#[derive(serde::Deserialize)]
struct Stats {
    chars_before: u64,
    chars_after: u64,
    tokens_before: Option<u64>,
    tokens_after: Option<u64>,
    candidates: usize,
    protected: usize,
    state_tokens: u64,
    requests: usize,
}

fn verdict(outcome: &Outcome) -> Verdict {
    serde_json::from_str(&outcome.answer).expect("an answer can be read without its messages")
}

fn check(request: &Request<'_>, outcome: &Outcome) -> Stats {
    let answer: Result<&RawValue, _> = serde_json::from_str(&outcome.answer);
    assert!(answer.is_ok(), "the answer is not JSON");
    if serde_json::from_str::<Value>(request.snapshot.json()).is_ok() {
        let answer: Result<Value, _> = serde_json::from_str(&outcome.answer);
        assert!(answer.is_ok(), "the answer is no Unicode although the messages are");
    }
    let references: HashMap<String, String> =
        request.source_refs.iter().map(|(id, to)| (id.to_string(), to.to_string())).collect();
    let violations =
        check_general_rules(request.snapshot.json(), &outcome.answer, &references, &outcome.states);
    assert!(violations.is_empty(), "{violations:?}");

    let Verdict { decisions, changed, budget_met, stats } = verdict(outcome);
    assert_eq!(stats.chars_before, request.snapshot.size());
    assert_eq!(decisions.len(), stats.candidates + stats.protected);
    assert_eq!(stats.requests, outcome.states.len());
    assert!(stats.state_tokens <= request.options.max_state_tokens);
    assert!(stats.tokens_after <= stats.tokens_before);
    assert!(changed || stats.chars_before == stats.chars_after);
    assert_eq!(budget_met, request.options.max_output_tokens.map(|limit| stats.tokens_after <= Some(limit)));
    if request.options.max_output_tokens.is_some() && request.token_counter == Some(NamedCounter::JsonChars) {
        assert_eq!(stats.tokens_after, Some(stats.chars_after));
    }
    for decision in &decisions {
        assert!(decision.action == "keep" || !request.protected_call_ids.contains(decision.call_id.as_str()));
        assert_eq!(decision.action == "preview", decision.reason == "low_relevance");
    }
    for state in &outcome.states {
        assert!(serde_json::from_str::<&RawValue>(state).is_ok(), "a state is not JSON");
    }
    stats
}

/// A second time nothing changes. The one exception is a count in quarters: whether a saving of a few characters
/// lowers it depends on the rest, so what saved nothing the first time may save something the second time.
fn check_second(request: &Request<'_>, first: &Outcome, second: &Outcome) {
    if first.messages == second.messages {
        return;
    }
    let rounded =
        request.options.max_output_tokens.is_some() && request.token_counter == Some(NamedCounter::Chars4);
    assert!(rounded, "the second time something changes");
    for (before, after) in verdict(first).decisions.iter().zip(verdict(second).decisions) {
        assert!(
            after.action == "keep" || before.reason == "no_savings",
            "a second time {} goes",
            after.call_id
        );
    }
}

/// Excerpts stay as they are even if smaller ones are wanted now.
fn check_smaller(choice: &Choice<'_>, first: &Outcome, fates: &mut HashMap<String, Fate>) {
    let document = std::str::from_utf8(&first.document).expect("a document is text");
    let wanted = format!("\"preview_chars\":{}", choice.pick(2, &PREVIEW_CHARS));
    let document = document.replacen(&wanted, "\"preview_chars\":0", 1);
    let request = Request::parse(document.as_bytes()).expect("an option was set to another good value");
    assert_eq!(request.options.preview_chars, 0);
    let third = verdict(&carry_out(&request, choice, fates, true));
    for (before, after) in verdict(first).decisions.iter().zip(third.decisions) {
        let is_kept = before.action == "keep" || after.reason == "already_compacted";
        assert!(is_kept, "the excerpt of {} is {} now", after.call_id, after.reason);
    }
}
