//! Replies in which a number is one of Python's words for no number.
//!
//! Python writes `NaN`, `Infinity` and `-Infinity` where JSON has nothing, which makes a whole reply unreadable for
//! one worthless answer.

/// The text with `false` in place of those words outside strings, or `None` if there are none. `false` because it is
/// of no use wherever a number, text or object is expected, while `null` would pass for a count that is not reported.
pub(super) fn without_bare_words(text: &str) -> Option<String> {
    let mut replaced = String::with_capacity(text.len() + 16);
    let (mut copied, mut at, mut in_string) = (0, 0, false);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => in_string = !in_string,
            // Whatever is escaped, a quote among it, ends no string.
            b'\\' if in_string => at += 1,
            b'N' | b'I' | b'-' if !in_string => {
                if let Some(word) = word_at(text, at) {
                    replaced.push_str(&text[copied..at]);
                    replaced.push_str("false");
                    at += word.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    replaced.push_str(&text[copied..]);
    (copied > 0).then_some(replaced)
}

/// The word that starts at this byte, if it stands alone.
fn word_at(text: &str, at: usize) -> Option<&'static str> {
    let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
    let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| text[at..].starts_with(word))?;
    let bytes = text.as_bytes();
    let joined = at > 0 && in_word(&bytes[at - 1]) || bytes.get(at + word.len()).is_some_and(in_word);
    (!joined).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_outside_strings_are_replaced() {
        for (text, replaced) in [
            ("NaN", "false"),
            ("[NaN,Infinity,-Infinity]", "[false,false,false]"),
            (r#"{"NaN":NaN,"a\"NaN":" Infinity "}"#, r#"{"NaN":false,"a\"NaN":" Infinity "}"#),
            (r#"["\\",NaN]"#, r#"["\\",false]"#),
            ("{\"é\":\tNaN\n}", "{\"é\":\tfalse\n}"),
        ] {
            assert_eq!(without_bare_words(text).as_deref(), Some(replaced));
        }
    }

    #[test]
    fn nothing_else_is() {
        for text in [
            "",
            "{}",
            "nan",
            "-NaN",
            "NaNs",
            "xNaN",
            "1NaN",
            "--Infinity",
            "-5",
            "\"NaN\"",
            "\"NaN",
            "\\",
            "Nul",
            "é",
        ] {
            assert_eq!(without_bare_words(text), None, "{text}");
        }
    }
}
