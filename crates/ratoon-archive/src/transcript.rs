//! A transcript file as the archive of its own results: the reference is the file and the id of the call.
//!
//! Nothing is stored, so nothing can get out of step: as long as the file is not overwritten, every result of it
//! can be recovered. Reading the file is the caller's part; this module takes its bytes.

use std::borrow::Cow;
use std::fmt::Write;

use ratoon::snapshot::{Block, BlockId, ToolResult};
use ratoon::{Document, Overrides, RequestError};

/// Why a reference does not lead to an original. Never carries message content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// No result has the id.
    #[error("no result in the file has this id")]
    NotFound,
    /// Several results have the id.
    #[error("{results} results in the file have this id, so it is not clear which one is meant")]
    Ambiguous {
        /// How many.
        results: usize,
    },
    /// The result is not purely textual, so it was never cut.
    #[error("the result is not text")]
    NotText,
    /// The text holds half of a surrogate pair, so it was never cut and cannot be written.
    #[error("the text of the result is not valid Unicode")]
    NotUnicode,
    /// The file does not hold messages.
    #[error(transparent)]
    Unreadable(#[from] RequestError),
}

/// The reference to a result: `FILE#CALL_ID`.
///
/// In both parts everything is percent-encoded that could end the one line of an excerpt's marker, be taken for
/// the sign between them, or break the one word as which a shell command names the reference; such a command is
/// how an agent recovers an original, and its result must be recognised as one.
///
/// ```
/// use ratoon_archive::transcript::reference;
///
/// assert_eq!(reference("run.json", "call_1"), "run.json#call_1");
/// assert_eq!(reference("run #2.json", "a b\n100%"), "run%20%232.json#a%20b%0A100%25");
/// assert_eq!(reference("-x.json", "c"), "./-x.json#c");
/// ```
pub fn reference(file: &str, call_id: &str) -> String {
    // A word that begins with a dash would be taken for an option, one with a tilde for a home.
    let here = if file.starts_with(['-', '~']) { "./" } else { "" };
    format!("{here}{}#{}", encoded(file), encoded(call_id))
}

fn encoded(part: &str) -> Cow<'_, str> {
    if !part.contains(is_encoded) {
        return Cow::Borrowed(part);
    }
    let mut out = String::with_capacity(part.len() + 8);
    for character in part.chars() {
        if is_encoded(character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                write!(out, "%{byte:02X}").expect("writing to a string does not fail");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn is_encoded(character: char) -> bool {
    matches!(character, '%' | '#')
        || character.is_control()
        || character.is_whitespace()
        || "\"'`(),;=[]<>|&$\\*?!{}".contains(character)
}

/// The text that [`encoded`] wrote, or `None` if it cannot have written this.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Names of files are not longer on any system, and longer ones are not looked for: a reference may come out of
/// hostile text.
const LONGEST_FILE: usize = 4096;
/// How many `#` of a reference that was typed by hand are tried.
const MOST_SPLITS: usize = 16;

/// The file and the call id of a reference. A reference as [`reference()`] writes it has one `#`; in one that was
/// typed by hand both parts may hold more, and then the longest file that `exists` decides.
pub fn split(reference: &str, exists: impl Fn(&str) -> bool) -> Option<(Cow<'_, str>, &str)> {
    let exists = |file: &str| !file.is_empty() && file.len() <= LONGEST_FILE && exists(file);
    if let Some((file, id)) = reference.split_once('#')
        && !id.contains('#')
        && let Some(file) = decoded(file).filter(|file| exists(file))
    {
        return Some((Cow::Owned(file), id));
    }
    let splits = reference.rmatch_indices('#').take(MOST_SPLITS);
    let mut parts = splits.map(|(at, _)| (&reference[..at], &reference[at + 1..]));
    parts.find(|(file, _)| exists(file)).map(|(file, id)| (Cow::Borrowed(file), id))
}

/// The original text of the result that the call id of a reference names, from the bytes of its file. The texts of a list of text
/// blocks are joined with one newline, as they are before an excerpt is made.
///
/// An id that was typed without percent-encoding is understood as well, unless it means another result.
///
/// # Errors
/// [`RecoverError`]: the file holds no messages, no result or several have the id, or the result is not text.
pub fn recover(bytes: &[u8], wanted: &str) -> Result<String, RecoverError> {
    let request = Document::parse(bytes, &Overrides::default())?.into_request();
    let results: Vec<(Cow<'_, str>, &ToolResult<'_>)> =
        request.snapshot.blocks().iter().filter_map(identified).collect();
    let with_id = |same: &dyn Fn(&str) -> bool| -> Vec<&ToolResult<'_>> {
        results.iter().filter(|(id, _)| same(id)).map(|(_, result)| *result).collect()
    };
    let mut found = with_id(&|id| encoded(id) == wanted);
    if found.is_empty() {
        found = with_id(&|id| id == wanted);
    }
    match found[..] {
        [] => Err(RecoverError::NotFound),
        [result] => {
            let text =
                result.output.as_ref().and_then(|output| output.text()).ok_or(RecoverError::NotText)?;
            if text.has_lone_surrogate() {
                return Err(RecoverError::NotUnicode);
            }
            Ok(text.decode_lossy().into_owned())
        }
        _ => Err(RecoverError::Ambiguous { results: found.len() }),
    }
}

/// A result with its id, if it has one that a reference can name.
fn identified<'s, 'a>(block: &'s Block<'a>) -> Option<(Cow<'a, str>, &'s ToolResult<'a>)> {
    match block {
        Block::Result(result) => match result.id {
            BlockId::Usable(id) => Some((id.decode()?, result)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A message list with one call and the given result blocks.
    fn transcript(results: &[&str]) -> String {
        format!(r#"[{{"role":"assistant","content":[{}]}}]"#, results.join(","))
    }

    fn result(id: &str, output: &str) -> String {
        format!(r#"{{"type":"tool_result","id":{id},"name":"t","state":"success","output":{output}}}"#)
    }

    fn recovered(document: &str, reference: &str) -> Result<String, RecoverError> {
        let (_, id) = split(reference, |file| file == "run.json").ok_or(RecoverError::NotFound)?;
        recover(document.as_bytes(), id)
    }

    #[test]
    fn a_reference_is_one_word_on_one_line() {
        for (id, expected) in [
            ("call_51eahg-x.7:0/é", "f#call_51eahg-x.7:0/é"),
            ("a#b", "f#a%23b"),
            ("50%0A", "f#50%250A"),
            ("a\r\nb", "f#a%0D%0Ab"),
            ("\u{2028}\u{2029}\u{85}", "f#%E2%80%A8%E2%80%A9%C2%85"),
            ("a b,c;'d'=(e)]", "f#a%20b%2Cc%3B%27d%27%3D%28e%29%5D"),
        ] {
            assert_eq!(reference("f", id), expected);
        }
    }

    #[test]
    fn different_ids_never_share_a_reference() {
        let ids = ["a b", "a%20b", "a%2520b", "a\u{a0}b", "a+b", "a\nb", "a%0Ab", "%", "%25"];
        let references: std::collections::HashSet<_> = ids.iter().map(|id| reference("f", id)).collect();
        assert_eq!(references.len(), ids.len());
    }

    #[test]
    fn the_longest_file_that_exists_decides() {
        let exists = |file: &str| matches!(file, "a" | "a#b" | "a#b#c");
        let found =
            |reference: &'static str| split(reference, exists).map(|(file, id)| (file.into_owned(), id));
        assert_eq!(found("a#b#c#d"), Some(("a#b#c".to_owned(), "d")));
        assert_eq!(found("a#c"), Some(("a".to_owned(), "c")));
        assert_eq!(found("a%23b#c"), Some(("a#b".to_owned(), "c")));
        assert_eq!(found("b#c"), None);
        assert_eq!(found("a"), None);
        assert_eq!(split("#c", |_| true), None);
    }

    #[test]
    fn only_what_is_encoded_is_decoded() {
        for file in ["run.json", "a#b%23c", "a\r\n\u{85}b", "$(x) 'y' [z]", "%", "工具"] {
            let encoded = encoded(file);
            assert!(!encoded.contains(['#', ' ', '\n', '\'', '[', '$']), "{encoded}");
            assert_eq!(decoded(&encoded).as_deref(), Some(file));
        }
        assert!(["%", "%4", "%+5", "%zz", "%ff"].into_iter().all(|wrong| decoded(wrong).is_none()));
        assert_eq!(reference("~x", "c"), "./~x#c");
    }

    #[test]
    fn hostile_references_are_not_tried_without_end() {
        let tries = std::cell::Cell::new(0);
        let count = |_: &str| {
            tries.set(tries.get() + 1);
            false
        };
        assert_eq!(split(&"#".repeat(100_000), count), None);
        assert_eq!(split(&"a#".repeat(1000), count), None);
        assert!(tries.get() <= MOST_SPLITS + 1, "{} tries", tries.get());
    }

    #[test]
    fn files_with_a_hash_are_found_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = directory.path().join(name);
            fs::write(&file, transcript(&[&result(r#""c""#, text)])).unwrap();
            file.to_str().unwrap().to_owned()
        };
        // The shorter name must not be taken for the file.
        write("run ", r#""other""#);
        let name = write("run #1.json", r#""text""#);
        let is_file = |file: &str| fs::metadata(file).is_ok_and(|meta| meta.is_file());
        for whole in [reference(&name, "c"), format!("{name}#c")] {
            let (found, id) = split(&whole, is_file).unwrap();
            assert_eq!((&*found, id), (name.as_str(), "c"));
            assert_eq!(recover(&fs::read(&*found).unwrap(), id).unwrap(), "text");
        }
    }

    #[test]
    fn originals_come_back_decoded_and_joined() {
        let document = transcript(&[
            &result(r#""text""#, r#""a\u00e9\n\ud83d\ude00""#),
            &result(r#""list""#, r#"[{"type":"text","text":"x\n"},{"type":"text","text":"y"}]"#),
            &result(r#""\u0061 b""#, r#""escaped""#),
        ]);
        assert_eq!(recovered(&document, "run.json#text").unwrap(), "aé\n😀");
        assert_eq!(recovered(&document, "run.json#list").unwrap(), "x\n\ny");
        assert_eq!(recovered(&document, &reference("run.json", "a b")).unwrap(), "escaped");
        assert_eq!(recovered(&document, "run.json#a b").unwrap(), "escaped");
    }

    #[test]
    fn the_encoded_meaning_of_an_id_wins() {
        let document =
            transcript(&[&result(r#""a b""#, r#""space""#), &result(r#""a%20b""#, r#""percent""#)]);
        assert_eq!(recovered(&document, "run.json#a%20b").unwrap(), "space");
        assert_eq!(recovered(&document, "run.json#a%2520b").unwrap(), "percent");
    }

    #[test]
    fn every_kind_of_document_is_an_archive() {
        let messages = transcript(&[&result(r#""c""#, r#""t""#)]);
        for document in [
            format!("\u{feff}\n{messages}\n"),
            format!(r#"{{"messages":{messages},"options":{{"preview_chars":3}}}}"#),
            format!(r#"{{"source":"s","licence":"l","task":"t","run":"r","messages":{messages}}}"#),
        ] {
            assert_eq!(recovered(&document, "run.json#c").unwrap(), "t", "{document}");
        }
    }

    #[test]
    fn every_failure_says_what_it_is() {
        let document = transcript(&[
            &result(r#""twice""#, r#""1""#),
            &result(r#""twice""#, r#""2""#),
            &result(r#""image""#, r#"[{"type":"data","source":{}}]"#),
            &result(r#""half""#, r#""\ud800""#),
            r#"{"type":"tool_result","id":"none","name":"t","state":"success"}"#,
            r#"{"type":"tool_call","id":"call","name":"t","input":"{}","state":"finished"}"#,
        ]);
        let error = |id: &str| recovered(&document, &reference("run.json", id)).unwrap_err();
        assert!(matches!(error("other"), RecoverError::NotFound));
        assert!(matches!(error("call"), RecoverError::NotFound));
        assert!(matches!(error("twice"), RecoverError::Ambiguous { results: 2 }));
        assert!(matches!(error("image"), RecoverError::NotText));
        assert!(matches!(error("none"), RecoverError::NotText));
        assert!(matches!(error("half"), RecoverError::NotUnicode));
        assert!(matches!(recovered(&document, "other.json#half"), Err(RecoverError::NotFound)));
        assert!(matches!(recovered("", "run.json#c"), Err(RecoverError::Unreadable(RequestError::Empty))));
    }
}
