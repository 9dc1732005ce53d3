//! Recorded cases of the contract, through the program and over HTTP.

use std::collections::BTreeMap;

use ratoon_testing::comparison::compare_answer;
use ratoon_testing::data::{Case, conformance};
use ratoon_testing::fake_provider::FakeProvider;
use serde_json::Value;

use crate::support::{Place, answer, fed};

/// Cases that the fake provider can answer by its rule alone.
fn cases(file: &str) -> Vec<Case> {
    let is_plain = |case: &Case| {
        case.model.as_object().is_some_and(|model| model.keys().eq(["rule"]))
            && matches!(case.token_counter.as_deref(), None | Some("chars4"))
            && case.expect.get("answer").is_some()
    };
    conformance(file).into_iter().filter(is_plain).collect()
}

#[test]
fn recorded_answers_come_out_of_the_program() {
    let place = Place::new();
    let mut providers: BTreeMap<String, FakeProvider> = BTreeMap::new();
    let (mut passed, mut failed) = (0, Vec::new());
    for case in ["seed.jsonl", "budget.jsonl", "random.jsonl"].into_iter().flat_map(cases) {
        let rule = case.model["rule"].as_str().unwrap().to_owned();
        let provider =
            providers.entry(rule.clone()).or_insert_with(|| FakeProvider::start(&rule, &Value::Null));
        let counter = case.token_counter.map(|name| format!("--token-counter {name}")).unwrap_or_default();
        let arguments = format!(
            "compact - --model typesafe --base-url {} --question plain {counter}",
            provider.base_url()
        );
        let output = fed(place.ratoon(&arguments), case.request.get().as_bytes());
        assert!(output.stderr.is_empty(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
        let differences = compare_answer(&case.expect["answer"], &answer(&output));
        if differences.is_empty() {
            passed += 1;
        } else {
            failed.push(format!("{}: {}", case.name, differences.join("; ")));
        }
    }
    assert!(failed.is_empty() && passed > 100, "{passed} passed\n{}", failed.join("\n"));
}
