//! Random histories with odd contents in odd spellings, made from a list of random bytes; fewer and smaller bytes
//! make simpler histories, which is what a failing property shrinks to.

use std::fmt::Write;

/// A source of choices. When the bytes are used up, it always gives the first choice.
#[derive(Debug)]
pub(crate) struct Dice<'d> {
    bytes: std::slice::Iter<'d, u8>,
}

impl<'d> Dice<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Dice<'d> {
        Dice { bytes: bytes.iter() }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(*self.bytes.next().unwrap_or(&0)) % limit
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// True about once in so many times; false when there are no bytes left.
    pub(crate) fn rarely(&mut self, one_in: usize) -> bool {
        self.below(one_in) == one_in - 1
    }
}

/// Half a surrogate pair, which no Rust text can hold: [`spell`] writes it as an escape.
const HIGH_HALF: char = '\u{e000}';
const LOW_HALF: char = '\u{e001}';

/// A JSON value without a spelling, except for numbers.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    Raw(&'static str),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }
}

/// How odd the values may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Oddity {
    /// Anything that is JSON.
    Any,
    /// Only what serde_json reads without loss: small integers, whole characters, no key twice.
    Tame,
}

/// A history and what a request about it needs.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) messages: Json,
    /// Ids of calls that can have a reference.
    pub(crate) call_ids: Vec<String>,
}

const WORDS: [&str; 20] = [
    "word ",
    "line\n",
    "é",
    "中文",
    "\u{1f600}",
    "\"quoted\"",
    "back\\slash",
    "/",
    "\u{1}",
    "\u{2028}",
    "\u{7f}",
    "\r\n\t",
    "12345678",
    "password=a1b2c3d4e5f6 ",
    "\n…\n",
    "Bearer abcdef0123456789 ",
    "<system-reminder>x</system-reminder>",
    "https://bot:hunter2@example.test ",
    "token\": \"a1b2c3d4e5f6\"",
    "\n[Compacted output. Recover from: elsewhere]",
];

/// A text; about as many words as asked for.
fn words(dice: &mut Dice<'_>, count: usize) -> String {
    let mut text = String::new();
    let stock: Vec<&str> = (0..count.min(4)).map(|_| dice.pick(&WORDS)).collect();
    for number in 0..count {
        text.push_str(stock[number % stock.len()]);
    }
    text
}

fn some_text(dice: &mut Dice<'_>, oddity: Oddity) -> String {
    let count = dice.pick(&[3, 0, 1, 12, 60, 150]);
    text_of(count, dice, oddity)
}

/// What a tool returns: long enough to be worth a cut, as a rule.
fn output_text(dice: &mut Dice<'_>, oddity: Oddity) -> String {
    let count = dice.pick(&[60, 40, 150, 100, 20, 1, 0]);
    let mut text = text_of(count, dice, oddity);
    if dice.rarely(12) {
        text.push_str("\n[Compacted output. Recover from: elsewhere]");
    }
    text
}

fn text_of(count: usize, dice: &mut Dice<'_>, oddity: Oddity) -> String {
    let mut text = words(dice, count);
    if oddity == Oddity::Any && dice.rarely(12) {
        text.insert(0, dice.pick(&[HIGH_HALF, LOW_HALF]));
    }
    text
}

/// A value of an unknown field.
fn anything(dice: &mut Dice<'_>, oddity: Oddity, depth: usize) -> Json {
    const TAME: [&str; 6] = ["0", "null", "true", "-1", "9007199254740991", "42"];
    const ODD: [&str; 14] = [
        "1.0",
        "1E+2",
        "-0",
        "-0.0",
        "0.1000000000000000055",
        "123456789012345678901234567890",
        "1e999",
        "5e-324",
        "1e15",
        "1e16",
        "0.00001",
        "123456789.123456789",
        "1.50",
        "9007199254740993",
    ];
    match dice.below(if depth > 3 { 3 } else { 5 }) {
        0 => Json::Raw(dice.pick(&TAME)),
        1 if oddity == Oddity::Any => Json::Raw(dice.pick(&ODD)),
        1 | 2 => Json::Text(some_text(dice, oddity)),
        3 => Json::List((0..dice.below(4)).map(|_| anything(dice, oddity, depth + 1)).collect()),
        _ => {
            let names =
                ["a", "b", "é", "", "a\"", "type", "id", "output", "text", "content", "k1", "k2", "k3", "k4"];
            let members: Vec<(String, Json)> = (0..dice.below(20))
                .map(|_| {
                    let mut name = dice.pick(&names).to_owned();
                    if oddity == Oddity::Any && dice.rarely(10) {
                        name.push(HIGH_HALF);
                    }
                    (name, anything(dice, oddity, depth + 2))
                })
                .collect();
            Json::Object(if oddity == Oddity::Any { members } else { without_repetition(members) })
        }
    }
}

fn without_repetition(members: Vec<(String, Json)>) -> Vec<(String, Json)> {
    let mut kept: Vec<(String, Json)> = Vec::new();
    for (name, value) in members {
        if kept.iter().all(|(other, _)| *other != name) {
            kept.push((name, value));
        }
    }
    kept
}

/// Members in any order, with a few that nobody knows, some of them more than once.
fn object(mut members: Vec<(String, Json)>, dice: &mut Dice<'_>, oddity: Oddity) -> Json {
    for _ in 0..dice.pick(&[0, 0, 1, 2]) {
        let name = dice.pick(&["metadata", "created_at", "x", "usage"]).to_owned();
        let value = anything(dice, oddity, 0);
        members.insert(dice.below(members.len() + 1), (name, value));
    }
    if dice.rarely(3) {
        let by = dice.below(members.len().max(1));
        members.rotate_left(by);
    }
    if oddity == Oddity::Tame {
        return Json::Object(without_repetition(members));
    }
    if dice.rarely(8) && !members.is_empty() {
        // Of two equal keys the last one counts, so what is put in front does not.
        let name = members[dice.below(members.len())].0.clone();
        // A list that does not count must still be one of blocks.
        let shadow = if name == "content" {
            Json::List(vec![Json::Object(Vec::new())])
        } else {
            anything(dice, oddity, 1)
        };
        members.insert(0, (name, shadow));
    }
    Json::Object(members)
}

/// The history that these dice throw.
pub(crate) fn history(dice: &mut Dice<'_>, oddity: Oddity) -> History {
    let mut call_ids = Vec::new();
    let mut messages = Vec::new();
    for number in 0..2 + dice.below(7) {
        let role = match number {
            0 => dice.pick(&["user", "system", "assistant"]),
            _ => dice.pick(&["assistant", "assistant", "assistant", "user", "system"]),
        };
        let mut blocks = Vec::new();
        for _ in 0..dice.pick(&[1, 0, 2, 3, 5]) {
            // The first message is always protected: a task, as a rule.
            if number == 0 && !dice.rarely(4) {
                let task = some_text(dice, oddity);
                blocks.push(object(vec![kind("text"), ("text".to_owned(), Json::Text(task))], dice, oddity));
            } else {
                push_blocks(&mut blocks, dice, oddity, &mut call_ids);
            }
        }
        let mut members =
            vec![("role".to_owned(), Json::text(role)), ("content".to_owned(), Json::List(blocks))];
        if !dice.rarely(3) {
            members.insert(0, ("id".to_owned(), Json::text(format!("m{number}"))));
        }
        messages.push(object(members, dice, oddity));
    }
    call_ids.sort();
    call_ids.dedup();
    History { messages: Json::List(messages), call_ids }
}

fn push_blocks(blocks: &mut Vec<Json>, dice: &mut Dice<'_>, oddity: Oddity, call_ids: &mut Vec<String>) {
    match dice.below(12) {
        0..=5 => {
            // Calls made at once, with their results in any order.
            let ids: Vec<Json> = (0..dice.pick(&[1, 1, 2, 3])).map(|_| id(dice, oddity, call_ids)).collect();
            let tools: Vec<&str> = ids.iter().map(|_| dice.pick(&["grep", "read", "é"])).collect();
            for (id, tool) in ids.iter().zip(&tools) {
                let block = call(id.clone(), tool, dice, oddity);
                blocks.push(block);
            }
            let mut order: Vec<usize> = (0..ids.len()).collect();
            if dice.rarely(2) {
                order.reverse();
            }
            for at in order {
                let tool = if dice.rarely(12) { "other" } else { tools[at] };
                let block = result(ids[at].clone(), tool, dice, oddity);
                blocks.push(block);
            }
        }
        6 => {
            let id = id(dice, oddity, call_ids);
            let stray = if dice.rarely(2) {
                call(id, "grep", dice, oddity)
            } else {
                result(id, "grep", dice, oddity)
            };
            blocks.push(stray);
        }
        7 => {
            let thought = format!("a thought that stays inside: {}", words(dice, 3));
            let members = vec![kind("thinking"), ("thinking".to_owned(), Json::Text(thought))];
            blocks.push(object(members, dice, oddity));
        }
        8 => {
            let value = anything(dice, oddity, 0);
            let value = if matches!(value, Json::Object(_)) { value } else { Json::Object(Vec::new()) };
            blocks.push(value);
        }
        _ => {
            let said = some_text(dice, oddity);
            blocks.push(object(vec![kind("text"), ("text".to_owned(), Json::Text(said))], dice, oddity));
        }
    }
}

fn kind(name: &str) -> (String, Json) {
    ("type".to_owned(), Json::text(name))
}

fn id(dice: &mut Dice<'_>, oddity: Oddity, call_ids: &mut Vec<String>) -> Json {
    if oddity == Oddity::Any && dice.rarely(24) {
        return match dice.below(5) {
            0 => Json::Raw("7"),
            1 => Json::Raw("null"),
            2 => Json::text(""),
            3 => Json::Text(format!("c{HIGH_HALF}")),
            _ => Json::List(vec![Json::Raw("1.0")]),
        };
    }
    let id = match dice.below(16) {
        14 => dice.pick(&["é\"\\", " ", "call/1", "c1"]).to_owned(),
        _ => format!("c{}", call_ids.len() + 1),
    };
    call_ids.push(id.clone());
    Json::Text(id)
}

fn call(id: Json, tool: &str, dice: &mut Dice<'_>, oddity: Oddity) -> Json {
    let input = match dice.below(12) {
        8 => r#" {"a" : 1E2, "a":[0.10,{"b":null}], "\u0061b":"\/"}"#.to_owned(),
        9 => "not JSON".to_owned(),
        10 => "[]".to_owned(),
        11 => format!(r#"{{"text":"{}"}}"#, "a long argument ".repeat(20)),
        _ => format!(r#"{{"q":"é{}"}}"#, dice.below(100)),
    };
    let state = if dice.rarely(12) { "running" } else { "finished" };
    let mut members = vec![
        kind("tool_call"),
        ("id".to_owned(), id),
        ("name".to_owned(), Json::text(tool)),
        ("input".to_owned(), Json::Text(input)),
        ("state".to_owned(), Json::text(state)),
    ];
    if oddity == Oddity::Any && dice.rarely(20) {
        members.remove(1 + dice.below(4));
    }
    object(members, dice, oddity)
}

fn result(id: Json, tool: &str, dice: &mut Dice<'_>, oddity: Oddity) -> Json {
    let block = |dice: &mut Dice<'_>| {
        let text = output_text(dice, oddity);
        object(vec![kind("text"), ("text".to_owned(), Json::Text(text))], dice, oddity)
    };
    let output = match dice.below(10) {
        6 | 7 => Json::List((0..dice.pick(&[1, 2, 3, 0])).map(|_| block(dice)).collect()),
        8 => {
            let image = [kind("data"), ("source".to_owned(), Json::text("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"))];
            Json::List(vec![block(dice), Json::Object(image.to_vec())])
        }
        9 => anything(dice, oddity, 0),
        _ => Json::Text(output_text(dice, oddity)),
    };
    let state = if dice.rarely(12) { "error" } else { "success" };
    let members = vec![
        kind("tool_result"),
        ("id".to_owned(), id),
        ("name".to_owned(), Json::text(tool)),
        ("output".to_owned(), output),
        ("state".to_owned(), Json::text(state)),
    ];
    object(members, dice, oddity)
}

/// Options of any kind, as members of the object; a budget if one is wanted.
pub(crate) fn options(dice: &mut Dice<'_>, budget: bool) -> Vec<(String, Json)> {
    let mut options = Vec::new();
    let mut numbers = |name: &str, values: &[&'static str], dice: &mut Dice<'_>| {
        if !dice.rarely(16) {
            options.push((name.to_owned(), Json::Raw(dice.pick(values))));
        }
    };
    numbers(
        "preserve_recent_messages",
        &["0", "0", "0", "0", "0", "1", "2", "6", "100000000000000000000"],
        dice,
    );
    numbers("preview_chars", &["10", "0", "1", "2", "3", "40", "300", "100000000000000000000"], dice);
    numbers("evidence_chars", &["2000", "1", "2", "3", "50", "100000000000000000000"], dice);
    numbers("drop_threshold", &["0.5", "0", "0.1", "1"], dice);
    numbers("max_state_tokens", &["25000", "25000", "25000", "25000", "400", "900", "1"], dice);
    numbers("protect_unread", &["false", "true"], dice);
    numbers("skip_unshortenable", &["false", "true"], dice);
    numbers("keep_output_shape", &["false", "true"], dice);
    if budget && dice.rarely(3) {
        numbers("max_output_tokens", &["3000", "1", "1500", "6000", "100000000000000000000"], dice);
    }
    if dice.rarely(2) {
        options.push(("recent_unit".to_owned(), Json::text("step")));
    }
    if dice.rarely(6) {
        options.push(("profile".to_owned(), Json::text("recommended")));
    }
    options
}

/// A request about a history: references for most calls, most tools eligible, a few calls and messages protected.
pub(crate) fn request(history: &History, options: Vec<(String, Json)>, dice: &mut Dice<'_>) -> Json {
    let mut references = Vec::new();
    let mut protected = Vec::new();
    for id in history.call_ids.iter().filter(|id| !id.trim().is_empty()) {
        if !dice.rarely(12) {
            let name = dice.pick(&["archive/", "", "a \"b\"\\", "two\nlines/", "參照]"]);
            references.push((id.clone(), Json::Text(format!("{name}{id}"))));
        }
        if dice.rarely(10) {
            protected.push(Json::text(id.as_str()));
        }
    }
    let messages = if dice.rarely(6) { vec![Json::text(format!("m{}", dice.below(8)))] } else { Vec::new() };
    let tools = ["grep", "read", "é", "other"].iter().skip(usize::from(dice.rarely(6)));
    let mut fields = vec![
        ("messages".to_owned(), history.messages.clone()),
        ("source_refs".to_owned(), Json::Object(references)),
        ("eligible_tool_names".to_owned(), Json::List(tools.map(|tool| Json::text(*tool)).collect())),
        ("protected_call_ids".to_owned(), Json::List(protected)),
        ("protected_message_ids".to_owned(), Json::List(messages)),
        ("options".to_owned(), Json::Object(options)),
        ("token_counter".to_owned(), Json::text("json_chars")),
    ];
    if !dice.rarely(3) {
        fields.push(("goal".to_owned(), Json::text("Find the “bug”\nand fix it")));
    }
    if !dice.rarely(3) {
        fields.push(("next_action".to_owned(), Json::text("Run the tests")));
    }
    let by = dice.below(fields.len());
    fields.rotate_left(by);
    Json::Object(fields)
}

/// Writes a value down in one of the many ways in which it can be written.
pub(crate) fn spell(json: &Json, dice: &mut Dice<'_>) -> String {
    let mut out = String::new();
    if dice.rarely(4) {
        out.push('\u{feff}');
    }
    push(&mut out, json, dice);
    space(&mut out, dice);
    out
}

fn space(out: &mut String, dice: &mut Dice<'_>) {
    out.push_str(dice.pick(&["", "", "", "", "", " ", "\n", "\r\n", "\t", " \r\n  "]));
}

fn push(out: &mut String, json: &Json, dice: &mut Dice<'_>) {
    space(out, dice);
    match json {
        Json::Raw(raw) => out.push_str(raw),
        Json::Text(text) => push_text(out, text, dice),
        Json::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    space(out, dice);
                    out.push(',');
                }
                push(out, item, dice);
            }
            space(out, dice);
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    space(out, dice);
                    out.push(',');
                }
                space(out, dice);
                push_text(out, name, dice);
                space(out, dice);
                out.push(':');
                push(out, value, dice);
            }
            space(out, dice);
            out.push('}');
        }
    }
}

fn push_text(out: &mut String, text: &str, dice: &mut Dice<'_>) {
    // One decision for most of a text, so that long texts do not use up the dice.
    let escapes_rest = dice.rarely(8);
    let single: Vec<usize> = (0..dice.below(3)).map(|_| dice.below(40)).collect();
    let upper = dice.rarely(2);
    out.push('"');
    for (at, character) in text.chars().enumerate() {
        let mut units = [0; 2];
        match character {
            HIGH_HALF => push_unit(out, 0xd800, upper),
            LOW_HALF => push_unit(out, 0xdc00, upper),
            '/' if single.contains(&at) => out.push_str("\\/"),
            '\n' if !escapes_rest => out.push_str("\\n"),
            '"' | '\\' if !escapes_rest => {
                out.push('\\');
                out.push(character);
            }
            _ if escapes_rest || single.contains(&at) || character < ' ' => {
                character.encode_utf16(&mut units).iter().for_each(|unit| push_unit(out, *unit, upper));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn push_unit(out: &mut String, unit: u16, upper: bool) {
    if upper { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") }
        .expect("a text takes everything");
}
