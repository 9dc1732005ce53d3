//! What a decision model is asked and what it replies: the trait that every backend implements.
//!
//! Nothing here knows HTTP or an async runtime. A backend turns a [`DecisionRequest`] into a [`Reply`];
//! whether an answer may be used is decided for all backends in one place, [`crate::answers`].

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::value::RawValue;

use crate::pairs::Pair;
use crate::snapshot::Snapshot;

/// A decision in flight. It borrows the model and the request; dropping it cancels the request.
pub type Decide<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// Judges evidence units: binary questions in, one probability (or a typed failure) per question out.
///
/// The probability is that of *need*: 1 means the evidence is still needed to continue correctly,
/// 0 that it clearly is not. A model that cannot tell answers near 0.5 or not at all; both keep the evidence.
pub trait DecisionModel: Send + Sync + fmt::Debug {
    /// The name under which the model is configured, for receipts and messages.
    fn name(&self) -> &str;

    /// What the model reads. Models behind a wire read the serialised state, which is the default.
    fn reading(&self) -> Reading {
        Reading::State
    }

    /// Answers every question of one request.
    fn decide<'a>(&'a self, request: &'a DecisionRequest<'a>) -> Decide<'a>;
}

/// What a decision model reads to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// The serialised state with excerpts, packed into requests under the token ceilings.
    State,
    /// The snapshot itself, whole and in this process: one request holds all candidates, nothing is
    /// serialised, and the ceilings on what is sent do not apply because nothing is sent.
    Snapshot,
}

/// One request to a decision model: a state and the questions about it.
#[non_exhaustive]
pub struct DecisionRequest<'a> {
    /// The evidence. Empty for a model whose [`DecisionModel::reading`] is [`Reading::Snapshot`].
    pub state: State<'a>,
    /// One question per evidence unit, in the order of the units.
    pub questions: Vec<Question<'a>>,
    /// The history the questions are about, for models that read it whole.
    pub snapshot: &'a Snapshot<'a>,
    /// All pairs of the snapshot; [`Question::pair`] indexes this list.
    pub pairs: &'a [Pair<'a>],
}

/// The evidence of one request as compact JSON: an object with the keys `goal`, `next_action`, `task_context` and
/// `evidence_units`. The part that all requests of a call share exists once, so the text comes in pieces.
#[derive(Clone, Copy, Default)]
pub struct State<'a> {
    pieces: [&'a str; 3],
}

impl<'a> State<'a> {
    pub(crate) fn new(shared: &'a str, units: &'a str, closing: &'a str) -> State<'a> {
        State { pieces: [shared, units, closing] }
    }

    /// The pieces that make up the JSON text, in order.
    pub fn pieces(&self) -> [&'a str; 3] {
        self.pieces
    }

    /// The JSON text in one.
    pub fn json(&self) -> String {
        self.pieces.concat()
    }

    /// Length of the JSON text in bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// True if there is no evidence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for State<'_> {
    // Evidence never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} bytes)", self.len())
    }
}

impl fmt::Debug for DecisionRequest<'_> {
    // The state is evidence, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionRequest")
            .field("state_bytes", &self.state.len())
            .field("questions", &self.questions.len())
            .finish_non_exhaustive()
    }
}

/// A binary question about one evidence unit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The unit's id (`t1`, `t2`, ...), unique in a call and the name under which the answer is expected.
    pub id: &'a str,
    /// The question in words; it names the unit.
    pub instructions: String,
    /// What a true and a false answer mean, for templates that say so.
    pub criteria: Option<Criteria<'a>>,
    /// The pair the unit was made from: an index into [`DecisionRequest::pairs`].
    pub pair: usize,
}

/// Explicit meanings of the two outcomes of a binary question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Criteria<'a> {
    /// When the evidence counts as needed.
    pub when_true: Cow<'a, str>,
    /// When the evidence counts as not needed.
    pub when_false: Cow<'a, str>,
}

/// What a decision model replied to one request.
#[derive(Debug, Default)]
pub struct Reply {
    /// Answers by question id, in any order. Missing, surplus and repeated ids are allowed here;
    /// [`crate::answers`] sorts them out.
    pub answers: Vec<(String, Answer)>,
    /// The usage object of the provider, for `stats.usage`; `None` when it reports none.
    pub usage: Option<Box<RawValue>>,
}

/// One answer as it stood in the reply, not yet judged.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// A binary answer carrying a number, which may still be out of range or not finite.
    Binary(f64),
    /// Anything else: another answer type, no number, text in place of a number.
    Unusable,
}

/// Why a request to a decision model failed as a whole. Never carries message content or keys.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// The class of failure.
    pub kind: FailureKind,
    /// What happened, in one line.
    pub message: String,
    /// The HTTP status, when the provider sent one.
    pub status: Option<u16>,
    /// How often the request was sent.
    pub attempts: u32,
}

impl ModelError {
    /// An error of a class, after some attempts, without a status.
    pub fn new(kind: FailureKind, message: impl Into<String>, attempts: u32) -> Self {
        ModelError { kind, message: message.into(), status: None, attempts }
    }

    /// The same error with the status the provider sent.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

/// The classes of failure a caller can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The key is missing, wrong or not allowed (401, 403).
    Authentication,
    /// The account has no credit or quota left (402).
    Quota,
    /// The provider refused the request as malformed or unknown (other 4xx).
    Refused,
    /// The request was too large for the provider (413).
    TooLarge,
    /// The provider asked to slow down (429) and no retry fitted the deadline.
    RateLimited,
    /// The provider failed (5xx).
    Provider,
    /// The provider could not be reached or the connection broke.
    Connection,
    /// One attempt took longer than its limit.
    AttemptTimeout,
    /// The reply was not what the protocol promises.
    Protocol,
}

impl FailureKind {
    /// The name used in `stats.failures`.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Authentication => "authentication",
            FailureKind::Quota => "quota",
            FailureKind::Refused => "refused",
            FailureKind::TooLarge => "too_large",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Provider => "provider",
            FailureKind::Connection => "connection",
            FailureKind::AttemptTimeout => "attempt_timeout",
            FailureKind::Protocol => "protocol",
        }
    }
}
