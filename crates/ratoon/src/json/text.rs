//! String tokens: where they stand, how long they are, what they mean.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use super::plain::plain_run;

/// A JSON string as it stands in the input, without its quotes. Decoded only on demand.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a str,
    code_points: u32,
    size: u32,
    escapes: Escapes,
}

/// Which escapes a string token holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Escapes {
    /// None: the spelling is the meaning.
    None,
    /// Only such as the contract's notation writes in the same way.
    Canonical,
    /// Others as well.
    Other,
    /// Half of a surrogate pair: the string is not valid Unicode.
    LoneSurrogate,
}

impl fmt::Debug for Text<'_> {
    // Strings of a history are message content, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} code points)", self.code_points)
    }
}

impl<'a> Text<'a> {
    pub(super) fn new(raw: &'a str, code_points: u32, size: u32, escapes: Escapes) -> Self {
        Text { raw, code_points, size, escapes }
    }

    /// The spelling, if the contract's notation would spell the string in the same way.
    pub(crate) fn canonical(&self) -> Option<&'a str> {
        (self.escapes <= Escapes::Canonical).then_some(self.raw)
    }

    /// The token's spelling in the input, escapes and all, without the quotes.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// Length of the decoded string in Unicode code points (a lone surrogate counts as one).
    pub fn code_points(&self) -> u64 {
        u64::from(self.code_points)
    }

    /// Code points of the string written as JSON in the contract's notation, quotes included.
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.size)
    }

    /// True for `""`.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// True if the string holds half of a surrogate pair and so is not valid Unicode text.
    pub fn has_lone_surrogate(&self) -> bool {
        self.escapes == Escapes::LoneSurrogate
    }

    /// The decoded string, or `None` if it is not valid Unicode (a lone surrogate escape).
    pub fn decode(&self) -> Option<Cow<'a, str>> {
        if self.has_lone_surrogate() { None } else { Some(self.decode_lossy()) }
    }

    /// The decoded string, with U+FFFD in place of lone surrogates. For copies that are only read.
    pub fn decode_lossy(&self) -> Cow<'a, str> {
        if self.escapes == Escapes::None {
            return Cow::Borrowed(self.raw);
        }
        let mut decoded = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            decoded.push_str(&rest[..at]);
            let (character, length) = unescape(&rest.as_bytes()[at..]);
            decoded.push(character.unwrap_or('\u{fffd}'));
            rest = &rest[at + length..];
        }
        decoded.push_str(rest);
        Cow::Owned(decoded)
    }

    /// True if the decoded string is `expected`.
    pub fn is(&self, expected: &str) -> bool {
        !self.has_lone_surrogate()
            && self.code_points as usize <= expected.len()
            && self.decode_lossy() == expected
    }

    /// True if both tokens mean the same string, however they are spelled.
    pub(super) fn same_as(&self, other: &Text<'_>) -> bool {
        if self.escapes == Escapes::None && other.escapes == Escapes::None {
            return self.raw == other.raw;
        }
        if self.code_points != other.code_points || self.has_lone_surrogate() != other.has_lone_surrogate() {
            return false;
        }
        self.identity() == other.identity()
    }

    /// What tells strings apart, however they are spelled: the decoded string, in which half a surrogate pair has
    /// the three bytes that UTF-8 would give it. No other string has those.
    pub(super) fn identity(&self) -> Cow<'a, [u8]> {
        if !self.has_lone_surrogate() {
            return match self.decode_lossy() {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            };
        }
        let mut decoded = Vec::with_capacity(self.raw.len());
        let mut rest = self.raw.as_bytes();
        while let Some(at) = memchr(b'\\', rest) {
            decoded.extend(&rest[..at]);
            let (character, length) = unescape(&rest[at..]);
            match character {
                Some(character) => decoded.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                None => {
                    let half = hex4(&rest[at + 2..]).expect("only a `\\u` escape has no character");
                    decoded.extend([0xed, 0x80 | (half >> 6 & 0x3f) as u8, 0x80 | (half & 0x3f) as u8]);
                }
            }
            rest = &rest[at + length..];
        }
        decoded.extend(rest);
        Cow::Owned(decoded)
    }
}

/// Decodes the escape at the start of `bytes` (a validated one): its character, or `None` for a lone
/// surrogate, and its length in bytes.
pub(super) fn unescape(bytes: &[u8]) -> (Option<char>, usize) {
    let simple = |character| (Some(character), 2);
    match bytes[1] {
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{c}'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'u' => {
            let unit = hex4(&bytes[2..]).expect("the scanner has checked the digits");
            if !(0xd800..0xe000).contains(&unit) {
                return (char::from_u32(unit), 6);
            }
            let low = (bytes.get(6..8) == Some(b"\\u".as_slice())).then(|| hex4(&bytes[8..])).flatten();
            match low {
                Some(low) if unit < 0xdc00 && (0xdc00..0xe000).contains(&low) => {
                    (char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)), 12)
                }
                _ => (None, 6),
            }
        }
        other => simple(char::from(other)),
    }
}

/// Four hexadecimal digits at the start of `bytes`.
fn hex4(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    digits.iter().try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
}

/// How a character that JSON cannot hold raw is escaped.
fn escape(byte: u8) -> Option<&'static str> {
    const CONTROLS: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b", "\\t",
        "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013",
        "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c",
        "\\u001d", "\\u001e", "\\u001f",
    ];
    match byte {
        b'"' => Some("\\\""),
        b'\\' => Some("\\\\"),
        control => CONTROLS.get(usize::from(control)).copied(),
    }
}

/// Whether an escape is spelled as the contract's notation spells its character.
pub(super) fn is_canonical(spelling: &[u8], character: char) -> bool {
    u8::try_from(character).ok().and_then(escape).is_some_and(|escaped| escaped.as_bytes() == spelling)
}

/// How many code points a character costs inside a JSON string.
pub(super) fn escaped_size(character: char) -> u32 {
    u8::try_from(character).ok().and_then(escape).map_or(1, |escaped| escaped.len() as u32)
}

/// Appends `text` as a JSON string in Python's notation: non-ASCII kept, only quotes, backslashes and
/// controls below U+0020 escaped.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let (plain, Some(byte)) = plain_run(rest.as_bytes()) {
        out.push_str(&rest[..plain.bytes]);
        out.push_str(escape(byte).expect("a run ends at a byte that needs an escape"));
        rest = &rest[plain.bytes + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Code points of `text` written by [`push_text`].
pub(crate) fn serialised_code_points(text: &str) -> u64 {
    let mut size = 2;
    let mut rest = text.as_bytes();
    loop {
        let (plain, end) = plain_run(rest);
        size += plain.code_points;
        let Some(escaped) = end.and_then(escape) else { return size };
        size += escaped.len() as u64;
        rest = &rest[plain.bytes + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_escaped_like_python() {
        let mut out = String::new();
        push_text(&mut out, "a\"\\\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}\u{2028}é");
        assert_eq!(out, "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\u{2028}é\"");
        assert_eq!(serialised_code_points("a\"\n\u{1f}é"), 2 + 1 + 2 + 2 + 6 + 1);
    }
}
