//! The decision model of the hostile cases: a default probability and exceptions by call id, as the
//! `decision_model` object of a file in `testdata/cases` describes it.

use std::collections::HashMap;

use serde_json::Value;

use crate::hash_model::{Planned, PlannedAnswer, usage};

/// The decision model of one hostile case.
#[derive(Debug, Clone)]
pub struct CaseModel {
    default: PlannedAnswer,
    by_call_id: HashMap<String, Exception>,
}

#[derive(Debug, Clone, Copy)]
enum Exception {
    Answer(PlannedAnswer),
    FailsRequest,
}

/// Reads the `decision_model` object of a hostile case.
pub fn plan(decision_model: &Value) -> CaseModel {
    let exceptions = decision_model["by_call_id"].as_object().into_iter().flatten();
    CaseModel {
        // Where the file gives no default, every question that matters is listed; the rest gets no answer.
        default: decision_model["default"].as_f64().map_or(PlannedAnswer::Missing, PlannedAnswer::Binary),
        by_call_id: exceptions.map(|(call_id, spec)| (call_id.clone(), exception(spec))).collect(),
    }
}

impl CaseModel {
    /// What to reply to these questions about this state (compact JSON text); `call_id_of` says to which call the
    /// unit behind a question belongs.
    pub fn reply(
        &self,
        questions: &[impl AsRef<str>],
        state: &str,
        call_id_of: impl Fn(&str) -> Option<String>,
    ) -> Planned {
        let mut answers = Vec::with_capacity(questions.len());
        for id in questions.iter().map(AsRef::as_ref) {
            let answer = match call_id_of(id).and_then(|call_id| self.by_call_id.get(&call_id)) {
                Some(Exception::FailsRequest) => return Planned::Fail,
                Some(Exception::Answer(answer)) => *answer,
                None => self.default,
            };
            answers.push((id.to_owned(), answer));
        }
        Planned::Answers(answers, Some(usage(state, questions.len())))
    }
}

fn exception(spec: &Value) -> Exception {
    if let Some(number) = spec.as_f64() {
        return Exception::Answer(PlannedAnswer::Binary(number));
    }
    if let Some(raw) = spec.get("raw") {
        let number = raw["noul"].as_f64().filter(|_| raw["type"] == "noul");
        return Exception::Answer(number.map_or(PlannedAnswer::Unusable, PlannedAnswer::Binary));
    }
    match spec["fail"].as_str() {
        Some("missing") => Exception::Answer(PlannedAnswer::Missing),
        Some("error") => Exception::FailsRequest,
        _ => panic!("unknown answer of a decision model: {spec}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;
    use serde_json::json;

    fn answers(model: &Value, call_ids: &[&str]) -> Option<Vec<PlannedAnswer>> {
        let ids: Vec<String> = (1..=call_ids.len()).map(|number| format!("t{number}")).collect();
        let call_id_of =
            |id: &str| ids.iter().position(|found| found == id).map(|at| call_ids[at].to_owned());
        match plan(model).reply(&ids, "{}", call_id_of) {
            Planned::Answers(answers, usage) => {
                assert_eq!(usage, Some(json!({"input_tokens": 2, "output_tokens": ids.len()})));
                Some(answers.into_iter().map(|(_, answer)| answer).collect())
            }
            Planned::Fail | Planned::Hang => None,
        }
    }

    #[test]
    fn exceptions_beat_the_default() {
        use PlannedAnswer::{Binary, Missing, Unusable};
        let model = json!({"default": 0.02, "by_call_id": {"b": 0.9, "c": {"raw": {"type": "noul", "noul": "0.01"}},
            "d": {"raw": {"type": "noul", "noul": -0.01}}, "e": {"raw": null}, "f": {"fail": "missing"}}});
        let expected = vec![Binary(0.02), Binary(0.9), Unusable, Binary(-0.01), Unusable, Missing];
        assert_eq!(answers(&model, &["a", "b", "c", "d", "e", "f"]), Some(expected));
    }

    #[test]
    fn one_failing_unit_fails_its_request() {
        let model = json!({"default": 0.02, "by_call_id": {"b": {"fail": "error"}}});
        assert_eq!(answers(&model, &["a", "b"]), None);
        assert!(answers(&model, &["a", "c"]).is_some());
    }

    #[test]
    fn every_recorded_model_is_understood() {
        for case in data::cases() {
            plan(&case.decision_model);
        }
    }
}
