//! Any bytes as a document: reading never panics, agrees with another JSON reader about what is JSON, and what was
//! read is a part of the input with the size that another writer gives it.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ratoon::snapshot::{Block, BlockId, Content};
use ratoon::{Document, Overrides, RequestError, Snapshot};
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let json = std::str::from_utf8(bytes).ok().map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    let is_json = json.is_some_and(|json| serde_json::from_str::<&RawValue>(json).is_ok());
    match Document::parse(bytes, &Overrides::default()) {
        Ok(document) => {
            assert!(is_json, "read something that is not JSON");
            check(&document.into_request().snapshot, bytes);
            Corpus::Keep
        }
        Err(error) => {
            check_refusal(&error, bytes, is_json);
            // Broken JSON is worth keeping too: it is what the scanner is for.
            Corpus::Keep
        }
    }
});

fn check(snapshot: &Snapshot<'_>, bytes: &[u8]) {
    let (json, span) = (snapshot.json(), snapshot.span());
    assert_eq!(json.as_bytes(), &bytes[span.start..span.end]);
    assert!(json.starts_with('[') && json.ends_with(']'));
    // The longest growth is that of 1e15.
    assert!(snapshot.size() >= 2 && snapshot.size() <= 6 * json.len() as u64);
    if let Some(size) = size_by_serde(json) {
        assert_eq!(snapshot.size(), size);
    }
    let again = Document::parse(json.as_bytes(), &Overrides::default());
    let again = again.expect("a message list that was read can be read alone").into_request();
    assert_eq!(again.snapshot.json(), json);
    assert_eq!(again.snapshot.size(), snapshot.size());
    assert_eq!(outline(&again.snapshot), outline(snapshot));
}

/// The size as serde_json writes the value; nothing if serde_json cannot hold it without loss.
fn size_by_serde(json: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(json).ok()?;
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        match value {
            Value::Number(number) if !number.is_i64() && !number.is_u64() => return None,
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    Some(value.to_string().chars().count() as u64)
}

/// What a snapshot says about its blocks, without places.
fn outline(snapshot: &Snapshot<'_>) -> Vec<String> {
    let id = |id: &BlockId<'_>| match id {
        BlockId::Usable(text) => format!("{:?}", text.decode().expect("a usable id is Unicode")),
        BlockId::Unusable(raw) => (*raw).to_owned(),
        _ => "no id".to_owned(),
    };
    let block = |block: &Block<'_>| match block {
        Block::Text(text) => {
            let decoded = text.decode_lossy();
            assert_eq!(text.code_points(), decoded.chars().count() as u64);
            assert_eq!(text.decode().is_none(), text.has_lone_surrogate());
            format!("text {decoded:?}")
        }
        Block::Call(call) => format!("call {} {}", id(&call.id), call.finished),
        Block::Result(result) => {
            let output = result.output.as_ref();
            let shape = output.map(|output| match &output.content {
                Content::Text(_) => "text",
                Content::TextBlocks(_) => "list",
                _ => "other",
            });
            let text = output.and_then(|output| output.text()).map(|text| {
                let decoded = text.decode_lossy();
                assert_eq!(text.code_points(), decoded.chars().count() as u64);
                decoded
            });
            format!("result {} {} {shape:?} {text:?}", id(&result.id), result.success)
        }
        Block::Thinking => "thinking".to_owned(),
        _ => "other".to_owned(),
    };
    let messages = snapshot.messages().iter();
    messages
        .flat_map(|message| {
            let head = format!("{:?} {:?}", message.role, message.id.map(|id| id.raw()));
            std::iter::once(head).chain(snapshot.blocks_of(message).iter().map(block))
        })
        .collect()
}

fn check_refusal(error: &RequestError, bytes: &[u8], is_json: bool) {
    assert!(!error.to_string().is_empty());
    match error {
        RequestError::Empty => assert!(bytes.is_empty()),
        RequestError::NotUtf8 { offset } => {
            assert!(std::str::from_utf8(&bytes[..*offset]).is_ok() && std::str::from_utf8(bytes).is_err());
        }
        RequestError::NotJson { line, column, .. } => {
            assert!(!is_json || too_deep(bytes), "refused JSON as if it were none: {error}");
            let lines = bytes.split(|&byte| byte == b'\n').count();
            assert!((1..=lines).contains(line) && (1..=bytes.len() + 1).contains(column));
        }
        RequestError::Invalid(problems) => {
            assert!(is_json && !problems.found().is_empty());
            assert!(problems.total() >= problems.found().len() && problems.found().len() <= 20);
        }
        _ => {}
    }
}

/// There is a limit on nesting.
fn too_deep(bytes: &[u8]) -> bool {
    bytes.iter().filter(|&&byte| byte == b'[' || byte == b'{').count() > 100_000
}
