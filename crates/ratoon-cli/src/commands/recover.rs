//! `ratoon recover`: the original back, verbatim.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use ratoon::preview::marker_reference;
use ratoon_archive::RecoverError;
use ratoon_archive::recover::{count_lines, grep, lines};
use ratoon_archive::transcript::{recover, split};

use crate::arguments::Recover;
use crate::failure::Failure;
use crate::input::Source;
use crate::output::buffered;
use crate::terminal::{counted, hint, shown};

pub(crate) fn run(arguments: &Recover) -> anyhow::Result<()> {
    let original = original(&arguments.reference)?;
    let (from, to) = arguments.lines.map_or((None, None), |range| (range.from, range.to));
    let part = lines(&original, from, to);
    if part.is_empty() && !original.is_empty() {
        return Err(Failure::new("the original has no such lines")
            .with_hint(format!("it has {}", counted(count_lines(&original), "line")))
            .into());
    }
    let out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    match &arguments.grep {
        None => buffered(out, |out| {
            out.write_all(part.as_bytes())?;
            // Only for people: elsewhere the text is to arrive as it was.
            if is_terminal && !part.ends_with('\n') { out.write_all(b"\n") } else { Ok(()) }
        })?,
        Some(pattern) => {
            let skipped = from.unwrap_or(1).saturating_sub(1);
            let mut found = grep(part, pattern).peekable();
            if found.peek().is_none() {
                return Err(Failure::new("no line of the original matches").into());
            }
            buffered(out, |out| {
                found.try_for_each(|(number, line)| writeln!(out, "{}:{line}", skipped + number))
            })?;
        }
    }
    if let Some(reference) = marker_reference(&original, None) {
        // Out of a tool's output, so it is only offered to the shell if it is harmless there.
        let command = match quoted(reference) {
            Some(word) => {
                // No option may come out of it, either.
                let end = if reference.starts_with('-') { "-- " } else { "" };
                format!(": ratoon recover {end}{word}")
            }
            None => " is named in its last line".to_owned(),
        };
        hint(&format!("this is an excerpt itself; its original{command}"));
    }
    Ok(())
}

/// Longer references are not offered for copying.
const LONGEST_WORD: usize = 4096;

/// A text as one word of a shell command, whole, if it can be shown.
fn quoted(text: &str) -> Option<String> {
    let whole = text.len() <= LONGEST_WORD && shown(text, 2 * LONGEST_WORD) == text;
    whole.then(|| format!("'{}'", text.replace('\'', r"'\''")))
}

/// The text that the reference names.
fn original(reference: &str) -> Result<String, Failure> {
    // People paste the whole marker.
    let marker = format!("\n{}", reference.trim());
    let reference = marker_reference(&marker, None).unwrap_or(reference);
    let Some((file, id)) = split(reference, |file| Path::new(file).is_file()) else {
        return Err(match reference.rsplit_once('#') {
            Some((file, _)) if Path::new(file).is_dir() => {
                Failure::usage(format!("{} is a directory, not a file", shown(file, 200)))
            }
            Some((file, _)) => Failure::usage(format!("there is no file {}", shown(file, 200)))
                .with_hint("the file of a reference is relative to where ratoon compact ran"),
            None => Failure::usage("this is no reference to a file: it has the form FILE#CALL_ID")
                .with_hint("other references belong to whoever wrote the request"),
        });
    };
    let source = Source::File(PathBuf::from(&*file));
    let (name, bytes) = (source.name(), source.read()?);
    recover(&bytes, id).map_err(|error| match error {
        RecoverError::Unreadable(error) => Failure::new(format!("{name} holds no messages: {error}")),
        error => Failure::new(format!("{name}, {}: {error}", shown(id, 60))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_copy_is_whole_or_not_there() {
        assert_eq!(quoted("run.json#a").as_deref(), Some("'run.json#a'"));
        assert_eq!(quoted("x'; rm -rf ~ #a").as_deref(), Some(r"'x'\''; rm -rf ~ #a'"));
        let long = "é".repeat(1000);
        assert_eq!(quoted(&long), Some(format!("'{long}'")));
        for hidden in ["a\u{1b}[2J", "a\nb", "a\u{202e}b", "a\u{9b}b"] {
            assert_eq!(quoted(hidden), None, "{hidden:?}");
        }
        assert_eq!(quoted(&"a".repeat(LONGEST_WORD + 1)), None);
    }
}
