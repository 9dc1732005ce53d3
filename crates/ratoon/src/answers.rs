//! Step 7 of 10: the one place where a reply becomes a probability or a failure.
//!
//! A usable probability is a finite number from 0 to 1 on a binary answer. Everything else leaves its unit
//! without one; a failed request leaves all units of its batch without one. Doubt keeps.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::model::{Answer, FailureKind, ModelError, Reply};

/// A probability of need: finite, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// The probability, if the number is one.
    pub fn new(value: f64) -> Option<Probability> {
        (value.is_finite() && (0.0..=1.0).contains(&value)).then_some(Probability(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// What is known about a unit when the asking is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judgement {
    /// The model gave a probability.
    Known(Probability),
    /// Asked, but the answer was unusable or missing.
    InvalidAnswer,
    /// The request that carried the question failed.
    ModelError,
    /// The deadline passed first.
    Timeout,
    /// Never asked: too large for any request, or nothing to judge against.
    Unobserved,
}

/// Why a request failed, for `stats.failures`. Without message content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Which of the planned requests.
    pub request: usize,
    /// The class of failure; `None` if the deadline of the call passed.
    pub kind: Option<FailureKind>,
    /// What happened, in one line.
    pub message: String,
    /// The HTTP status, when the provider sent one.
    pub status: Option<u16>,
    /// How often the request was sent.
    pub attempts: u32,
}

/// Collects the replies of a call.
#[derive(Debug)]
pub struct Answers {
    /// By batch: its units as (id, index among the candidates), and whether it has been settled.
    batches: Vec<(Vec<(String, usize)>, Settled)>,
    judgements: Vec<Judgement>,
    usage: Vec<Box<RawValue>>,
    failures: Vec<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    No,
    Answered,
    Failed,
}

impl Answers {
    pub(crate) fn new(candidates: usize, batches: Vec<Vec<(String, usize)>>) -> Answers {
        Answers {
            batches: batches.into_iter().map(|units| (units, Settled::No)).collect(),
            judgements: vec![Judgement::Unobserved; candidates],
            usage: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Takes the outcome of one request. Call it in the order in which requests complete; a second outcome of
    /// the same request is ignored.
    pub fn record(&mut self, request: usize, outcome: Result<Reply, ModelError>) {
        let Some((units, settled)) = self.batches.get_mut(request) else { return };
        if *settled != Settled::No {
            return;
        }
        match outcome {
            Ok(reply) => {
                *settled = Settled::Answered;
                self.usage.extend(reply.usage);
                // A question answered twice is a contradiction, so it counts as unusable.
                let mut answers: HashMap<&str, Option<Answer>> = HashMap::new();
                for (id, answer) in &reply.answers {
                    answers.entry(id).and_modify(|known| *known = None).or_insert(Some(*answer));
                }
                for (id, unit) in units {
                    let probability = match answers.get(id.as_str()) {
                        Some(Some(Answer::Binary(value))) => Probability::new(*value),
                        _ => None,
                    };
                    self.judgements[*unit] = probability.map_or(Judgement::InvalidAnswer, Judgement::Known);
                }
            }
            Err(error) => {
                *settled = Settled::Failed;
                for (_, unit) in units {
                    self.judgements[*unit] = Judgement::ModelError;
                }
                self.failures.push(Failure {
                    request,
                    kind: Some(error.kind),
                    message: error.message,
                    status: error.status,
                    attempts: error.attempts,
                });
            }
        }
    }

    /// The deadline has passed: whatever has no answer counts as timed out, also what had failed before
    /// (contract, section 8); the cause of an earlier failure stays in the list of failures.
    pub fn expire(&mut self) {
        let unanswered =
            self.batches.iter_mut().enumerate().filter(|(_, (_, settled))| *settled != Settled::Answered);
        for (request, (units, settled)) in unanswered {
            for (_, unit) in units.iter() {
                self.judgements[*unit] = Judgement::Timeout;
            }
            if *settled == Settled::No {
                *settled = Settled::Failed;
                let message = "the deadline of the call passed before the answer came".to_owned();
                self.failures.push(Failure { request, kind: None, message, status: None, attempts: 0 });
            }
        }
    }

    pub(crate) fn judgements(&self) -> &[Judgement] {
        &self.judgements
    }

    /// Usage in the order of completion, failures in the order of the requests.
    pub(crate) fn into_receipts(mut self) -> (Vec<Box<RawValue>>, Vec<Failure>) {
        self.failures.sort_by_key(|failure| failure.request);
        (self.usage, self.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Answers {
        Answers::new(3, vec![vec![("t1".into(), 0), ("t2".into(), 1)], vec![("t3".into(), 2)]])
    }

    fn reply(answers: &[(&str, Answer)]) -> Reply {
        Reply {
            answers: answers.iter().map(|(id, answer)| ((*id).to_owned(), *answer)).collect(),
            usage: None,
        }
    }

    fn error() -> ModelError {
        ModelError::new(FailureKind::Provider, "down", 2)
    }

    #[test]
    fn only_finite_numbers_from_0_to_1_are_probabilities() {
        for value in [0.0, -0.0, 1.0, 0.5, f64::MIN_POSITIVE] {
            assert_eq!(Probability::new(value).map(Probability::get), Some(value));
        }
        for value in [-0.25, 1.000_000_1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Probability::new(value), None, "{value}");
        }
    }

    #[test]
    fn a_bad_answer_costs_only_its_own_unit() {
        for bad in [Answer::Unusable, Answer::Binary(1.5), Answer::Binary(f64::NAN)] {
            let mut answers = answers();
            answers.record(
                0,
                Ok(reply(&[("t1", bad), ("t2", Answer::Binary(0.25)), ("zz", Answer::Binary(0.0))])),
            );
            assert_eq!(answers.judgements()[0], Judgement::InvalidAnswer);
            assert_eq!(answers.judgements()[1], Judgement::Known(Probability(0.25)));
            assert_eq!(answers.judgements()[2], Judgement::Unobserved);
        }
    }

    #[test]
    fn missing_and_repeated_answers_are_invalid() {
        let mut answers = answers();
        answers.record(0, Ok(reply(&[("t1", Answer::Binary(0.0)), ("t1", Answer::Binary(0.0))])));
        assert_eq!(&answers.judgements()[..2], [Judgement::InvalidAnswer, Judgement::InvalidAnswer]);
    }

    #[test]
    fn the_deadline_overrides_failures_but_not_answers() {
        let mut answers = answers();
        answers.record(0, Err(error()));
        answers.expire();
        assert_eq!(answers.judgements(), [Judgement::Timeout; 3]);
        let (_, failures) = answers.into_receipts();
        let kinds: Vec<_> = failures.iter().map(|failure| failure.kind).collect();
        assert_eq!(kinds, [Some(FailureKind::Provider), None]);
    }

    #[test]
    fn the_first_outcome_of_a_request_stands() {
        let mut answers = answers();
        answers.record(1, Ok(reply(&[("t3", Answer::Binary(0.5))])));
        answers.record(1, Err(error()));
        answers.record(9, Err(error()));
        answers.expire();
        assert_eq!(answers.judgements()[2], Judgement::Known(Probability(0.5)));
    }
}
