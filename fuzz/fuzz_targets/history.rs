//! A message list: one of a few small ones with some edits, or the bytes as they are.

/// Small histories that have every kind of block, layout and oddity.
const SEEDS: [&str; 4] = [
    include_str!("../seeds/usual.json"),
    include_str!("../seeds/joined.json"),
    include_str!("../seeds/lists.json"),
    include_str!("../seeds/odd.json"),
];

/// The history that `choice` and `rest` stand for.
pub fn history(choice: u8, rest: &[u8]) -> Option<String> {
    let Some(seed) = SEEDS.get(usize::from(choice) % (SEEDS.len() + 1)) else {
        return std::str::from_utf8(rest).ok().map(str::to_owned);
    };
    let mut text = seed.trim().to_owned();
    for edit in rest.chunks_exact(4).take(16) {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        apply(&mut text, place, edit[2], usize::from(edit[3]));
    }
    Some(text)
}

const MEMBERS: [&str; 16] = [
    r#""type":"tool_result""#,
    r#""type":"tool_call""#,
    r#""type":"text""#,
    r#""\u0069d":"c2""#,
    r#""id":"c1""#,
    r#""id":7"#,
    r#""output":"twice""#,
    r#""output" : [{"type":"text","text":"a"},{"type":"image"}]"#,
    r#""text":"\ud800""#,
    r#""content":[]"#,
    r#""state":"success""#,
    r#""input":"{\"a\":1,\"a\":[1E2]}""#,
    r#""x":123456789012345678901234567890"#,
    r#""x":{"":[[],{}],"é":-0}"#,
    r#""text":5"#,
    r#""role":"system""#,
];
const VALUES: [&str; 8] = [
    r#"{"type":"text","text":"more"}"#,
    r#"{"type":"thinking","thinking":"a thought that nobody else may ever see"}"#,
    r#"{"type":"tool_call","id":"c1","name":"grep","input":"{}","state":"finished"}"#,
    r#"{"type":"tool_result","id":"c9","name":"grep","output":"orphan","state":"success"}"#,
    r#"{"role":"user","content":[{"type":"text","text":"Go on, please."}]}"#,
    r#"{"role":"assistant","content":[]}"#,
    "[]",
    "1e999",
];
const INSERTS: [&str; 12] = [
    r"\n",
    r"\ud83d",
    r"\ud83d\ude00",
    r"\u00e9",
    "中",
    "\u{1f600}",
    r#"\""#,
    r"\\",
    r"\/",
    r"\u0000",
    "\u{2028}",
    " ",
];
const TEXTS: [&str; 16] = [
    "c1",
    "c2",
    r"\u0063\u0031",
    "",
    "tool_result",
    "tool_call",
    "thinking",
    "success",
    "error",
    "finished",
    "assistant",
    "user",
    "grep",
    r#"{\"q\":\"archive/1\"}"#,
    r"head\n…\ntail\n[Compacted output. Recover from: archive/1]",
    "password=a1b2c3d4e5f6g7 and then -----BEGIN RSA PRIVATE KEY-----",
];
const SPACE: [&str; 6] = [" ", "\n", "\r\n", "\t", "  \n ", "\u{a0}"];

fn apply(text: &mut String, place: usize, kind: u8, argument: usize) {
    let tokens = Tokens::of(text);
    let nth = |places: &[usize]| (!places.is_empty()).then(|| places[place % places.len()]);
    let string = (!tokens.strings.is_empty()).then(|| tokens.strings[place % tokens.strings.len()]);
    match kind % 8 {
        0 => {
            if let Some(at) = nth(&tokens.structure) {
                text.insert_str(at + 1, SPACE[argument % SPACE.len()]);
            }
        }
        1 | 2 => {
            let (opening, closing, fragments) =
                if kind % 8 == 1 { (b'{', '}', MEMBERS.as_slice()) } else { (b'[', ']', VALUES.as_slice()) };
            let places: Vec<usize> =
                tokens.structure.iter().copied().filter(|&at| text.as_bytes()[at] == opening).collect();
            if let Some(at) = nth(&places) {
                let fragment = fragments[argument % fragments.len()];
                let comma = if text[at + 1..].trim_start().starts_with(closing) { "" } else { "," };
                text.insert_str(at + 1, &format!("{fragment}{comma}"));
            }
        }
        3 => {
            if let Some((start, end)) = string {
                let at = text.floor_char_boundary(start + argument / INSERTS.len() % (end - start + 1));
                text.insert_str(at, INSERTS[argument % INSERTS.len()]);
            }
        }
        4 => {
            if let Some((_, end)) = string {
                text.insert_str(end, &"words é中 ".repeat(1 + argument));
            }
        }
        5 => {
            if let Some((start, end)) = string {
                text.replace_range(start..end, TEXTS[argument % TEXTS.len()]);
            }
        }
        6 => {
            if let Some(&(start, end)) = tokens.items.get(place % tokens.items.len().max(1)) {
                let copy = format!(",{}", &text[start..end]);
                text.insert_str(end, &copy);
            }
        }
        _ => {
            let at = text.floor_char_boundary(place % text.len().max(1));
            let end = text[at..].chars().next().map_or(at, |character| at + character.len_utf8());
            text.replace_range(at..end, char::from(argument as u8 & 0x7f).encode_utf8(&mut [0; 4]));
        }
    }
}

/// Where things stand in a JSON text.
#[derive(Default)]
struct Tokens {
    /// Brackets, commas and colons.
    structure: Vec<usize>,
    /// The insides of strings.
    strings: Vec<(usize, usize)>,
    /// Objects that are items of lists.
    items: Vec<(usize, usize)>,
}

impl Tokens {
    fn of(text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        let mut open: Vec<(u8, usize)> = Vec::new();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    let start = at + 1;
                    at = start;
                    while at < bytes.len() && bytes[at] != b'"' {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    if at < bytes.len() {
                        tokens.strings.push((start, at));
                    }
                }
                bracket @ (b'[' | b'{') => {
                    tokens.structure.push(at);
                    open.push((bracket, at));
                }
                b']' | b'}' => {
                    if let Some((b'{', start)) = open.pop()
                        && open.last().is_some_and(|(outer, _)| *outer == b'[')
                    {
                        tokens.items.push((start, at + 1));
                    }
                }
                b',' | b':' => tokens.structure.push(at),
                _ => {}
            }
            at += 1;
        }
        tokens
    }
}
