//! Reading a message list without losing its spelling: every value stays a slice of the text it came from.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object as pairs of decoded key and spelling, in their order and with duplicates.
#[derive(Debug)]
pub(crate) struct Object<'a>(Vec<(Option<String>, &'a str)>);

impl<'a> Object<'a> {
    pub(crate) fn read(raw: &'a str) -> Option<Object<'a>> {
        serde_json::from_str(raw).ok()
    }

    /// The spelling of a field; of several with the same key the last one counts.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(found, _)| found.as_deref() == Some(key)).map(|(_, raw)| *raw)
    }

    /// The text of a field, if it is one and can be decoded.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        decoded(self.get(key)?)
    }

    pub(crate) fn fields(&self) -> &[(Option<String>, &'a str)] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut pairs = Vec::new();
                // Keys are taken raw too: one with a lone surrogate cannot be decoded, but it is still a key.
                while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    pairs.push((decoded(key.get()), value.get()));
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The text behind a JSON string; none for other values and for lone surrogates.
pub(crate) fn decoded(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

/// The items of a JSON array, as they are spelt.
pub(crate) fn raw_items(raw: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw).ok()
}

/// Where a slice lies in the text it was taken from.
pub(crate) fn offset_in(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    assert!(start + part.len() <= whole.len(), "not a part of this text");
    start..start + part.len()
}

/// A text in which some slices are replaced; the slices are given in their order.
pub(crate) fn spliced(whole: &str, replacements: &[(&str, &str)]) -> String {
    let mut result = String::with_capacity(whole.len());
    let mut done = 0;
    for (part, replacement) in replacements {
        let span = offset_in(whole, part);
        result.push_str(&whole[done..span.start]);
        result.push_str(replacement);
        done = span.end;
    }
    result.push_str(&whole[done..]);
    result
}

/// One content block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: Option<String>,
    object: Option<Object<'a>>,
}

impl<'a> Block<'a> {
    fn read(raw: &'a str) -> Block<'a> {
        let object = Object::read(raw);
        Block { raw, kind: object.as_ref().and_then(|object| object.text("type")), object }
    }

    pub(crate) fn is_result(&self) -> bool {
        self.kind.as_deref() == Some("tool_result")
    }

    /// The spelling of the id; a block without one counts as having the id null.
    pub(crate) fn id(&self) -> &'a str {
        self.object.as_ref().and_then(|object| object.get("id")).unwrap_or("null")
    }

    pub(crate) fn output(&self) -> Option<&'a str> {
        self.object.as_ref().and_then(|object| object.get("output"))
    }
}

/// One message; without blocks if its content is not a list.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) raw: &'a str,
    pub(crate) blocks: Option<Vec<Block<'a>>>,
}

/// Reads a message list; none if it is not a list.
pub(crate) fn read_messages(raw: &str) -> Option<Vec<Message<'_>>> {
    Some(
        raw_items(raw)?
            .into_iter()
            .map(|item| Message { raw: item.get(), blocks: blocks(item.get()) })
            .collect(),
    )
}

fn blocks(message: &str) -> Option<Vec<Block<'_>>> {
    let content = Object::read(message)?.get("content")?;
    Some(raw_items(content)?.into_iter().map(|item| Block::read(item.get())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let object = Object::read(r#"{"a": 1, "\u0061": 2.00, "\ud800": 3}"#).unwrap();
        assert_eq!(object.get("a"), Some("2.00"));
        assert_eq!(object.fields().len(), 3);
        assert!(object.fields()[2].0.is_none());
    }

    #[test]
    fn spelling_and_place_survive() {
        let text = r#" [ {"content":[{"type":"tool_result","output" : "\ud83d\ude00\ud800"}]} ]"#;
        let messages = read_messages(text).unwrap();
        let block = &messages[0].blocks.as_ref().unwrap()[0];
        assert!(block.is_result());
        assert_eq!(block.id(), "null");
        let output = block.output().unwrap();
        assert_eq!(&text[offset_in(text, output)], r#""\ud83d\ude00\ud800""#);
        assert_eq!(
            spliced(text, &[(output, "0")]),
            r#" [ {"content":[{"type":"tool_result","output" : 0}]} ]"#
        );
        assert_eq!(decoded(output), None);
    }
}
