//! Counting: the host's token counter for budgets, and the decision-token estimate for requests.

use std::borrow::Cow;
use std::fmt;

mod estimate;

/// Counts the tokens of a message list, for `max_output_tokens`. The host's own measure decides the budget.
///
/// Counters are asked about the messages as they came in and, in a budget run, after every replacement.
///
/// ```
/// use ratoon::count::{CountError, Messages, TokenCounter};
///
/// #[derive(Debug)]
/// struct Words;
///
/// impl TokenCounter for Words {
///     fn count(&self, messages: &Messages<'_>) -> Result<u64, CountError> {
///         Ok(messages.json().split_whitespace().count() as u64)
///     }
/// }
/// ```
pub trait TokenCounter: Send + Sync + fmt::Debug {
    /// The number of tokens of a message list.
    fn count(&self, messages: &Messages<'_>) -> Result<u64, CountError>;
}

/// Why a token counter gave no usable count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountError {
    /// The counter answered with something that is not a non-negative integer.
    #[error("the token counter must return a non-negative integer")]
    Invalid,
    /// The counter itself failed.
    #[error("the token counter failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The message list a counter is asked about. The JSON text is only put together if the counter wants it.
pub struct Messages<'a> {
    code_points: u64,
    json: &'a dyn Fn() -> Cow<'a, str>,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(code_points: u64, json: &'a dyn Fn() -> Cow<'a, str>) -> Self {
        Messages { code_points, json }
    }

    /// Unicode code points of the messages as compact JSON (`,` and `:` without spaces, non-ASCII kept).
    /// Kept up to date incrementally, so it costs nothing to ask.
    pub fn code_points(&self) -> u64 {
        self.code_points
    }

    /// The messages as JSON, spelled as they came in.
    pub fn json(&self) -> Cow<'a, str> {
        (self.json)()
    }
}

impl fmt::Debug for Messages<'_> {
    // The JSON is message content, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("code_points", &self.code_points).finish_non_exhaustive()
    }
}

/// The counters that can be named in a request when the host cannot pass a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedCounter {
    /// `chars4`: a quarter of the code points of the compact JSON, rounded up.
    Chars4,
    /// `json_chars`: the code points of the compact JSON.
    JsonChars,
}

impl NamedCounter {
    /// All counters, in the order in which help texts list them.
    pub const ALL: [NamedCounter; 2] = [NamedCounter::Chars4, NamedCounter::JsonChars];

    /// The counter's name in requests and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            NamedCounter::Chars4 => "chars4",
            NamedCounter::JsonChars => "json_chars",
        }
    }

    /// The counter of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }
}

impl TokenCounter for NamedCounter {
    fn count(&self, messages: &Messages<'_>) -> Result<u64, CountError> {
        Ok(match self {
            NamedCounter::Chars4 => messages.code_points().div_ceil(4),
            NamedCounter::JsonChars => messages.code_points(),
        })
    }
}

/// An estimate of decision tokens that can be added up piece by piece. Kept in halves, because a digit
/// costs half a token and only the final sum is rounded (contract, section 7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    halves: u64,
}

impl Estimate {
    /// The estimate of a piece of serialised JSON. Pieces may be added up if letters or digits do not meet
    /// at the seams; ours begin and end with punctuation.
    pub(crate) fn of(json: &str) -> Estimate {
        Estimate { halves: estimate::halves(json) }
    }

    /// Whole tokens: the sum plus 0.999, truncated.
    pub(crate) fn tokens(self) -> u64 {
        self.halves.div_ceil(2)
    }
}

impl std::ops::Add for Estimate {
    type Output = Estimate;

    fn add(self, other: Estimate) -> Estimate {
        Estimate { halves: self.halves + other.halves }
    }
}

impl std::ops::AddAssign for Estimate {
    fn add_assign(&mut self, other: Estimate) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_and_the_rest_cost_what_the_contract_says() {
        for (text, halves) in [
            ("abcdef", 2),
            ("abcdefg", 4),
            ("abcdefghijklm", 6),
            ("1", 1),
            ("1234", 4),
            ("a1", 3),
            ("{}", 4),
            (" \u{85}\u{a0}\u{2028}\u{3000}", 0),
            ("中文", 4),
            ("\u{200b}", 2),
            ("\\nword", 2 + 2),
            ("\u{7f}", 2),
        ] {
            assert_eq!(Estimate::of(text).halves, halves, "{text:?}");
        }
        assert_eq!(Estimate::of("1").tokens(), 1);
        assert_eq!((Estimate::of("a1,") + Estimate::of("2,")).tokens(), 4);
    }
}
