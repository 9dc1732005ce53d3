//! The strings of a JSON text, keys included, without regard to its structure.

use std::borrow::Cow;

use memchr::memchr;

use super::scanner::Scanner;

/// All strings of a valid JSON text in order, decoded.
pub(crate) fn strings(json: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        // Outside strings a quote only ever opens one.
        let quote = at + memchr(b'"', &json.as_bytes()[at..])?;
        let mut scanner = Scanner::starting_at(json, quote);
        let text = scanner.text().ok()?;
        at = scanner.position();
        Some(text.decode_lossy())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_come_in_order_and_decoded() {
        let found: Vec<_> = strings(r#"{"a":["b\"c",1,{"d":"\u00e9"}]}"#).collect();
        assert_eq!(found, ["a", "b\"c", "d", "é"]);
        assert_eq!(strings("[1,2]").count(), 0);
    }
}
