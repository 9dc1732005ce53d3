//! A decision model behind HTTP, served by the fake provider.

use ratoon_testing::fake_provider::FakeProvider;
use serde_json::{Value, json};

use crate::support::{Place, answer, cut, shown};

fn arguments(provider: &FakeProvider, more: &str) -> String {
    format!("compact run.json --model agentscope --base-url {} {more}", provider.base_url())
}

#[test]
fn a_remote_model_decides() {
    let provider = FakeProvider::start("const:0.02", &Value::Null);
    let place = Place::with_run("taubench-airline-014");
    let found = answer(&place.ratoon(&arguments(&provider, "--json")).output().unwrap());
    assert!(!cut(&found).is_empty());
    let question = &provider.requests()[0]["body"]["questions"];
    let question = question.as_object().unwrap().values().next().unwrap();
    assert!(question["criteria"]["true"].is_string(), "{question}");
    place.ratoon(&arguments(&provider, "--json --question plain")).output().unwrap();
    let question = &provider.requests()[1]["body"]["questions"];
    let question = question.as_object().unwrap().values().next().unwrap();
    assert!(question.get("criteria").is_none(), "{question}");
}

#[test]
fn a_second_round_with_a_remote_model_changes_nothing() {
    let provider = FakeProvider::start("hash-low", &Value::Null);
    let place = Place::with_run("pi-sessions-001");
    let first = answer(&place.ratoon(&arguments(&provider, "--json")).output().unwrap());
    assert!(cut(&first).len() > 10);
    place.ratoon(&arguments(&provider, "--messages two.json")).output().unwrap();
    let again = arguments(&provider, "--json").replace("run.json", "two.json");
    let second = answer(&place.ratoon(&again).output().unwrap());
    assert_eq!(second["changed"], false);
    assert_eq!(second["messages"], first["messages"]);
}

#[test]
fn a_failing_provider_is_a_warning() {
    let script = json!({"default": {"status": 401, "body": {"detail": "secret of the provider"}}});
    let provider = FakeProvider::start("const:0.02", &script);
    let place = Place::with_run("taubench-airline-014");
    let output = place.ratoon(&arguments(&provider, "--json")).output().unwrap();
    assert!(cut(&answer(&output)).is_empty());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"warning: 1 of 1 request to the decision model failed: HTTP 401 from the decision model after 1 attempt; its results are kept");
}

#[test]
fn some_requests_may_fail() {
    let provider = FakeProvider::start("const:0.02", &Value::Null);
    let place = Place::with_run("pi-sessions-001");
    let whole = answer(&place.ratoon(&arguments(&provider, "--json")).output().unwrap());
    let decisions = whole["decisions"].as_array().unwrap();
    let asked = decisions.iter().find(|decision| decision["action"] == "preview").unwrap();
    provider.script(&json!({"rules": [{"match": {"question": asked["id"]}, "action": {"status": 503}}]}));
    let more = "-o answer.json --option max_state_tokens=8000";
    let output = place.ratoon(&arguments(&provider, more)).output().unwrap();
    insta::assert_snapshot!(shown(&output), @r"
    exit 0
    --- stdout
    --- stderr
    warning: 1 of 3 requests to the decision model failed: HTTP 503 from the decision model after 2 attempts; its results are kept
    15 of 120 results cut back, 179,447 -> 159,716 characters; wrote answer.json
    ");
}

#[test]
fn a_deadline_is_a_warning_and_a_hint() {
    let provider = FakeProvider::start("const:0.02", &json!({"default": {"hang": true}}));
    let place = Place::with_run("intercode-ctf-001");
    let more = "--explain --option total_timeout_seconds=0.3 --option preserve_recent_messages=12";
    let output = place.ratoon(&arguments(&provider, more)).output().unwrap();
    let shown = shown(&output);
    insta::assert_snapshot!(shown.split_once("\n\n").unwrap().1, @"
    id        tool    size  need  decision  reason                         saved
    call_001  shell     22        keep      an excerpt would save nothing
    call_002  shell  1,376        keep      no answer before the deadline
    call_003  shell  1,377        keep      no answer before the deadline
    call_004  shell      1        keep      among the newest 12 steps
    call_005  shell      3        keep      among the newest 12 steps
    call_006  shell  5,349        keep      among the newest 12 steps
    call_007  shell  1,377        keep      among the newest 12 steps
    call_008  shell    173        keep      among the newest 12 steps
    call_009  shell    691        keep      among the newest 12 steps
    call_010  shell  1,379        keep      among the newest 12 steps
    call_011  shell    691        keep      among the newest 12 steps
    call_012  shell  1,379        keep      among the newest 12 steps
    call_013  shell      3        keep      among the newest 12 steps
    call_014  shell      3        keep      among the newest 12 steps
    call_015  shell    691        keep      among the newest 12 steps

    characters  23,755, unchanged
    results     15: 0 cut, 15 kept; 3 candidates, 12 protected
    protected   12 recent
    model       agentscope, 1 request, <time>
    hint: 2 results without an answer after <time>; raise --option total_timeout_seconds
    --- stderr
    warning: 1 of 1 request to the decision model failed: the deadline of the call passed before the answer came; its results are kept
    ");
}
