//! The decision model of the conformance cases: probabilities from a documented hash of the evidence unit, with
//! scripted exceptions. The rule is that of `testdata/tools/fake_systemone.py`, section 2.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the model does with one decision request.
#[derive(Debug, Clone, PartialEq)]
pub enum Planned {
    /// It answers: one entry per question, in the order of the questions, and the reported usage.
    Answers(Vec<(String, PlannedAnswer)>, Option<Value>),
    /// The request fails with a provider error.
    Fail,
    /// The request never returns; only a deadline or a cancellation ends it.
    Hang,
}

/// What the model says to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlannedAnswer {
    /// A well-typed binary answer; the number may still be useless (not finite, or outside 0 to 1).
    Binary(f64),
    /// An answer without a number: text, boolean, null, another answer type.
    Unusable,
    /// No entry under the name of the question.
    Missing,
}

/// How a probability follows from an evidence unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// 0.000 to 1.000.
    Hash,
    /// 0.000 to 0.150.
    HashLow,
    /// 0, 0.05, 0.10, 0.15 or 0.20, so that many are equal.
    HashTies,
    /// Always the same.
    Const(f64),
}

impl Rule {
    /// Reads `hash`, `hash-low`, `hash-ties` or `const:P`.
    pub fn parse(rule: &str) -> Rule {
        match rule {
            "hash" => Rule::Hash,
            "hash-low" => Rule::HashLow,
            "hash-ties" => Rule::HashTies,
            _ => {
                let number = rule.strip_prefix("const:").and_then(|number| number.parse().ok());
                Rule::Const(number.unwrap_or_else(|| panic!("unknown rule: {rule:?}")))
            }
        }
    }

    /// The probability of the unit with these texts, exactly as they stand in the evidence unit.
    pub fn probability(self, id: &str, tool: &str, input: &str) -> f64 {
        let digest = Sha256::digest(format!("{id}\u{1f}{tool}\u{1f}{input}"));
        let head: [u8; 8] = digest[..8].try_into().expect("a digest is longer than eight bytes");
        let hash = u64::from_be_bytes(head);
        match self {
            Rule::Hash => (hash % 1001) as f64 / 1000.0,
            Rule::HashLow => (hash % 151) as f64 / 1000.0,
            Rule::HashTies => (hash % 5) as f64 / 20.0,
            Rule::Const(probability) => probability,
        }
    }
}

/// The decision model that the `model` object of a conformance case describes.
#[derive(Debug, Clone)]
pub struct HashModel {
    rule: Rule,
    answers: HashMap<String, PlannedAnswer>,
    fail: Vec<String>,
    hang: Vec<String>,
    reports_usage: bool,
}

/// Reads the `model` object of a conformance case.
pub fn plan(model: &Value) -> HashModel {
    let names = |key: &str| -> Vec<String> {
        model[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let answers = model["answers"].as_object().into_iter().flatten();
    HashModel {
        rule: Rule::parse(model["rule"].as_str().expect("a model has a rule")),
        answers: answers.map(|(id, answer)| (id.clone(), planned(answer))).collect(),
        fail: names("fail"),
        hang: names("hang"),
        // Only an explicit null silences the usage; without the key it is reported.
        reports_usage: model.get("usage") != Some(&Value::Null),
    }
}

impl HashModel {
    /// What to reply to these questions about this state (compact JSON text).
    ///
    /// A request that holds both a failing and a hanging question fails: a provider that reports an error does not
    /// wait for the rest of its work.
    pub fn reply(&self, questions: &[impl AsRef<str>], state: &str) -> Planned {
        let asks = |names: &[String]| questions.iter().any(|id| names.iter().any(|name| name == id.as_ref()));
        if asks(&self.fail) {
            return Planned::Fail;
        }
        if asks(&self.hang) {
            return Planned::Hang;
        }
        let units = units(state);
        let answer = |id: &str| match self.answers.get(id) {
            Some(answer) => *answer,
            None => {
                // A question without a unit hashes like a unit without texts, as the fake server does it.
                let (tool, input) = units.get(id).map_or(("", ""), |unit| (&unit.tool, &unit.input));
                PlannedAnswer::Binary(self.rule.probability(id, tool, input))
            }
        };
        let answers = questions.iter().map(|id| (id.as_ref().to_owned(), answer(id.as_ref()))).collect();
        Planned::Answers(answers, self.reports_usage.then(|| usage(state, questions.len())))
    }
}

/// The usage that the fake models report.
pub(crate) fn usage(state: &str, questions: usize) -> Value {
    json!({"input_tokens": state.chars().count(), "output_tokens": questions})
}

fn planned(answer: &Value) -> PlannedAnswer {
    if let Some(number) = answer.as_f64() {
        return PlannedAnswer::Binary(number);
    }
    match answer.as_str() {
        Some("missing") => PlannedAnswer::Missing,
        Some("nan") => PlannedAnswer::Binary(f64::NAN),
        Some("inf") => PlannedAnswer::Binary(f64::INFINITY),
        Some("neg_inf") => PlannedAnswer::Binary(f64::NEG_INFINITY),
        Some("negative") => PlannedAnswer::Binary(-0.25),
        Some("above_one") => PlannedAnswer::Binary(1.5),
        Some("int_zero") => PlannedAnswer::Binary(0.0),
        Some("int_one") => PlannedAnswer::Binary(1.0),
        Some("neg_zero") => PlannedAnswer::Binary(-0.0),
        Some("string" | "bool" | "null" | "wrong_type" | "no_type" | "no_value") => PlannedAnswer::Unusable,
        _ => panic!("unknown answer: {answer}"),
    }
}

/// The texts of an evidence unit that the hash takes.
#[derive(Deserialize)]
struct Unit {
    id: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    input: String,
}

fn units(state: &str) -> HashMap<String, Unit> {
    /// The part of the state that matters here.
    #[derive(Deserialize)]
    struct State {
        #[serde(default)]
        evidence_units: Vec<Unit>,
    }
    let state: State =
        serde_json::from_str(state).unwrap_or_else(|error| panic!("unreadable state: {error}"));
    state.evidence_units.into_iter().map(|unit| (unit.id.clone(), unit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    const STATE: &str =
        r#"{"goal":"読","evidence_units":[{"id":"t1","tool":"search_code","input":"{\"path\":\"icons\"}"}]}"#;

    #[test]
    fn self_check_values_of_the_fake_server() {
        let units =
            [("t1", "search_code", r#"{"path":"icons"}"#), ("t1", "", ""), ("t2", "读取", r#"{"q":"é😀"}"#)];
        let expected = [
            ("hash", [0.756, 0.643, 0.372]),
            ("hash-low", [0.008, 0.073, 0.076]),
            ("hash-ties", [0.15, 0.0, 0.0]),
            ("const:0.1", [0.1; 3]),
        ];
        for (rule, values) in expected {
            assert_eq!(units.map(|(id, tool, input)| Rule::parse(rule).probability(id, tool, input)), values);
        }
    }

    #[test]
    fn answers_come_in_question_order_with_usage() {
        let model = plan(&json!({"rule": "hash", "answers": {"t3": "missing", "t4": 0.25}}));
        let expected = [
            ("t4", PlannedAnswer::Binary(0.25)),
            ("t1", PlannedAnswer::Binary(0.756)),
            ("t3", PlannedAnswer::Missing),
        ];
        let expected = expected.map(|(id, answer)| (id.to_owned(), answer)).to_vec();
        let usage = json!({"input_tokens": STATE.chars().count(), "output_tokens": 3});
        assert_eq!(model.reply(&["t4", "t1", "t3"], STATE), Planned::Answers(expected, Some(usage)));
    }

    #[test]
    fn usage_null_means_no_usage() {
        let model = plan(&json!({"rule": "const:0.5", "usage": null}));
        let expected = vec![("t1".to_owned(), PlannedAnswer::Binary(0.5))];
        assert_eq!(model.reply(&["t1"], STATE), Planned::Answers(expected, None));
    }

    #[test]
    fn failing_comes_before_hanging() {
        let model = plan(&json!({"rule": "hash", "fail": ["t5"], "hang": ["t2"]}));
        assert_eq!(model.reply(&["t2"], STATE), Planned::Hang);
        assert_eq!(model.reply(&["t1", "t5"], STATE), Planned::Fail);
        assert_eq!(model.reply(&["t2", "t5"], STATE), Planned::Fail);
    }

    #[test]
    fn recorded_probabilities_come_out() {
        for case in data::conformance("random.jsonl") {
            let model = plan(&case.model);
            for request in case.expect["decision_requests"].as_array().expect("requests are a list") {
                let ids: Vec<&String> = request["questions"].as_object().expect("an object").keys().collect();
                let Planned::Answers(answers, _) = model.reply(&ids, &request["state"].to_string()) else {
                    continue;
                };
                for decision in case.expect["answer"]["decisions"].as_array().into_iter().flatten() {
                    let planned = answers.iter().find(|(id, _)| *id == decision["id"]);
                    if let (Some((_, PlannedAnswer::Binary(planned))), Some(recorded)) =
                        (planned, decision["probability"].as_f64())
                    {
                        assert_eq!(*planned, recorded, "{}", case.name);
                    }
                }
            }
        }
    }
}
