//! What the offline model can prove, and what it cannot.

use ratoon::Request;
use ratoon_models::Rules;
use serde_json::{Value, json};

use crate::calls::{history, propose};

/// The probability of each pair; `None` where it was not asked.
async fn needs(calls: &[(&str, Value, Value)]) -> Vec<Option<f64>> {
    of_request(&history(calls)).await
}

async fn of_request(request: &str) -> Vec<Option<f64>> {
    let request = Request::parse(request.as_bytes()).expect("a request");
    let proposal = propose(&request, &Rules).await;
    assert!(proposal.stats.usage.is_empty() && proposal.stats.failures.is_empty());
    proposal.decisions.iter().map(|decision| decision.probability.map(|need| need.get())).collect()
}

const GONE: Option<f64> = Some(0.0);
const STAYS: Option<f64> = Some(0.5);

fn long(seed: &str) -> Value {
    json!(format!("{seed} \"é\"\n").repeat(200))
}

#[tokio::test]
async fn an_equal_later_text_of_any_tool_is_proof() {
    let calls = [
        ("read", json!({"p": 1}), long("a")),
        ("grep", json!({}), long("b")),
        ("cat", json!({"q": 2}), long("a")),
    ];
    assert_eq!(needs(&calls).await, [GONE, STAYS, STAYS]);
}

#[tokio::test]
async fn a_chain_ends_in_one_that_stays() {
    let call = |text: &str| ("read", json!({"p": 1}), long(text));
    assert_eq!(needs(&[call("a"), call("a"), call("a"), call("a")]).await, [GONE, GONE, GONE, STAYS]);
    // Equal to the second, which the third holds.
    let longer = ("read", json!({"p": 1}), json!(format!("{}more", long("a").as_str().unwrap())));
    assert_eq!(needs(&[("cat", json!({}), long("a")), call("a"), longer]).await, [GONE, GONE, STAYS]);
}

#[tokio::test]
async fn a_repeat_that_holds_the_text_is_proof() {
    let call = |arguments: Value, text: &str| ("read", arguments, json!(text));
    let calls = [
        call(json!({"p": 1, "q": [1.0]}), "one"),
        call(json!({"p": 1, "q": [1.0]}), "unrelated"),
        call(json!({"p": 1, "q": [1.0]}), "zero one two"),
    ];
    assert_eq!(needs(&calls).await, [GONE, STAYS, STAYS], "the last repeat");
    let calls = [call(json!({}), "one"), call(json!({}), "zero one two"), call(json!({}), "unrelated")];
    assert_eq!(needs(&calls).await, [GONE, STAYS, STAYS], "the next repeat");
}

#[tokio::test]
async fn containment_counts_only_in_the_same_call() {
    let holds = json!("zero one two");
    for other in [("grep", json!({"p": 1}), holds.clone()), ("read", json!({"p": 2}), holds)] {
        assert_eq!(needs(&[("read", json!({"p": 1}), json!("one")), other]).await, [STAYS, STAYS]);
    }
}

#[tokio::test]
async fn spelling_does_not_matter() {
    let request = history(&[
        ("read", json!({"a": 1, "b": 2}), json!("caf\u{e9}")),
        (
            "read",
            json!({"a": 1, "b": 2}),
            json!([{"type": "text", "text": "the"}, {"type": "text", "text": "caf\u{e9}"}]),
        ),
    ]);
    let respelled =
        request.replacen("caf\u{e9}", "caf\\u00e9", 1).replacen(r#"{\"a\":1,"#, r#"{ \"a\": 1, "#, 1);
    assert_ne!(request, respelled);
    assert_eq!(of_request(&respelled).await, [GONE, STAYS]);
}

#[tokio::test]
async fn an_earlier_copy_is_no_proof() {
    let calls = [("read", json!({}), json!("zero one two")), ("read", json!({}), json!("one"))];
    assert_eq!(needs(&calls).await, [STAYS, STAYS]);
}

/// Results of parallel calls come back in any order; what counts is where the text stands.
#[tokio::test]
async fn later_means_the_place_of_the_result() {
    let call =
        |id: &str| json!({"type": "tool_call", "id": id, "name": "read", "input": "{}", "state": "finished"});
    let result = |id: &str, text: &str| json!({"type": "tool_result", "id": id, "name": "read", "output": text, "state": "success"});
    let text = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let request = json!({
        "messages": [text("Start"), {"role": "assistant", "content": [
            call("a"), call("b"), result("b", "one"), result("a", "zero one two")]}, text("Go on")],
        "goal": "g", "source_refs": {"a": "x/a", "b": "x/b"}, "eligible_tool_names": ["read"],
        "options": {"preserve_recent_messages": 1}});
    assert_eq!(of_request(&request.to_string()).await, [STAYS, GONE]);
}

#[tokio::test]
async fn a_protected_later_result_counts() {
    let mut request: Value =
        serde_json::from_str(&history(&[("read", json!({}), long("a")), ("cat", json!({}), long("a"))]))
            .unwrap();
    request["protected_call_ids"] = json!(["c2"]);
    assert_eq!(of_request(&request.to_string()).await, [GONE, None]);
    request["messages"][1]["content"][3]["state"] = json!("error");
    assert_eq!(of_request(&request.to_string()).await, [GONE, None]);
}

#[tokio::test]
async fn what_is_no_pair_or_no_text_proves_nothing() {
    let mut request: Value = serde_json::from_str(&history(&[
        ("read", json!({}), long("a")),
        ("cat", json!({}), long("a")),
        ("cat", json!({}), json!([{"type": "image"}])),
    ]))
    .unwrap();
    let again = request["messages"][1]["content"][3].clone();
    request["messages"][1]["content"].as_array_mut().unwrap().push(again);
    assert_eq!(of_request(&request.to_string()).await, [STAYS, None]);
}

#[tokio::test]
async fn empty_texts_are_not_judged() {
    let call = || ("read", json!({}), json!(""));
    assert_eq!(needs(&[call(), call()]).await, [STAYS, STAYS]);
}

/// Two different lone surrogates decode to the same replacement character.
#[tokio::test]
async fn invalid_unicode_proves_nothing() {
    let request = history(&[("read", json!({}), json!("a\u{fffd}")), ("read", json!({}), json!("LONE"))]);
    assert_eq!(of_request(&request.replace("LONE", "a\\ud800")).await, [STAYS, None]);
}

/// Without a limit this would search 30 gigabytes.
#[tokio::test]
async fn many_repeats_before_a_long_one_end_soon() {
    let mut calls: Vec<(&str, Value, Value)> =
        (0..15_000).map(|at| ("read", json!({}), json!(format!("z{at}")))).collect();
    calls.push(("read", json!({}), json!("y".repeat(2_000_000))));
    let found = needs(&calls).await;
    assert!(found.iter().all(|need| *need == STAYS));
}

#[tokio::test]
async fn what_is_proven_is_cut_and_the_proof_stays_whole() {
    let request = history(&[("read", json!({}), long("a")), ("read", json!({}), long("a"))]);
    let request = Request::parse(request.as_bytes()).unwrap();
    let proposal = propose(&request, &Rules).await;
    assert!(proposal.changed());
    let messages: Value = serde_json::from_str(&proposal.messages_json()).unwrap();
    let output = |block: usize| messages[1]["content"][block]["output"].clone();
    assert!(output(1).as_str().unwrap().contains("archive/c1"));
    assert_eq!(output(3), long("a"));
    assert_eq!(proposal.stats.model, "rules");
}
