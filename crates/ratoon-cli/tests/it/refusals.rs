//! Every class of bad input and usage: exit code 2, one line that says what, nothing on standard output.

use crate::support::{Place, fed, messages, shown};

/// Runs a command that must be refused as wrong usage, without a word on standard output.
fn refused(place: &Place, arguments: &str) -> String {
    let output = place.ratoon(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {}", shown(&output));
    assert!(output.stdout.is_empty(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn files_that_cannot_be_read() {
    let place = Place::new();
    place.write("directory/file", "").write("empty.json", "").write("binary", b"ELF\x00\xff\xfe\x01");
    insta::assert_snapshot!(refused(&place, "compact none.json"), @"error: there is no file none.json");
    insta::assert_snapshot!(refused(&place, "compact directory"), @"error: directory is a directory, not a file");
    insta::assert_snapshot!(refused(&place, "compact empty.json"), @"
    error: empty.json is empty
    hint: a request object or a list of messages is expected
    ");
    insta::assert_snapshot!(refused(&place, "compact binary"), @"error: binary is not UTF-8 text (byte 4); is it a binary file?");
}

#[test]
fn files_that_hold_something_else() {
    let place = Place::new();
    place
        .write("broken.json", "[\n  {\"role\": \"user\", \"content\": [}\n]")
        .write("number.json", "5")
        .write("lines.jsonl", "{\"role\":\"user\"}\n{\"role\":\"user\"}\n")
        .write("object.json", "{}");
    insta::assert_snapshot!(refused(&place, "compact broken.json"), @"error: broken.json is not JSON: a value is expected here (line 2, column 32)");
    insta::assert_snapshot!(refused(&place, "compact number.json"), @"
    error: number.json is neither a request object nor a list of messages
    hint: a request object or a list of messages is expected
    ");
    insta::assert_snapshot!(refused(&place, "compact lines.jsonl"), @"
    error: lines.jsonl is not JSON: text follows after the end of the document (line 2, column 1)
    hint: this looks like one JSON value a line; put the messages into one list
    ");
    insta::assert_snapshot!(refused(&place, "compact object.json"), @"
    error: object.json is not a valid request
      messages: is missing
    hint: a request object or a list of messages is expected
    ");
}

#[test]
fn every_problem_of_a_request_has_its_place() {
    let place = Place::new();
    place.write(
        "request.json",
        r#"{"messages":[{"role":"user","content":[]},{"role":"tool","content":"secret"}],"goal":7,
            "source_refs":{"a":" "},"optionz":{},
            "options":{"drop_threshold":2,"max_concurrency":0,"preview":"regions","previewchars":3}}"#,
    );
    insta::assert_snapshot!(refused(&place, "compact request.json"), @"
    error: request.json is not a valid request
      messages[1].role: must be user, assistant or system (AgentScope messages keep tool results as blocks of assistant messages)
      messages[1].content: must be a list of content block objects
      goal: must be text
      source_refs.a: a reference must not be blank
      optionz: is not a field of a request
      options.drop_threshold: must be at most 1
      options.max_concurrency: must be greater than 0
      options.preview: regions is not available in this version; use head_tail
      options.previewchars: is not an option
    ");
    place.write("chat.json", r#"[{"role":"user","content":"secret"},{"role":"tool","content":"secret"}]"#);
    insta::assert_snapshot!(refused(&place, "compact chat.json"), @"
    error: chat.json is not a valid request
      messages[0].content: must be a list of content block objects
      messages[1].role: must be user, assistant or system (AgentScope messages keep tool results as blocks of assistant messages)
      messages[1].content: must be a list of content block objects
    hint: known message formats: agentscope
    ");
    let many = format!("[{}]", vec!["{}"; 30].join(","));
    place.write("many.json", many);
    let text = refused(&place, "compact many.json");
    assert_eq!(text.lines().count(), 1 + 20 + 1 + 1, "{text}");
}

#[test]
fn standard_input_is_named() {
    let place = Place::new();
    let output = fed(place.ratoon("compact -"), b"[1,]");
    insta::assert_snapshot!(shown(&output), @"
    exit 2
    --- stdout
    --- stderr
    error: standard input is not JSON: a value is expected here (line 1, column 4)
    ");
}

#[test]
fn options_that_do_not_fit() {
    let place = Place::new();
    place.write("run.json", messages(&[("a", "read", "text")]));
    insta::assert_snapshot!(
        refused(&place, "compact run.json --option preview_chars=-1 --option foo=bar --option recent_unit=day"), @"
    error: the options are not valid
      options.preview_chars: must be at least 0
      options.foo: is not an option
      options.recent_unit: must be one of: message, step
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --tools read,"), @"
    error: --tools holds an empty name
    hint: use --tools A,B or --tools all
    ");
    let output = place.ratoon("compact run.json --tools").arg("").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    insta::assert_snapshot!(refused(&place, "compact run.json --option preview_chars"), @"
    error: invalid value 'preview_chars' for '--option <KEY=VALUE>': use KEY=VALUE, for example drop_threshold=0.2

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --option max_output_tokens=10"), @"
    error: max_output_tokens needs a token counter
    hint: add --token-counter chars4
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --model embedded"), @"
    error: invalid value 'embedded' for '--model <BACKEND>'
      [possible values: rules, agentscope, typesafe]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --token-counter tiktoken"), @"
    error: invalid value 'tiktoken' for '--token-counter <NAME>'
      [possible values: chars4, json_chars]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --format openai_chat"), @"
    error: invalid value 'openai_chat' for '--format <F>'
      [possible values: auto, agentscope]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, "compact"), @"
    error: the following required arguments were not provided:
      <FILE>

    Usage: ratoon compact <FILE>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --model typesafe"), @"error: the decision model agentscope needs a key: set DECISION_MODEL_API_KEY");
    insta::assert_snapshot!(refused(&place, "compact run.json --model typesafe --base-url http://example.com"), @"error: the base URL of the decision model agentscope is plain http to another machine, which would show the key and the evidence to everyone in between: set DECISION_MODEL_BASE_URL to an https address");
}

#[test]
fn nothing_at_all_shows_the_help() {
    let place = Place::new();
    assert!(refused(&place, "").contains("Usage: ratoon <COMMAND>"));
}
