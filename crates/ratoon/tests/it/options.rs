//! What a request may ask for beyond the contract, what is refused and how, and what an answer says about all that
//! was not asked.

use ratoon::count::{CountError, Messages, TokenCounter};
use ratoon::request::{Profile, RecentUnit};
use ratoon::{
    Answer, CompactionError, Document, FailureKind, ModelError, Options, Overrides, Request, RequestError,
    Settings,
};
use serde_json::{Value, json};

use crate::support::{
    Ran, always, call, cut, history, long, message, pair, parsed, reply, request, result, run, run_with, text,
};

/// A run of four steps in one message; the third step has two calls at once.
fn four_steps() -> String {
    let (call, result) = (|id: &str| call(id, "{}"), |id: &str| result(id, &long()));
    history(&[
        &text("One."),
        &call(r#""c1""#),
        &result(r#""c1""#),
        &text("Two."),
        &call(r#""c2""#),
        &result(r#""c2""#),
        r#"{"type":"thinking","thinking":"Both at once."}"#,
        &text("Three."),
        &call(r#""c3""#),
        &call(r#""c4""#),
        &result(r#""c4""#),
        &result(r#""c3""#),
        &call(r#""c5""#),
        &result(r#""c5""#),
    ])
}

/// Runs with a model that lets everything go, and answers which calls were cut back.
fn gone(messages: &str, options: &str) -> Vec<String> {
    let document = request(messages, options);
    let ran = run(document.as_bytes(), &always(0.0));
    assert_eq!(ran.violations(&parsed(document.as_bytes())), [""; 0]);
    let decisions = ran.verdict().decisions.into_iter();
    decisions.filter(|decision| decision.action == "preview").map(|decision| decision.call_id).collect()
}

fn protections(ran: &Ran) -> Vec<(String, String)> {
    let stats = ran.verdict().stats;
    stats.protections().iter().map(|(id, reason)| ((*id).to_owned(), (*reason).to_owned())).collect()
}

mod recent_unit {
    use super::*;

    #[test]
    fn messages_are_counted_unless_steps_are_asked_for() {
        let messages = four_steps();
        for options in
            [r#","preserve_recent_messages":2"#, r#","preserve_recent_messages":2,"recent_unit":"message""#]
        {
            assert_eq!(gone(&messages, options), [""; 0], "the one message is one of the newest two");
        }
        // The newest turn is the user's, the one before it the fourth step.
        let step = |preserve: u64| {
            gone(&messages, &format!(r#","recent_unit":"step","preserve_recent_messages":{preserve}"#))
        };
        assert_eq!(step(0), ["c1", "c2", "c3", "c4", "c5"]);
        assert_eq!(step(1), ["c1", "c2", "c3", "c4", "c5"]);
        assert_eq!(step(2), ["c1", "c2", "c3", "c4"]);
        assert_eq!(step(3), ["c1", "c2"]);
        assert_eq!(step(4), ["c1"]);
        assert_eq!(step(5), [""; 0]);
    }

    #[test]
    fn the_first_step_of_a_run_without_a_task_frames_it() {
        let blocks = [pair(r#""c1""#, &long()), pair(r#""c2""#, &long())];
        let messages = format!("[{}]", message("assistant", &[&blocks[0], &blocks[1]]));
        let ran = run(request(&messages, r#","recent_unit":"step""#).as_bytes(), &always(0.0));
        assert_eq!(protections(&ran), [("t1".to_owned(), "first_message".to_owned())]);
        assert_eq!(ran.decision("c2").reason, "low_relevance");
    }

    #[test]
    fn a_protected_message_protects_all_its_steps_and_no_other() {
        let steps = four_steps().replacen(r#"{"role":"assistant","#, r#"{"role":"assistant","id":"m1","#, 1);
        let more = message("assistant", &[&pair(r#""c6""#, &long())]);
        let messages = format!("{},{more}]", steps.strip_suffix(']').expect("a list"));
        let document = request(&messages, r#","recent_unit":"step""#)
            .replace(r#""goal""#, r#""protected_message_ids":["m1"],"goal""#);
        let ran = run(document.as_bytes(), &always(0.0));
        assert_eq!(ran.asked_calls(), ["c6"]);
        assert!(protections(&ran).iter().all(|(_, reason)| reason == "protected_message_id"));
    }
}

mod protect_unread {
    use super::*;

    fn unread(blocks: &[&str], options: &str) -> Vec<String> {
        gone(&history(blocks), &format!(r#","protect_unread":true{options}"#))
    }

    #[test]
    fn results_the_model_has_not_answered_stay() {
        let (first, last) = (pair(r#""c1""#, &long()), pair(r#""c2""#, &long()));
        assert_eq!(gone(&history(&[&first, &last]), ""), ["c1", "c2"]);
        assert_eq!(unread(&[&first, &last], ""), ["c1"]);
        assert_eq!(unread(&[&first, &last], r#","recent_unit":"step""#), ["c1"]);
        let ran =
            run(request(&history(&[&first, &last]), r#","protect_unread":true"#).as_bytes(), &always(0.0));
        assert_eq!(protections(&ran), [("t2".to_owned(), "unread".to_owned())]);
        assert_eq!(ran.decision("c2").reason, "protected");
    }

    #[test]
    fn all_results_of_one_round_are_unread_together() {
        let (one, two) = (r#""c1""#, r#""c2""#);
        let round = [call(one, "{}"), call(two, "{}"), result(two, &long()), result(one, &long())];
        assert_eq!(unread(&[&round[0], &round[1], &round[2], &round[3]], ""), [""; 0]);
        // A call behind a result shows that the model has read it.
        assert_eq!(unread(&[&round[0], &round[3], &round[1], &round[2]], ""), ["c1"]);
    }

    #[test]
    fn only_what_the_model_says_or_does_counts_as_reading() {
        let last = pair(r#""c1""#, &long());
        for read in [text("I see."), r#"{"type":"thinking","thinking":""}"#.to_owned(), call(r#""c9""#, "{}")]
        {
            assert_eq!(unread(&[&last, &read], ""), ["c1"], "{read}");
        }
        for nothing in [text(" \n\u{2003}"), r#"{"type":"hint","text":"x"}"#.to_owned(), "{}".to_owned()] {
            assert_eq!(unread(&[&last, &nothing], ""), [""; 0], "{nothing}");
        }
    }
}

mod skip_unshortenable {
    use super::*;

    /// The excerpt has ten characters, the line behind it with `archive/c1` 45.
    const EXCERPT: usize = 55;

    fn outcome(length: usize, options: &str) -> (Vec<String>, String, Option<f64>) {
        let output = format!(r#""{}""#, "é".repeat(length));
        let ran = run(request(&history(&[&pair(r#""c1""#, &output)]), options).as_bytes(), &always(0.0));
        assert_eq!(ran.verdict().stats.candidates, 1);
        let decision = ran.decision("c1");
        (ran.asked_calls(), decision.reason, decision.probability)
    }

    #[test]
    fn what_cannot_get_shorter_is_asked_about_only_by_default() {
        let asked = || vec!["c1".to_owned()];
        assert_eq!(outcome(EXCERPT, ""), (asked(), "no_savings".to_owned(), Some(0.0)));
        assert_eq!(outcome(EXCERPT + 1, ""), (asked(), "low_relevance".to_owned(), Some(0.0)));
        let skip = r#","skip_unshortenable":true"#;
        assert_eq!(outcome(EXCERPT, skip), (vec![], "no_savings".to_owned(), None));
        assert_eq!(outcome(EXCERPT + 1, skip), (asked(), "low_relevance".to_owned(), Some(0.0)));
        assert_eq!(outcome(0, skip), (vec![], "no_savings".to_owned(), None));
    }

    #[test]
    fn nothing_to_shorten_means_no_request_at_all() {
        let messages = history(&[&pair(r#""c1""#, "\"short\""), &pair(r#""c2""#, "\"shorter\"")]);
        let ran = run(request(&messages, r#","skip_unshortenable":true"#).as_bytes(), &always(0.0));
        assert_eq!((ran.states.len(), ran.verdict().stats.requests), (0, 0));
        assert_eq!(ran.verdict().reason, "no_change");
    }
}

mod keep_output_shape {
    use super::*;

    fn output(options: &str, output: &str) -> String {
        let ran = run(request(&history(&[&pair(r#""c1""#, output)]), options).as_bytes(), &always(0.0));
        let start = ran.messages.find(r#""output":"#).expect("there is an output") + r#""output":"#.len();
        let end = ran.messages.find(r#","state":"success""#).expect("the state stands behind the output");
        ran.messages[start..end].to_owned()
    }

    const KEEP: &str = r#","keep_output_shape":true"#;

    #[test]
    fn a_list_becomes_a_text_by_default_and_stays_a_list_on_request() {
        let list = format!(
            r#"[ {{"id" : 1E2,"text":"a","type":"text","text" : {} ,"\u0078":[1.0]}} , {{"type":"text","text":"{}"}}]"#,
            long(),
            "-".repeat(20)
        );
        // The texts are joined before they are cut.
        let joined = r#""0123\n…\n---\n[Compacted output. Recover from: archive/c1]""#;
        assert_eq!(output("", &list), joined);
        let kept = format!(r#"[{{"id" : 1E2,"text":"a","type":"text","text" : {joined} ,"\u0078":[1.0]}}]"#);
        assert_eq!(output(KEEP, &list), kept);
    }

    #[test]
    fn a_text_stays_a_text() {
        assert_eq!(output(KEEP, &long()), cut("c1"));
    }

    #[test]
    fn the_kept_list_is_counted_as_it_is() {
        let list = format!(r#"[{{"type":"text","text":{}}},{{"type":"text","text":""}}]"#, long());
        let document = request(&history(&[&pair(r#""c1""#, &list)]), KEEP);
        let ran = run(document.as_bytes(), &always(0.0));
        assert_eq!(ran.verdict().stats.chars_after, parsed(&ran.document).snapshot.size());
        assert!(ran.changed());
    }
}

mod profile {
    use super::*;

    fn options(json: &str) -> Options {
        let document = format!(r#"{{"messages":[],"options":{json}}}"#);
        parsed(document.as_bytes()).options
    }

    #[test]
    fn the_contract_is_the_default() {
        let default = options("{}");
        assert_eq!(default, Options::default());
        assert_eq!(default, options(r#"{"profile":"contract"}"#));
        assert_eq!(
            (
                default.drop_threshold,
                default.preserve_recent_messages,
                default.preview_chars,
                default.evidence_chars
            ),
            (0.1, 6, 300, 2000)
        );
        assert_eq!((default.max_state_tokens, default.max_request_tokens), (25_000, 30_000));
        assert_eq!((default.max_output_tokens, default.max_concurrency), (None, 4));
        assert_eq!(default.total_timeout_seconds, 30.0);
        assert_eq!(default.recent_unit, RecentUnit::Message);
        assert_eq!(
            (default.protect_unread, default.skip_unshortenable, default.keep_output_shape),
            (false, false, false)
        );
    }

    #[test]
    fn recommended_turns_the_switches_on_and_leaves_the_numbers() {
        let recommended = options(r#"{"profile":"recommended"}"#);
        let mut expected = Options::default();
        expected.recent_unit = RecentUnit::Step;
        expected.protect_unread = true;
        expected.skip_unshortenable = true;
        expected.keep_output_shape = true;
        assert_eq!(recommended, expected);
        assert_eq!(recommended, Options::of_profile(Profile::Recommended));
    }

    #[test]
    fn explicit_options_win_wherever_they_stand() {
        for json in [
            r#"{"profile":"recommended","recent_unit":"message","protect_unread":false,"preview_chars":7}"#,
            r#"{"recent_unit":"message","protect_unread":false,"preview_chars":7,"profile":"recommended"}"#,
        ] {
            let mixed = options(json);
            assert_eq!((mixed.recent_unit, mixed.protect_unread), (RecentUnit::Message, false), "{json}");
            assert_eq!((mixed.skip_unshortenable, mixed.keep_output_shape), (true, true), "{json}");
            assert_eq!(mixed.preview_chars, 7, "{json}");
        }
    }

    #[test]
    fn a_bare_list_gets_the_recommended_profile_and_overrides_win() {
        let mut overrides = Overrides::default();
        let read = |overrides: &Overrides| match Document::parse(b"[]", overrides) {
            Ok(Document::Transcript(request)) => request.options,
            other => panic!("not a transcript: {other:?}"),
        };
        assert_eq!(read(&overrides), Options::of_profile(Profile::Recommended));
        overrides.options =
            [("keep_output_shape", "false"), ("recent_unit", "message"), ("preview_chars", "9")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec();
        let options = read(&overrides);
        assert_eq!((options.keep_output_shape, options.recent_unit), (false, RecentUnit::Message));
        assert_eq!((options.preview_chars, options.protect_unread), (9, true));
    }

    #[test]
    fn of_two_options_with_one_name_the_last_counts() {
        assert_eq!(options(r#"{"preview_chars":5,"preview_chars":6}"#).preview_chars, 6);
        assert_eq!(options(r#"{"preview_chars":"x","preview_chars":6}"#).preview_chars, 6);
    }
}

mod budgets {
    use super::*;

    /// Counts the words `needle` in the messages.
    #[derive(Debug)]
    struct Needles;

    impl TokenCounter for Needles {
        fn count(&self, messages: &Messages<'_>) -> Result<u64, CountError> {
            assert!(messages.code_points() > 0);
            Ok(messages.json().matches("needle").count() as u64)
        }
    }

    #[derive(Debug)]
    struct Broken;

    impl TokenCounter for Broken {
        fn count(&self, _: &Messages<'_>) -> Result<u64, CountError> {
            Err(CountError::Invalid)
        }
    }

    fn needles(count: usize) -> String {
        format!(r#""{}{}""#, "-".repeat(100), "needle ".repeat(count))
    }

    fn with_counter(document: &str, counter: Option<&dyn TokenCounter>) -> Result<Ran, CompactionError> {
        run_with(&parsed(document.as_bytes()), counter, &Settings::default(), &|asked| {
            let value = |id: &str| id[1..].parse::<f64>().expect("a unit is t and a number") / 1000.0;
            let answers = asked
                .questions
                .iter()
                .map(|question| (question.id.to_owned(), Answer::Binary(value(question.id))));
            Ok(reply(answers.collect()))
        })
    }

    #[test]
    fn the_hosts_counter_decides_when_it_is_enough() {
        let blocks =
            [pair(r#""c1""#, &needles(3)), pair(r#""c2""#, &needles(2)), pair(r#""c3""#, &needles(4))];
        let messages = history(&[&blocks[0], &blocks[1], &blocks[2]]);
        let reasons = |limit: u64| {
            let document = request(&messages, &format!(r#","max_output_tokens":{limit}"#))
                .replace(r#""goal""#, r#""token_counter":"chars4","goal""#);
            let ran = with_counter(&document, Some(&Needles)).expect("it counts");
            let verdict = ran.verdict();
            let reasons: Vec<String> =
                verdict.decisions.into_iter().map(|decision| decision.reason).collect();
            (reasons.join(" "), verdict.budget_met, verdict.stats.tokens_before, verdict.stats.tokens_after)
        };
        let expected =
            |reasons: &str, met: bool, after: u64| (reasons.to_owned(), Some(met), Some(9), Some(after));
        // The excerpt of a text with many needles ends in "le ", which is none.
        assert_eq!(reasons(9), expected("within_budget within_budget within_budget", true, 9));
        assert_eq!(reasons(8), expected("low_relevance within_budget within_budget", true, 6));
        assert_eq!(reasons(6), expected("low_relevance within_budget within_budget", true, 6));
        assert_eq!(reasons(5), expected("low_relevance low_relevance within_budget", true, 4));
        assert_eq!(reasons(1), expected("low_relevance low_relevance low_relevance", true, 0));
    }

    #[test]
    fn what_does_not_lower_the_count_saves_nothing() {
        let messages = history(&[&pair(r#""c1""#, &long()), &pair(r#""c2""#, &needles(1))]);
        let ran = with_counter(&request(&messages, r#","max_output_tokens":1"#), Some(&Needles));
        assert_eq!(ran.expect("it counts").verdict().reason, "no_change", "it fits already");
        let messages =
            history(&[&pair(r#""c1""#, &long()), &pair(r#""c2""#, &needles(3)), &text("needle needle")]);
        let ran = with_counter(&request(&messages, r#","max_output_tokens":1"#), Some(&Needles))
            .expect("it counts");
        assert_eq!(ran.decision("c1").reason, "no_savings");
        assert_eq!(ran.decision("c2").reason, "low_relevance");
        assert_eq!(
            (ran.verdict().reason.as_str(), ran.verdict().budget_met),
            ("budget_exceeded", Some(false))
        );
    }

    #[test]
    fn named_counters_count_the_compact_json() {
        let messages = history(&[&pair(r#""c1""#, &long())]).replace("The build", "The  中\u{1f600} build");
        let size = parsed(request(&messages, "").as_bytes()).snapshot.size();
        assert_eq!(size, messages.chars().count() as u64, "it is compact already");
        for (name, expected) in [("json_chars", size), ("chars4", size.div_ceil(4))] {
            let document = request(&messages, r#","max_output_tokens":1"#)
                .replace(r#""goal""#, &format!(r#""token_counter":"{name}","goal""#));
            let stats = with_counter(&document, None).expect("it counts").verdict().stats;
            assert_eq!(stats.tokens_before, Some(expected), "{name}");
            let after = if name == "chars4" { stats.chars_after.div_ceil(4) } else { stats.chars_after };
            assert_eq!(stats.tokens_after, Some(after), "{name}");
        }
    }

    #[test]
    fn a_budget_without_a_counter_is_an_error_and_a_counter_without_a_budget_is_not_called() {
        let budget = request(&four_steps(), r#","max_output_tokens":5"#);
        assert!(matches!(with_counter(&budget, None), Err(CompactionError::TokenCounterRequired)));
        assert!(matches!(
            with_counter(&budget, Some(&Broken)),
            Err(CompactionError::Count(CountError::Invalid))
        ));
        let free = request(&four_steps(), "");
        let ran = with_counter(&free, Some(&Broken)).expect("nothing is counted");
        let verdict = ran.verdict();
        assert_eq!(
            (verdict.budget_met, verdict.stats.tokens_before, verdict.stats.tokens_after),
            (None, None, None)
        );
    }
}

mod refusals {
    use super::*;

    /// The problems of a request with their places and kinds.
    fn problems(document: &str) -> Vec<(String, &'static str)> {
        match Request::parse(document.as_bytes()) {
            Err(RequestError::Invalid(problems)) => {
                assert_eq!(problems.total(), problems.found().len(), "all are kept");
                problems.found().iter().map(|problem| (problem.place.to_string(), problem.kind)).collect()
            }
            Err(other) => panic!("refused as a whole: {other}"),
            Ok(_) => Vec::new(),
        }
    }

    fn problem(place: &str, kind: &'static str) -> (String, &'static str) {
        (place.to_owned(), kind)
    }

    #[test]
    fn what_this_version_does_not_have_is_refused_by_name() {
        for (option, here, missing) in [
            ("preview", "head_tail", "regions"),
            ("preview_sizes", "fixed", "graded"),
            ("budget_order", "probability", "expected_loss"),
        ] {
            let with = |value: &str| format!(r#"{{"messages":[],"options":{{"{option}":{value}}}}}"#);
            let place = format!("options.{option}");
            assert_eq!(problems(&with(&format!("\"{here}\""))), []);
            assert_eq!(problems(&with(&format!("\"{missing}\""))), [problem(&place, "not_available")]);
            let said =
                Request::parse(with(&format!("\"{missing}\"")).as_bytes()).expect_err("refused").to_string();
            assert!(said.contains(missing) && said.contains(here), "{said}");
            for other in ["\"other\"", "null", "1", "true"] {
                assert_eq!(problems(&with(other)), [problem(&place, "literal_error")], "{other}");
            }
        }
    }

    #[test]
    fn formats_and_counters_are_known_by_name() {
        let with = |field: &str, value: &str| format!(r#"{{"messages":[],"{field}":{value}}}"#);
        for (field, good) in
            [("format", ["\"agentscope\"", "\"auto\""]), ("token_counter", ["\"chars4\"", "null"])]
        {
            for value in good {
                assert_eq!(problems(&with(field, value)), [], "{field} {value}");
            }
            assert_eq!(problems(&with(field, "\"Chars4\"")), [problem(field, "literal_error")]);
            assert_eq!(problems(&with(field, "4")), [problem(field, "string_type")]);
        }
        let overrides = Overrides {
            format: Some("morse".to_owned()),
            token_counter: Some("fingers".to_owned()),
            ..Overrides::default()
        };
        let error = Document::parse(b"[]", &overrides).expect_err("both are unknown").to_string();
        for known in ["format: ", "agentscope", "auto", "token_counter: ", "chars4", "json_chars"] {
            assert!(error.contains(known), "{error}");
        }
    }

    #[test]
    fn unknown_fields_are_refused_wherever_the_request_is_ours() {
        let document = r#"{"gaol":"x","messages":[{"role":"user","content":[],"gaol":1}],"options":{"threshold":1},"source_ref":{}}"#;
        let mut found = problems(document);
        found.sort();
        assert_eq!(
            found,
            [
                problem("gaol", "extra_forbidden"),
                problem("options.threshold", "extra_forbidden"),
                problem("source_ref", "extra_forbidden"),
            ]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_place() {
        let document = r#"{"goal":1,"next_action":null,"source_refs":{"c1":" ","c2":3," ":"r","c3":"\ud800"},
            "protected_message_ids":["a",2],"protected_call_ids":"c1","eligible_tool_names":[null],
            "messages":[7,{"role":"tool","content":[]},{"role":"user"},{"role":"user","content":[1,{},"x"]}],
            "options":{"drop_threshold":1.5,"preserve_recent_messages":-1,"preview_chars":1.0,"max_state_tokens":0,
                "max_concurrency":33,"total_timeout_seconds":0,"recent_unit":"day","protect_unread":1}}"#;
        let expected = [
            problem("goal", "string_type"),
            problem("next_action", "string_type"),
            problem("source_refs.c1", "value_error"),
            problem("source_refs.c2", "string_type"),
            problem("source_refs. ", "value_error"),
            problem("source_refs.c3", "string_unicode"),
            problem("protected_message_ids[1]", "string_type"),
            problem("protected_call_ids", "list_type"),
            problem("eligible_tool_names[0]", "string_type"),
            problem("messages[0]", "dict_type"),
            problem("messages[1].role", "value_error"),
            problem("messages[2].content", "value_error"),
            problem("messages[3].content[0]", "value_error"),
            problem("messages[3].content[2]", "value_error"),
            problem("options.drop_threshold", "less_than_equal"),
            problem("options.preserve_recent_messages", "greater_than_equal"),
            problem("options.preview_chars", "int_type"),
            problem("options.max_state_tokens", "greater_than"),
            problem("options.max_concurrency", "less_than_equal"),
            problem("options.total_timeout_seconds", "greater_than"),
        ];
        let Err(RequestError::Invalid(found)) = Request::parse(document.as_bytes()) else {
            panic!("accepted")
        };
        let named: Vec<_> = found.found().iter().map(|found| (found.place.to_string(), found.kind)).collect();
        assert_eq!(named, expected);
        assert_eq!(found.total(), expected.len() + 2);
        assert!(found.to_string().ends_with("; and 2 more"), "{found}");
        assert!(found.to_string().contains("messages[1].role: must be user, assistant or system"), "{found}");
    }

    #[test]
    fn messages_must_be_there_and_be_a_list() {
        assert_eq!(problems("{}"), [problem("messages", "missing")]);
        assert_eq!(problems(r#"{"messages":{}}"#), [problem("messages", "list_type")]);
        assert_eq!(problems(r#"{"messages":"[]"}"#), [problem("messages", "list_type")]);
    }

    #[test]
    fn numbers_keep_to_their_ranges_to_the_last_digit() {
        let with = |option: &str| problems(&format!(r#"{{"messages":[],"options":{{{option}}}}}"#));
        for good in [
            r#""drop_threshold":1"#,
            r#""drop_threshold":-0.0"#,
            r#""drop_threshold":"0.25""#,
            r#""drop_threshold":true"#,
            r#""preserve_recent_messages":0"#,
            r#""preserve_recent_messages":100000000000000000000000000"#,
            r#""max_concurrency":32"#,
            r#""max_output_tokens":null"#,
            r#""max_output_tokens":1"#,
            r#""total_timeout_seconds":1e300"#,
            r#""evidence_chars":1"#,
        ] {
            assert_eq!(with(good), [], "{good}");
        }
        for (bad, kind) in [
            (r#""drop_threshold":1.0000000000000002"#, "less_than_equal"),
            (r#""drop_threshold":-5e-324"#, "greater_than_equal"),
            (r#""drop_threshold":1e999"#, "finite_number"),
            (r#""drop_threshold":"low""#, "float_parsing"),
            (r#""drop_threshold":null"#, "float_type"),
            (r#""preview_chars":"300""#, "int_type"),
            (r#""preview_chars":3e2"#, "int_type"),
            (r#""preview_chars":-100000000000000000000000000"#, "greater_than_equal"),
            (r#""evidence_chars":0"#, "greater_than"),
            (r#""max_output_tokens":0"#, "greater_than"),
            (r#""max_output_tokens":false"#, "int_type"),
            (r#""max_concurrency":0"#, "greater_than"),
            (r#""total_timeout_seconds":-1"#, "greater_than"),
            (r#""keep_output_shape":"true""#, "bool_type"),
            (r#""profile":"best""#, "literal_error"),
        ] {
            let place = format!("options.{}", bad.split('"').nth(1).expect("a name"));
            assert_eq!(with(bad), [problem(&place, kind)], "{bad}");
        }
    }

    #[test]
    fn a_problem_never_shows_what_it_found() {
        let document = r#"{"messages":[{"role":"SECRET","content":"SECRET"}],"goal":["SECRET"],"options":{"preview":"SECRET"}}"#;
        let error = Request::parse(document.as_bytes()).expect_err("invalid");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }

    #[test]
    fn a_long_or_hostile_key_is_shown_short_and_harmless() {
        let document = format!(r#"{{"messages":[],"\u001b[31m{}":1}}"#, "k".repeat(500));
        let error = Request::parse(document.as_bytes()).expect_err("an unknown field").to_string();
        assert!(!error.contains('\u{1b}') && error.len() < 200, "{error}");
    }
}

mod documents {
    use super::*;

    fn refused(bytes: &[u8]) -> RequestError {
        Document::parse(bytes, &Overrides::default()).expect_err("this is no document")
    }

    #[test]
    fn what_is_no_json_text_is_refused_at_its_place() {
        let at = |text: &str| match refused(text.as_bytes()) {
            RequestError::NotJson { line, column, .. } => (line, column),
            other => panic!("{other:?}"),
        };
        assert_eq!(at("[1,]"), (1, 4));
        assert_eq!(at("{\"messages\":\n [\r\n  nope]}"), (3, 3));
        assert_eq!(at("{\"中文\":\"é\"x}"), (1, 10), "columns count characters");
        assert_eq!(at("{\"messages\":[]}\n}"), (2, 1));
        assert_eq!(at("{\"messages\":["), (1, 14));
        assert_eq!(at(" \n "), (2, 2));
    }

    #[test]
    fn a_byte_order_mark_is_no_column() {
        for (text, place) in [("\u{feff}[1,]", (1, 4)), ("\u{feff}\n[1,]", (2, 4)), ("\u{feff}", (1, 1))] {
            match refused(text.as_bytes()) {
                RequestError::NotJson { line, column, .. } => assert_eq!((line, column), place, "{text:?}"),
                other => panic!("{other:?}"),
            }
        }
        // Only the first one is a mark.
        assert!(matches!(refused("\u{feff}\u{feff}[]".as_bytes()), RequestError::NotJson { column: 1, .. }));
    }

    #[test]
    fn bytes_that_are_no_text_or_no_document_are_told_apart() {
        assert!(matches!(refused(b""), RequestError::Empty));
        assert!(matches!(refused(b"[\"ab\xff\"]"), RequestError::NotUtf8 { offset: 4 }));
        assert!(matches!(refused(b"[\"\xed\xa0\x80\"]"), RequestError::NotUtf8 { offset: 2 }));
        for other in ["1", "\"[]\"", "null", " true", "-1.5e3"] {
            assert!(matches!(refused(other.as_bytes()), RequestError::NotADocument), "{other}");
        }
        assert!(matches!(Request::parse(b"[]"), Err(RequestError::NotARequest)));
    }

    #[test]
    fn a_recorded_run_is_a_transcript_and_a_misspelt_request_is_not() {
        let messages = four_steps();
        let recorded = format!(
            r#"{{"source":"s","licence":"MIT","origin":"o","task":"t","run":"1","format":"swe-agent-traj","messages":{messages}}}"#
        );
        match Document::parse(recorded.as_bytes(), &Overrides::default()) {
            Ok(Document::Transcript(run)) => {
                assert_eq!(run.snapshot.json(), messages);
                assert_eq!(run.options, Options::of_profile(Profile::Recommended));
                assert_eq!(run.eligible_tools, ratoon::request::Tools::All);
            }
            other => panic!("not a transcript: {other:?}"),
        }
        for misspelt in [
            format!(r#"{{"source":"s","licence":"MIT","task":"t","messages":{messages}}}"#),
            format!(r#"{{"task":"t","run":"1","messages":{messages}}}"#),
        ] {
            let error = refused(misspelt.as_bytes()).to_string();
            assert!(error.contains("task: is not a field of a request"), "{error}");
        }
        let without = refused(br#"{"source":"s","licence":"MIT","task":"t","run":"1"}"#).to_string();
        assert!(without.contains("messages: is missing"), "{without}");
    }

    #[test]
    fn overrides_win_over_the_request() {
        let document = request(&four_steps(), r#","preview_chars":50"#);
        let mut overrides = Overrides {
            goal: Some("Another goal".to_owned()),
            next_action: Some("Another action".to_owned()),
            tools: Some(vec!["all".to_owned()]),
            options: vec![("preview_chars".to_owned(), "0".to_owned())],
            token_counter: Some("json_chars".to_owned()),
            ..Overrides::default()
        };
        let request = match Document::parse(document.as_bytes(), &overrides) {
            Ok(Document::Request(request)) => request,
            other => panic!("not a request: {other:?}"),
        };
        assert_eq!((&*request.goal, &*request.next_action), ("Another goal", "Another action"));
        assert_eq!(request.eligible_tools, ratoon::request::Tools::All);
        assert_eq!(request.options.preview_chars, 0);
        assert_eq!(request.token_counter.map(|counter| counter.name()), Some("json_chars"));
        overrides.tools = Some(vec!["all".to_owned(), "grep".to_owned()]);
        let request = Document::parse(document.as_bytes(), &overrides).expect("valid").into_request();
        assert_ne!(request.eligible_tools, ratoon::request::Tools::All, "beside others, all is a name");
        overrides.options =
            vec![("recent_unit".to_owned(), "step".to_owned()), ("nosuch".to_owned(), "{".to_owned())];
        let error =
            Document::parse(document.as_bytes(), &overrides).expect_err("an unknown option").to_string();
        assert!(error.contains("options.nosuch: is not an option"), "{error}");
        assert!(!error.contains("recent_unit"), "a value that is no JSON is text: {error}");
    }
}

mod earlier_excerpts {
    use super::*;

    fn excerpt(reference: &str) -> String {
        Value::from(format!("{}\n[Compacted output. Recover from: {reference}]", "0123456789".repeat(10)))
            .to_string()
    }

    #[test]
    fn an_excerpt_is_neither_asked_about_nor_cut_again() {
        for reference in ["archive/c1", "of/another/request", "with \"quotes\" and [brackets]"] {
            let messages = history(&[&pair(r#""c1""#, &excerpt(reference)), &pair(r#""c2""#, &long())]);
            let ran = run(request(&messages, "").as_bytes(), &always(0.0));
            assert_eq!(ran.asked_calls(), ["c2"], "{reference}");
            assert_eq!(ran.decision("c1").reason, "already_compacted");
            assert_eq!(protections(&ran), [("t1".to_owned(), "already_compacted".to_owned())]);
            let list = format!(
                r#"[{{"type":"text","text":"first"}},{{"type":"text","text":{}}}]"#,
                excerpt(reference)
            );
            assert_eq!(gone(&history(&[&pair(r#""c1""#, &list)]), ""), [""; 0], "{reference} in a list");
        }
    }

    #[test]
    fn a_marker_is_the_last_line_and_nothing_less() {
        let cut_all_the_same = [
            format!("{}\n[Compacted output. Recover from: a]\n", "0123456789".repeat(10)),
            format!("{} [Compacted output. Recover from: a]", "0123456789".repeat(10)),
            format!("[Compacted output. Recover from: a]\n{}", "0123456789".repeat(10)),
            format!("{}\n[Compacted output. Recover from: ]", "0123456789".repeat(10)),
            format!("{}\n[Compacted output. recover from: a]", "0123456789".repeat(10)),
        ];
        for output in cut_all_the_same {
            assert_eq!(
                gone(&history(&[&pair(r#""c1""#, &Value::from(output.as_str()).to_string())]), ""),
                ["c1"],
                "{output}"
            );
        }
    }

    #[test]
    fn whatever_the_reference_holds_the_excerpt_is_recognised() {
        for reference in [
            "two\nlines",
            "] ",
            "[Compacted output. Recover from: x]",
            "a [Compacted output. Recover from: x",
            "\n[Compacted output. Recover from: x]\n",
            "\u{1f600}\u{0}",
        ] {
            let document = request(&history(&[&pair(r#""c1""#, &long().repeat(3).replace("\"\"", ""))]), "")
                .replace(r#""archive/c1""#, &Value::from(reference).to_string());
            let first = run(document.as_bytes(), &always(0.0));
            assert!(first.changed(), "{reference:?}");
            // Smaller excerpts are wanted now, but an excerpt is not cut again.
            let again = String::from_utf8(first.document.clone())
                .expect("text")
                .replace(r#""preview_chars":10"#, r#""preview_chars":0"#);
            let second = run(again.as_bytes(), &always(0.0));
            assert_eq!(second.decision("c1").reason, "already_compacted", "{reference:?}");
            assert_eq!(second.messages, first.messages, "{reference:?}");
        }
    }

    #[test]
    fn however_the_end_of_the_excerpt_is_spelled_it_is_recognised() {
        let spelled = excerpt("archive/c1").replace(']', r"\u005d");
        let messages = history(&[&pair(r#""c1""#, &spelled)]);
        assert_eq!(gone(&messages, ""), [""; 0]);
    }

    #[test]
    fn what_is_protected_for_another_reason_keeps_that_reason() {
        let messages = history(&[&pair(r#""c1""#, &excerpt("archive/c1")).replace("grep", "other")]);
        let ran = run(request(&messages, "").as_bytes(), &always(0.0));
        assert_eq!(protections(&ran), [("t1".to_owned(), "tool_not_eligible".to_owned())]);
        assert_eq!(ran.decision("c1").reason, "protected");
    }
}

mod recovery {
    use super::*;

    fn recovered(input: &str) -> bool {
        let messages =
            history(&[&call(r#""c1""#, input), &result(r#""c1""#, &long()), &pair(r#""c2""#, &long())]);
        let ran = run(request(&messages, "").as_bytes(), &always(0.0));
        assert_eq!(ran.decision("c2").action, "preview");
        match ran.decision("c1").action.as_str() {
            "keep" => {
                assert_eq!(protections(&ran), [("t1".to_owned(), "recovery".to_owned())]);
                assert_eq!(ran.asked_calls(), ["c2"]);
                true
            }
            _ => false,
        }
    }

    #[test]
    fn a_call_that_names_a_reference_brought_an_original_back() {
        for input in [
            json!({"reference": "archive/c2"}),
            json!({"a": [{"b": ["archive/c1"]}]}),
            json!({"cmd": "ratoon recover archive/c2 --lines 1:5"}),
            json!({"cmd": "ratoon recover 'archive/c2'"}),
            json!({"cmd": "cat\t\"archive/c2\";echo"}),
            json!({"code": "recover(ref=archive/c2)"}),
            json!({"archive/c2": true}),
        ] {
            assert!(recovered(&input.to_string()), "{input}");
        }
        assert!(recovered(r#"{"\u0072ef":"\u0061rchive\/c2"}"#), "other spellings");
    }

    #[test]
    fn a_call_that_names_something_like_a_reference_did_not() {
        for input in [
            json!({"path": "archive/c22"}),
            json!({"path": "my/archive/c2"}),
            json!({"path": "archive/C2"}),
            json!({"path": "archive/"}),
            json!({"path": ""}),
        ] {
            assert!(!recovered(&input.to_string()), "{input}");
        }
    }

    #[test]
    fn references_of_earlier_excerpts_count_too() {
        let marker =
            Value::from(format!("{}\n[Compacted output. Recover from: old/7]", "x".repeat(90))).to_string();
        let blocks =
            [pair(r#""c1""#, &marker), call(r#""c2""#, r#"{"ref":"old/7"}"#), result(r#""c2""#, &long())];
        let ran = run(request(&history(&[&blocks[0], &blocks[1], &blocks[2]]), "").as_bytes(), &always(0.0));
        let expected = [("t1", "already_compacted"), ("t2", "recovery")]
            .map(|(id, why)| (id.to_owned(), why.to_owned()));
        assert_eq!(protections(&ran), expected);
        assert!(!ran.changed());
    }
}

mod account {
    use super::*;

    #[test]
    fn what_is_part_of_no_pair_is_listed_with_its_reason() {
        let blocks = [
            call(r#""alone""#, "{}"),
            result(r#""orphan""#, &long()),
            result(r#""early""#, &long()),
            call(r#""early""#, "{}"),
            pair(r#""twice""#, &long()),
            result(r#""twice""#, &long()),
            call(r#""text""#, "not JSON"),
            result(r#""text""#, &long()),
            pair("\"\"", &long()),
            pair("[ 7 ]", &long()),
            result(r#""c1""#, &long()).replace(r#""id":"c1","#, ""),
            pair(r#""c1""#, &long()),
        ];
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        let document = request(&history(&blocks), "");
        let ran = run(document.as_bytes(), &always(0.0));
        assert_eq!(ran.violations(&parsed(document.as_bytes())), [""; 0]);
        assert_eq!(
            ran.verdict().stats.skipped(),
            [
                (r#""alone""#, "call_without_result"),
                (r#""orphan""#, "result_without_call"),
                (r#""early""#, "result_before_call"),
                (r#""twice""#, "ambiguous_id"),
                (r#""text""#, "unreadable_input"),
                ("\"\"", "unusable_id"),
                ("\"\"", "unusable_id"),
                ("[ 7 ]", "unusable_id"),
                ("[ 7 ]", "unusable_id"),
                ("null", "unusable_id"),
            ]
        );
        let decisions = ran.verdict().decisions;
        assert_eq!(decisions.len(), 1, "only c1 is a pair: {decisions:?}");
        assert_eq!((decisions[0].id.as_str(), decisions[0].action.as_str()), ("t1", "preview"));
    }

    #[test]
    fn arguments_must_be_one_json_object() {
        for input in [
            "",
            "[]",
            "null",
            "{}{}",
            "{'a':1}",
            "{\"a\":NaN}",
            "{\"a\":1e999}",
            "{\"a\":\"\\ud800\"}",
            "\u{feff}{}",
        ] {
            let messages = history(&[&call(r#""c1""#, input), &result(r#""c1""#, &long())]);
            let ran = run(request(&messages, "").as_bytes(), &always(0.0));
            assert_eq!(ran.verdict().stats.skipped(), [(r#""c1""#, "unreadable_input")], "{input:?}");
        }
        let object = history(&[
            &call(r#""c1""#, "{}").replace(r#""input":"{}""#, r#""input":{}"#),
            &result(r#""c1""#, &long()),
        ]);
        assert_eq!(
            run(request(&object, "").as_bytes(), &always(0.0)).verdict().stats.skipped(),
            [(r#""c1""#, "unreadable_input")]
        );
    }

    #[test]
    fn every_reason_for_not_asking_is_named() {
        let messages = format!(
            "[{},{},{},{},{}]",
            message("user", &[&pair(r#""a""#, &long())]),
            message("system", &[&pair(r#""b""#, &long())]),
            message("assistant", &[&pair(r#""c""#, &long())]).replacen('{', r#"{"id":"m","#, 1),
            message(
                "assistant",
                &[
                    &pair(r#""c1""#, &long()),
                    &pair(r#""c2""#, &long()).replace("grep", "other"),
                    &pair(r#""c3""#, &long()).replace("finished", "running"),
                    &pair(r#""c4""#, &long()).replace("success", "interrupted"),
                    &pair(r#""c5""#, &long()).replacen("grep", "sed", 1),
                    &pair(r#""c6""#, "[]"),
                    &pair(r#""c6b""#, &long()),
                    &pair(r#""c7""#, &long()),
                ]
            ),
            message("assistant", &[&pair(r#""c8""#, &long())]),
        );
        let document = request(&messages, "")
            .replace(r#""preserve_recent_messages":0"#, r#""preserve_recent_messages":1"#)
            .replace(
                r#"["grep"]"#,
                r#"["grep","sed"],"protected_message_ids":["m"],"protected_call_ids":["c1"]"#,
            );
        let ran = run(document.as_bytes(), &always(0.0));
        let expected = [
            ("t1", "first_message"),
            ("t2", "system_message"),
            ("t3", "protected_message_id"),
            ("t4", "protected_call_id"),
            ("t5", "tool_not_eligible"),
            ("t6", "call_not_finished"),
            ("t7", "result_not_successful"),
            ("t8", "names_differ"),
            ("t9", "not_text"),
            ("t10", "no_reference"),
            ("t12", "recent"),
        ];
        assert_eq!(protections(&ran), expected.map(|(id, why)| (id.to_owned(), why.to_owned())));
        assert_eq!(ran.asked_calls(), ["c7"]);
        let verdict = ran.verdict();
        assert_eq!((verdict.stats.candidates, verdict.stats.protected), (1, 11));
        let reasons: Vec<&str> = verdict.decisions.iter().map(|decision| decision.reason.as_str()).collect();
        assert_eq!(reasons.iter().filter(|reason| **reason == "protected").count(), 11);
    }

    #[test]
    fn a_failed_request_says_why_and_costs_only_its_own_units() {
        let blocks: Vec<String> = (1..=3).map(|n| pair(&format!(r#""c{n}""#), &long())).collect();
        let messages = history(&[&blocks[0], &blocks[1], &blocks[2]]);
        // One unit a request.
        let document = request(&messages, r#","max_state_tokens":200"#);
        let ran = run(document.as_bytes(), &|asked| match asked.questions[0].id {
            "t1" => Err(ModelError::new(FailureKind::RateLimited, "slow \"down\"", 3).with_status(429)),
            "t2" => Err(ModelError::new(FailureKind::Connection, "no route", 1)),
            id => Ok(reply(vec![(id.to_owned(), Answer::Binary(0.0))])),
        });
        assert_eq!(ran.states.len(), 3);
        let reasons: Vec<String> =
            ran.verdict().decisions.into_iter().map(|decision| decision.reason).collect();
        assert_eq!(reasons, ["model_error", "model_error", "low_relevance"]);
        let failures = ran.verdict().stats.failures;
        assert_eq!(
            failures,
            [
                json!({"request": 0, "kind": "rate_limited", "status": 429, "attempts": 3, "message": "slow \"down\""}),
                json!({"request": 1, "kind": "connection", "status": null, "attempts": 1, "message": "no route"}),
            ]
        );
        let good = run(document.as_bytes(), &always(0.0)).verdict().stats.failures;
        assert_eq!(good, [] as [Value; 0]);
    }

    #[test]
    fn a_bad_answer_costs_only_its_own_unit() {
        let blocks: Vec<String> = (1..=6).map(|n| pair(&format!(r#""c{n}""#), &long())).collect();
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        let ran = run(request(&history(&blocks), "").as_bytes(), &|_| {
            let answer = |id: &str, answer| (id.to_owned(), answer);
            Ok(reply(vec![
                answer("t5", Answer::Binary(0.0)),
                answer("t4", Answer::Binary(0.0)),
                answer("t4", Answer::Binary(0.0)),
                answer("t3", Answer::Unusable),
                answer("t2", Answer::Binary(f64::NAN)),
                answer("t1", Answer::Binary(-0.5)),
                answer("t7", Answer::Binary(0.0)),
            ]))
        });
        let verdict = ran.verdict();
        let reasons: Vec<&str> = verdict.decisions.iter().map(|decision| decision.reason.as_str()).collect();
        let invalid = "invalid_answer";
        assert_eq!(reasons, [invalid, invalid, invalid, invalid, "low_relevance", invalid]);
        assert_eq!(verdict.stats.failures, [] as [Value; 0], "a bad answer is no failed request");
    }

    #[test]
    fn the_deadline_is_a_failure_too() {
        let document = request(&history(&[&pair(r#""c1""#, &long())]), "");
        let request = parsed(document.as_bytes());
        let compaction =
            ratoon::Compaction::new(&request, None, ratoon::Reading::State, &Settings::default());
        let compaction = compaction.expect("there is no budget");
        let mut answers = compaction.answers();
        answers.expire();
        answers.record(0, Ok(reply(vec![("t1".to_owned(), Answer::Binary(0.0))])));
        let proposal =
            compaction.finish(answers, "slow", std::time::Duration::from_millis(1500)).expect("no budget");
        let stats: Value = serde_json::from_str(&proposal.stats_json()).expect("stats are JSON");
        assert_eq!((&stats["elapsed_ms"], &stats["model"]), (&json!(1500), &json!("slow")));
        let failures = stats["failures"].as_array().expect("a list");
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert_eq!((&failures[0]["request"], &failures[0]["kind"]), (&json!(0), &json!("deadline")));
        assert_eq!(
            proposal.decisions[0].reason.as_str(),
            "timeout",
            "an answer behind the deadline comes too late"
        );
        assert!(!proposal.changed());
    }
}

/// A recorded run has no request fields; with one it is a request with unknown fields, so that nothing the host
/// asked for is passed over in silence.
#[test]
fn a_recorded_run_with_request_fields_is_refused() {
    let run =
        |more: &str| format!(r#"{{"source":"s","licence":"l","task":"t","run":"r","messages":[]{more}}}"#);
    let parse =
        |text: &str| ratoon::Document::parse(text.as_bytes(), &ratoon::Overrides::default()).map(|_| ());
    assert!(parse(&run(r#","origin":"o","format":"agentdojo-run""#)).is_ok());
    for more in [r#","protected_call_ids":["c1"]"#, r#","options":{}"#, r#","goal":"g""#, r#","nonsense":1"#]
    {
        let Err(ratoon::RequestError::Invalid(problems)) = parse(&run(more)) else {
            panic!("{more} was passed over");
        };
        assert!(problems.to_string().contains("is not a field of a request"), "{problems}");
    }
}
