//! Step 8 of 10: threshold, order, budget. Which candidates go, lowest probability first.

use crate::answers::{Judgement, Probability};
use crate::count::{CountError, Messages, TokenCounter};
use crate::preview::replacement;
use crate::protection::Candidate;
use crate::request::Request;
use crate::snapshot::Output;
use crate::splice::{Edits, Replacement};
use crate::text::code_points;

/// What is decided about a candidate, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Kept without being asked about.
    Protected,
    /// Kept: an excerpt made earlier.
    AlreadyCompacted,
    /// Kept: the messages fit the budget.
    WithinBudget,
    /// Kept: the request that carried the question failed.
    ModelError,
    /// Kept: the deadline passed before the answer came.
    Timeout,
    /// Kept: the answer was unusable or missing.
    InvalidAnswer,
    /// Kept: never asked about.
    Unobserved,
    /// Kept: the probability of need is above the threshold.
    NeededOrUncertain,
    /// Kept: the excerpt would not be shorter, or would not lower the count.
    NoSavings,
    /// Cut back to an excerpt.
    LowRelevance,
}

impl Reason {
    /// The reason's name in `decisions`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Protected => "protected",
            Reason::AlreadyCompacted => "already_compacted",
            Reason::WithinBudget => "within_budget",
            Reason::ModelError => "model_error",
            Reason::Timeout => "timeout",
            Reason::InvalidAnswer => "invalid_answer",
            Reason::Unobserved => "unobserved",
            Reason::NeededOrUncertain => "needed_or_uncertain",
            Reason::NoSavings => "no_savings",
            Reason::LowRelevance => "low_relevance",
        }
    }
}

/// The budget of a call: the limit, the counter, and the current count.
#[derive(Debug)]
pub(crate) struct Budget<'c> {
    pub(crate) limit: u64,
    pub(crate) counter: &'c dyn TokenCounter,
    pub(crate) current: u64,
}

impl<'c> Budget<'c> {
    /// Counts the messages as they came in.
    pub(crate) fn open(
        limit: u64,
        counter: &'c dyn TokenCounter,
        edits: &Edits<'_, '_>,
    ) -> Result<Budget<'c>, CountError> {
        Ok(Budget { limit, counter, current: count(counter, edits)? })
    }

    pub(crate) fn is_met(&self) -> bool {
        self.current <= self.limit
    }
}

fn count(counter: &dyn TokenCounter, edits: &Edits<'_, '_>) -> Result<u64, CountError> {
    counter.count(&Messages::new(edits.code_points(), &|| edits.json()))
}

/// The outcome of one candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) reason: Reason,
    pub(crate) probability: Option<Probability>,
    /// Code points that the text loses, if it is cut back.
    pub(crate) saved: Option<u64>,
}

/// Decides about every candidate and puts the replacements into `edits`.
pub(crate) fn select(
    request: &Request<'_>,
    candidates: &[Candidate<'_, '_>],
    outputs: &[&Output<'_>],
    judgements: &[Judgement],
    edits: &mut Edits<'_, '_>,
    mut budget: Option<&mut Budget<'_>>,
) -> Result<Vec<Outcome>, CountError> {
    let mut outcomes: Vec<Outcome> = judgements.iter().map(Outcome::before_selection).collect();
    let threshold = request.options.drop_threshold;
    let mut clear: Vec<(f64, usize)> = outcomes
        .iter()
        .enumerate()
        .filter_map(|(index, outcome)| Some((outcome.probability?.get(), index)))
        .filter(|&(probability, _)| probability <= threshold)
        .collect();
    // Stable: ties stay in decision order. Probabilities are finite, and -0.0 ties with 0.0.
    clear.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("probabilities are finite"));
    for (_, index) in clear {
        let outcome = &mut outcomes[index];
        if budget.as_ref().is_some_and(|budget| budget.is_met()) {
            outcome.reason = Reason::WithinBudget;
            continue;
        }
        outcome.saved = cut_back(request, &candidates[index], outputs[index], edits, budget.as_deref_mut())?;
        outcome.reason = if outcome.saved.is_some() { Reason::LowRelevance } else { Reason::NoSavings };
    }
    Ok(outcomes)
}

impl Outcome {
    /// Kept without a probability.
    pub(crate) fn kept(reason: Reason) -> Outcome {
        Outcome { reason, probability: None, saved: None }
    }

    fn before_selection(judgement: &Judgement) -> Outcome {
        match judgement {
            Judgement::Known(probability) => {
                Outcome { probability: Some(*probability), ..Outcome::kept(Reason::NeededOrUncertain) }
            }
            Judgement::InvalidAnswer => Outcome::kept(Reason::InvalidAnswer),
            Judgement::ModelError => Outcome::kept(Reason::ModelError),
            Judgement::Timeout => Outcome::kept(Reason::Timeout),
            Judgement::Unobserved => Outcome::kept(Reason::Unobserved),
        }
    }
}

/// Replaces one output by its excerpt; answers the code points that saves. `None`, and nothing changed, if it
/// would save nothing.
fn cut_back(
    request: &Request<'_>,
    candidate: &Candidate<'_, '_>,
    output: &Output<'_>,
    edits: &mut Edits<'_, '_>,
    budget: Option<&mut Budget<'_>>,
) -> Result<Option<u64>, CountError> {
    let length = candidate.text.code_points();
    let text = candidate.text.decode_lossy();
    let Some(excerpt) = replacement(&text, length, request.options.preview_chars, candidate.reference) else {
        return Ok(None);
    };
    edits.push(Replacement::of(&request.snapshot, output, &excerpt, request.options.keep_output_shape));
    if let Some(budget) = budget {
        let after = count(budget.counter, edits)?;
        if after >= budget.current {
            edits.pop();
            return Ok(None);
        }
        budget.current = after;
    }
    Ok(Some(length - code_points(&excerpt)))
}
