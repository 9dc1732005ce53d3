//! What holds for every history, however odd and however spelled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use ratoon::{
    Answer, Compaction, DecisionRequest, Document, FailureKind, ModelError, Overrides, Reading, Reply,
    RequestError, Settings,
};
use ratoon_testing::hash_model::Rule;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::generated::{Dice, History, Json, Oddity, history, options, request, spell};
use crate::support::{
    Ran, Verdict, always, by_hash, pair, parsed, reply, request as request_about, run_with,
};

/// The same histories every time, and so many that an oddity among a dozen is met.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        rng_seed: RngSeed::Fixed(20),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Random bytes, enough for a history of a few messages.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..1500)
}

/// A request from random bytes, and the bytes of its spelling.
fn document(made_from: &[u8], spelled_by: &[u8], budget: bool) -> String {
    let mut dice = Dice::new(made_from);
    let options = options(&mut dice, budget);
    let history = history(&mut dice, Oddity::Any);
    spell(&request(&history, options, &mut Dice::new(spelled_by)), &mut Dice::new(spelled_by))
}

fn carry_out(document: &[u8], model: impl Fn(&DecisionRequest<'_>) -> Result<Reply, ModelError>) -> Ran {
    run_with(&parsed(document), None, &Settings::default(), &model).expect("built-in counters count")
}

/// The outputs of all results with a usable id, as they are spelled.
fn outputs(messages: &str) -> Vec<(String, String)> {
    let snapshot =
        Document::parse(messages.as_bytes(), &Overrides::default()).expect("a message list").into_request();
    let blocks = snapshot.snapshot.blocks().iter();
    blocks
        .filter_map(|block| match block {
            ratoon::snapshot::Block::Result(result) => match result.id {
                ratoon::snapshot::BlockId::Usable(id) => {
                    let text = result.output.as_ref().and_then(|output| output.text())?;
                    Some((id.decode_lossy().into_owned(), text.decode_lossy().into_owned()))
                }
                _ => None,
            },
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_promises_hold(made_from in bytes(), spelled_by in bytes(), budget: bool) {
        let document = document(&made_from, &spelled_by, budget);
        let request = parsed(document.as_bytes());
        let first = run_with(&request, None, &Settings::default(), &always(0.0)).expect("built-in counters count");
        prop_assert_eq!(first.violations(&request), [""; 0], "{}", document);

        let verdict = first.verdict();
        let after = parsed(&first.document);
        prop_assert_eq!(verdict.stats.chars_before, request.snapshot.size());
        prop_assert_eq!(verdict.stats.chars_after, after.snapshot.size(), "{}", document);
        if request.options.max_output_tokens.is_some() {
            prop_assert_eq!(verdict.stats.tokens_before, Some(verdict.stats.chars_before));
            prop_assert_eq!(verdict.stats.tokens_after, Some(verdict.stats.chars_after));
        }
        for decision in &verdict.decisions {
            let protected = request.protected_call_ids.contains(decision.call_id.as_str());
            prop_assert!(!protected || decision.action == "keep", "{} went: {}", decision.call_id, document);
        }

        let second = run_with(&after, None, &Settings::default(), &always(0.0)).expect("built-in counters count");
        prop_assert_eq!(second.violations(&after), [""; 0], "{}", document);
        prop_assert_eq!(&second.messages, &first.messages, "{}", document);
        prop_assert!(!second.changed());
    }

    #[test]
    fn what_was_read_is_part_of_the_input(made_from in bytes(), spelled_by in bytes()) {
        let document = document(&made_from, &spelled_by, false);
        let request = parsed(document.as_bytes());
        let (span, json) = (request.snapshot.span(), request.snapshot.json());
        prop_assert_eq!(&document[span.start..span.end], json);
        prop_assert_eq!(request.snapshot.input(), document.as_str());
        prop_assert!(serde_json::from_str::<&RawValue>(json).is_ok(), "{}", json);
        let ran = carry_out(document.as_bytes(), |_| Ok(Reply::default()));
        prop_assert_eq!(ran.messages, json, "no answer, no change");
        prop_assert_eq!(ran.document, document.as_bytes());
    }

    #[test]
    fn spelling_changes_nothing_but_itself(made_from in bytes(), one in bytes(), other in bytes(), which in 0..2_usize) {
        let mut dice = Dice::new(&made_from);
        let options = options(&mut dice, true);
        let history = history(&mut dice, Oddity::Any);
        let request = request(&history, options, &mut dice);
        let spelled = [&one, &other].map(|spelled_by| spell(&request, &mut Dice::new(spelled_by)));
        let models = [Rule::HashLow, Rule::HashTies];
        let [left, right] = spelled.each_ref().map(|text| carry_out(text.as_bytes(), by_hash(models[which])));
        prop_assert_eq!(&left.states, &right.states, "{}\n{}", spelled[0], spelled[1]);
        let (mut verdicts, sizes) = ([left.verdict(), right.verdict()], [&left, &right].map(|ran| ran.messages.len()));
        let [ours, theirs] = &mut verdicts;
        prop_assert_eq!(&ours.decisions, &theirs.decisions, "{}\n{}", spelled[0], spelled[1]);
        prop_assert_eq!(ours.stats.chars_before, theirs.stats.chars_before, "{}\n{}", spelled[0], spelled[1]);
        prop_assert_eq!(ours.stats.chars_after, theirs.stats.chars_after, "{}\n{}", spelled[0], spelled[1]);
        prop_assert_eq!(ours.budget_met, theirs.budget_met);
        prop_assert!(sizes.iter().all(|&size| size > 0));
    }

    #[test]
    fn sizes_are_those_another_writer_gives(made_from in bytes(), spelled_by in bytes()) {
        let History { messages, .. } = history(&mut Dice::new(&made_from), Oddity::Tame);
        let text = spell(&messages, &mut Dice::new(&spelled_by));
        let request = Document::parse(text.as_bytes(), &Overrides::default()).expect("a message list").into_request();
        let value: Value = serde_json::from_str(request.snapshot.json()).expect("tame JSON");
        prop_assert_eq!(request.snapshot.size(), value.to_string().chars().count() as u64, "{}", text);
    }

    #[test]
    fn the_order_of_replies_decides_nothing(
        lengths in prop::collection::vec(0..400_usize, 2..10),
        fates in prop::collection::vec(0..8_u8, 9),
        order in prop::collection::vec(any::<u64>(), 9),
        budget in prop::option::of(1..2000_u64),
        expire: bool,
    ) {
        // One or two units a request.
        let pairs: Vec<String> = lengths
            .iter()
            .enumerate()
            .map(|(at, &length)| pair(&format!(r#""c{}""#, at + 1), &format!(r#""{}""#, "long word ".repeat(length / 10))))
            .collect();
        let options = format!(r#","evidence_chars":100,"max_state_tokens":220,"max_output_tokens":{}"#, json!(budget));
        let document = request_about(&crate::support::history(&[&pairs.join(",")]), &options)
            .replace(r#""goal""#, r#""token_counter":"json_chars","goal""#);
        let request = parsed(document.as_bytes());
        let finish = |shuffled: bool| {
            let compaction = Compaction::new(&request, None, Reading::State, &Settings::default()).expect("it counts");
            let requests = compaction.requests();
            assert!(requests >= lengths.len() / 2 || budget.is_some_and(|limit| limit >= request.snapshot.size()));
            let mut answers = compaction.answers();
            let mut indices: Vec<usize> = (0..compaction.requests()).collect();
            if shuffled {
                indices.sort_by_key(|&index| order[index % order.len()]);
            }
            for index in indices {
                let asked = compaction.request(index);
                match fates[index % fates.len()] {
                    0 => answers.record(index, Err(ModelError::new(FailureKind::Provider, "down", 1))),
                    1 if expire => {}
                    fate => answers.record(index, Ok(planned(&asked, fate))),
                }
            }
            if expire {
                answers.expire();
            }
            let proposal = compaction.finish(answers, "any", Duration::ZERO).expect("it counts");
            let mut stats: BTreeMap<String, Box<RawValue>> =
                serde_json::from_str(&proposal.stats_json()).expect("stats are JSON");
            // Usage and failures are listed as they come in.
            let lists = ["usage", "failures"].map(|list| {
                let entries = stats.remove(list).expect("the list is there");
                let mut entries: Vec<Value> = serde_json::from_str(entries.get()).expect("a list");
                entries.sort_by_key(Value::to_string);
                entries
            });
            let stats: Vec<String> = stats.iter().map(|(name, raw)| format!("{name}: {raw}")).collect();
            let decisions: Vec<String> = proposal.decisions.iter().map(|decision| format!("{decision:?}")).collect();
            (proposal.messages_json(), proposal.outcome, proposal.budget_met, decisions, stats, lists)
        };
        prop_assert_eq!(finish(false), finish(true), "{}", document);
    }

    #[test]
    fn a_higher_threshold_takes_nothing_back(
        made_from in bytes(),
        spelled_by in bytes(),
        low in 0.0..=1.0_f64,
        high in 0.0..=1.0_f64,
        which in 0..3_usize,
    ) {
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        let mut dice = Dice::new(&made_from);
        let mut options = options(&mut dice, false);
        options.retain(|(name, _)| name != "drop_threshold");
        options.push(("drop_threshold".to_owned(), Json::text("THRESHOLD")));
        let history = history(&mut dice, Oddity::Any);
        let request = request(&history, options, &mut dice);
        let document = spell(&request, &mut Dice::new(&spelled_by));
        let gone = |threshold: f64| {
            // Numeric text is a number, so the place can be found again in most spellings.
            let document = document.replace("THRESHOLD", &threshold.to_string());
            let rule = [Rule::Hash, Rule::HashLow, Rule::HashTies][which];
            let decisions = carry_out(document.as_bytes(), by_hash(rule)).verdict().decisions.into_iter();
            decisions
                .filter(|decision| decision.action == "preview")
                .map(|decision| decision.call_id)
                .collect::<BTreeSet<String>>()
        };
        prop_assume!(document.contains("THRESHOLD"));
        let (few, many) = (gone(low), gone(high));
        prop_assert!(few.is_subset(&many), "{} to {}: {:?} and {:?}\n{}", low, high, few, many, document);
    }

    #[test]
    fn broken_input_is_refused_and_never_panics(
        made_from in bytes(),
        spelled_by in bytes(),
        damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut: Option<u16>,
    ) {
        let mut bytes = document(&made_from, &spelled_by, true).into_bytes();
        for (place, byte) in damage {
            let at = usize::from(place) % bytes.len();
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        check_reading(&bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_reading(&bytes);
    }

    #[test]
    fn any_json_like_text_is_read_or_refused(text in r#"[\[\]{}",: \\u0-9a-eE.+\n-]{0,60}"#) {
        check_reading(text.as_bytes());
        check_reading(format!(r#"[{{"role":"user","content":[{{"type":"text","text":{text}}}]}}]"#).as_bytes());
    }

    #[test]
    fn results_that_stay_keep_their_text(made_from in bytes(), spelled_by in bytes()) {
        let document = document(&made_from, &spelled_by, false);
        let request = parsed(document.as_bytes());
        let ran = run_with(&request, None, &Settings::default(), &by_hash(Rule::HashTies)).expect("there is no budget");
        let gone: BTreeSet<String> = ran.verdict().decisions.into_iter()
            .filter(|decision| decision.action == "preview").map(|decision| decision.call_id).collect();
        let (before, after) = (outputs(request.snapshot.json()), outputs(&ran.messages));
        prop_assert_eq!(before.len(), after.len());
        for ((id, old), (_, new)) in before.iter().zip(&after) {
            if gone.contains(id) {
                prop_assert!(new.chars().count() < old.chars().count(), "{} grew: {}", id, document);
            } else {
                prop_assert_eq!(old, new, "{} changed: {}", id, document);
            }
        }
    }
}

/// What the properties are tried on is varied, or they would say little.
#[test]
fn generated_requests_meet_everything() {
    let mut runner = TestRunner::new(config());
    let (mut met, mut changed, mut longest) = (BTreeMap::new(), 0, 0);
    for _ in 0..600 {
        let mut bytes = || bytes().new_tree(&mut runner).expect("bytes can always be made").current();
        let document = document(&bytes(), &bytes(), true);
        longest = longest.max(document.len());
        let ran = carry_out(document.as_bytes(), by_hash(Rule::HashLow));
        changed += usize::from(ran.changed());
        let Verdict { decisions, reason, stats, .. } = ran.verdict();
        let mut meet = |what: &str| *met.entry(what.to_owned()).or_insert(0) += 1;
        meet(&reason);
        decisions.iter().for_each(|decision| meet(&decision.reason));
        stats.skipped().iter().for_each(|(_, reason)| meet(reason));
        stats.protections().iter().for_each(|(_, reason)| meet(reason));
        meet(&format!("{} requests", stats.requests.min(3)));
    }
    let expected = [
        "budget_exceeded",
        "compacted",
        "no_candidates",
        "no_change",
        "protected",
        "already_compacted",
        "within_budget",
        "unobserved",
        "needed_or_uncertain",
        "no_savings",
        "low_relevance",
        "ambiguous_id",
        "unusable_id",
        "call_without_result",
        "result_without_call",
        "unreadable_input",
        "first_message",
        "system_message",
        "recent",
        "protected_message_id",
        "protected_call_id",
        "tool_not_eligible",
        "call_not_finished",
        "result_not_successful",
        "names_differ",
        "not_text",
        "no_reference",
        "not_unicode",
        "unread",
        "0 requests",
        "1 requests",
        "2 requests",
        "3 requests",
    ];
    let missing: Vec<&str> = expected.into_iter().filter(|what| !met.contains_key(*what)).collect();
    assert!(missing.is_empty(), "never met: {missing:?} among {met:?}");
    assert!(changed > 90, "only {changed} changed: {met:?}");
    assert!(longest > 10_000, "the longest has {longest} bytes");
}

/// A reply that depends on the request only.
fn planned(asked: &DecisionRequest<'_>, fate: u8) -> Reply {
    let answers = asked.questions.iter().enumerate().map(|(at, question)| {
        let answer = match (usize::from(fate) + at) % 5 {
            0 => Answer::Unusable,
            1 => Answer::Binary(2.0),
            2 => Answer::Binary(0.05),
            _ => Answer::Binary(0.0),
        };
        (question.id.to_owned(), answer)
    });
    let mut reply = reply(answers.collect());
    let usage = format!(r#"{{"input_tokens":{}}}"#, asked.state.len());
    reply.usage = RawValue::from_string(usage).ok();
    reply
}

/// Bytes are read or refused, in agreement with another reader and with a place that is in the input.
fn check_reading(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).ok().map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    let is_json = text.is_some_and(|text| serde_json::from_str::<&RawValue>(text).is_ok());
    let shown = String::from_utf8_lossy(bytes);
    match Document::parse(bytes, &Overrides::default()) {
        Ok(document) => {
            assert!(is_json, "read, but no JSON: {shown}");
            let snapshot = document.into_request().snapshot;
            let span = snapshot.span();
            assert_eq!(snapshot.json().as_bytes(), &bytes[span.start..span.end]);
        }
        Err(RequestError::NotJson { line, column, .. }) => {
            assert!(!is_json, "refused as no JSON: {shown}");
            let line = bytes.split(|&byte| byte == b'\n').nth(line - 1).expect("the line is there");
            assert!((1..=line.len() + 1).contains(&column), "column {column} of {shown}");
        }
        Err(RequestError::NotUtf8 { offset }) => {
            assert!(std::str::from_utf8(&bytes[..offset]).is_ok() && text.is_none());
        }
        Err(RequestError::Empty) => assert!(bytes.is_empty()),
        Err(RequestError::Invalid(problems)) => assert!(is_json && !problems.is_empty(), "{shown}"),
        Err(_) => assert!(text.is_some()),
    }
}

/// The size of a value in an unknown field.
fn size(value: &str) -> u64 {
    let list = |value: &str| format!(r#"[{{"role":"user","content":[],"x":{value}}}]"#);
    let size = |text: String| {
        let request =
            Document::parse(text.as_bytes(), &Overrides::default()).expect("a message list").into_request();
        request.snapshot.size()
    };
    size(list(value)) - (size(list("0")) - 1)
}

#[test]
fn numbers_have_the_size_that_python_gives_them() {
    for (number, written) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1.0", "1.0"),
        ("1.50", "1.5"),
        ("1E2", "100.0"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e+16"),
        ("1e-4", "0.0001"),
        ("1e-5", "1e-05"),
        ("0.1000000000000000055", "0.1"),
        ("123456789.123456789", "123456789.12345679"),
        ("1234567890123456789.0", "1.2345678901234568e+18"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ] {
        assert_eq!(size(number), written.len() as u64, "{number}");
        assert_eq!(size(&format!("[{number} , {number}]")), 2 * written.len() as u64 + 3, "{number}");
    }
}

#[test]
fn of_equal_keys_the_last_one_has_a_size() {
    for (value, written) in [
        (r#"{"a":1,"a":22}"#, r#"{"a":22}"#),
        (r#"{"a":"long and longer","\u0061":{},"b":1}"#, r#"{"a":{},"b":1}"#),
        (r#"{"é":[1,2,3],"\u00e9":[ ]}"#, r#"{"é":[]}"#),
        (r#"{"":{"":1,"":[]},"":{"":{},"":""}}"#, r#"{"":{"":""}}"#),
    ] {
        assert_eq!(size(value), written.chars().count() as u64, "{value}");
    }
    let many: Vec<String> = (0..60).map(|n| format!(r#""k{}":{}"#, n % 7, n * 100)).collect();
    let last: Vec<String> = (53..60).map(|n| format!(r#""k{}":{}"#, n % 7, n * 100)).collect();
    assert_eq!(size(&format!("{{{}}}", many.join(","))), format!("{{{}}}", last.join(",")).len() as u64);
}

#[test]
fn half_surrogates_count_as_one_character_and_are_told_apart() {
    assert_eq!(size(r#""\ud800""#), 3);
    assert_eq!(size(r#""\ud83d\ude00""#), 3);
    assert_eq!(size(r#""\udc00\ud83d\ude00\ud800""#), 5);
    assert_eq!(size(r#"{"\ud800":1,"\ud801":1}"#), r#"{"x":1,"y":1}"#.len() as u64);
    assert_eq!(
        size(r#"{"\ud800":1,"\uD800":1}"#),
        r#"{"x":1}"#.len() as u64,
        "however the digits are written"
    );
    assert_eq!(size(r#"{"a\ud800":1,"\u0061\ud800":1}"#), r#"{"ax":1}"#.len() as u64);
    let many: Vec<String> = (0..20).map(|n| format!(r#""\ud80{}":1"#, n % 2)).collect();
    assert_eq!(size(&format!("{{{}}}", many.join(","))), r#"{"x":1,"y":1}"#.len() as u64);
}
