//! The arguments of a call written again: read as Python's `json` reads, written as it writes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::number::python_notation;
use super::scanner::{Kind, Scanner, SyntaxError};
use super::text::{Text, push_text};

/// A value in a flat arena, so that depth costs neither stack to build nor to drop.
enum Node<'a> {
    Scalar(Cow<'a, str>),
    Text(String),
    Array(Vec<usize>),
    Object(Vec<(String, usize)>),
}

/// Why the text has no canonical form.
struct Unwritable;

impl From<SyntaxError> for Unwritable {
    fn from(_: SyntaxError) -> Self {
        Unwritable
    }
}

/// Reads `text` as exactly one JSON object and writes it compactly in Python's notation: key order kept, a
/// repeated key keeps its first place and its last value. `None` if it is anything else, or holds what cannot
/// be written (a number that overflows, a lone surrogate).
pub(crate) fn canonical_object(text: &str) -> Option<String> {
    read(text).ok().map(|(nodes, root)| write(&nodes, root, text.len()))
}

/// An object or array whose end has not been reached.
enum Open {
    Array(Vec<usize>),
    Object { members: Vec<(String, usize)>, places: HashMap<String, usize>, key: String },
}

fn read(input: &str) -> Result<(Vec<Node<'_>>, usize), Unwritable> {
    let mut scanner = Scanner::new(input);
    if scanner.peek()? != b'{' {
        return Err(Unwritable);
    }
    let mut nodes = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut node = match scanner.peek()? {
            bracket @ (b'{' | b'[') => {
                let is_object = bracket == b'{';
                if scanner.enter(bracket)? {
                    if is_object { Node::Object(Vec::new()) } else { Node::Array(Vec::new()) }
                } else {
                    open.push(if is_object {
                        Open::Object {
                            members: Vec::new(),
                            places: HashMap::new(),
                            key: decode(scanner.key()?)?,
                        }
                    } else {
                        Open::Array(Vec::new())
                    });
                    continue;
                }
            }
            _ => match scanner.value()?.kind {
                Kind::Null => Node::Scalar(Cow::Borrowed("null")),
                Kind::Bool(true) => Node::Scalar(Cow::Borrowed("true")),
                Kind::Bool(false) => Node::Scalar(Cow::Borrowed("false")),
                Kind::Number(raw) => Node::Scalar(python_notation(raw).ok_or(Unwritable)?),
                Kind::Text(text) => Node::Text(decode(text)?),
                Kind::Array | Kind::Object => unreachable!("brackets are handled above"),
            },
        };
        loop {
            let place = nodes.len();
            nodes.push(node);
            match open.last_mut() {
                None => {
                    scanner.end()?;
                    return Ok((nodes, place));
                }
                Some(Open::Array(items)) => {
                    items.push(place);
                    if scanner.separator(b']')? {
                        break;
                    }
                }
                Some(Open::Object { members, places, key }) => {
                    match places.get(key.as_str()) {
                        Some(&first) => members[first].1 = place,
                        None => {
                            places.insert(key.clone(), members.len());
                            members.push((std::mem::take(key), place));
                        }
                    }
                    if scanner.separator(b'}')? {
                        *key = decode(scanner.key()?)?;
                        break;
                    }
                }
            }
            node = match open.pop() {
                Some(Open::Array(items)) => Node::Array(items),
                Some(Open::Object { members, .. }) => Node::Object(members),
                None => unreachable!("a container was open"),
            };
        }
    }
}

fn decode(text: Text<'_>) -> Result<String, Unwritable> {
    text.decode().map(Cow::into_owned).ok_or(Unwritable)
}

fn write(nodes: &[Node<'_>], root: usize, capacity: usize) -> String {
    let mut out = String::with_capacity(capacity);
    // Containers being written, each with the number of children already out.
    let mut writing: Vec<(usize, usize)> = Vec::new();
    let mut next = Some(root);
    loop {
        if let Some(place) = next.take() {
            match &nodes[place] {
                Node::Scalar(text) => out.push_str(text),
                Node::Text(text) => push_text(&mut out, text),
                Node::Array(_) => {
                    out.push('[');
                    writing.push((place, 0));
                }
                Node::Object(_) => {
                    out.push('{');
                    writing.push((place, 0));
                }
            }
        }
        let Some((place, done)) = writing.last_mut() else { return out };
        match &nodes[*place] {
            Node::Array(items) if *done < items.len() => {
                if *done > 0 {
                    out.push(',');
                }
                next = Some(items[*done]);
                *done += 1;
            }
            Node::Object(members) if *done < members.len() => {
                if *done > 0 {
                    out.push(',');
                }
                let (key, value) = &members[*done];
                push_text(&mut out, key);
                out.push(':');
                next = Some(*value);
                *done += 1;
            }
            container => {
                out.push(if matches!(container, Node::Array(_)) { ']' } else { '}' });
                writing.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_like_python_writes_it() {
        for (input, expected) in [
            (" {\n \"a\" : 1 } \t", "{\"a\":1}"),
            (
                "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":true}",
                "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":true}",
            ),
            ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"),
            ("{\"f\":1e2,\"n\":-0,\"e\":[]}", "{\"f\":100.0,\"n\":0,\"e\":[]}"),
            ("{}", "{}"),
        ] {
            assert_eq!(canonical_object(input).as_deref(), Some(expected), "{input}");
        }
    }

    #[test]
    fn everything_else_has_no_canonical_form() {
        for input in [
            "",
            "  ",
            "null",
            "[1]",
            "\"a\"",
            "{\"a\":1}{\"b\":2}",
            "{'a':1}",
            "\u{feff}{}",
            "{\"a\":\"\t\"}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":1",
            "{\"a\":\u{a0}1}",
            "{\"a\":1e400}",
            "{\"a\":NaN}",
            "{\"a\":\"\\ud83d\"}",
        ] {
            assert_eq!(canonical_object(input), None, "{input}");
        }
    }

    #[test]
    fn depth_and_repeated_keys_stay_linear() {
        let depth = 20_000;
        let input = format!("{}1{}", "{\"a\":0,\"a\":".repeat(depth), "}".repeat(depth));
        let expected = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(canonical_object(&input), Some(expected));
    }
}
