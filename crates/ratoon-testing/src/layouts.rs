//! Other layouts of the same history.

use serde_json::value::RawValue;

use crate::document::{Object, offset_in, raw_items};

/// Joins consecutive assistant messages of an AgentScope list into one, as native AgentScope stores a whole reply.
///
/// Blocks are copied as they are spelt; the first message's other fields stay, those of the joined ones are dropped.
/// Messages whose content is not a list stay alone. White space between messages is not kept.
pub fn join_assistant_messages(messages_json: &str) -> String {
    let messages = raw_items(messages_json).expect("the messages are a list");
    let mut joined: Vec<Joined<'_>> = Vec::new();
    for message in messages {
        let content = assistant_content(message.get());
        match (joined.last_mut(), content) {
            (Some(Joined { content: Some((_, blocks)), .. }), Some((_, more))) => blocks.extend(more),
            (_, content) => joined.push(Joined { message: message.get(), content }),
        }
    }
    let texts: Vec<String> = joined.iter().map(Joined::to_json).collect();
    format!("[{}]", texts.join(","))
}

/// A message, and if it is the assistant's the spelling of its content with all blocks that belong to it now.
struct Joined<'a> {
    message: &'a str,
    content: Option<(&'a str, Vec<&'a RawValue>)>,
}

impl Joined<'_> {
    fn to_json(&self) -> String {
        let Some((content, blocks)) = &self.content else { return self.message.to_owned() };
        let span = offset_in(self.message, content);
        let blocks: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
        format!("{}[{}]{}", &self.message[..span.start], blocks.join(","), &self.message[span.end..])
    }
}

fn assistant_content(message: &str) -> Option<(&str, Vec<&RawValue>)> {
    let message = Object::read(message)?;
    if message.text("role").as_deref() != Some("assistant") {
        return None;
    }
    let content = message.get("content")?;
    Some((content, raw_items(content)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    #[test]
    fn assistants_in_a_row_become_one() {
        let messages = r#"[ {"role":"user","content":[]}, {"id":"a","role":"assistant","content":[ {"n":1.00} ],"x":2},
            {"id":"b","role":"assistant","content":[]}, {"role":"assistant","content":[{"k":"\u00e9"},3]},
            {"role":"user","content":[1]},{"role":"assistant","content":[4]}]"#;
        let expected = concat!(
            r#"[{"role":"user","content":[]},{"id":"a","role":"assistant","content":[{"n":1.00},{"k":"\u00e9"},3],"x":2},"#,
            r#"{"role":"user","content":[1]},{"role":"assistant","content":[4]}]"#
        );
        assert_eq!(join_assistant_messages(messages), expected);
    }

    #[test]
    fn content_that_is_no_list_stays_alone() {
        let messages = r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]"#;
        assert_eq!(join_assistant_messages(messages), messages);
    }

    #[test]
    fn real_runs_lose_no_block() {
        for run in data::runs(None) {
            let joined = join_assistant_messages(run.messages.get());
            let blocks = |messages: &str| -> Vec<String> {
                let messages = raw_items(messages).unwrap();
                let contents = messages.iter().map(|message| Object::read(message.get()).unwrap());
                contents
                    .flat_map(|message| raw_items(message.get("content").unwrap()).unwrap())
                    .map(|block| block.get().to_owned())
                    .collect()
            };
            assert_eq!(blocks(run.messages.get()), blocks(&joined), "{}", run.name);
            assert_eq!(join_assistant_messages(&joined), joined, "{}", run.name);
        }
    }
}
