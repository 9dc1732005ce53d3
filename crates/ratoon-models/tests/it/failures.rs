//! The recorded failures of requests, driven for real: some fail, some never return, some wait in the queue.

use ratoon::model::{Decide, Reply};
use ratoon::{Answer, DecisionModel, DecisionRequest, FailureKind, ModelError, Request};
use ratoon_testing::comparison::{compare_answer, differences};
use ratoon_testing::data::conformance;
use ratoon_testing::exact;
use ratoon_testing::hash_model::{HashModel, Planned, PlannedAnswer, plan};
use serde_json::{Map, Value, json};
use std::sync::Mutex;

use crate::calls::propose;

/// The decision model of the recorded cases.
#[derive(Debug)]
struct Recorded {
    model: HashModel,
    /// What it was asked, in the order of the starts.
    asked: Mutex<Vec<Value>>,
}

impl DecisionModel for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn decide<'a>(&'a self, request: &'a DecisionRequest<'a>) -> Decide<'a> {
        let ids: Vec<&str> = request.questions.iter().map(|question| question.id).collect();
        let question = json!({"type": "binary", "instructions": "<instructions>"});
        let questions: Map<String, Value> =
            ids.iter().map(|id| ((*id).to_owned(), question.clone())).collect();
        self.asked
            .lock()
            .unwrap()
            .push(json!({"state": exact::value(&request.state.json()), "questions": questions}));
        let planned = self.model.reply(&ids, &request.state.json());
        Box::pin(async move {
            match planned {
                Planned::Answers(answers, usage) => {
                    let usage = usage.map(|usage| serde_json::value::to_raw_value(&usage).unwrap());
                    let answers = answers.into_iter().filter_map(|(id, answer)| match answer {
                        PlannedAnswer::Binary(value) => Some((id, Answer::Binary(value))),
                        PlannedAnswer::Unusable => Some((id, Answer::Unusable)),
                        PlannedAnswer::Missing => None,
                    });
                    Ok(Reply { answers: answers.collect(), usage })
                }
                Planned::Fail => Err(ModelError::new(FailureKind::Provider, "the provider failed", 1)),
                Planned::Hang => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn recorded_failures_come_out() {
    let cases = conformance("failures.jsonl");
    assert_eq!(cases.iter().filter(|case| case.tags.iter().any(|tag| tag == "timing")).count(), 2);
    for case in cases {
        let request = Request::parse(case.request.get().as_bytes()).expect("a request");
        let model = Recorded { model: plan(&case.model), asked: Mutex::default() };
        let proposal = propose(&request, &model).await;
        let mut found = compare_answer(&case.expect["answer"], &exact::value(&proposal.answer_json()));
        let asked = Value::Array(model.asked.into_inner().unwrap());
        found.extend(differences(&case.expect["decision_requests"], &asked));
        assert!(found.is_empty(), "{}: {}", case.name, found.join("\n"));
    }
}
