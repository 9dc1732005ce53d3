//! Parts of an original: a range of lines, the lines that match a pattern. Both return slices of the text, so
//! nothing is re-spelled.

use regex::Regex;

/// The lines `from` to `to`, counted from 1, both included, each with its line end. `None` leaves that end open.
/// Lines that are not there are left out.
///
/// ```
/// use ratoon_archive::recover::lines;
///
/// assert_eq!(lines("a\nb\nc", Some(2), None), "b\nc");
/// assert_eq!(lines("a\nb\nc", Some(4), None), "");
/// ```
pub fn lines(text: &str, from: Option<usize>, to: Option<usize>) -> &str {
    let start = start_of_line(text, from.unwrap_or(1));
    let end = to.map_or(text.len(), |to| start_of_line(text, to.saturating_add(1)));
    text.get(start..end).unwrap_or("")
}

/// Where a line begins; the end of the text for lines that are not there.
fn start_of_line(text: &str, line: usize) -> usize {
    match line.saturating_sub(2) {
        _ if line <= 1 => 0,
        skipped => text.match_indices('\n').nth(skipped).map_or(text.len(), |(at, _)| at + 1),
    }
}

/// How many lines a text has; the last one need not end.
pub fn count_lines(text: &str) -> usize {
    text.lines().count()
}

/// The lines that match, with their numbers from 1 and without their line ends.
///
/// ```
/// use ratoon_archive::recover::grep;
///
/// let pattern = regex::Regex::new("^error")?;
/// let errors: Vec<_> = grep("ok\nerror: disk\nok", &pattern).collect();
/// assert_eq!(errors, [(2, "error: disk")]);
/// # Ok::<(), regex::Error>(())
/// ```
pub fn grep<'t>(text: &'t str, pattern: &Regex) -> impl Iterator<Item = (usize, &'t str)> {
    text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)).map(|(at, line)| (at + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends_and_keep_line_ends() {
        let text = "one\r\ntwo\n\nfour\n";
        for (from, to, expected) in [
            (None, None, text),
            (Some(1), Some(1), "one\r\n"),
            (Some(2), Some(3), "two\n\n"),
            (Some(4), None, "four\n"),
            (None, Some(2), "one\r\ntwo\n"),
            (Some(4), Some(usize::MAX), "four\n"),
            (Some(5), None, ""),
            (Some(usize::MAX), None, ""),
            (Some(3), Some(2), ""),
            (Some(0), Some(1), "one\r\n"),
        ] {
            assert_eq!(lines(text, from, to), expected, "{from:?}:{to:?}");
        }
        assert_eq!(lines("", None, None), "");
        assert_eq!(lines("last", Some(1), Some(9)), "last");
    }

    #[test]
    fn ranges_put_together_are_the_text() {
        let text = "a\nb\n\n\nc";
        for cut in 0..7 {
            assert_eq!(format!("{}{}", lines(text, None, Some(cut)), lines(text, Some(cut + 1), None)), text);
        }
        assert_eq!(count_lines(text), 5);
    }

    #[test]
    fn matches_come_with_their_numbers() {
        let pattern = Regex::new(r"\bE\d+").unwrap();
        let found: Vec<_> = grep("E1 a\nb\r\nxE2\n E3\r\n", &pattern).collect();
        assert_eq!(found, [(1, "E1 a"), (4, " E3")]);
    }
}
