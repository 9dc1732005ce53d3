//! Reading the fields of a request other than messages and options.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::json::{Kind, Scanner, SyntaxError, Text, Value};
use crate::problems::{Place, Problems};
use crate::text::is_blank;

type Read<T> = Result<T, SyntaxError>;

/// A text value, which must be valid Unicode.
pub(super) fn text<'a>(value: &Value<'a>, place: &Place, problems: &mut Problems) -> Option<Cow<'a, str>> {
    let Kind::Text(text) = value.kind else {
        problems.add(place.clone(), "string_type", "must be text");
        return None;
    };
    unicode(text, place, problems)
}

fn unicode<'a>(text: Text<'a>, place: &Place, problems: &mut Problems) -> Option<Cow<'a, str>> {
    let decoded = text.decode();
    if decoded.is_none() {
        problems.add(
            place.clone(),
            "string_unicode",
            "must be valid Unicode (it holds half a surrogate pair)",
        );
    }
    decoded
}

/// A list of texts.
pub(super) fn texts<'a>(
    scanner: &mut Scanner<'a>,
    place: &Place,
    problems: &mut Problems,
) -> Read<HashSet<Cow<'a, str>>> {
    let mut found = HashSet::new();
    if scanner.peek()? != b'[' {
        problems.add(place.clone(), "list_type", "must be a list of texts");
        scanner.value()?;
        return Ok(found);
    }
    let mut index = 0;
    scanner.array(|scanner| {
        let value = scanner.value()?;
        found.extend(text(&value, &place.clone().index(index), problems));
        index += 1;
        Ok(value.size)
    })?;
    Ok(found)
}

/// The references: text to text, neither blank.
pub(super) fn source_refs<'a>(
    scanner: &mut Scanner<'a>,
    place: &Place,
    problems: &mut Problems,
) -> Read<HashMap<Cow<'a, str>, Cow<'a, str>>> {
    let mut found = HashMap::new();
    if scanner.peek()? != b'{' {
        problems.add(place.clone(), "dict_type", "must be an object from call ids to references");
        scanner.value()?;
        return Ok(found);
    }
    scanner.object(|scanner, key| {
        let value = scanner.value()?;
        let shown = key.decode_lossy();
        let place = place.clone().key(&shown);
        let id = unicode(key, &place, problems);
        if let (Some(id), Some(reference)) = (id, text(&value, &place, problems)) {
            if is_blank(&id) {
                problems.add(place, "value_error", "a call id must not be blank");
            } else if is_blank(&reference) {
                problems.add(place, "value_error", "a reference must not be blank");
            } else {
                found.insert(id, reference);
            }
        }
        Ok(value.size)
    })?;
    Ok(found)
}

/// The members of an object, for options; a problem at `place` if it is anything else.
pub(super) fn members<'a>(
    scanner: &mut Scanner<'a>,
    place: &Place,
    problems: &mut Problems,
) -> Read<Vec<(String, Value<'a>)>> {
    let mut found = Vec::new();
    if scanner.peek()? != b'{' {
        problems.add(place.clone(), "model_type", "must be an object");
        scanner.value()?;
        return Ok(found);
    }
    scanner.object(|scanner, key| {
        let value = scanner.value()?;
        found.push((key.decode_lossy().into_owned(), value));
        Ok(value.size)
    })?;
    Ok(found)
}
