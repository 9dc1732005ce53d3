//! The System One wire: binary questions about one state become `noul` questions, and the reply becomes answers.
//!
//! A malformed answer costs its own question only; a reply that is malformed as a whole fails the request. Whether
//! a number may be used is not decided here but in `ratoon`, for all wires.

mod bare_words;
mod members;

use std::fmt;

use ratoon::model::{Decide, Reply};
use ratoon::{Answer, DecisionModel, DecisionRequest, FailureKind, ModelError};
use serde_json::value::RawValue;

use crate::http::{Client, Received};
use bare_words::without_bare_words;
use members::Members;

/// A System One model behind HTTP.
pub struct SystemOne {
    name: &'static str,
    /// The provider's name of the model, as JSON.
    model: String,
    client: Client,
}

impl SystemOne {
    /// Where System One is served if nothing else is said.
    pub const DEFAULT_BASE_URL: &str = "https://api.typesafe.ai";
    /// The model that is asked if nothing else is said.
    pub const DEFAULT_MODEL: &str = "jev-latest";

    pub(crate) fn new(name: &'static str, model: &str, client: Client) -> SystemOne {
        SystemOne { name, model: json_text(model), client }
    }
}

impl DecisionModel for SystemOne {
    fn name(&self) -> &str {
        self.name
    }

    fn decide<'a>(&'a self, request: &'a DecisionRequest<'a>) -> Decide<'a> {
        Box::pin(async move {
            let Received { body, attempts } = self.client.post(encode(request, &self.model)).await?;
            decode(&body).map_err(|what| {
                let message = format!("the reply of the decision model is not System One: {what}");
                ModelError::new(FailureKind::Protocol, message, attempts)
            })
        })
    }
}

impl fmt::Debug for SystemOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemOne")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("client", &self.client)
            .finish()
    }
}

/// The request body. `model` is JSON; the state is spliced in as it is.
fn encode(request: &DecisionRequest<'_>, model: &str) -> String {
    let mut body = String::with_capacity(request.state.len() + request.questions.len() * 1024 + 128);
    body.push_str("{\"state\":");
    body.extend(request.state.pieces());
    body.push_str(",\"model\":");
    body.push_str(model);
    body.push_str(",\"questions\":{");
    for (at, question) in request.questions.iter().enumerate() {
        if at > 0 {
            body.push(',');
        }
        body.push_str(&json_text(question.id));
        body.push_str(":{\"type\":\"noul\",\"instructions\":");
        body.push_str(&json_text(&question.instructions));
        if let Some(criteria) = &question.criteria {
            body.push_str(",\"criteria\":{\"true\":");
            body.push_str(&json_text(&criteria.when_true));
            body.push_str(",\"false\":");
            body.push_str(&json_text(&criteria.when_false));
            body.push('}');
        }
        body.push('}');
    }
    body.push_str("}}");
    body
}

fn json_text(text: &str) -> String {
    serde_json::to_string(text).expect("a text can always be written as JSON")
}

/// What a 2xx body says.
///
/// # Errors
/// What is wrong with the body as a whole, in words that quote nothing of it.
fn decode(body: &[u8]) -> Result<Reply, &'static str> {
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8 text")?;
    match serde_json::from_str::<&RawValue>(text) {
        Ok(body) => decode_json(body),
        Err(_) => {
            let text = without_bare_words(text).ok_or("it is not JSON")?;
            decode_json(serde_json::from_str(&text).map_err(|_| "it is not JSON")?)
        }
    }
}

fn decode_json(body: &RawValue) -> Result<Reply, &'static str> {
    let body = Members::of(body).ok_or("it is not a JSON object")?;
    if !body.last("model").is_some_and(is_text) {
        return Err("it names no model");
    }
    let usage = body.last("usage").and_then(Members::of).ok_or("it has no usage object")?;
    let usage = usage_object(&usage).ok_or("its usage counts are not integers")?;
    let mut answers = Vec::new();
    // All of them, should the member stand there twice, so that contradictions come to light.
    for value in body.all("answers") {
        let named = Members::of(value).ok_or("its answers are not a JSON object")?;
        answers.extend(named.into_iter().map(|(id, value)| (id, answer(value))));
    }
    Ok(Reply { answers, usage: Some(usage) })
}

/// One answer: a number on an answer of the type that was asked for, or nothing that could be used.
fn answer(value: &RawValue) -> Answer {
    let Some(members) = Members::of(value) else { return Answer::Unusable };
    let is_noul = members.only("type").is_some_and(|value| is_the_text(value, "noul"));
    let number = members.only("noul").filter(|value| is_noul && is_number(value));
    // The standard library rounds correctly; serde_json can be off by one unit in the last place.
    number.and_then(|number| number.get().parse().ok()).map_or(Answer::Unusable, Answer::Binary)
}

/// The two counts that are reported, with the spelling of the provider: they may have any size.
fn usage_object(usage: &Members<'_>) -> Option<Box<RawValue>> {
    let count = |name| match usage.last(name) {
        None => Some("null"),
        Some(count) => Some(count.get()).filter(|count| *count == "null" || is_integer(count)),
    };
    let (input, output) = (count("input_tokens")?, count("output_tokens")?);
    let usage = format!("{{\"input_tokens\":{input},\"output_tokens\":{output}}}");
    Some(RawValue::from_string(usage).expect("names and numbers make a JSON object"))
}

fn is_text(value: &RawValue) -> bool {
    value.get().starts_with('"')
}

fn is_the_text(value: &RawValue, expected: &str) -> bool {
    is_text(value) && serde_json::from_str::<String>(value.get()).is_ok_and(|text| text == expected)
}

fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// True for a JSON number without fraction and exponent.
fn is_integer(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answers: &str) -> String {
        format!(r#"{{"model":"m","answers":{answers},"usage":{{"input_tokens":1,"output_tokens":2}}}}"#)
    }

    fn answers(text: &str) -> Vec<(String, Answer)> {
        decode(body(text).as_bytes()).expect("a reply").answers
    }

    fn only(answer: &str) -> Answer {
        answers(&format!(r#"{{"t1":{answer}}}"#))[0].1
    }

    fn refusal(body: &str) -> &'static str {
        decode(body.as_bytes()).expect_err("not a reply")
    }

    #[test]
    fn numbers_are_read_exactly() {
        for (number, value) in [
            ("0", 0.0),
            ("1", 1.0),
            ("-0.0", -0.0),
            ("2.5e-1", 0.25),
            ("0.09999999999999999", 0.09999999999999999),
            ("0.5000000000000001", 0.5000000000000001),
            ("1.5", 1.5),
            ("-0.25", -0.25),
            ("1e400", f64::INFINITY),
        ] {
            assert_eq!(
                only(&format!(r#"{{"type":"noul","noul":{number}}}"#)),
                Answer::Binary(value),
                "{number}"
            );
        }
        let huge = "9".repeat(400);
        assert_eq!(only(&format!(r#"{{"type":"noul","noul":{huge}}}"#)), Answer::Binary(f64::INFINITY));
    }

    #[test]
    fn whatever_else_stands_there_is_unusable_and_alone() {
        for bad in [
            r#"{"type":"noul","noul":"0.01"}"#,
            r#"{"type":"noul","noul":"NaN"}"#,
            r#"{"type":"noul","noul":true}"#,
            r#"{"type":"noul","noul":null}"#,
            r#"{"type":"noul","noul":[0.2]}"#,
            r#"{"type":"noul","noul":NaN}"#,
            r#"{"type":"noul","noul":Infinity}"#,
            r#"{"type":"noul","noul":-Infinity}"#,
            r#"{"type":"noul"}"#,
            r#"{"noul":0.01}"#,
            r#"{"type":null,"noul":0.01}"#,
            r#"{"type":"choice","choice":"a","noul":0.01}"#,
            r#"{"type":"refusal"}"#,
            r#"{"type":"noul","noul":0.01,"noul":0.9}"#,
            r#"{"type":"choice","type":"noul","noul":0.01}"#,
            "0.01",
            "[0.01]",
            "null",
            "\"noul\"",
            "NaN",
        ] {
            let found = answers(&format!(r#"{{"t1":{bad},"t2":{{"type":"noul","noul":0.125,"more":[]}}}}"#));
            let expected = [("t1".to_owned(), Answer::Unusable), ("t2".to_owned(), Answer::Binary(0.125))];
            assert_eq!(found, expected, "{bad}");
        }
    }

    #[test]
    fn texts_are_compared_as_decoded() {
        assert_eq!(only(r#"{"\u0074ype":"n\u006ful","noul":0.5}"#), Answer::Binary(0.5));
    }

    #[test]
    fn repeated_answers_are_all_reported() {
        let good = r#"{"type":"noul","noul":0.0}"#;
        assert_eq!(answers(&format!(r#"{{"t1":{good},"\u00741":{good}}}"#)).len(), 2);
        let twice =
            format!(r#"{{"model":"m","answers":{{"t1":{good}}},"answers":{{"t1":{good}}},"usage":{{}}}}"#);
        assert_eq!(decode(twice.as_bytes()).unwrap().answers.len(), 2);
    }

    #[test]
    fn absent_answers_are_no_answers() {
        let reply = decode(br#"{"model":"","usage":{}}"#).unwrap();
        assert!(reply.answers.is_empty());
        assert_eq!(reply.usage.unwrap().get(), r#"{"input_tokens":null,"output_tokens":null}"#);
    }

    #[test]
    fn usage_is_two_counts_of_any_size() {
        let usage = |usage: &str| {
            decode(format!(r#"{{"model":"m","usage":{usage}}}"#).as_bytes())
                .map(|reply| reply.usage.unwrap().get().to_owned())
        };
        let big = "1".repeat(5000);
        assert_eq!(
            usage(&format!(r#"{{"x":1,"output_tokens":-2,"input_tokens":{big}}}"#)).unwrap(),
            format!(r#"{{"input_tokens":{big},"output_tokens":-2}}"#)
        );
        for bad in ["1.0", "\"1\"", "true", "1e3", "[]", "{}", "NaN"] {
            assert_eq!(
                usage(&format!(r#"{{"input_tokens":{bad}}}"#)).unwrap_err(),
                "its usage counts are not integers"
            );
        }
        for bad in ["null", "[]", "1", "NaN"] {
            assert_eq!(usage(bad).unwrap_err(), "it has no usage object", "{bad}");
        }
    }

    #[test]
    fn bodies_that_are_wrong_as_a_whole_fail() {
        for bad in ["", "{bad", "<html></html>", "\u{feff}{}", ")]}',\n{}", "{}{}", "{\"model\":nan}"] {
            assert_eq!(refusal(bad), "it is not JSON", "{bad}");
        }
        assert_eq!(decode(b"{\"model\":\"\xff\"}").unwrap_err(), "it is not UTF-8 text");
        for bad in ["[]", "null", "1", "\"{}\"", "NaN"] {
            assert_eq!(refusal(bad), "it is not a JSON object", "{bad}");
        }
        for bad in [
            r#"{"usage":{}}"#,
            r#"{"model":null,"usage":{}}"#,
            r#"{"model":1,"usage":{}}"#,
            r#"{"error":{}}"#,
        ] {
            assert_eq!(refusal(bad), "it names no model", "{bad}");
        }
        assert_eq!(refusal(r#"{"model":"m"}"#), "it has no usage object");
        for bad in ["null", "[]", "\"{}\"", "NaN"] {
            assert_eq!(refusal(&body(bad)), "its answers are not a JSON object", "{bad}");
        }
    }

    #[test]
    fn deep_nesting_is_no_problem() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(only(&deep), Answer::Unusable);
    }
}
