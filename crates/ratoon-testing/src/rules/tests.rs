//! Good and bad answers by hand, and every recorded answer of the reference.

use serde_json::json;

use super::*;
use crate::{data, exact};

const INPUT: &str = r#"[ {"role":"user","content":[{"type":"text","text":"go"}], "n":1.50},
  {"role":"assistant","content":[{"type":"thinking","thinking":"nobody may see this","x":"\u00e9"},
   {"type":"tool_call","id":"c1","name":"grep","input":"{}"},
   {"type":"tool_result","id":"c1","id":"c1","output" : "OUT","state":"success","n":1E2},
   {"type":"tool_result","id":"c2","output":"kept","state":"error"}, {"type":"tool_result","id":7,"output":[]}]} ]"#;

fn input() -> String {
    INPUT.replace("OUT", &"0123456789".repeat(20))
}

fn preview() -> String {
    INPUT.replace("OUT", r"01234\n…\n789\n[Compacted output. Recover from: r/1]")
}

fn answer(messages: &str, action: &str, changed: bool) -> String {
    let reason = if changed { "compacted" } else { "no_change" };
    format!(
        r#"{{"messages": {messages}, "decisions": [
            {{"id":"t1","call_id":"c1","action":"{action}","reason":"x","probability":0.05,"source_ref":"r/1"}},
            {{"id":"t2","call_id":"c2","action":"keep","reason":"x","probability":null,"source_ref":null}}],
        "changed": {changed}, "reason": "{reason}", "stats": {{"skipped": [{{"call_id": 7.0e0, "reason": "no_call"}}]}}}}"#
    )
    .replace("7.0e0", "7")
}

fn violations(answer: &str) -> Vec<String> {
    let source_refs = HashMap::from([("c1".to_owned(), "r/1".to_owned())]);
    check_general_rules(&input(), answer, &source_refs, &[])
}

fn previewed(change: impl Fn(&str) -> String) -> Vec<String> {
    violations(&answer(&change(&preview()), "preview", true))
}

#[test]
fn good_answers_pass() {
    assert_eq!(violations(&answer(&input(), "keep", false)), [""; 0]);
    assert_eq!(violations(&answer(&preview(), "preview", true)), [""; 0]);
}

#[test]
fn every_byte_around_the_outputs_counts() {
    let outside = ["the proposal differs outside the outputs of results"];
    assert_eq!(previewed(|text| text.replacen("[ {", "[{", 1)), outside);
    assert_eq!(previewed(|text| text.replace(r#", "n":1.50"#, r#", "n":1.5"#)), outside);
    assert_eq!(
        previewed(
            |text| text.replace(r#"}, {"type":"tool_result","id":7"#, r#"},{"type":"tool_result","id":7"#)
        ),
        outside
    );
    assert_eq!(
        previewed(|text| text.replace(r"\u00e9", "é")),
        ["block 0 of message 1 differs and is not a result"]
    );
    let result = ["block 2 of message 1 differs outside its output"];
    assert!(previewed(|text| text.replace("1E2", "100")).starts_with(&result.map(str::to_owned)));
    assert!(
        previewed(|text| text.replace(r#""output" :"#, r#""output":"#))
            .starts_with(&result.map(str::to_owned))
    );
    assert!(
        previewed(|text| text.replace(r#""id":"c1","id":"c1""#, r#""id":"c1""#))
            .starts_with(&result.map(str::to_owned))
    );
}

#[test]
fn nothing_is_added_or_deleted() {
    let fewer = previewed(|text| text.replace(r#", {"type":"tool_result","id":7,"output":[]}"#, ""));
    assert_eq!(fewer, ["5 blocks of message 1 became 4"]);
    let more = previewed(|text| text.trim_end().strip_suffix(']').unwrap().to_owned() + ",{}]");
    assert_eq!(more, ["2 messages became 3"]);
}

#[test]
fn previews_are_checked() {
    let own_words = previewed(|text| text.replace("01234", "digits"));
    assert_eq!(own_words, [r#"the output of "c1" has an excerpt that is not verbatim"#]);
}

#[test]
fn decisions_and_changes_must_agree() {
    let unchanged = violations(&answer(&input(), "preview", false));
    assert_eq!(unchanged, [r#"the decision for "c1" is a preview, but the output is unchanged"#]);
    let denied = violations(&answer(&preview(), "keep", true));
    assert_eq!(denied, [r#"the decision for "c1" is not a preview, but the output changed"#]);
    let undecided =
        violations(&answer(&preview(), "preview", true).replace(r#""call_id":"c1""#, r#""call_id":"c9""#));
    assert!(
        undecided.contains(&r#"the output of "c1" changed without a decision"#.to_owned()),
        "{undecided:?}"
    );
    assert!(undecided.contains(&r#"the decision for "c9" is about no result of the input"#.to_owned()));
}

#[test]
fn doubt_keeps() {
    let good = answer(&preview(), "preview", true);
    let expected = [r#"the decision for "c1" previews without a usable probability"#];
    assert_eq!(violations(&good.replace("0.05", "null")), expected);
    assert_eq!(violations(&good.replace("0.05", "1.5")), expected);
    let reference = violations(&good.replace(r#""source_ref":"r/1""#, r#""source_ref":"r/2""#));
    assert_eq!(reference, [r#"the decision for "c1" previews with another reference"#]);
}

#[test]
fn an_ambiguous_id_is_never_cut() {
    let twice = |text: String| text.replace(r#""id":"c2""#, r#""id":"c1""#);
    let answer = answer(&twice(preview()), "preview", true);
    let source_refs = HashMap::from([("c1".to_owned(), "r/1".to_owned())]);
    let found = check_general_rules(&twice(input()), &answer, &source_refs, &[]);
    assert!(
        found.contains(&r#"the output of "c1" changed although the id is ambiguous"#.to_owned()),
        "{found:?}"
    );
}

#[test]
fn the_summary_must_be_true() {
    assert_eq!(violations(&answer(&preview(), "preview", false)).len(), 1);
    assert_eq!(violations(&answer(&input(), "keep", true)).len(), 1);
    let reason = answer(&input(), "keep", false).replace("no_change", "compacted");
    assert_eq!(violations(&reason).len(), 1);
}

#[test]
fn every_result_is_accounted_for() {
    let silent = answer(&input(), "keep", false).replace(r#"{"call_id": 7, "reason": "no_call"}"#, "");
    assert_eq!(violations(&silent), ["the result of 7 is neither decided nor listed as skipped"]);
    let lax = Demands { skipped_listed: false, ..Demands::default() };
    assert_eq!(check_general_rules_with(&input(), &silent, &HashMap::new(), &[], lax), [""; 0]);
    let as_text = answer(&input(), "keep", false).replace(r#""call_id": 7"#, r#""call_id": "7""#);
    assert_eq!(violations(&as_text).len(), 1);
}

#[test]
fn undecodable_ids_are_compared_by_spelling() {
    let lone = |text: String| {
        text.replace(r#""id":7"#, r#""id":"\ud800""#).replace(r#""call_id": 7"#, r#""call_id": "\ud800""#)
    };
    let answer = lone(answer(&input(), "keep", false));
    assert_eq!(check_general_rules(&lone(input()), &answer, &HashMap::new(), &[]), [""; 0]);
}

#[test]
fn secrets_stay_here() {
    let answer = answer(&input(), "keep", false);
    let sent = [json!({"goal": "nobody may see this"}).to_string()];
    let found = check_general_rules(&input(), &answer, &HashMap::new(), &sent);
    assert_eq!(found, ["thinking of 19 characters was sent to the model"]);
}

#[test]
fn what_cannot_be_read_is_reported() {
    for (input, answer) in
        [("{}", "{}"), ("[]", "[]"), ("[]", "{\"messages\":[]}"), ("[]", "{\"messages\":[}")]
    {
        assert_eq!(check_general_rules(input, answer, &HashMap::new(), &[]).len(), 1);
    }
}

#[test]
fn every_recorded_answer_keeps_the_rules() {
    let demands = Demands { skipped_listed: false, ..Demands::default() };
    let mut previews = 0;
    for case in data::conformance_files().iter().flat_map(|file| data::conformance(file)) {
        let Some(answer) = case.expect.get("answer") else { continue };
        let request = exact::value(case.request.get());
        let source_refs = request.get("source_refs").cloned().unwrap_or(json!({}));
        let source_refs: HashMap<String, String> = serde_json::from_value(source_refs).unwrap();
        let sent: Vec<String> = case.expect["decision_requests"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|request| request["state"].to_string())
            .collect();
        let input = request["messages"].to_string();
        let found = check_general_rules_with(&input, &answer.to_string(), &source_refs, &sent, demands);
        assert_eq!(found, [""; 0], "{}", case.name);
        previews += usize::from(answer["changed"] == true);
    }
    assert!(previews > 100, "only {previews} recorded answers have previews");
}
