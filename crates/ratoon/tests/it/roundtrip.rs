//! Input that is hard to write back as it was: whatever stands around a cut result comes out byte for byte.

use ratoon::{Document, Overrides};

use crate::support::{always, call, cut, history, long, message, pair, parsed, request, result, run, text};

/// Cuts the result of `c1`, whose output is written `OUT`, out of messages, and expects exactly that change.
fn only_out_changes(messages: &str) {
    assert_eq!(messages.matches("OUT").count(), 1, "one output to cut");
    let before = request(&messages.replace("OUT", &long()), "");
    let given = parsed(before.as_bytes());
    let ran = run(before.as_bytes(), &always(0.0));
    assert_eq!(ran.messages, messages.replace("OUT", &cut("c1")));
    assert_eq!(String::from_utf8_lossy(&ran.document), request(&messages.replace("OUT", &cut("c1")), ""));
    assert_eq!(ran.violations(&given), [""; 0]);
    let after = parsed(&ran.document);
    let stats = ran.verdict().stats;
    assert_eq!((stats.chars_before, stats.chars_after), (given.snapshot.size(), after.snapshot.size()));
}

/// The same with a fragment in every place where a history can hold foreign values.
fn survives_everywhere(value: &str) {
    let cut_pair = pair(r#""c1""#, "OUT");
    let around = [
        // An unknown field of a message, in front of the content and behind it.
        format!(r#"[{{"x":{value},"role":"user","content":[]}},{}]"#, message("assistant", &[&cut_pair])),
        format!(
            r#"[{{"role":"user","content":[]}},{{"role":"assistant","content":[{cut_pair}],"x":{value}}}]"#
        ),
        // Blocks of no known type and of none at all.
        history(&[&format!(r#"{{"type":"x","v":{value}}}"#), &cut_pair, &format!(r#"{{"v":[{value}]}}"#)]),
        // Unknown fields of a call, of a kept result and of the cut one.
        history(&[&cut_pair.replacen('{', &format!(r#"{{"x":{value},"#), 1)]),
        history(&[&cut_pair, &pair(r#""c2""#, value)]),
        history(&[
            &cut_pair.replace(r#""output":OUT"#, &format!(r#""x":{value},"output":OUT,"y":[{value}]"#))
        ]),
        history(&[&cut_pair.replace(r#","state":"success""#, &format!(r#","state":"success","x":{value}"#))]),
        // Ids, names and states that are no text.
        history(&[&cut_pair, &result(value, "1"), &call(value, "{}")]),
        history(&[&cut_pair, &pair(r#""c3""#, "\"\"").replace(r#""grep""#, value)]),
    ];
    for messages in around {
        only_out_changes(&messages);
    }
}

#[test]
fn numbers_keep_their_spelling() {
    for number in [
        "123456789012345678901234567890",
        "-123456789012345678901234567890",
        "0.1000000000000000055",
        "1E+2",
        "1e-7",
        "-0",
        "-0.0",
        "1e999",
        "-1e999",
        "1.50",
        "0.00000000000000000000000000000000000000001",
        "9007199254740993",
    ] {
        survives_everywhere(number);
    }
}

#[test]
fn escapes_and_half_surrogates_keep_their_spelling() {
    for text in [
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ud83d\ud83d\ude00""#,
        r#""\ud83d\ude00""#,
        r#""\ud83d\u0041""#,
        r#""\u00e9 \/ \u002F \b\f\n\r\t \u0000 \u001F""#,
        "\"\u{2028}\u{feff}\u{7f}\u{10ffff}\"",
        r#"{"\ud800":1,"\ud801":2,"":{"":""}}"#,
    ] {
        survives_everywhere(text);
    }
}

#[test]
fn white_space_and_structure_keep_their_spelling() {
    for value in ["[ ]", "{ }", "[\r\n\t1 ,\r\n2 ]", "{ \"a\" :\t{ \"b\" : [ ] } }", "null", "true", "false"]
    {
        survives_everywhere(value);
    }
}

#[test]
fn duplicate_keys_all_stay() {
    survives_everywhere(r#"{"a":1,"a":1.0,"\u0061":"1","b":{"a":{},"a":[]}}"#);
    let many: Vec<String> = (0..50).map(|n| format!(r#""k{}":{n}"#, n % 3)).collect();
    survives_everywhere(&format!("{{{}}}", many.join(",")));
    let pair = pair(r#""c1""#, "OUT");
    only_out_changes(&format!(
        r#"[{},{{"role":"user","role":"assistant",{},"content":[{pair}],{}}}]"#,
        message("user", &[]),
        many.join(","),
        many.join(",")
    ));
}

#[test]
fn of_two_outputs_the_last_one_counts() {
    let block = result(r#""c1""#, "OUT");
    let first = block.replace(r#""type":"tool_result""#, r#""type":"tool_result","output":"short""#);
    only_out_changes(&history(&[&call(r#""c1""#, "{}"), &first]));
    // The last one is short: nothing to cut, however long the first one is.
    let long_first = first
        .replace("OUT", "\"short\"")
        .replace(r#""output":"short","id""#, &format!(r#""output":{},"id""#, long()));
    let messages = history(&[&call(r#""c1""#, "{}"), &long_first]);
    assert!(messages.contains(&long()));
    let ran = run(request(&messages, "").as_bytes(), &always(0.0));
    assert_eq!(ran.decision("c1").reason, "no_savings");
    assert_eq!(ran.messages, messages);
}

#[test]
fn of_two_contents_the_last_one_counts() {
    let shadowed = format!(r#""content":[{},{}]"#, pair(r#""c1""#, "\"shadow\""), text("a shadow"));
    only_out_changes(&format!(
        r#"[{},{{"role":"assistant",{shadowed},"content":[{}]}}]"#,
        message("user", &[]),
        pair(r#""c1""#, "OUT")
    ));
}

#[test]
fn of_two_message_lists_the_last_one_counts() {
    let lists = |output: &str| {
        let shadow = history(&[&pair(r#""c1""#, &long())]);
        let counted = history(&[&pair(r#""c1""#, output), &text("the last one")]);
        request(&format!(r#"{shadow} , "messages" : {counted}"#), "")
    };
    let given = lists(&long());
    let ran = run(given.as_bytes(), &always(0.0));
    assert_eq!(ran.messages, history(&[&pair(r#""c1""#, &cut("c1")), &text("the last one")]));
    assert_eq!(String::from_utf8_lossy(&ran.document), lists(&cut("c1")));
    assert_eq!(ran.violations(&parsed(given.as_bytes())), [""; 0]);
}

#[test]
fn other_duplicates_let_the_last_one_count_too() {
    let block = |output: &str| {
        pair(r#""c1""#, output)
            .replace(r#""state":"success""#, r#""state":"error","state":"success""#)
            .replace(r#""name":"grep""#, r#""name":"other","name":"grep""#)
            .replace(r#""id":"c1""#, r#""id":7,"id":"c9","id":"c1""#)
            .replace(r#""type":"tool_"#, r#""type":"text","type":"tool_"#)
            .replace(r#""input":"#, r#""input":"no JSON","input":"#)
    };
    only_out_changes(&history(&[&block("OUT")]));
}

#[test]
fn nesting_of_any_depth_passes_through() {
    const DEPTH: usize = 5000;
    let lists = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    let cut_pair = pair(r#""c1""#, "OUT");
    for deep in [&lists, &objects] {
        only_out_changes(&history(&[&cut_pair.replacen('{', &format!(r#"{{"metadata":{deep},"#), 1)]));
        only_out_changes(&history(&[&cut_pair, &pair(r#""c2""#, deep)]));
    }
    // In a call's arguments, which are written again for the model.
    let input = format!(r#"{{"a":{lists},"b":{objects}}}"#);
    only_out_changes(&history(&[&call(r#""c1""#, &input), &result(r#""c1""#, "OUT")]));
    let messages = history(&[&call(r#""c1""#, &input), &result(r#""c1""#, &long())]);
    let ran = run(
        request(
            &messages,
            r#","evidence_chars":100000,"max_state_tokens":100000,"max_request_tokens":200000"#,
        )
        .as_bytes(),
        &always(0.0),
    );
    let state: serde_json::Value = serde_json::from_str(&ran.states[0]).expect("a state is JSON");
    assert_eq!(state["evidence_units"][0]["input"], input);
}

#[test]
fn a_byte_order_mark_and_line_ends_stay() {
    let document = |output: &str| {
        let spread = request(&history(&[&pair(r#""c1""#, output)]), "")
            .replace(r#","goal""#, ",\r\n\t\"goal\"")
            .replace(r#","id":"c1""#, " ,\r\n \"id\" :\r\n\"c1\"")
            .replace("]}", "\r\n]\r\n}");
        format!("\u{feff}\r\n{spread}\r\n\r\n")
    };
    let given = document(&long());
    assert!(given.matches("\r\n").count() > 10);
    let ran = run(given.as_bytes(), &always(0.0));
    assert_eq!(String::from_utf8_lossy(&ran.document), document(&cut("c1")));
    assert_eq!(ran.violations(&parsed(given.as_bytes())), [""; 0]);
}

#[test]
fn a_bare_list_with_a_byte_order_mark_is_written_back_whole() {
    let list = format!("\u{feff} {} \n", history(&[&pair(r#""c1""#, &long())]));
    let mut overrides = Overrides::default();
    overrides.options.push(("preserve_recent_messages".to_owned(), "0".to_owned()));
    let document = Document::parse(list.as_bytes(), &overrides).expect("a message list");
    let Document::Transcript(bare) = document else { panic!("a list is no request") };
    let ran =
        crate::support::run_with(&bare, None, &ratoon::Settings::default(), &always(0.0)).expect("no budget");
    // Nothing is archived, so nothing goes.
    assert_eq!(String::from_utf8_lossy(&ran.document), list);
    assert_eq!(ran.verdict().stats.protections(), [("t1", "no_reference")]);
}

#[test]
fn a_result_of_thirty_megabytes_is_cut() {
    const LINES: usize = 1_500_000;
    let output = format!(r#""{}end""#, r"line é of a big log\n".repeat(LINES));
    assert!(output.len() > 30_000_000);
    let document = request(&history(&[&pair(r#""c1""#, &output)]), r#","preview_chars":20"#);
    let ran = run(document.as_bytes(), &always(0.0));
    let excerpt = r#""line é of\n…\n log\nend\n[Compacted output. Recover from: archive/c1]""#;
    assert_eq!(ran.messages, history(&[&pair(r#""c1""#, excerpt)]));
    let stats = ran.verdict().stats;
    // Every line is 20 characters; the line end takes two in JSON.
    let saved = (LINES * 21 + 3 + 2) as u64 - 71;
    assert_eq!(stats.chars_before - stats.chars_after, saved);
}

#[test]
fn a_hundred_thousand_blocks_pass() {
    let tiny = vec![r#"{"type":"text","text":""},{}"#; 49_000].join(",");
    let pairs: Vec<String> = (0..1000).map(|n| pair(&format!(r#""p{n}""#), "\"1\"")).collect();
    let pairs = pairs.join(",");
    let blocks = |output: &str| history(&[&tiny, &pairs, &pair(r#""c1""#, output), &tiny]);
    let ran = run(request(&blocks(&long()), "").as_bytes(), &always(0.0));
    assert_eq!(ran.messages, blocks(&cut("c1")));
    let verdict = ran.verdict();
    assert_eq!(verdict.decisions.len(), 1001);
    assert_eq!(verdict.stats.protections().len(), 1000);
    assert_eq!(verdict.decisions[1000].id, "t1001");
}

#[test]
fn ids_are_equal_when_they_mean_the_same() {
    for (call_id, result_id) in
        [(r#""\u00631""#, r#""c1""#), (r#""c1""#, r#""\u0063\u0031""#), (r#""\u00631""#, r#""c\u0031""#)]
    {
        only_out_changes(&history(&[&call(call_id, "{}"), &result(result_id, "OUT")]));
    }
    // A third spelling makes the id ambiguous.
    let messages = history(&[&pair(r#""c1""#, &long()), &result(r#""\u00631""#, &long())]);
    let ran = run(request(&messages, "").as_bytes(), &always(0.0));
    assert_eq!(ran.messages, messages);
    assert_eq!(ran.verdict().stats.skipped(), [(r#""c1""#, "ambiguous_id")]);
}

#[test]
fn a_decision_spells_the_id_as_the_call_does() {
    let messages = history(&[&call(r#""\u00631""#, "{}"), &result(r#""c1""#, &long())]);
    let ran = run(request(&messages, "").as_bytes(), &always(0.0));
    assert!(ran.answer.contains(r#""call_id":"\u00631","action":"preview""#), "{}", ran.answer);
    assert_eq!(ran.decision("c1").source_ref.as_deref(), Some("archive/c1"));
}

#[test]
fn text_that_is_not_unicode_is_never_cut() {
    let broken = format!(r#""\ud800{}"#, &long()[1..]);
    let block = format!(r#"[{{"type":"text","text":{}}},{{"type":"text","text":{broken}}}]"#, long());
    for output in [broken.as_str(), &block] {
        let messages = history(&[&pair(r#""c1""#, output)]);
        let ran = run(request(&messages, "").as_bytes(), &always(0.0));
        assert_eq!(ran.messages, messages);
        assert_eq!(ran.states, [""; 0], "nothing is asked");
        assert_eq!(ran.verdict().stats.protections(), [("t1", "not_unicode")]);
    }
}

#[test]
fn half_a_surrogate_in_an_id_or_a_tool_keeps_the_result() {
    let messages =
        history(&[&pair(r#""c1\ud800""#, &long()), &pair(r#""c2""#, &long()).replace("grep", r"grep\ud800")]);
    let ran = run(request(&messages, "").as_bytes(), &always(0.0));
    assert_eq!(ran.messages, messages);
    let stats = ran.verdict().stats;
    assert_eq!(stats.skipped(), [(r#""c1\ud800""#, "unusable_id"), (r#""c1\ud800""#, "unusable_id")]);
    assert_eq!(stats.protections(), [("t1", "tool_not_eligible")]);
}

#[test]
fn half_a_surrogate_in_what_was_said_reaches_the_model_as_a_replacement() {
    let messages =
        history(&[&pair(r#""c1""#, &long())]).replace("The build fails.", r"The \ud800 build fails.");
    let ran = run(request(&messages, "").as_bytes(), &always(0.0));
    let state: serde_json::Value = serde_json::from_str(&ran.states[0]).expect("a state is Unicode");
    assert_eq!(state["task_context"][0]["text"], "The \u{fffd} build fails. Find out why.");
    assert!(ran.messages.contains(r"The \ud800 build fails."));
}
