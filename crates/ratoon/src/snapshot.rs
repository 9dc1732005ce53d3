//! Step 1 of 10: bytes become messages and blocks that point into the input.
//!
//! The input is parsed once. What comes out is an index: which blocks are texts, calls and results, their keys,
//! and the one span per result that may be replaced. Everything else is never decoded, so it cannot change.
//! Formats plug in behind [`Format`]; behind this module nothing asks which format it was.

mod agentscope;
mod format;

pub use format::Format;

use std::borrow::Cow;
use std::fmt;

use crate::json::{Scanner, Span, SyntaxError, Text};
use crate::problems::Problems;

/// A message history, indexed. Borrows the input text.
pub struct Snapshot<'a> {
    input: &'a str,
    span: Span,
    size: u64,
    messages: Vec<Message<'a>>,
    blocks: Vec<Block<'a>>,
}

/// One message: who speaks, under which id, and which blocks it holds.
#[derive(Debug)]
#[non_exhaustive]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// The message's id, if it has one that is text.
    pub id: Option<Text<'a>>,
    first_block: usize,
    end_block: usize,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person, or the host on behalf of the person.
    User,
    /// The agent's model.
    Assistant,
    /// The instructions of the host.
    System,
}

impl Role {
    /// The role's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }
}

/// One block of a message, as far as compaction is concerned with it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text that was said.
    Text(Text<'a>),
    /// Thinking: a sign that the model has been at work, never looked into.
    Thinking,
    /// A tool call.
    Call(Call<'a>),
    /// A tool result.
    Result(ToolResult<'a>),
    /// Anything else; passes through.
    Other,
}

/// The key under which a call and its result find each other.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum BlockId<'a> {
    /// A text that is not empty.
    Usable(Text<'a>),
    /// Another JSON value, as it stands in the input (empty text included).
    Unusable(&'a str),
    /// No id at all.
    Missing,
}

/// A tool call of the history.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The key of the call.
    pub id: BlockId<'a>,
    /// The tool's name, if it is text.
    pub name: Option<Text<'a>>,
    /// The arguments as the agent holds them: text that should be a JSON object.
    pub input: Option<Text<'a>>,
    /// Whether the call ran to its end.
    pub finished: bool,
}

/// A tool result of the history.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolResult<'a> {
    /// The key of the call it answers.
    pub id: BlockId<'a>,
    /// The tool's name, if it is text.
    pub name: Option<Text<'a>>,
    /// Whether the tool reported success.
    pub success: bool,
    /// What the tool returned, if the field is there.
    pub output: Option<Output<'a>>,
}

/// The output of a tool result: the one place of a history that may be replaced.
#[derive(Debug)]
#[non_exhaustive]
pub struct Output<'a> {
    /// Where the value stands in the input.
    pub(crate) span: Span,
    /// Code points of the value as compact JSON.
    pub(crate) size: u64,
    /// Its text, or nothing if it is not purely textual.
    pub content: Content<'a>,
}

/// What an output consists of.
#[derive(Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// One text.
    Text(Text<'a>),
    /// A list of nothing but text blocks, at least one.
    TextBlocks(Vec<TextBlock<'a>>),
    /// Anything else: images, numbers, empty lists. Never touched.
    NotText,
}

/// A text block inside an output.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TextBlock<'a> {
    /// The block's text.
    pub text: Text<'a>,
    /// Where the block stands in the input.
    pub(crate) block: Span,
    /// Where the string (with its quotes) stands in the input.
    pub(crate) string: Span,
    /// Code points of the whole block as compact JSON.
    pub(crate) size: u64,
}

impl fmt::Debug for Snapshot<'_> {
    // Messages never belong in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("messages", &self.messages.len())
            .field("blocks", &self.blocks.len())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BlockId<'_> {
    // Ids come out of the history, so only their kind is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BlockId::Usable(_) => "Usable",
            BlockId::Unusable(_) => "Unusable",
            BlockId::Missing => "Missing",
        })
    }
}

impl<'a> Snapshot<'a> {
    /// Reads a message list at the scanner's position. Shape problems go to `problems`; the snapshot is only
    /// meaningful if there are none.
    pub(crate) fn read(
        scanner: &mut Scanner<'a>,
        input: &'a str,
        format: Format,
        problems: &mut Problems,
    ) -> Result<Snapshot<'a>, SyntaxError> {
        let mut index = Index::default();
        let start = scanner.position();
        let size = format.read(scanner, &mut index, problems)?;
        let Index { messages, blocks } = index;
        Ok(Snapshot { input, span: Span { start, end: scanner.position() }, size, messages, blocks })
    }

    /// A history without messages, standing for one that is still to be read.
    pub(crate) fn empty(input: &'a str, span: Span) -> Snapshot<'a> {
        Snapshot { input, span, size: 2, messages: Vec::new(), blocks: Vec::new() }
    }

    /// The messages in order.
    pub fn messages(&self) -> &[Message<'a>] {
        &self.messages
    }

    /// All blocks of all messages in order.
    pub fn blocks(&self) -> &[Block<'a>] {
        &self.blocks
    }

    /// The blocks of one message.
    pub fn blocks_of(&self, message: &Message<'a>) -> &[Block<'a>] {
        &self.blocks[message.block_range()]
    }

    /// The message list as it came in, byte for byte.
    pub fn json(&self) -> &'a str {
        &self.input[self.span.start..self.span.end]
    }

    /// The whole document the message list was read from.
    pub fn input(&self) -> &'a str {
        self.input
    }

    /// Where the message list stands in the document.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Code points of the message list as compact JSON (`stats.chars_before`).
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl<'a> Output<'a> {
    /// The text of the output, or `None` if it is not purely textual.
    pub fn text(&self) -> Option<ResultText<'_, 'a>> {
        match &self.content {
            Content::Text(text) => Some(ResultText(Parts::One(*text))),
            Content::TextBlocks(blocks) => Some(ResultText(Parts::Joined(blocks))),
            Content::NotText => None,
        }
    }
}

/// The text of a textual output; the texts of a list are joined with one newline.
#[derive(Debug, Clone, Copy)]
pub struct ResultText<'s, 'a>(Parts<'s, 'a>);

#[derive(Debug, Clone, Copy)]
enum Parts<'s, 'a> {
    One(Text<'a>),
    Joined(&'s [TextBlock<'a>]),
}

impl<'a> ResultText<'_, 'a> {
    fn parts(&self) -> impl Iterator<Item = Text<'a>> {
        let (one, joined) = match self.0 {
            Parts::One(text) => (Some(text), [].as_slice()),
            Parts::Joined(blocks) => (None, blocks),
        };
        one.into_iter().chain(joined.iter().map(|block| block.text))
    }

    /// Length in Unicode code points.
    pub fn code_points(&self) -> u64 {
        let (count, sum) = self.parts().fold((0, 0), |(n, sum), text| (n + 1, sum + text.code_points()));
        sum + u64::saturating_sub(count, 1)
    }

    /// True if the text is not valid Unicode.
    pub fn has_lone_surrogate(&self) -> bool {
        self.parts().any(|text| text.has_lone_surrogate())
    }

    /// True if the spelling of the text ends with this ASCII character, as itself or as an escape. A cheap test
    /// before decoding.
    pub(crate) fn may_end_with(&self, character: char) -> bool {
        self.parts().last().is_some_and(|text| {
            let raw = text.raw();
            let escaped =
                || raw.len().checked_sub(6).and_then(|at| raw.get(at..)).filter(|end| end.starts_with("\\u"));
            raw.ends_with(character)
                || escaped().is_some_and(|end| u32::from_str_radix(&end[2..], 16) == Ok(u32::from(character)))
        })
    }

    /// The spelling of the text, if it is one string in the contract's notation.
    pub(crate) fn canonical(&self) -> Option<&'a str> {
        match self.0 {
            Parts::One(text) => text.canonical(),
            Parts::Joined([block]) => block.text.canonical(),
            Parts::Joined(_) => None,
        }
    }

    /// The decoded text, with U+FFFD in place of lone surrogates.
    pub fn decode_lossy(&self) -> Cow<'a, str> {
        match self.0 {
            Parts::One(text) => text.decode_lossy(),
            Parts::Joined([block]) => block.text.decode_lossy(),
            Parts::Joined(blocks) => {
                let texts: Vec<_> = blocks.iter().map(|block| block.text.decode_lossy()).collect();
                Cow::Owned(texts.join("\n"))
            }
        }
    }
}

impl Message<'_> {
    /// Which blocks of the snapshot belong to this message.
    pub(crate) fn block_range(&self) -> std::ops::Range<usize> {
        self.first_block..self.end_block
    }
}

/// What a format fills while it reads.
#[derive(Default)]
pub(crate) struct Index<'a> {
    messages: Vec<Message<'a>>,
    blocks: Vec<Block<'a>>,
}

impl<'a> Index<'a> {
    fn push_block(&mut self, block: Block<'a>) {
        self.blocks.push(block);
    }

    fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Ends a message whose blocks were pushed since there were `first_block` of them.
    fn push_message(&mut self, role: Role, id: Option<Text<'a>>, first_block: usize) {
        self.messages.push(Message { role, id, first_block, end_block: self.blocks.len() });
    }
}
