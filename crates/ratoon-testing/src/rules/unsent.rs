//! Rule 6: thinking text, signatures and binary data never reach the decision model.

use serde_json::Value;

use crate::document::{Message, Object, decoded, raw_items};

/// Shorter values turn up anywhere by chance.
const SHORTEST: usize = 16;
/// Evidence is cut behind its head, so a long value can leak without its end.
const HEAD: usize = 64;
/// No message format nests this deep; the limit keeps hostile nesting from costing quadratic time.
const DEEPEST: usize = 64;

pub(super) fn check_unsent(messages: &[Message<'_>], sent_states: &[String]) -> Vec<String> {
    if sent_states.is_empty() {
        return Vec::new();
    }
    let mut found = Found::default();
    for block in messages.iter().flat_map(|message| message.blocks.iter().flatten()) {
        match block.kind.as_deref() {
            Some("text" | "tool_call" | "tool_result") => found.walk(block.raw, Place::Shown),
            _ => found.walk(block.raw, Place::Elsewhere),
        }
    }
    let shown = found.shown.join("\n");
    let sent: Vec<String> = sent_states.iter().map(|state| strings_of(state)).collect();
    let mut violations = Vec::new();
    for (what, value) in &found.hidden {
        let head = value.char_indices().nth(HEAD).map_or(value.as_str(), |(end, _)| &value[..end]);
        let sent = || sent.iter().any(|text| text.contains(head));
        if head.chars().count() >= SHORTEST && sent() && !shown.contains(head) {
            violations.push(format!("{what} of {} characters was sent to the model", value.chars().count()));
        }
    }
    violations
}

/// What a value belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A text or tool block: its texts may be sent.
    Shown,
    /// Any other block: neither sent nor secret as a whole.
    Elsewhere,
    /// A thinking block: everything in it is secret.
    Thinking,
}

#[derive(Default)]
struct Found {
    hidden: Vec<(&'static str, String)>,
    shown: Vec<String>,
}

impl Found {
    fn walk(&mut self, block: &str, place: Place) {
        let mut open = vec![(block, place, "", 0)];
        while let Some((raw, place, secret, depth)) = open.pop() {
            if let Some(object) = Object::read(raw).filter(|_| depth < DEEPEST) {
                let kind = object.text("type");
                let thinking =
                    matches!(kind.as_deref(), Some("thinking" | "redacted_thinking" | "reasoning"));
                let place = if thinking { Place::Thinking } else { place };
                for (key, value) in object.fields() {
                    let key = key.as_deref().unwrap_or_default();
                    open.push((value, place, secret_name(key, kind.as_deref(), place), depth + 1));
                }
            } else if let Some(items) = raw_items(raw).filter(|_| depth < DEEPEST) {
                open.extend(items.iter().map(|item| (item.get(), place, secret, depth + 1)));
            } else if let Some(text) = decoded(raw) {
                self.add(text, place, secret);
            }
        }
    }

    fn add(&mut self, text: String, place: Place, secret: &'static str) {
        if !secret.is_empty() {
            self.hidden.push((secret, text));
        } else if text.starts_with("data:") && text.contains(";base64,") {
            self.hidden.push(("a data URL", text));
        } else if place == Place::Shown {
            // Call inputs are JSON in a text; the model sees them written again, with other escapes.
            if text.trim_start().starts_with('{') {
                self.shown.push(strings_of(&text));
            }
            self.shown.push(text);
        }
    }
}

fn secret_name(key: &str, kind: Option<&str>, place: Place) -> &'static str {
    match key {
        "id" | "type" => "",
        "signature" => "a signature",
        "data" if kind == Some("base64") => "binary data",
        _ if place == Place::Thinking => "thinking",
        _ => "",
    }
}

/// All texts in a JSON value, or the text itself if it is not JSON.
fn strings_of(json: &str) -> String {
    fn collect(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
            _ => {}
        }
    }
    let Ok(value) = serde_json::from_str(json) else { return json.to_owned() };
    let mut texts = Vec::new();
    collect(&value, &mut texts);
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::read_messages;
    use serde_json::json;

    fn check(blocks: &Value, sent: &str) -> usize {
        let messages = json!([{"role": "assistant", "content": blocks}]).to_string();
        let state = json!({"goal": sent}).to_string();
        check_unsent(&read_messages(&messages).unwrap(), &[state]).len()
    }

    #[test]
    fn secrets_are_found_wherever_they_stand() {
        let secret = "a \"secret\" of more than sixteen characters\n";
        let places = [
            json!([{"type": "thinking", "thinking": secret}]),
            json!([{"type": "thinking", "thinking": "", "raw": {"summary": [secret]}}]),
            json!([{"type": "text", "text": "x", "signature": secret}]),
            json!([{"type": "tool_result", "output": [{"type": "data", "source": {"type": "base64", "data": secret}}]}]),
            json!([{"type": "tool_result", "output": [{"type": "thinking", "thinking": secret}]}]),
        ];
        for blocks in places {
            assert_eq!(check(&blocks, &format!("see: {secret}!")), 1, "{blocks}");
            assert_eq!(check(&blocks, "nothing"), 0, "{blocks}");
        }
        let image = json!([{"type": "image", "url": "data:image/png;base64,AAAAAAAA"}]);
        assert_eq!(check(&image, "data:image/png;base64,AAAAAAAA"), 1);
    }

    #[test]
    fn the_head_of_a_long_secret_is_enough() {
        let secret: String = (0..100).map(|number| format!("step {number}; ")).collect();
        let sent = format!("{}\n…\n", &secret[..200]);
        assert_eq!(check(&json!([{"type": "thinking", "thinking": secret}]), &sent), 1);
    }

    #[test]
    fn short_or_shown_values_are_no_secret() {
        assert_eq!(check(&json!([{"type": "thinking", "thinking": "short thought"}]), "short thought"), 0);
        let told = "a thought that was also said aloud";
        let blocks = json!([{"type": "thinking", "thinking": told}, {"type": "text", "text": told}]);
        assert_eq!(check(&blocks, told), 0);
        let called = json!([{"type": "thinking", "thinking": told},
            {"type": "tool_call", "input": format!("{{\"q\": \"\\u0061{}\"}}", &told[1..])}]);
        assert_eq!(check(&called, told), 0);
    }
}
