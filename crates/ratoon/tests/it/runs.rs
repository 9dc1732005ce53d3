//! Recorded runs of real agents, as they are and with every run of assistant messages joined into one, under
//! usual and extreme options.
//!
//! By default these are the runs of `testdata/runs`, each under some of the options in turn. With `RATOON_RUNS`
//! set to another directory of such files, every run there meets all of the options.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use ratoon::count::NamedCounter;
use ratoon::{Document, Overrides, Settings};
use ratoon_testing::data::runs;
use ratoon_testing::hash_model::Rule;
use ratoon_testing::layouts::join_assistant_messages;
use serde_json::{Value, json};

use crate::support::{Model, always, by_hash, parsed, run_with};

/// Options, and the token counter where they set a budget.
const OPTIONS: [(&str, Option<&str>); 26] = [
    ("{}", None),
    (r#"{"drop_threshold":0}"#, None),
    (r#"{"drop_threshold":1}"#, None),
    (r#"{"drop_threshold":0.1,"preserve_recent_messages":0}"#, None),
    (r#"{"preserve_recent_messages":1,"preview_chars":0}"#, None),
    (r#"{"preserve_recent_messages":100000000000000000000}"#, None),
    (r#"{"preserve_recent_messages":10,"preview_chars":1,"drop_threshold":1}"#, None),
    (r#"{"preserve_recent_messages":0,"preview_chars":2,"drop_threshold":1}"#, None),
    (r#"{"preserve_recent_messages":0,"preview_chars":3,"drop_threshold":1}"#, None),
    (r#"{"preserve_recent_messages":0,"preview_chars":100000}"#, None),
    (r#"{"preserve_recent_messages":0,"evidence_chars":1}"#, None),
    (r#"{"preserve_recent_messages":0,"evidence_chars":2000,"drop_threshold":1}"#, None),
    (r#"{"preserve_recent_messages":0,"max_output_tokens":1,"drop_threshold":1}"#, Some("chars4")),
    (r#"{"preserve_recent_messages":0,"max_output_tokens":100000000000000000000}"#, Some("chars4")),
    (r#"{"preserve_recent_messages":0,"max_output_tokens":1}"#, Some("json_chars")),
    (r#"{"preserve_recent_messages":0,"max_output_tokens":100000000000000000000}"#, Some("json_chars")),
    (r#"{"preserve_recent_messages":2,"max_output_tokens":3000}"#, Some("chars4")),
    (r#"{"recent_unit":"step","max_output_tokens":20000,"drop_threshold":1}"#, Some("json_chars")),
    (r#"{"recent_unit":"step"}"#, None),
    (
        r#"{"recent_unit":"step","protect_unread":true,"skip_unshortenable":true,"keep_output_shape":true}"#,
        None,
    ),
    (
        r#"{"recent_unit":"step","preserve_recent_messages":0,"keep_output_shape":true,"preview_chars":3,"drop_threshold":1}"#,
        None,
    ),
    (
        r#"{"recent_unit":"message","keep_output_shape":true,"drop_threshold":1,"max_output_tokens":1}"#,
        Some("json_chars"),
    ),
    (r#"{"profile":"recommended"}"#, None),
    (r#"{"profile":"recommended","preserve_recent_messages":0,"preview_chars":0,"drop_threshold":1}"#, None),
    (r#"{"preserve_recent_messages":0,"max_state_tokens":3000,"max_request_tokens":4000}"#, None),
    (r#"{"preserve_recent_messages":0,"max_state_tokens":1}"#, None),
];

/// How many of the options each run meets by default.
const TURNS: usize = 2;

#[test]
fn real_runs_keep_the_rules_and_stay_as_proposed() {
    let elsewhere = runs_elsewhere();
    let hash = by_hash(Rule::Hash);
    let zero = always(0.0);
    let models: [(&str, Model<'_>); 2] = [("hash", &hash), ("zero", &zero)];
    let mut tally = Tally::default();
    for (at, run) in runs(elsewhere.clone()).iter().enumerate() {
        let as_is = Given::of(run.messages.get());
        let joined = Given::of(&join_assistant_messages(run.messages.get()));
        for (layout, given) in [("as is", &as_is), ("joined", &joined)] {
            for (number, (options, counter)) in OPTIONS.iter().enumerate() {
                for (which, (name, model)) in models.iter().enumerate() {
                    let turn = (at + number + usize::from(layout == "joined") + 2 * which) % OPTIONS.len();
                    if elsewhere.is_some() || turn < TURNS {
                        let what = format!("{} {layout}, {name}, {options}", run.name);
                        twice(&given.request(options, *counter), model, &what, &mut tally);
                    }
                }
            }
        }
        tally.runs += 1;
    }
    println!("{}", tally.report());
    assert!(tally.runs >= 60, "{}", tally.report());
    assert!(tally.changed * 4 > tally.calls, "hardly anything was cut back: {}", tally.report());
    assert!(tally.cut > 1000 && tally.rounded * 100 < tally.calls, "{}", tally.report());
    for reason in ["compacted", "no_change", "no_candidates", "budget_exceeded"] {
        assert!(tally.reasons.contains_key(reason), "nothing ended in {reason}: {}", tally.report());
    }
}

#[test]
fn counted_in_steps_both_layouts_are_one_run() {
    let model = by_hash(Rule::Hash);
    let (mut compared, mut units) = (0, 0);
    for run in runs(runs_elsewhere()) {
        let as_is = Given::of(run.messages.get());
        let joined = Given::of(&join_assistant_messages(run.messages.get()));
        for preserve in [0, 2, 6, 25] {
            let options = format!(r#"{{"recent_unit":"step","preserve_recent_messages":{preserve}}}"#);
            let asked = |given: &Given| {
                let request = given.request(&options, None);
                let ran = run_with(&parsed(request.as_bytes()), None, &Settings::default(), &model);
                let ran = ran.expect("there is no budget to fail on");
                let texts =
                    |state: &String| -> Value { serde_json::from_str(state).expect("a state is JSON") };
                (ran.asked_calls(), ran.states.iter().map(texts).collect::<Vec<_>>())
            };
            let (left, right) = (asked(&as_is), asked(&joined));
            assert_eq!(left.0, right.0, "{} with {preserve}: other calls are asked about", run.name);
            assert_eq!(left.1, right.1, "{} with {preserve}: other states are sent", run.name);
            compared += 1;
            units += left.0.len();
        }
    }
    assert!(compared >= 240 && units > 1000, "only {units} units in {compared} comparisons");
}

fn runs_elsewhere() -> Option<PathBuf> {
    std::env::var("RATOON_RUNS").ok().map(PathBuf::from)
}

/// Runs a request, then what came out of it.
fn twice(document: &str, model: Model<'_>, what: &str, tally: &mut Tally) {
    let request = parsed(document.as_bytes());
    let first = run_with(&request, None, &Settings::default(), model).expect("built-in counters count");
    assert_eq!(first.violations(&request), [""; 0], "{what}");
    let verdict = first.verdict();
    let stats = &verdict.stats;
    assert_eq!(stats.chars_before, request.snapshot.size(), "{what}");
    let after = Document::parse(&first.document, &Overrides::default());
    let after =
        after.unwrap_or_else(|error| panic!("{what}: the proposal is refused: {error}")).into_request();
    assert_eq!(after.snapshot.json(), first.messages, "{what}");
    assert_eq!(stats.chars_after, after.snapshot.size(), "{what}");
    let limit = request.options.max_output_tokens;
    assert_eq!(verdict.budget_met, limit.and_then(|limit| Some(stats.tokens_after? <= limit)), "{what}");
    assert!(stats.tokens_after <= stats.tokens_before, "{what}");

    let second = run_with(&after, None, &Settings::default(), model).expect("built-in counters count");
    assert_eq!(second.violations(&after), [""; 0], "{what}, second time");
    if second.messages != first.messages {
        // Counted in quarters, a saving of a few characters lowers the count or not, depending on the rest; so
        // under a budget that is not met, what saved nothing the first time may save something the second time.
        assert_eq!(
            request.token_counter,
            Some(NamedCounter::Chars4),
            "{what}: a second time changes something"
        );
        assert_eq!(verdict.budget_met, Some(false), "{what}: a second time changes something");
        for (before, after) in verdict.decisions.iter().zip(second.verdict().decisions) {
            assert!(after.action == "keep" || before.reason == "no_savings", "{what}: {} goes now", after.id);
        }
        tally.rounded += 1;
    }

    tally.calls += 1;
    tally.changed += usize::from(verdict.changed);
    tally.cut += verdict.decisions.iter().filter(|decision| decision.action == "preview").count();
    tally.bytes += document.len();
    *tally.reasons.entry(verdict.reason).or_default() += 1;
}

/// A history with everything a request about it needs.
struct Given {
    messages: String,
    source_refs: Value,
    tools: BTreeSet<String>,
}

impl Given {
    fn of(messages: &str) -> Given {
        let read: Value = serde_json::from_str(messages).expect("recorded messages are JSON");
        let blocks = read
            .as_array()
            .expect("a list")
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten());
        let (mut source_refs, mut tools) = (json!({}), BTreeSet::new());
        for block in blocks.filter(|block| block["type"] == "tool_call") {
            tools.extend(block["name"].as_str().map(str::to_owned));
            if let Some(id) = block["id"].as_str().filter(|id| !id.trim().is_empty()) {
                source_refs[id] = json!(format!("archive/run/{id}"));
            }
        }
        Given { messages: messages.to_owned(), source_refs, tools }
    }

    fn request(&self, options: &str, counter: Option<&str>) -> String {
        let mut request = String::with_capacity(self.messages.len() + 4096);
        let (references, tools) = (&self.source_refs, json!(self.tools));
        write!(
            request,
            r#"{{"messages":{},"next_action":"Finish the task","source_refs":{references},"eligible_tool_names":{tools},"options":{options},"token_counter":{}}}"#,
            self.messages,
            json!(counter)
        )
        .expect("a text takes everything");
        request
    }
}

/// What the test went through.
#[derive(Default)]
struct Tally {
    runs: usize,
    calls: usize,
    changed: usize,
    cut: usize,
    bytes: usize,
    /// Calls whose second time changed something for a rounded count.
    rounded: usize,
    reasons: BTreeMap<String, usize>,
}

impl Tally {
    fn report(&self) -> String {
        let Tally { runs, calls, changed, cut, bytes, rounded, reasons } = self;
        let megabytes = bytes / 1_000_000;
        format!(
            "{runs} runs, {calls} calls ({megabytes} MB), each twice: {changed} changed, {cut} results cut, \
             {rounded} differ by rounding, {reasons:?}"
        )
    }
}
