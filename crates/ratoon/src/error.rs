//! What can go wrong before a proposal exists. No variant carries message content.

use crate::count::CountError;
use crate::json::SyntaxError;
use crate::problems::Problems;

/// Why a document is not a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There are no bytes at all.
    #[error("the input is empty")]
    Empty,
    /// The bytes are not UTF-8 text.
    #[error("the input is not UTF-8 text (byte {offset}); is it a binary file?")]
    NotUtf8 {
        /// The first byte that does not fit.
        offset: usize,
    },
    /// The text is not JSON.
    #[error("the input is not JSON: {what} (line {line}, column {column})")]
    NotJson {
        /// What is wrong there.
        what: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// The JSON is neither an object nor a list.
    #[error("the input is neither a request object nor a list of messages")]
    NotADocument,
    /// The JSON holds messages without a request around them.
    #[error("the input is a list of messages, not a request object")]
    NotARequest,
    /// The request does not keep to its shape.
    #[error("invalid request: {0}")]
    Invalid(Problems),
}

impl RequestError {
    pub(crate) fn syntax(text: &str, error: &SyntaxError) -> RequestError {
        let before = &text.as_bytes()[..error.offset.min(text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        // The byte-order mark in front of a document is not a character of its first line.
        let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let line_start = memchr::memrchr(b'\n', before).map_or(first, |at| at + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        RequestError::NotJson { what: error.what, line, column }
    }
}

/// Why a valid request could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// A budget was set, but there is nothing to count with.
    #[error("max_output_tokens needs a token counter")]
    TokenCounterRequired,
    /// The token counter gave no usable count.
    #[error(transparent)]
    Count(#[from] CountError),
}
