//! The boundary behind which a message format lives.

use super::{Index, agentscope};
use crate::json::{Scanner, SyntaxError};
use crate::problems::Problems;

/// How the messages of a snapshot are shaped. Every format reads into the same index, so nothing behind the
/// snapshot knows which one it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// AgentScope 2.x messages (`Msg.model_dump(mode="json")`).
    #[default]
    AgentScope,
}

impl Format {
    /// All formats, in the order in which help texts list them.
    pub const ALL: [Format; 1] = [Format::AgentScope];

    /// The name in requests and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::AgentScope => "agentscope",
        }
    }

    /// The format of that name; `auto` is the only format there is.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "auto" {
            return Some(Format::AgentScope);
        }
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Reads a message list at the scanner's position into `index`; answers its size.
    pub(super) fn read<'a>(
        self,
        scanner: &mut Scanner<'a>,
        index: &mut Index<'a>,
        problems: &mut Problems,
    ) -> Result<u64, SyntaxError> {
        match self {
            Format::AgentScope => agentscope::read(scanner, index, problems),
        }
    }
}
