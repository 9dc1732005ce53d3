//! What a host asks for: messages, goal, references, allowlist, options; checked as a whole, with every problem
//! and its place.

mod document;
mod fields;
mod options;

pub use document::{Document, Overrides};
pub use options::{Options, Profile, RecentUnit};

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::count::NamedCounter;
use crate::snapshot::Snapshot;

/// A checked request. Borrows the document it was read from.
#[non_exhaustive]
pub struct Request<'a> {
    /// The message history.
    pub snapshot: Snapshot<'a>,
    /// What the agent is after; empty to take the last thing a person wrote.
    pub goal: Cow<'a, str>,
    /// What the agent does next.
    pub next_action: Cow<'a, str>,
    /// Where the original of each result can be found, by call id.
    pub source_refs: HashMap<Cow<'a, str>, Cow<'a, str>>,
    /// Messages whose calls and results stay.
    pub protected_message_ids: HashSet<Cow<'a, str>>,
    /// Calls whose results stay.
    pub protected_call_ids: HashSet<Cow<'a, str>>,
    /// The tools whose results may be shortened.
    pub eligible_tools: Tools<'a>,
    /// How to go about it.
    pub options: Options,
    /// A built-in counter for `max_output_tokens`, for hosts that cannot pass a function.
    pub token_counter: Option<NamedCounter>,
}

/// Which tools' results may be shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools<'a> {
    /// Those named, exactly.
    Named(HashSet<Cow<'a, str>>),
    /// All of them.
    All,
}

impl Tools<'_> {
    pub(crate) fn contains(&self, name: &str) -> bool {
        match self {
            Tools::Named(names) => names.contains(name),
            Tools::All => true,
        }
    }
}

impl fmt::Debug for Request<'_> {
    // Goals, ids and references are content of the host, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("snapshot", &self.snapshot)
            .field("source_refs", &self.source_refs.len())
            .field("options", &self.options)
            .field("token_counter", &self.token_counter)
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    /// Reads a request object from its bytes.
    ///
    /// # Errors
    /// [`crate::RequestError`] if the bytes are not JSON text or not a valid request; all problems are reported.
    pub fn parse(bytes: &'a [u8]) -> Result<Request<'a>, crate::RequestError> {
        match Document::parse(bytes, &Overrides::default())? {
            Document::Request(request) => Ok(request),
            Document::Transcript(_) => Err(crate::RequestError::NotARequest),
        }
    }

    /// A request about a bare message history, with the `recommended` profile, all tools eligible, and nothing
    /// archived yet.
    pub(crate) fn about(snapshot: Snapshot<'a>) -> Request<'a> {
        Request {
            snapshot,
            goal: Cow::Borrowed(""),
            next_action: Cow::Borrowed(""),
            source_refs: HashMap::new(),
            protected_message_ids: HashSet::new(),
            protected_call_ids: HashSet::new(),
            eligible_tools: Tools::All,
            options: Options::of_profile(Profile::Recommended),
            token_counter: None,
        }
    }
}
