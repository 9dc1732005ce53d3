//! The whole call as a state machine without I/O: steps 1 to 10 in order, with the asking left to the caller.
//!
//! ```
//! use ratoon::{Answer, Compaction, Reading, Reply, Request, Settings};
//!
//! let request = Request::parse(br#"{"messages":[{"role":"user","content":[]}]}"#)?;
//! let compaction = Compaction::new(&request, None, Reading::State, &Settings::default())?;
//! let mut answers = compaction.answers();
//! for index in 0..compaction.requests() {
//!     let asked = compaction.request(index);
//!     let uncertain = asked.questions.iter().map(|question| (question.id.to_owned(), Answer::Binary(0.5)));
//!     answers.record(index, Ok(Reply { answers: uncertain.collect(), usage: None }));
//! }
//! let proposal = compaction.finish(answers, "a coin", std::time::Duration::ZERO)?;
//! assert!(!proposal.changed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::time::Duration;

use crate::answers::Answers;
use crate::batches::{Ceilings, Cost, Packer, Placement};
use crate::count::{Estimate, TokenCounter};
use crate::error::CompactionError;
use crate::evidence::Evidence;
use crate::model::{DecisionRequest, Question, Reading, State};
use crate::pairs::{Pair, Skipped, match_pairs};
use crate::preview::shortens;
use crate::proposal::{Decision, Proposal, ProposalReason, Stats};
use crate::protection::{Candidate, Protection, Standing, TurnProtection, standings};
use crate::questions::Template;
use crate::request::Request;
use crate::selection::{Budget, Outcome, Reason, select};
use crate::snapshot::Output;
use crate::splice::Edits;
use crate::turns::turns;

/// What the embedding program chooses, as opposed to the request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The wording of the questions.
    pub question: Template,
    /// Whether credential-shaped values are masked in what the model sees. Default on.
    pub mask_credentials: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { question: Template::Plain, mask_credentials: true }
    }
}

/// A call that has been planned: everything is decided but the answers of the model.
pub struct Compaction<'r, 'a> {
    request: &'r Request<'a>,
    question: Template,
    plan: Plan<'r, 'a>,
}

/// A planned request.
#[derive(Default)]
struct Batch {
    /// Its units, as indices into [`Plan::asked`].
    units: Vec<usize>,
    /// The same as JSON, separated by commas; empty for models that read the snapshot.
    units_json: String,
    /// Estimate of the state.
    state_tokens: u64,
}

/// What the first six steps yield.
struct Plan<'r, 'a> {
    pairs: Vec<Pair<'a>>,
    skipped: Vec<Skipped<'a>>,
    /// By pair.
    standings: Vec<Result<usize, Protection>>,
    candidates: Vec<Candidate<'r, 'a>>,
    /// By asked unit: its id and its place among the candidates.
    asked: Vec<(String, usize)>,
    batches: Vec<Batch>,
    /// What the states share, if states are sent.
    evidence: Option<Evidence>,
    /// The budget, if there is one; its count is that of the messages as they came in until something is selected.
    budget: Option<Budget<'r>>,
}

impl fmt::Debug for Compaction<'_, '_> {
    // States and arguments are message content, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compaction")
            .field("request", self.request)
            .field("candidates", &self.plan.candidates.len())
            .field("requests", &self.plan.batches.len())
            .finish_non_exhaustive()
    }
}

impl<'r, 'a> Compaction<'r, 'a> {
    /// Plans a call: pairs, protection, evidence, batches. A counter given here wins over the one the request
    /// names; without a budget neither is called.
    ///
    /// # Errors
    /// [`CompactionError`]: a budget without a counter, or a counter that fails.
    pub fn new(
        request: &'r Request<'a>,
        counter: Option<&'r dyn TokenCounter>,
        reading: Reading,
        settings: &Settings,
    ) -> Result<Compaction<'r, 'a>, CompactionError> {
        let counter = counter.or(request.token_counter.as_ref().map(|named| named as &dyn TokenCounter));
        let budget = match (request.options.max_output_tokens, counter) {
            (None, _) => None,
            (Some(_), None) => return Err(CompactionError::TokenCounterRequired),
            (Some(limit), Some(counter)) => {
                Some(Budget::open(limit, counter, &Edits::new(&request.snapshot))?)
            }
        };
        let turns = turns(&request.snapshot, request.options.recent_unit);
        let protection = TurnProtection::new(request, &turns);
        let (pairs, skipped) = match_pairs(&request.snapshot);
        let (candidates, standings) = number(standings(request, &pairs, &protection));
        let mut plan = Plan {
            pairs,
            skipped,
            standings,
            candidates,
            asked: Vec::new(),
            batches: Vec::new(),
            evidence: None,
            budget,
        };
        if !plan.is_within_budget() && !plan.candidates.is_empty() {
            let evidence = Evidence::new(request, &turns, &protection, settings.mask_credentials);
            if evidence.has_aim() {
                plan.ask(request, evidence, reading, settings);
            }
        }
        Ok(Compaction { request, question: settings.question, plan })
    }

    /// How many requests are planned.
    pub fn requests(&self) -> usize {
        self.plan.batches.len()
    }

    /// How many requests may be in flight at a time.
    pub fn max_concurrency(&self) -> usize {
        self.request.options.max_concurrency
    }

    /// How long the whole call may take.
    pub fn total_timeout(&self) -> Duration {
        self.request.options.total_timeout()
    }

    /// One of the planned requests.
    ///
    /// # Panics
    /// If `index` is not below [`Compaction::requests`].
    pub fn request(&self, index: usize) -> DecisionRequest<'_> {
        let batch = &self.plan.batches[index];
        DecisionRequest {
            state: self
                .plan
                .evidence
                .as_ref()
                .map_or(State::default(), |shared| shared.state(&batch.units_json)),
            questions: batch
                .units
                .iter()
                .map(|&unit| {
                    let (id, candidate) = &self.plan.asked[unit];
                    Question {
                        id,
                        instructions: self.question.instructions(id),
                        criteria: self.question.criteria(),
                        pair: self.plan.candidates[*candidate].pair,
                    }
                })
                .collect(),
            snapshot: &self.request.snapshot,
            pairs: &self.plan.pairs,
        }
    }

    /// The collector for the replies.
    pub fn answers(&self) -> Answers {
        let units_of =
            |batch: &Batch| batch.units.iter().map(|&unit| self.plan.asked[unit].clone()).collect();
        Answers::new(self.plan.candidates.len(), self.plan.batches.iter().map(units_of).collect())
    }

    /// Decides and puts the proposal together. `model` is the name of the model that was asked.
    ///
    /// # Errors
    /// [`CompactionError::Count`] if the token counter fails on a proposed list.
    pub fn finish(
        self,
        answers: Answers,
        model: &str,
        elapsed: Duration,
    ) -> Result<Proposal<'r, 'a>, CompactionError> {
        let Compaction { request, mut plan, .. } = self;
        let snapshot = &request.snapshot;
        let candidates = &plan.candidates;
        let outputs: Vec<&Output<'_>> = candidates
            .iter()
            .map(|candidate| plan.pairs[candidate.pair].output(snapshot).expect("a candidate has an output"))
            .collect();
        let mut edits = Edits::new(snapshot);
        let tokens_before = plan.budget.as_ref().map(|budget| budget.current);
        let outcomes = if plan.is_within_budget() {
            vec![Outcome::kept(Reason::WithinBudget); candidates.len()]
        } else {
            let judgements = answers.judgements();
            let mut outcomes =
                select(request, candidates, &outputs, judgements, &mut edits, plan.budget.as_mut())?;
            for (outcome, candidate) in outcomes.iter_mut().zip(candidates) {
                if outcome.reason == Reason::Unobserved && !worth_asking(request, candidate) {
                    outcome.reason = Reason::NoSavings;
                }
            }
            outcomes
        };
        let decisions = decisions(request, &plan, &outcomes);
        let budget_met = plan.budget.as_ref().map(Budget::is_met);
        let outcome = if budget_met == Some(false) {
            ProposalReason::BudgetExceeded
        } else if !edits.is_empty() {
            ProposalReason::Compacted
        } else if candidates.is_empty() {
            ProposalReason::NoCandidates
        } else {
            ProposalReason::NoChange
        };
        let (usage, failures) = answers.into_receipts();
        let stats = Stats {
            messages: snapshot.messages().len(),
            chars_before: snapshot.size(),
            chars_after: edits.code_points(),
            tokens_before,
            tokens_after: plan.budget.as_ref().map(|budget| budget.current),
            candidates: candidates.len(),
            protected: decisions.len() - candidates.len(),
            state_tokens: plan.batches.iter().map(|batch| batch.state_tokens).max().unwrap_or(0),
            requests: plan.batches.len(),
            usage,
            elapsed,
            skipped: plan.skipped,
            failures,
            model: model.to_owned(),
        };
        Ok(Proposal {
            snapshot,
            replacements: edits.into_replacements(),
            decisions,
            outcome,
            budget_met,
            stats,
        })
    }
}

impl<'r, 'a> Plan<'r, 'a> {
    /// True if the messages fit the budget as they are, so that nothing is asked and nothing selected.
    fn is_within_budget(&self) -> bool {
        self.budget.as_ref().is_some_and(Budget::is_met)
    }

    /// Plans the requests.
    fn ask(&mut self, request: &Request<'a>, evidence: Evidence, reading: Reading, settings: &Settings) {
        let asked =
            self.candidates.iter().enumerate().filter(|(_, candidate)| worth_asking(request, candidate));
        self.asked = asked.map(|(index, candidate)| (unit_id(candidate.pair), index)).collect();
        if reading == Reading::Snapshot {
            let units: Vec<usize> = (0..self.asked.len()).collect();
            self.batches.extend((!units.is_empty()).then_some(Batch { units, ..Batch::default() }));
            return;
        }
        let question = settings.question.estimator();
        let mut packer = Packer::new(Ceilings {
            max_state_tokens: request.options.max_state_tokens,
            max_request_tokens: request.options.max_request_tokens,
            state_frame: evidence.frame_estimate(),
            request_frame: Estimate::of("{\"state\":") + Estimate::of(",\"questions\":{}}"),
            comma: Estimate::of(","),
        });
        for (index, (id, candidate)) in self.asked.iter().enumerate() {
            let candidate = &self.candidates[*candidate];
            let unit = evidence.unit(id, candidate, &self.pairs[candidate.pair]);
            match packer.place(Cost { unit: Estimate::of(&unit), question: question(id) }) {
                Placement::Joins(state_tokens) => {
                    let batch = self.batches.last_mut().expect("a unit joins an open request");
                    batch.units_json.push(',');
                    batch.units_json.push_str(&unit);
                    batch.units.push(index);
                    batch.state_tokens = state_tokens;
                }
                Placement::Opens(state_tokens) => {
                    close_last(&mut self.batches);
                    self.batches.push(Batch { units: vec![index], units_json: unit, state_tokens });
                }
                Placement::LeftOut => {}
            }
        }
        close_last(&mut self.batches);
        self.evidence = Some(evidence);
    }
}

/// Batches live as long as the call; what was reserved too much for the last one would add up.
fn close_last(batches: &mut [Batch]) {
    if let Some(batch) = batches.last_mut() {
        batch.units_json.shrink_to_fit();
    }
}

/// Gives the candidates numbers and leaves those in their places among the pairs.
fn number<'r, 'a>(
    standings: Vec<Standing<'r, 'a>>,
) -> (Vec<Candidate<'r, 'a>>, Vec<Result<usize, Protection>>) {
    let mut candidates = Vec::new();
    let numbered = standings.into_iter().map(|standing| {
        standing.map(|candidate| {
            candidates.push(candidate);
            candidates.len() - 1
        })
    });
    let numbered = numbered.collect();
    (candidates, numbered)
}

/// The name of a pair in decisions, and of its unit and question.
fn unit_id(pair: usize) -> String {
    format!("t{}", pair + 1)
}

/// False for results whose excerpt could not be shorter, if the host wants no questions about those.
fn worth_asking(request: &Request<'_>, candidate: &Candidate<'_, '_>) -> bool {
    !request.options.skip_unshortenable
        || shortens(candidate.text.code_points(), request.options.preview_chars, candidate.reference)
}

/// One decision a pair.
fn decisions<'r, 'a>(
    request: &'r Request<'a>,
    plan: &Plan<'r, 'a>,
    outcomes: &[Outcome],
) -> Vec<Decision<'r, 'a>> {
    let decide = |(index, pair): (usize, &Pair<'a>)| {
        let (outcome, protection) = match plan.standings[index] {
            Ok(candidate) => (outcomes[candidate], None),
            Err(protection) => {
                let compacted = protection == Protection::AlreadyCompacted;
                let reason = if compacted { Reason::AlreadyCompacted } else { Reason::Protected };
                (Outcome::kept(reason), Some(protection))
            }
        };
        let id = pair.call_id.decode_lossy();
        Decision {
            id: unit_id(index),
            call_id: pair.call_id,
            tool: pair.call(&request.snapshot).name,
            reason: outcome.reason,
            protection,
            probability: outcome.probability,
            source_ref: request.source_refs.get(&id).map(|reference| &**reference),
            result_chars: pair
                .output(&request.snapshot)
                .and_then(|o| o.text())
                .map(|text| text.code_points()),
            saved_chars: outcome.saved,
        }
    };
    plan.pairs.iter().enumerate().map(decide).collect()
}
