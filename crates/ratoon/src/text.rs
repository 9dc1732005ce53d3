//! Plain text as the contract measures it: Unicode code points, Python's white space, head and tail.

use std::ops::Range;

/// Length in Unicode code points (Python's `len` of a `str`).
pub(crate) fn code_points(text: &str) -> u64 {
    text.chars().count() as u64
}

/// White space in the sense of Python's `str.isspace`, which also counts U+001C to U+001F.
pub(crate) fn is_whitespace(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// True if nothing is left after Python's `str.strip()`.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_whitespace)
}

/// What stands between the head and the tail of a cut text.
pub(crate) const ELLIPSIS: &str = "\n…\n";

/// Which bytes of a text an excerpt shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Excerpt {
    /// The text is short enough to be shown whole.
    Whole,
    /// Too short for an ellipsis: only a head.
    Head(Range<usize>),
    /// Head, ellipsis line, tail.
    HeadTail(Range<usize>, Range<usize>),
}

impl Excerpt {
    /// The excerpt of `text`, which has `length` code points, with at most `limit` code points
    /// (contract, section 7: with a = limit - 3 the first ceil(a/2), an ellipsis line, the last floor(a/2)).
    pub(crate) fn of(text: &str, length: u64, limit: u64) -> Excerpt {
        if length <= limit {
            return Excerpt::Whole;
        }
        // The limit is below the length of a text in memory, so it fits.
        let limit = limit as usize;
        if limit < 3 {
            return Excerpt::Head(0..end_of_head(text, limit));
        }
        let shown = limit - 3;
        Excerpt::HeadTail(0..end_of_head(text, shown.div_ceil(2)), start_of_tail(text, shown / 2)..text.len())
    }

    /// Appends what the excerpt shows of `text`.
    pub(crate) fn push(&self, out: &mut String, text: &str) {
        match self {
            Excerpt::Whole => out.push_str(text),
            Excerpt::Head(head) => out.push_str(&text[head.clone()]),
            Excerpt::HeadTail(head, tail) => {
                out.push_str(&text[head.clone()]);
                out.push_str(ELLIPSIS);
                out.push_str(&text[tail.clone()]);
            }
        }
    }
}

/// `text` cut to `limit` code points.
pub(crate) fn cut(text: &str, limit: u64) -> String {
    let mut out = String::new();
    Excerpt::of(text, code_points(text), limit).push(&mut out, text);
    out
}

fn end_of_head(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

fn start_of_tail(text: &str, count: usize) -> usize {
    match count {
        0 => text.len(),
        _ => text.char_indices().nth_back(count - 1).map_or(0, |(at, _)| at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_follow_the_contract_at_every_small_limit() {
        let text = "abcdefghij";
        for (limit, expected) in [
            (0, ""),
            (1, "a"),
            (2, "ab"),
            (3, "\n…\n"),
            (4, "a\n…\n"),
            (5, "a\n…\nj"),
            (6, "ab\n…\nj"),
            (9, "abc\n…\nhij"),
            (10, "abcdefghij"),
            (u64::MAX, "abcdefghij"),
        ] {
            assert_eq!(cut(text, limit), expected, "{limit}");
        }
    }

    #[test]
    fn cuts_count_code_points_and_never_split_one() {
        assert_eq!(cut("🎉é中🪑xyz", 5), "🎉\n…\nz");
        assert_eq!(cut("🎉é中🪑xyz", 6), "🎉é\n…\nz");
    }

    #[test]
    fn blank_is_what_python_strips() {
        assert!(is_blank("\u{1c}\u{1f}\u{85}\u{a0}\u{2028}\u{3000} \t\r\n"));
        assert!(!is_blank("\u{200b}"));
        assert!(is_blank(""));
    }
}
