//! AgentScope 2.x: a list of messages with `role` and a list of content blocks.
//!
//! Calls are blocks of type `tool_call`, results blocks of type `tool_result`, both keyed by `id`. Only the
//! fields below are looked at; ids, names, times, usage, metadata and unknown fields pass through.

use super::{Block, BlockId, Call, Content, Index, Output, Role, TextBlock, ToolResult};
use crate::json::{Kind, Scanner, Span, SyntaxError, Text, Value};
use crate::problems::{Place, Problems};

type Read<T> = Result<T, SyntaxError>;

pub(super) fn read<'a>(
    scanner: &mut Scanner<'a>,
    index: &mut Index<'a>,
    problems: &mut Problems,
) -> Read<u64> {
    let place = Place::field("messages");
    if scanner.peek()? != b'[' {
        problems.add(place, "list_type", "must be a list of messages");
        return Ok(scanner.value()?.size);
    }
    scanner.array(|scanner| {
        let place = place.clone().index(index.message_count());
        if scanner.peek()? != b'{' {
            problems.add(place, "dict_type", "a message must be an object");
            // Counted all the same, so that later places are right.
            index.push_message(Role::User, None, index.block_count());
            return Ok(scanner.value()?.size);
        }
        message(scanner, place, index, problems)
    })
}

fn message<'a>(
    scanner: &mut Scanner<'a>,
    place: Place,
    index: &mut Index<'a>,
    problems: &mut Problems,
) -> Read<u64> {
    let first_block = index.block_count();
    let (mut role, mut id, mut has_content) = (None, None, false);
    let size = scanner.object(|scanner, key| {
        if key.is("content") {
            index.blocks.truncate(first_block);
            let place = place.clone().key("content");
            has_content = scanner.peek()? == b'[';
            if has_content {
                content(scanner, &place, first_block, index, problems)
            } else {
                Ok(scanner.value()?.size)
            }
        } else {
            let value = scanner.value()?;
            if key.is("role") {
                role = Some(value);
            } else if key.is("id") {
                id = as_text(&value);
            }
            Ok(value.size)
        }
    })?;
    let known = role.as_ref().and_then(as_text).and_then(|text| {
        [Role::User, Role::Assistant, Role::System].into_iter().find(|role| text.is(role.as_str()))
    });
    if role.is_none() {
        problems.add(place.clone().key("role"), "value_error", "is missing");
    } else if known.is_none() {
        problems.add(
            place.clone().key("role"),
            "value_error",
            "must be user, assistant or system (AgentScope messages keep tool results as blocks of assistant messages)",
        );
    }
    if !has_content {
        problems.add(place.key("content"), "value_error", "must be a list of content block objects");
    }
    index.push_message(known.unwrap_or(Role::User), id, first_block);
    Ok(size)
}

fn content<'a>(
    scanner: &mut Scanner<'a>,
    place: &Place,
    first_block: usize,
    index: &mut Index<'a>,
    problems: &mut Problems,
) -> Read<u64> {
    scanner.array(|scanner| {
        if scanner.peek()? == b'{' {
            let (block, size) = block(scanner)?;
            index.push_block(block);
            return Ok(size);
        }
        let place = place.clone().index(index.block_count() - first_block);
        problems.add(place, "value_error", "a content block must be an object");
        index.push_block(Block::Other);
        Ok(scanner.value()?.size)
    })
}

/// The fields of a block that may matter, whatever its type turns out to be.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<Value<'a>>,
    id: Option<Value<'a>>,
    name: Option<Value<'a>>,
    state: Option<Value<'a>>,
    input: Option<Value<'a>>,
    text: Option<Value<'a>>,
    output: Option<Output<'a>>,
}

fn block<'a>(scanner: &mut Scanner<'a>) -> Read<(Block<'a>, u64)> {
    let mut fields = Fields::default();
    let size = scanner.object(|scanner, key| {
        if key.is("output") {
            let output = output(scanner)?;
            let size = output.size;
            fields.output = Some(output);
            return Ok(size);
        }
        let value = scanner.value()?;
        let slot = match &*key.decode_lossy() {
            "type" => &mut fields.kind,
            "id" => &mut fields.id,
            "name" => &mut fields.name,
            "state" => &mut fields.state,
            "input" => &mut fields.input,
            "text" => &mut fields.text,
            _ => return Ok(value.size),
        };
        *slot = Some(value);
        Ok(value.size)
    })?;
    Ok((fields.into_block(scanner), size))
}

impl<'a> Fields<'a> {
    fn into_block(self, scanner: &Scanner<'a>) -> Block<'a> {
        let text = |field: &Option<Value<'a>>| field.as_ref().and_then(as_text);
        let Some(kind) = text(&self.kind) else { return Block::Other };
        let id = match &self.id {
            None => BlockId::Missing,
            Some(value) => match as_text(value) {
                Some(text) if !text.is_empty() && !text.has_lone_surrogate() => BlockId::Usable(text),
                _ => BlockId::Unusable(scanner.slice(value.span)),
            },
        };
        let is = |field: &Option<Value<'a>>, expected| text(field).is_some_and(|text| text.is(expected));
        if kind.is("text") {
            text(&self.text).map_or(Block::Other, Block::Text)
        } else if kind.is("thinking") {
            Block::Thinking
        } else if kind.is("tool_call") {
            Block::Call(Call {
                id,
                name: text(&self.name),
                input: text(&self.input),
                finished: is(&self.state, "finished"),
            })
        } else if kind.is("tool_result") {
            let success = is(&self.state, "success");
            Block::Result(ToolResult { id, name: text(&self.name), success, output: self.output })
        } else {
            Block::Other
        }
    }
}

/// Reads an output of any shape; a list of nothing but text blocks is taken apart.
fn output<'a>(scanner: &mut Scanner<'a>) -> Read<Output<'a>> {
    if scanner.peek()? != b'[' {
        let value = scanner.value()?;
        let content = as_text(&value).map_or(Content::NotText, Content::Text);
        return Ok(Output { span: value.span, size: value.size, content });
    }
    let start = scanner.position();
    let mut blocks = Vec::new();
    let mut textual = true;
    let size = scanner.array(|scanner| {
        if !textual || scanner.peek()? != b'{' {
            textual = false;
            return Ok(scanner.value()?.size);
        }
        let (block, size) = text_block(scanner)?;
        match block {
            Some(block) => blocks.push(block),
            None => textual = false,
        }
        Ok(size)
    })?;
    let content = if textual && !blocks.is_empty() { Content::TextBlocks(blocks) } else { Content::NotText };
    Ok(Output { span: Span { start, end: scanner.position() }, size, content })
}

fn text_block<'a>(scanner: &mut Scanner<'a>) -> Read<(Option<TextBlock<'a>>, u64)> {
    let start = scanner.position();
    let (mut is_text, mut text) = (false, None);
    let size = scanner.object(|scanner, key| {
        let value = scanner.value()?;
        if key.is("type") {
            is_text = as_text(&value).is_some_and(|kind| kind.is("text"));
        } else if key.is("text") {
            text = as_text(&value).map(|text| (text, value.span));
        }
        Ok(value.size)
    })?;
    let block = Span { start, end: scanner.position() };
    let found = text.filter(|_| is_text).map(|(text, string)| TextBlock { text, block, string, size });
    Ok((found, size))
}

fn as_text<'a>(value: &Value<'a>) -> Option<Text<'a>> {
    match value.kind {
        Kind::Text(text) => Some(text),
        _ => None,
    }
}
