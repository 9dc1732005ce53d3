//! Writing for people: colours, standard error, and text from outside made harmless.

use std::io::{self, Write};

use clap::builder::styling::{AnsiColor, Style};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// Writes a text to standard error, as a line. Colours go where the stream shows none.
pub(crate) fn say(text: &str) {
    // Standard error is the place to complain; nothing is left if it is closed.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Says what is not right although the command goes on.
pub(crate) fn warn(text: &str) {
    say(&format!("{WARNING}warning:{WARNING:#} {text}"));
}

/// Says what could be done.
pub(crate) fn hint(text: &str) {
    say(&format!("{HINT}hint:{HINT:#} {text}"));
}

/// Writes a text with colours to standard output, as it is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A text from outside on one line of at most `width` columns: without control characters and direction marks,
/// with an ellipsis in the middle if something is left out.
pub(crate) fn shown(text: &str, width: usize) -> String {
    // A few characters more than fit are enough at either end; ids can be megabytes.
    let clean = |character: &char| !is_hidden(*character);
    let head: Vec<char> = text.chars().filter(clean).take(width + 1).collect();
    if head.iter().map(columns).sum::<usize>() <= width {
        return head.into_iter().collect();
    }
    let room = width.saturating_sub(1);
    let tail: Vec<char> = text.chars().rev().filter(clean).take(width).collect();
    let fitting = |characters: &[char], room: usize| {
        let mut used = 0;
        characters
            .iter()
            .take_while(|character| {
                used += columns(character);
                used <= room
            })
            .count()
    };
    let (head_count, tail_count) = (fitting(&head, room.div_ceil(2)), fitting(&tail, room / 2));
    let shown = head[..head_count].iter().chain(['…'].iter()).chain(tail[..tail_count].iter().rev());
    shown.collect()
}

/// Characters that move the cursor, reorder or hide what stands around them.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(character, '\u{61c}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// How many columns a character may take: exact for ASCII, else an upper bound.
fn columns(character: &char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

/// A number with a comma between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_made_harmless() {
        for (text, expected) in [
            ("call_1", "call_1"),
            ("a\u{1b}[31mb\nc\td\u{9b}", "a[31mbcd"),
            ("\u{202e}abc\u{200b}\u{2066}", "abc"),
            ("0123456789abcdef", "01234…cdef"),
            ("0123456789", "0123456789"),
            ("工具名字很长很长", "工具…很长"),
            ("", ""),
        ] {
            assert_eq!(shown(text, 10), expected, "{text:?}");
        }
        assert_eq!(shown("abc", 1), "…");
        assert_eq!(shown(&"\u{7}".repeat(1000), 5), "");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "result"), "1 result");
        assert_eq!(counted(1200, "result"), "1,200 results");
    }
}
