//! Rules 3 and 4: a preview is shorter, never empty, verbatim, and ends in the exact recovery reference.

use crate::document::{Object, decoded, raw_items, spliced};

/// How the excerpt of a preview is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExcerptForm {
    /// A head, an ellipsis line and a tail; a very small one is only a head.
    #[default]
    HeadTail,
    /// Any number of verbatim pieces in their original order, with ellipsis lines between them.
    Regions,
}

const ELLIPSIS_LINE: &str = "\n…\n";

/// Checks one replaced output; each violation as a sentence without its subject.
pub(super) fn check_preview(
    original: &str,
    proposed: &str,
    reference: Option<&String>,
    form: ExcerptForm,
) -> Vec<String> {
    let Some(before) = textual(original) else {
        return vec!["was changed although its original is not plain, decodable text".to_owned()];
    };
    let Some(after) = textual(proposed) else {
        return vec!["was changed to something that is not decodable text".to_owned()];
    };
    let mut violations = Vec::new();
    violations.extend(check_shape(&before, &after));
    if after.text.is_empty() {
        violations.push("has an empty preview".to_owned());
    }
    let (long, short) = (before.text.chars().count(), after.text.chars().count());
    if short >= long {
        violations.push(format!("has a preview of {short} characters for {long}"));
    }
    let Some(reference) = reference else {
        violations.push("was changed without a reference".to_owned());
        return violations;
    };
    let marker = format!("\n[Compacted output. Recover from: {reference}]");
    match after.text.strip_suffix(&marker) {
        None => violations.push("does not end in the recovery line with its reference".to_owned()),
        Some(excerpt) if is_verbatim(excerpt, &before.text, form) => {}
        Some(_) => violations.push("has an excerpt that is not verbatim".to_owned()),
    }
    violations
}

/// A list may become one text, or stay a list of the first block with another text.
fn check_shape(before: &Textual<'_>, after: &Textual<'_>) -> Option<String> {
    match (before.blocks.as_slice(), after.blocks.as_slice()) {
        (_, []) => None,
        ([first, ..], [only]) => {
            let same = spliced(only.raw, &[(only.text, first.text)]) == first.raw;
            (!same).then(|| "changed its text block outside the text".to_owned())
        }
        _ => Some("has an output of another shape".to_owned()),
    }
}

fn is_verbatim(excerpt: &str, text: &str, form: ExcerptForm) -> bool {
    if excerpt == text || (text.starts_with(excerpt) && excerpt.chars().count() < 3) {
        return true;
    }
    match form {
        ExcerptForm::HeadTail => is_head_and_tail(excerpt, text),
        ExcerptForm::Regions => are_pieces_in_order(excerpt, text),
    }
}

/// The text may hold ellipsis lines itself, so every one in the excerpt may be the seam.
fn is_head_and_tail(excerpt: &str, text: &str) -> bool {
    let seams =
        (0..excerpt.len()).filter(|&at| excerpt.as_bytes()[at..].starts_with(ELLIPSIS_LINE.as_bytes()));
    seams.into_iter().any(|at| {
        let (head, tail) = (&excerpt[..at], &excerpt[at + ELLIPSIS_LINE.len()..]);
        head.len() + tail.len() <= text.len() && text.starts_with(head) && text.ends_with(tail)
    })
}

fn are_pieces_in_order(excerpt: &str, text: &str) -> bool {
    let mut rest = text;
    excerpt.split(ELLIPSIS_LINE).all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

/// The text of an output, and its blocks if it is a list.
struct Textual<'a> {
    text: String,
    blocks: Vec<TextBlock<'a>>,
}

struct TextBlock<'a> {
    raw: &'a str,
    text: &'a str,
}

fn textual(output: &str) -> Option<Textual<'_>> {
    if let Some(text) = decoded(output) {
        return Some(Textual { text, blocks: Vec::new() });
    }
    let (mut texts, mut blocks) = (Vec::new(), Vec::new());
    for item in raw_items(output)? {
        let block = Object::read(item.get())?;
        if block.text("type")? != "text" {
            return None;
        }
        texts.push(block.text("text")?);
        blocks.push(TextBlock { raw: item.get(), text: block.get("text")? });
    }
    (!blocks.is_empty()).then(|| Textual { text: texts.join("\n"), blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "0123456789 the quick brown fox jumps over the lazy dog, again and again, until the very end";

    fn check(original: &str, excerpt: &str) -> Vec<String> {
        let proposed = format!("{excerpt}\n[Compacted output. Recover from: r/1]");
        check_raw(&json(original), &json(&proposed))
    }

    fn check_raw(original: &str, proposed: &str) -> Vec<String> {
        check_preview(original, proposed, Some(&"r/1".to_owned()), ExcerptForm::HeadTail)
    }

    fn json(text: &str) -> String {
        serde_json::to_string(text).unwrap()
    }

    #[test]
    fn good_excerpts() {
        for excerpt in ["01234\n…\n end", "0\n…\n", "\n…\n", "", "0", "01"] {
            assert_eq!(check(TEXT, excerpt), [""; 0], "{excerpt:?}");
        }
        let with_seams = format!("a\n…\n…\nb{TEXT}");
        assert_eq!(check(&with_seams, "a\n…\n…\n…\nend"), [""; 0]);
    }

    #[test]
    fn bad_excerpts() {
        for excerpt in ["01234", "1234\n…\nend", "0123\n…\nEnd", "0123…end", "in own words", "end\n…\n0"]
        {
            assert_eq!(check(TEXT, excerpt), ["has an excerpt that is not verbatim"], "{excerpt:?}");
        }
    }

    #[test]
    fn overlapping_head_and_tail_are_not_an_excerpt() {
        assert!(!is_head_and_tail("abc\n…\nbcd", "abcd"));
        assert!(is_head_and_tail("ab\n…\ncd", "abcd"));
    }

    #[test]
    fn length_counts_code_points() {
        assert_eq!(check(&"é".repeat(40), "éé"), ["has a preview of 40 characters for 40"]);
        assert_eq!(check(&"é".repeat(41), "éé"), [""; 0]);
    }

    #[test]
    fn the_reference_must_be_exact_and_last() {
        let wrong = |tail: &str| check_raw(&json(TEXT), &json(&format!("0\n…\nd{tail}")));
        let expected = ["does not end in the recovery line with its reference"];
        assert_eq!(wrong("\n[Compacted output. Recover from: r/2]"), expected);
        assert_eq!(wrong("\n[Compacted output. Recover from: r/1]\n"), expected);
        assert_eq!(wrong(""), expected);
        let unreferenced = check_preview(&json(TEXT), &json("0"), None, ExcerptForm::HeadTail);
        assert_eq!(unreferenced, ["was changed without a reference"]);
    }

    #[test]
    fn lone_surrogates_and_images_are_untouchable() {
        let proposed = json("0\n[Compacted output. Recover from: r/1]");
        let lone = format!(r#""\ud800{TEXT}""#);
        let image = format!(r#"[{{"type":"text","text":"{TEXT}"}},{{"type":"image"}}]"#);
        for original in [lone.as_str(), &image, "[]", "{}", "null"] {
            assert_eq!(check_raw(original, &proposed).len(), 1, "{original}");
        }
        assert_eq!(check_raw(&json(TEXT), r#""\udc00""#).len(), 1);
    }

    #[test]
    fn a_list_becomes_a_text_or_keeps_its_first_block() {
        let block =
            |text: &str, extra: &str| format!(r#"{{"type":"text","text":{},"id":"{extra}"}}"#, json(text));
        let original = format!("[{},{}]", block(TEXT, "a"), block("last", "b"));
        let preview = "0\n…\nt\n[Compacted output. Recover from: r/1]";
        assert_eq!(check_raw(&original, &json(preview)), [""; 0]);
        assert_eq!(check_raw(&original, &format!("[{}]", block(preview, "a"))), [""; 0]);
        let other_field = check_raw(&original, &format!("[{}]", block(preview, "b")));
        assert_eq!(other_field, ["changed its text block outside the text"]);
        let out_of_text =
            check_raw(&json(TEXT), &format!("[{}]", block("01\n[Compacted output. Recover from: r/1]", "a")));
        assert_eq!(out_of_text, ["has an output of another shape"]);
    }

    #[test]
    fn regions_are_pieces_in_order() {
        let regions = |excerpt: &str| is_verbatim(excerpt, TEXT, ExcerptForm::Regions);
        assert!(regions("0123\n…\nquick\n…\nfox jumps\n…\nend"));
        assert!(!regions("0123\n…\nfox jumps\n…\nquick"));
        assert!(!is_verbatim("0123\n…\nquick\n…\nend", TEXT, ExcerptForm::HeadTail));
    }
}
