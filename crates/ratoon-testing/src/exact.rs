//! JSON values whose floats are the nearest ones to the written numbers.
//!
//! serde_json may read a float one unit off unless its feature `float_roundtrip` is on: `0.09999999999999999` becomes
//! 0.1, which is on the other side of a threshold. The feature is not turned on here, because Cargo would then turn it
//! on in the code under test as well and hide the fault there.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::document::{Object, decoded, raw_items};

/// Reads a JSON text; panics if it is none, or if a text in it holds a lone surrogate.
pub fn value(json: &str) -> Value {
    let json = json.trim_ascii();
    read(json)
        .unwrap_or_else(|| panic!("not JSON, or not Unicode: {}", json.chars().take(200).collect::<String>()))
}

/// For `deserialize_with`, where the deserializer reads from a text.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(value(raw.get()))
}

fn read(json: &str) -> Option<Value> {
    match json.as_bytes().first()? {
        b'{' => {
            let object = Object::read(json)?;
            let field = |(key, raw): &(Option<String>, &str)| Some((key.clone()?, read(raw)?));
            object.fields().iter().map(field).collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
        b'[' => raw_items(json)?.iter().map(|item| read(item.get())).collect::<Option<_>>().map(Value::Array),
        b'"' => decoded(json).map(Value::String),
        b'-' | b'0'..=b'9' => number(json).map(Value::Number),
        _ => serde_json::from_str(json).ok(),
    }
}

/// Integers beyond 64 bits become the nearest float, as in serde_json.
fn number(json: &str) -> Option<Number> {
    let written: &RawValue = serde_json::from_str(json).ok()?;
    let text = written.get();
    // A negative zero is a float: as an integer it would lose its sign.
    if text != "-0" {
        if let Ok(integer) = text.parse::<i64>() {
            return Some(integer.into());
        }
        if let Ok(integer) = text.parse::<u64>() {
            return Some(integer.into());
        }
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_the_nearest_ones() {
        for text in ["0.09999999999999999", "0.9321699311256367", "4.0906234269162044e-12", "5e-324", "-0.0"]
        {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(value(text).as_f64().map(f64::to_bits), Some(expected.to_bits()), "{text}");
        }
    }

    #[test]
    fn everything_else_is_as_usual() {
        let text =
            r#" {"b": [1, -2, 18446744073709551615, 1e3, null, true, "\u00e9\n"], "a": {}, "b": [ ]} "#;
        assert_eq!(value(text), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(value("1000000000000000000000000000000"), value("1e30"));
        assert_eq!(value("[3, \"x\"]").to_string(), "[3,\"x\"]");
    }

    #[test]
    fn what_is_not_json_panics() {
        for text in ["", "{", "01", "1e999", "[1,]", "NaN", r#""\ud800""#] {
            assert!(std::panic::catch_unwind(|| value(text)).is_err(), "{text}");
        }
    }
}
