//! Comparison of recorded and actual values as `testdata/conformance/README.md` defines it: numbers by value, texts
//! by code point, lists in order, objects by their set of keys.
//!
//! Read actual values with [`crate::exact::value`]; a usual parser can move a float to its neighbour.

use serde_json::{Number, Value};

/// All differences, each as one sentence that begins with the place.
pub fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("$", expected, actual, &mut found);
    found
}

/// Differences between a recorded answer and an actual one, leaving out what may differ: the elapsed time, statistics
/// that the contract does not know, and the order and adapter-specific keys of the usage list.
pub fn compare_answer(expected_answer: &Value, actual_answer: &Value) -> Vec<String> {
    let (mut expected, mut actual) = (expected_answer.clone(), actual_answer.clone());
    let expected_usage = take_usage(&mut expected);
    let actual_usage = take_usage(&mut actual);
    drop_unknown_stats(&expected, &mut actual);
    let mut found = differences(&expected, &actual);
    found.extend(compare_usage(expected_usage, actual_usage));
    found
}

fn compare(place: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => compare(&format!("{place}.{key}"), value, other, found),
                    None => found.push(format!("{place}: key {key:?} is missing")),
                }
            }
            let unexpected = right.keys().filter(|key| !left.contains_key(*key));
            found.extend(unexpected.map(|key| format!("{place}: key {key:?} is not expected")));
        }
        (Value::Array(left), Value::Array(right)) => {
            if left.len() != right.len() {
                found.push(format!("{place}: expected {} items, got {}", left.len(), right.len()));
            }
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                compare(&format!("{place}[{index}]"), value, other, found);
            }
        }
        (Value::Number(left), Value::Number(right)) if same_number(left, right) => {}
        _ if expected == actual => {}
        _ => found.push(format!("{place}: expected {}, got {}", shown(expected), shown(actual))),
    }
}

/// Integers exactly, everything else as floats; integers too big for 64 bits have already become floats.
fn same_number(left: &Number, right: &Number) -> bool {
    let integer =
        |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left.as_f64() == right.as_f64(),
    }
}

fn shown(value: &Value) -> String {
    const LIMIT: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// Takes `stats.usage` and `stats.elapsed_ms` out of an answer.
fn take_usage(answer: &mut Value) -> Option<Value> {
    let stats = answer.get_mut("stats")?.as_object_mut()?;
    stats.shift_remove("elapsed_ms");
    stats.shift_remove("usage")
}

fn drop_unknown_stats(expected: &Value, actual: &mut Value) {
    let known = expected["stats"].as_object();
    if let (Some(known), Some(stats)) = (known, actual.get_mut("stats").and_then(Value::as_object_mut)) {
        stats.retain(|key, _| known.contains_key(key));
    }
}

fn compare_usage(expected: Option<Value>, actual: Option<Value>) -> Vec<String> {
    let (Some(Value::Array(expected)), Some(Value::Array(mut actual))) = (&expected, actual.clone()) else {
        let same = expected == actual;
        return if same { Vec::new() } else { vec!["$.stats.usage: not a list on both sides".to_owned()] };
    };
    let plain = |mut entry: Value| {
        if let Some(fields) = entry.as_object_mut() {
            fields.retain(|key, _| key != "time" && key != "type");
        }
        entry
    };
    actual = actual.into_iter().map(plain).collect();
    let mut found = Vec::new();
    for entry in expected.iter().cloned().map(plain) {
        match actual.iter().position(|other| differences(&entry, other).is_empty()) {
            Some(at) => drop(actual.swap_remove(at)),
            None => found.push(format!("$.stats.usage: {} is missing", shown(&entry))),
        }
    }
    found.extend(actual.iter().map(|entry| format!("$.stats.usage: {} is not expected", shown(entry))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_compared_by_value() {
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(differences(&json!([1, -0.0, 0.1]), &json!([1.0, 0, 0.1])).is_empty());
        assert!(differences(&number("1000000000000000000000000000000"), &number("1e30")).is_empty());
        assert_eq!(differences(&number("9007199254740993"), &number("9007199254740992")).len(), 1);
        assert_eq!(differences(&json!(1), &json!(true)).len(), 1);
    }

    #[test]
    fn objects_by_key_set_and_lists_in_order() {
        assert!(differences(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})).is_empty());
        let found = differences(&json!({"a": [1, 2], "b": null}), &json!({"a": [2, 1, 3], "c": null}));
        let expected = [
            "$.a: expected 2 items, got 3",
            "$.a[0]: expected 1, got 2",
            "$.a[1]: expected 2, got 1",
            "$: key \"b\" is missing",
            "$: key \"c\" is not expected",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_are_not_normalised() {
        assert_eq!(differences(&json!("é"), &json!("e\u{301}")).len(), 1);
    }

    #[test]
    fn an_answer_may_know_more_statistics_but_not_less() {
        let expected = json!({"changed": false, "stats": {"requests": 2, "usage": []}});
        let actual =
            json!({"changed": false, "stats": {"requests": 2, "usage": [], "elapsed_ms": 7, "skipped": []}});
        assert!(compare_answer(&expected, &actual).is_empty());
        let actual = json!({"changed": false, "stats": {"usage": []}});
        assert_eq!(compare_answer(&expected, &actual), ["$.stats: key \"requests\" is missing"]);
        let actual = json!({"changed": false, "extra": 1, "stats": {"requests": 2, "usage": []}});
        assert_eq!(compare_answer(&expected, &actual), ["$: key \"extra\" is not expected"]);
    }

    #[test]
    fn usage_is_a_multiset() {
        let answer = |usage: Value| json!({"stats": {"usage": usage}});
        let one = json!({"input_tokens": 1, "output_tokens": 1});
        let two = json!({"input_tokens": 2, "output_tokens": 1, "time": 0.5, "type": "classifier"});
        let expected = answer(json!([one, two, one]));
        assert!(compare_answer(&expected, &answer(json!([two, one, one]))).is_empty());
        assert_eq!(compare_answer(&expected, &answer(json!([two, one, two]))).len(), 2);
        assert_eq!(compare_answer(&expected, &answer(json!([one, two]))).len(), 1);
        assert_eq!(compare_answer(&expected, &json!({"stats": {}})).len(), 1);
    }
}
