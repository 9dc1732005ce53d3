//! One pass over JSON text: validates, measures, hands out tokens. Depth costs heap, never stack.

use super::number::python_size;
use super::plain::plain_run;
use super::text::{Escapes, Text, escaped_size, is_canonical, unescape};

/// Deepest nesting that is read. Far above any real history, low enough that a file of brackets cannot
/// cost more memory than it has bytes.
const MAX_DEPTH: usize = 100_000;

/// A half-open range of bytes in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// The input is not JSON: what is wrong and at which byte. Never quotes the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
#[non_exhaustive]
pub struct SyntaxError {
    /// What is wrong there.
    pub what: &'static str,
    /// Byte offset in the input.
    pub offset: usize,
}

/// A value whose inside was skipped (validated and measured, but not looked at).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) span: Span,
    pub(crate) size: u64,
    pub(crate) kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Text<'a>),
    Array,
    Object,
}

pub(crate) struct Scanner<'a> {
    input: &'a str,
    position: usize,
    /// Members of all objects that are open at the moment, innermost last.
    members: Vec<Member<'a>>,
}

struct Member<'a> {
    key: Text<'a>,
    /// Size of the member's value.
    size: u64,
}

/// A container whose end has not been reached.
struct Frame {
    /// For an object: where its members begin. For an array: `None`.
    members: Option<usize>,
    /// For an array: sizes and commas so far.
    size: u64,
}

type Scanned<T> = Result<T, SyntaxError>;

impl<'a> Scanner<'a> {
    pub(crate) fn new(input: &'a str) -> Self {
        Scanner { input, position: 0, members: Vec::new() }
    }

    /// A scanner that begins behind the first `position` bytes.
    pub(crate) fn starting_at(input: &'a str, position: usize) -> Self {
        Scanner { position, ..Scanner::new(input) }
    }

    /// The input between two positions.
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        &self.input[span.start..span.end]
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    fn error<T>(&self, what: &'static str) -> Scanned<T> {
        Err(SyntaxError { what, offset: self.position })
    }

    fn byte(&self) -> Option<u8> {
        self.input.as_bytes().get(self.position).copied()
    }

    pub(crate) fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.position += 1;
        }
    }

    /// The first byte of the next value.
    pub(crate) fn peek(&mut self) -> Scanned<u8> {
        self.skip_whitespace();
        match self.byte() {
            Some(byte) => Ok(byte),
            None => self.error("the text ends where a value is expected"),
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn end(&mut self) -> Scanned<()> {
        self.skip_whitespace();
        if self.position == self.input.len() {
            Ok(())
        } else {
            self.error("text follows after the end of the document")
        }
    }

    /// Reads an object; `member` is called behind each key and colon, must consume the value and answers
    /// its size. Returns the object's size, in which only the last of several equal keys counts.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Scanned<u64>,
    ) -> Scanned<u64> {
        let first = self.members.len();
        let mut more = !self.enter(b'{')?;
        while more {
            let key = self.key()?;
            self.skip_whitespace();
            let at = self.members.len();
            self.members.push(Member { key, size: 0 });
            let size = member(self, key)?;
            self.members[at].size = size;
            more = self.separator(b'}')?;
        }
        Ok(self.close_object(first))
    }

    /// Reads an array; `item` must consume the value and answers its size. Returns the array's size.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Scanned<u64>) -> Scanned<u64> {
        let mut size = 2;
        let mut more = !self.enter(b'[')?;
        while more {
            self.skip_whitespace();
            size += item(self)?;
            more = self.separator(b']')?;
            size += u64::from(more);
        }
        Ok(size)
    }

    /// Skips one value of any shape.
    pub(crate) fn value(&mut self) -> Scanned<Value<'a>> {
        let byte = self.peek()?;
        let start = self.position;
        let (kind, size) = match byte {
            b'{' => (Kind::Object, self.container()?),
            b'[' => (Kind::Array, self.container()?),
            _ => self.scalar(byte)?,
        };
        Ok(Value { span: Span { start, end: self.position }, size, kind })
    }

    fn scalar(&mut self, byte: u8) -> Scanned<(Kind<'a>, u64)> {
        match byte {
            b'"' => {
                let text = self.text()?;
                Ok((Kind::Text(text), text.size()))
            }
            b'-' | b'0'..=b'9' => {
                let raw = self.number()?;
                Ok((Kind::Number(raw), python_size(raw)))
            }
            b't' => self.literal("true", Kind::Bool(true)),
            b'f' => self.literal("false", Kind::Bool(false)),
            b'n' => self.literal("null", Kind::Null),
            b'N' | b'I' => self.error("NaN and Infinity are not JSON"),
            _ => self.error("a value is expected here"),
        }
    }

    fn literal(&mut self, word: &str, kind: Kind<'a>) -> Scanned<(Kind<'a>, u64)> {
        if !self.input.as_bytes()[self.position..].starts_with(word.as_bytes()) {
            return self.error("a value is expected here");
        }
        self.position += word.len();
        Ok((kind, word.len() as u64))
    }

    /// Skips a container and everything in it, with the open containers on the heap.
    fn container(&mut self) -> Scanned<u64> {
        let mut open: Vec<Frame> = Vec::new();
        loop {
            let mut size = match self.peek()? {
                bracket @ (b'{' | b'[') => {
                    if open.len() == MAX_DEPTH {
                        return self.error("nested deeper than 100,000 levels");
                    }
                    let is_object = bracket == b'{';
                    if self.enter(bracket)? {
                        2
                    } else {
                        open.push(Frame { members: is_object.then_some(self.members.len()), size: 2 });
                        if is_object {
                            self.push_key()?;
                        }
                        continue;
                    }
                }
                byte => self.scalar(byte)?.1,
            };
            loop {
                let Some(frame) = open.last_mut() else { return Ok(size) };
                let close = match frame.members {
                    Some(_) => {
                        self.members.last_mut().expect("an open object has a current member").size = size;
                        b'}'
                    }
                    None => {
                        frame.size += size;
                        b']'
                    }
                };
                if self.separator(close)? {
                    match frame.members {
                        Some(_) => self.push_key()?,
                        None => frame.size += 1,
                    }
                    break;
                }
                size = match frame.members {
                    Some(first) => self.close_object(first),
                    None => frame.size,
                };
                open.pop();
            }
        }
    }

    /// Consumes an opening bracket; true if the container is empty, whose end is consumed as well.
    pub(super) fn enter(&mut self, bracket: u8) -> Scanned<bool> {
        self.position += 1;
        self.closes(if bracket == b'{' { b'}' } else { b']' })
    }

    /// Consumes `close` if the container that was just opened is empty.
    fn closes(&mut self, close: u8) -> Scanned<bool> {
        self.skip_whitespace();
        match self.byte() {
            Some(byte) if byte == close => {
                self.position += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => self.error("the text ends inside an array or object"),
        }
    }

    /// Consumes a comma (true) or `close` (false).
    pub(super) fn separator(&mut self, close: u8) -> Scanned<bool> {
        self.skip_whitespace();
        match self.byte() {
            Some(b',') => {
                self.position += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.position += 1;
                Ok(false)
            }
            Some(_) => self.error("a comma or the end of the array or object is expected here"),
            None => self.error("the text ends inside an array or object"),
        }
    }

    fn push_key(&mut self) -> Scanned<()> {
        let key = self.key()?;
        self.members.push(Member { key, size: 0 });
        Ok(())
    }

    pub(super) fn key(&mut self) -> Scanned<Text<'a>> {
        self.skip_whitespace();
        if self.byte() != Some(b'"') {
            return self.error("a key in double quotes is expected here");
        }
        let key = self.text()?;
        self.skip_whitespace();
        if self.byte() != Some(b':') {
            return self.error("a colon is expected behind a key");
        }
        self.position += 1;
        Ok(key)
    }

    /// The size of the object whose members begin at `first`, which are dropped. Python keeps the last of
    /// several equal keys, so only that one counts.
    fn close_object(&mut self, first: usize) -> u64 {
        let members = &mut self.members[first..];
        let mut sizes = 0;
        let mut count = 0;
        let mut add = |member: &Member<'_>| {
            sizes += member.key.size() + 1 + member.size;
            count += 1;
        };
        if members.len() <= 16 {
            for (at, member) in members.iter().enumerate() {
                if !members[at + 1..].iter().any(|later| later.key.same_as(&member.key)) {
                    add(member);
                }
            }
        } else {
            // Stable, so that the last of equal keys stays last.
            members.sort_by_cached_key(|member| member.key.identity());
            for (at, member) in members.iter().enumerate() {
                if !members.get(at + 1).is_some_and(|later| later.key.same_as(&member.key)) {
                    add(member);
                }
            }
        }
        self.members.truncate(first);
        2 + sizes + u64::saturating_sub(count, 1)
    }

    /// A string token; the position is at its opening quote.
    pub(crate) fn text(&mut self) -> Scanned<Text<'a>> {
        let bytes = self.input.as_bytes();
        let start = self.position + 1;
        let mut at = start;
        let (mut code_points, mut size) = (0u64, 2u64);
        let mut escapes = Escapes::None;
        loop {
            let (plain, found) = plain_run(&bytes[at..]);
            at += plain.bytes;
            code_points += plain.code_points;
            size += plain.code_points;
            match found {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.position = at;
                    self.check_escape()?;
                    let (character, length) = unescape(&bytes[at..]);
                    escapes = escapes.max(match character {
                        None => Escapes::LoneSurrogate,
                        Some(character) if is_canonical(&bytes[at..at + length], character) => {
                            Escapes::Canonical
                        }
                        Some(_) => Escapes::Other,
                    });
                    at += length;
                    code_points += 1;
                    size += u64::from(character.map_or(1, escaped_size));
                }
                Some(_) => {
                    self.position = at;
                    return self.error("a control character inside a string must be escaped");
                }
                None => {
                    self.position = bytes.len();
                    return self.error("the text ends inside a string");
                }
            }
        }
        self.position = at + 1;
        let narrow = |count: u64| u32::try_from(count).ok();
        match (narrow(code_points), narrow(size)) {
            (Some(code_points), Some(size)) => {
                Ok(Text::new(&self.input[start..at], code_points, size, escapes))
            }
            _ => self.error("a string of 4 GiB or more cannot be read"),
        }
    }

    /// Checks the escape at the position.
    fn check_escape(&self) -> Scanned<()> {
        let bytes = &self.input.as_bytes()[self.position..];
        match bytes.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') if bytes.get(2..6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => Ok(()),
            Some(_) => self.error("an unknown escape inside a string"),
            None => self.error("the text ends inside a string"),
        }
    }

    fn number(&mut self) -> Scanned<&'a str> {
        let start = self.position;
        if self.byte() == Some(b'-') {
            self.position += 1;
        }
        match self.byte() {
            Some(b'0') => self.position += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.error("a digit is expected here"),
        }
        if self.byte() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.position += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.position += 1;
            }
            self.digits()?;
        }
        Ok(&self.input[start..self.position])
    }

    fn digits(&mut self) -> Scanned<()> {
        let run =
            self.input.as_bytes()[self.position..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.position += run;
        if run == 0 { self.error("a digit is expected here") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(input: &str) -> Scanned<u64> {
        let mut scanner = Scanner::new(input);
        let value = scanner.value()?;
        scanner.end()?;
        Ok(value.size)
    }

    #[test]
    fn sizes_are_those_of_compact_python_json() {
        for (input, compact) in [
            (" { \"a\" : [ 1 , 2.50 , true , null ] } ", "{\"a\":[1,2.5,true,null]}"),
            ("\"\\u00e9\\/\\u000a\\u0001\\ud83d\\ude00\"", "\"é/\\n\\u0001😀\""),
            ("{\"k\":1,\"k\":22,\"\\u006b\":333}", "{\"k\":333}"),
            ("[]", "[]"),
            ("{}", "{}"),
            ("[[],{},\"\"]", "[[],{},\"\"]"),
            ("[-0, 1e16, 1E2]", "[0,1e+16,100.0]"),
            ("\"中文\u{2028}\"", "\"中文\u{2028}\""),
        ] {
            assert_eq!(size(input), Ok(compact.chars().count() as u64), "{input}");
        }
    }

    #[test]
    fn many_equal_keys_count_once() {
        let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 20)).collect();
        let last: Vec<String> = (20..40).map(|n| format!("\"k{}\":{n}", n % 20)).collect();
        assert_eq!(size(&format!("{{{}}}", many.join(","))), Ok(last.join(",").len() as u64 + 2));
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert_eq!(size(&deep), Ok(2 * MAX_DEPTH as u64));
        let too_deep = "[".repeat(MAX_DEPTH + 1);
        assert_eq!(size(&too_deep).map_err(|error| error.offset), Err(MAX_DEPTH));
        let objects = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        assert_eq!(size(&objects), Ok(objects.len() as u64));
    }

    #[test]
    fn what_is_not_json_is_refused_at_its_place() {
        for (input, offset) in [
            ("", 0),
            ("{bad", 1),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("{\"a\" 1}", 5),
            ("[1 2]", 3),
            ("\"a", 2),
            ("\"a\tb\"", 2),
            ("\"\\x\"", 1),
            ("\"\\u12g4\"", 1),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("NaN", 0),
            ("-Infinity", 1),
            ("tru", 0),
            ("[1] x", 4),
            ("[", 1),
            ("{\"a\":", 5),
        ] {
            assert_eq!(size(input).map_err(|error| error.offset), Err(offset), "{input}");
        }
    }

    #[test]
    fn a_token_knows_its_length_and_its_meaning() {
        let mut scanner = Scanner::new("\"héllo wörld, 12345678 \\ud83d\\ude00\\n\"");
        let text = scanner.text().expect("a valid string");
        assert_eq!(text.decode().as_deref(), Some("héllo wörld, 12345678 😀\n"));
        assert_eq!(text.code_points(), 24);
        let mut scanner = Scanner::new("\"a\\ud83dx\"");
        let text = scanner.text().expect("lone surrogates are syntactically fine");
        assert_eq!((text.code_points(), text.decode()), (3, None));
        assert_eq!(text.decode_lossy(), "a\u{fffd}x");
    }
}
