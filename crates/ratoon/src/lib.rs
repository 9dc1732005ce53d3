//! Shrinks what an AI agent has to carry.
//!
//! **ratoon** looks at an agent's message history and proposes which old tool results can be cut back to a short
//! verbatim excerpt with a reference from which the original comes back. A *decision model* answers one question
//! per tool call ("is this evidence still needed to continue correctly?"); everything uncertain is kept; the host
//! stays in charge of its history.
//!
//! This crate is the flow, without any I/O: it turns a [`Request`] into decision requests, takes the answers, and
//! turns them into a [`Proposal`]. What never happens: a message, block, id, argument, flag, thinking text or
//! signature changes; the only thing that may differ is the output of a cut result, and every byte outside of those
//! is the byte that came in.
//!
//! ```
//! use ratoon::{Compaction, Reading, Request, Settings};
//!
//! let request = Request::parse(br#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#)?;
//! let compaction = Compaction::new(&request, None, Reading::State, &Settings::default())?;
//! assert_eq!(compaction.requests(), 0);
//! let answers = compaction.answers();
//! let proposal = compaction.finish(answers, "none", std::time::Duration::ZERO)?;
//! assert_eq!(proposal.messages_json(), request.snapshot.json());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules below are listed in the order in which data passes through them; [`Compaction`] calls them.
#![deny(clippy::disallowed_methods)]

/// What a host asks for: fields, options, defaults, ranges; checked with every problem and its place.
pub mod request;
/// 1. Bytes become messages and blocks that point into the input.
pub mod snapshot;
/// 2. Calls matched to results; what is left over, with its reason.
pub mod pairs;
/// 3. Who may be asked about, counted in messages or model steps.
pub mod protection;
mod turns;
/// 4. What the decision model sees.
mod evidence;
/// 5. What fits a request.
mod batches;
/// 6. One question a unit, from versioned templates.
pub mod questions;
/// 7. The one place where a reply becomes a probability or a failure.
pub mod answers;
/// 8. Threshold, order, budget.
pub mod selection;
/// 9. The excerpt that stays, with the marker that leads back.
pub mod preview;
/// 10. Replacements put into the original bytes; decisions, stats, the answer.
pub mod proposal;
mod splice;

/// The state machine that calls 1 to 10.
pub mod compaction;
/// The trait every decision model implements, and what it is asked.
pub mod model;
/// Token counters for budgets, and the decision-token estimate.
pub mod count;
/// JSON as it stands: tokens, sizes, spelling.
pub mod json;
/// What can go wrong before a proposal exists.
pub mod error;
/// What is wrong with a request, with places.
pub mod problems;
mod text;

pub use answers::Answers;
pub use compaction::{Compaction, Settings};
pub use error::{CompactionError, RequestError};
pub use evidence::has_aim;
pub use model::{Answer, DecisionModel, DecisionRequest, FailureKind, ModelError, Reading, Reply};
pub use proposal::Proposal;
pub use questions::Template;
pub use request::{Document, Options, Overrides, Request};
pub use snapshot::{Format, Snapshot};
