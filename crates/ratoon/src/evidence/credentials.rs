//! Credential-shaped values are masked in what is sent to a decision model.
//!
//! The mask has the length of what it hides, in bytes and in code points, so excerpts, limits and recorded lengths do
//! not depend on it. The proposal is made from the original and never masked.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr2_iter, memmem};

/// `text` with credential-shaped values replaced by asterisks.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    let spans = spans(text);
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for span in spans {
        if span.start < copied {
            continue;
        }
        masked.push_str(&text[copied..span.start]);
        masked.extend(std::iter::repeat_n('*', span.len()));
        copied = span.end;
    }
    masked.push_str(&text[copied..]);
    Cow::Owned(masked)
}

/// Whether a text may hold anything that [`mask`] masks. Works on the text or on its spelling as a JSON string,
/// says yes too often rather than too seldom, and costs a fraction of a search.
pub(super) fn suspected(text: &str) -> bool {
    let bytes = text.as_bytes();
    WORDS.iter().any(|word| memmem::find(bytes, word.as_bytes()).is_some())
        || memchr2_iter(b'_', b'-', bytes).any(|at| {
            let is_inside = bytes.get(at + 1).is_some_and(|&byte| is_word(byte));
            is_inside && TOKEN_PREFIXES.iter().any(|prefix| bytes[..=at].ends_with(prefix.as_bytes()))
        })
        || memchr2_iter(b'=', b':', bytes).any(|at| {
            if bytes[at..].starts_with(b"://") {
                return password_of_url(bytes, at + 3).is_some();
            }
            let gap = bytes[..at].iter().rev().take(6).take_while(|byte| b" \"'\\".contains(byte)).count();
            SECRET_NAMES.iter().any(|name| ends_with_name(&bytes[..at - gap], name))
        })
}

/// Beginnings of tokens that well-known services hand out, each up to a sign that few words hold.
const TOKEN_PREFIXES: [&str; 18] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "hf_",
    "npm_",
    "shpat_",
];

/// Other words that credentials begin with (the first four) or follow.
const WORDS: [&str; 10] =
    ["AKIA", "ASIA", "AIza", "ya29.", "eyJ", "Bearer ", "bearer ", "Basic ", "basic ", "PRIVATE KEY-----"];

/// Ends of names whose values are secret, in lower case.
const SECRET_NAMES: [&str; 14] = [
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "secret_key",
    "secretkey",
    "private_key",
    "account_key",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
];

const SHORTEST_TOKEN: usize = 16;
const SHORTEST_SECRET: usize = 12;
/// Longer values are not looked at to their end, so that hostile text cannot make the search slow.
const LONGEST_SECRET: usize = 2048;

const WORD_BYTES: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        word[byte] = character.is_ascii_alphanumeric() || matches!(character, b'_' | b'-' | b'.');
        byte += 1;
    }
    word
};

fn is_word(byte: u8) -> bool {
    WORD_BYTES[usize::from(byte)]
}

/// Ranges of ASCII bytes to mask, in order of their starts.
fn spans(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans = private_keys(text);
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            if bytes[at] == b':' && bytes[at..].starts_with(b"://") {
                spans.extend(password_of_url(bytes, at + 3));
            }
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let word = &text[start..at];
        if word.len() >= SHORTEST_TOKEN && is_token(word) {
            spans.push(start..at);
        } else if matches!(word, "Bearer" | "bearer" | "Basic" | "basic") {
            spans.extend(value_behind(bytes, at, |byte| byte == b' '));
        } else if let Some(value) = assigned_value(bytes, at)
            && is_secret_name(word)
        {
            spans.extend(value_behind(bytes, value, |byte| matches!(byte, b' ' | b'"' | b'\'' | b'\\')));
        }
    }
    spans.sort_by_key(|span| span.start);
    spans
}

fn is_token(word: &str) -> bool {
    let known = TOKEN_PREFIXES.iter().chain(&WORDS[..4]).any(|prefix| word.starts_with(prefix));
    let json_web_token = || word.starts_with("eyJ") && word.matches('.').count() == 2;
    (known && word.bytes().any(|byte| byte.is_ascii_digit())) || json_web_token()
}

fn is_secret_name(word: &str) -> bool {
    SECRET_NAMES.iter().any(|name| ends_with_name(word.as_bytes(), name))
}

fn ends_with_name(word: &[u8], name: &str) -> bool {
    let start = word.len().checked_sub(name.len());
    start.is_some_and(|start| word[start..].eq_ignore_ascii_case(name.as_bytes()))
}

/// Where a value may begin if the name that ends at `name_end` is assigned one: behind the sign, which stands
/// next to the name or behind its closing quote or one space.
fn assigned_value(bytes: &[u8], name_end: usize) -> Option<usize> {
    let mut at = name_end;
    while matches!(bytes.get(at), Some(b'"' | b'\'' | b'\\' | b' ')) && at < name_end + 3 {
        at += 1;
    }
    matches!(bytes.get(at), Some(b'=' | b':')).then_some(at + 1)
}

/// The value that begins at `from` or close behind it, if it looks like a secret rather than like code or
/// prose: long enough, and letters mixed with digits.
fn value_behind(bytes: &[u8], from: usize, is_between: fn(u8) -> bool) -> Option<Range<usize>> {
    let start = from + bytes[from..].iter().take(4).take_while(|&&byte| is_between(byte)).count();
    let is_value = |byte: &u8| is_word(*byte) || b"+/=~!$%&*".contains(byte);
    let length = bytes[start..].iter().take(LONGEST_SECRET).take_while(|byte| is_value(byte)).count();
    let value = &bytes[start..start + length];
    let mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    let mixed = mixed && !is_number(value) && !holds_date(value);
    (length >= SHORTEST_SECRET && mixed).then_some(start..start + length)
}

/// True for a number with an exponent, which mixes letters with digits as well.
fn is_number(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|value| value.parse::<f64>().is_ok())
}

/// True if a date stands in the value, as in the names of branches, tables and logs.
fn holds_date(value: &[u8]) -> bool {
    let is_date = |window: &[u8]| {
        window.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    value.windows(10).any(is_date)
}

/// The password in `scheme://user:password@host`.
fn password_of_url(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace() || !byte.is_ascii() || matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>')
    };
    let authority = &bytes[start..start + bytes[start..].iter().take_while(|byte| !ends(byte)).count()];
    let host = authority.iter().rposition(|&byte| byte == b'@')?;
    let colon = authority[..host].iter().position(|&byte| byte == b':')?;
    (host > colon + 1).then_some(start + colon + 1..start + host)
}

/// The lines between the first and the last line of private keys in PEM form.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const LINE_END: &str = "PRIVATE KEY-----";
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(found) = memmem::find(&text.as_bytes()[at..], LINE_END.as_bytes()) {
        let line_end = at + found + LINE_END.len();
        let line = &text[text.floor_char_boundary(line_end.saturating_sub(64).max(at))..line_end];
        if line.contains("-----BEGIN") {
            let end = text[line_end..].find("-----END").map_or(text.len(), |end| line_end + end);
            push_key_material(text, line_end..end, 1, &mut spans);
            at = end;
        } else {
            // Only the end is in sight, as in the tail of a cut text.
            if let Some(dashes) = line.find("-----END") {
                let end = line_end - line.len() + dashes;
                let start = text.floor_char_boundary(end.saturating_sub(4096).max(at));
                push_key_material(text, start..end, SHORTEST_TOKEN, &mut spans);
            }
            at = line_end;
        }
    }
    spans
}

/// Adds the runs of Base64 characters of at least this length.
fn push_key_material(text: &str, within: Range<usize>, least: usize, spans: &mut Vec<Range<usize>>) {
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let bytes = text.as_bytes();
    let mut at = within.start;
    while at < within.end {
        let run = bytes[at..within.end].iter().take_while(|&&byte| is_key(byte)).count();
        if run >= least {
            spans.push(at..at + run);
        }
        at += run.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_credential_is_masked_at_its_length() {
        for (text, secret) in [
            ("STRIPE_API_KEY=sk-live-9fK29fK29fK29fK29fK2 next", "sk-live-9fK29fK29fK29fK29fK2"),
            ("Authorization: Bearer abc123abc123abc123", "abc123abc123abc123"),
            ("https://bot:hunter2@git.example.test/x", "hunter2"),
            ("{\"password\": \"p4ssw0rd-p4ssw0rd\"}", "p4ssw0rd-p4ssw0rd"),
            ("{\\\"client_secret\\\":\\\"a1b2c3d4e5f6\\\"}", "a1b2c3d4e5f6"),
            ("use ghp_0123456789abcdefghij here", "ghp_0123456789abcdefghij"),
            ("eyJhbGciOi.eyJzdWIiOi.SflKxwRJ", "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
            ("MIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
        ] {
            assert_eq!(mask(text), text.replace(secret, &"*".repeat(secret.len())), "{text}");
            assert!(suspected(text), "{text}");
            let mut json = String::new();
            crate::json::push_text(&mut json, text);
            assert!(suspected(&json), "{json}");
        }
    }

    #[test]
    fn code_and_prose_stay_readable() {
        for text in [
            "token = get_token(request)",
            "the password is wrong",
            "key: value, sk-short",
            "[WARN] secret id=157955409",
            "{\"token\":1.234567e-07,\"secret\":7.420014368165297e+20}",
            "secret: branch_2026-09-06 13:59:56",
            "https://example.test:8080/a@b",
            "let token: Token = self.next()?;",
            "sha256 9f86d081884c7d659a2feaa0c55ad015",
            "ünïcödé token=\u{1f600}",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
