//! Step 9 of 10: the excerpt that stays, with the marker that leads back to the original.

use crate::text::{Excerpt, code_points};

const MARKER_START: &str = "[Compacted output. Recover from: ";
const MARKER_END: &str = "]";

/// The text that takes the place of a result, or `None` if it would not be shorter than the result in code
/// points (contract, section 9).
pub(crate) fn replacement(text: &str, length: u64, limit: u64, reference: &str) -> Option<String> {
    if !shortens(length, limit, reference) {
        return None;
    }
    let mut out = String::new();
    Excerpt::of(text, length, limit).push(&mut out, text);
    out.push('\n');
    out.push_str(MARKER_START);
    out.push_str(reference);
    out.push_str(MARKER_END);
    Some(out)
}

/// Whether a text of this length gets shorter, without looking at it. An excerpt that leaves something out has
/// exactly `limit` code points.
pub(crate) fn shortens(length: u64, limit: u64, reference: &str) -> bool {
    let marker = 1 + (MARKER_START.len() + MARKER_END.len()) as u64 + code_points(reference);
    length > limit && limit.saturating_add(marker) < length
}

/// The reference of the marker at the end of a text, if the text is an excerpt made earlier. A marker is one
/// line; only a pair's `own` reference may break that, or hold what looks like a marker itself.
pub fn marker_reference<'t>(text: &'t str, own: Option<&str>) -> Option<&'t str> {
    let inner = text.strip_suffix(MARKER_END)?;
    let is_marker = |excerpt: &str| excerpt.ends_with('\n');
    let in_front_of = |own: &str| inner.strip_suffix(own)?.strip_suffix(MARKER_START);
    if let Some(own) = own.filter(|own| in_front_of(own).is_some_and(is_marker)) {
        return Some(&inner[inner.len() - own.len()..]);
    }
    let (excerpt, reference) = inner.rsplit_once(MARKER_START)?;
    (is_marker(excerpt) && !reference.contains('\n') && !crate::text::is_blank(reference))
        .then_some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_ends_in_its_reference_and_is_shorter() {
        let text = "a".repeat(500);
        let out = replacement(&text, 500, 300, "archive/1").expect("it shortens");
        assert!(out.ends_with("\n[Compacted output. Recover from: archive/1]"));
        assert!(code_points(&out) < 500);
        assert_eq!(marker_reference(&out, None), Some("archive/1"));
    }

    #[test]
    fn the_length_is_known_beforehand() {
        let reference = "r/é";
        for length in [0, 1, 3, 40, 41, 42, 43, 44, 45, 60, 100] {
            let text = "é".repeat(length as usize);
            for limit in [0, 1, 2, 3, 4, 5, 20, 99, 100, u64::MAX] {
                let mut whole = String::new();
                Excerpt::of(&text, length, limit).push(&mut whole, &text);
                let built = code_points(&whole) + 1 + code_points(MARKER_START) + 1 + code_points(reference);
                assert_eq!(shortens(length, limit, reference), built < length, "{length} {limit}");
            }
        }
    }

    #[test]
    fn only_a_marker_on_the_last_line_counts() {
        assert_eq!(marker_reference("x\n[Compacted output. Recover from: a]", None), Some("a"));
        assert_eq!(marker_reference("\n[Compacted output. Recover from: a]", None), Some("a"));
        assert_eq!(marker_reference("x [Compacted output. Recover from: a]", None), None);
        assert_eq!(marker_reference("x\n[Compacted output. Recover from: a]\n", None), None);
        assert_eq!(marker_reference("x\n[Compacted output. Recover from: ]", None), None);
        assert_eq!(marker_reference("x\n[Compacted output. Recover from: a\nb]", None), None);
        assert_eq!(marker_reference("x\n[Compacted output. Recover from: a\nb]", Some("a\nb")), Some("a\nb"));
    }
}
