//! What comes out of a compaction that goes well: streams, files, the table, the hints.

use std::fs;

use serde_json::Value;

use crate::support::{Place, cut, fed, messages, shown};

#[test]
fn a_run_is_explained() {
    let place = Place::with_run("intercode-bash-023");
    insta::assert_snapshot!(place.shown("compact run.json --explain"), @"
    exit 0
    --- stdout
    run.json is a recorded run; assumed: the recommended profile, all tools and the file as the archive of its originals

    id        tool  size   need  decision  reason                      saved
    call_001  bash   608  0.000  cut       repeated by a later result    256
    call_002  bash   608  0.000  cut       repeated by a later result    256
    call_003  bash   608  0.500  keep      needed or uncertain
    call_004  bash   608  0.000  cut       repeated by a later result    256
    call_005  bash   608         keep      among the newest 6 steps
    call_006  bash   744         keep      among the newest 6 steps
    call_007  bash   608         keep      among the newest 6 steps
    call_008  bash   608         keep      among the newest 6 steps
    call_009  bash   472         keep      among the newest 6 steps
    call_010  bash   608         keep      among the newest 6 steps

    characters  10,148 -> 9,363 (-7.7 %)
    results     10: 3 cut, 7 kept; 4 candidates, 6 protected
    protected   6 recent
    model       rules, 1 request, <time>
    hint: rules cut only what the history itself repeats; a decision model judges what is left (1 result): --model agentscope
    --- stderr
    ");
}

#[test]
fn the_answer_goes_where_it_is_wanted() {
    let place = Place::with_run("intercode-bash-023");
    let printed = place.answer("compact run.json --json");
    assert_eq!(printed, {
        let mut piped = place.answer("compact run.json");
        piped["stats"]["elapsed_ms"] = printed["stats"]["elapsed_ms"].clone();
        piped
    });
    assert_eq!(printed["changed"], true);
    insta::assert_snapshot!(place.shown("compact run.json -o answer.json --messages small.json"), @"
    exit 0
    --- stdout
    --- stderr
    3 of 10 results cut back, 10,148 -> 9,363 characters; wrote answer.json and small.json
    ");
    let written = ratoon_testing::exact::value(&place.read("answer.json"));
    assert_eq!(written["messages"], printed["messages"]);
    assert_eq!(written["decisions"], printed["decisions"]);
    assert_eq!(serde_json::from_str::<Value>(&place.read("small.json")).unwrap(), printed["messages"]);
    assert_eq!(place.names(), ["answer.json", "run.json", "small.json"]);
    let stdout_too = place.ratoon("compact run.json -o -").output().unwrap();
    assert!(stdout_too.stdout.starts_with(b"{\"schema_version\":2,"));
    assert_eq!(place.names(), ["answer.json", "run.json", "small.json"]);
}

#[test]
fn data_and_explanation_do_not_mix() {
    let place = Place::with_run("intercode-bash-023");
    let output = place.ratoon("compact run.json --json --explain").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("{\"schema_version\":2,") && text.ends_with("}\n"));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("run.json is a recorded run"));
}

#[test]
fn a_bare_list_keeps_everything_around_its_results() {
    let place = Place::new();
    let long = "x".repeat(2000);
    let list = messages(&[("a", "read", &long), ("b", "read", &long), ("c", "read", &long)]);
    let before = format!("\u{feff}\n {list}\r\n\n");
    place.write("run.json", &before);
    let arguments = "compact run.json --messages small.json --option preserve_recent_messages=1";
    insta::assert_snapshot!(place.shown(arguments), @"
    exit 0
    --- stdout
    --- stderr
    2 of 3 results cut back, 6,690 -> 3,386 characters; wrote small.json
    ");
    let after = place.read("small.json");
    let head = format!("{}\\n…\\n{}", "x".repeat(149), "x".repeat(148));
    let excerpt = |id: &str| format!("\"{head}\\n[Compacted output. Recover from: run.json#{id}]\"");
    let mut expected = before.clone();
    for id in ["a", "b"] {
        expected = expected.replacen(&format!("\"{long}\""), &excerpt(id), 1);
    }
    assert_eq!(after, expected);
    assert_eq!(place.read("run.json"), before);
}

#[test]
fn a_second_round_changes_nothing() {
    for run in ["intercode-bash-023", "openhands-examples-003", "claudecode-sessions-007"] {
        let place = Place::with_run(run);
        let first = place.answer("compact run.json --json");
        assert!(!cut(&first).is_empty(), "{run}");
        place.ratoon("compact run.json --messages two.json").output().unwrap();
        let second = place.answer("compact two.json --json");
        assert_eq!(second["changed"], false, "{run}");
        assert_eq!(second["messages"], first["messages"], "{run}");
        assert!(place.shown("compact two.json --explain").contains("already compacted"), "{run}");
    }
}

#[test]
fn options_goal_and_tools_come_from_the_command_line() {
    let place = Place::with_run("intercode-bash-023");
    let all = place.answer("compact run.json --json");
    let none = place.answer("compact run.json --json --tools other,another");
    assert_eq!((cut(&all).len(), cut(&none).len()), (3, 0));
    let kept = place.answer("compact run.json --json --option preserve_recent_messages=100");
    assert_eq!(cut(&kept).len(), 0);
    let budget = "compact run.json --json --token-counter json_chars --option max_output_tokens=9950";
    let within = place.answer(budget);
    assert_eq!((within["budget_met"].clone(), cut(&within).len()), (true.into(), 1));
}

#[test]
fn a_tool_that_no_result_is_of_is_named() {
    let place = Place::with_run("intercode-bash-023");
    let said = |tools: &str| {
        let output = place.ratoon(&format!("compact run.json --json --tools {tools}")).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!([said("bash"), said("all")], ["", ""]);
    insta::assert_snapshot!(said("bash,Bash,sh"), @"warning: no result is of a tool named Bash or sh");
}

#[test]
fn rules_cannot_tell_at_one_half() {
    let place = Place::with_run("intercode-bash-023");
    let arguments = "compact run.json --option drop_threshold=0.5";
    let hint = "hint: for rules a need of 0.5 means \"cannot tell\", and this drop_threshold cuts that, too; use less than 0.5\n";
    let table = place.shown(&format!("{arguments} --explain"));
    assert!(table.contains(hint), "{table}");
    assert!(table.contains("0.500  cut       cannot tell; drop_threshold cuts it"), "{table}");
    let output = place.ratoon(&format!("{arguments} --json")).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), hint);
    assert!(!place.shown(&arguments.replace("0.5", "0.49")).contains("cannot tell"));
}

#[test]
fn standard_input_has_no_archive_and_says_so() {
    let place = Place::with_run("intercode-bash-023");
    let run = fs::read(place.path("run.json")).unwrap();
    let output = fed(place.ratoon("compact - --json"), &run);
    assert!(output.status.success() && cut(&crate::support::answer(&output)).is_empty());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"hint: standard input cannot be read again to recover originals, so nothing is cut; give a file, or a request with source_refs");
    let explained = shown(&fed(place.ratoon("compact - --explain"), &run));
    insta::assert_snapshot!(explained.split_once("\n\n").unwrap().1, @"
    id        tool  size  need  decision  reason                           saved
    call_001  bash   608        keep      no reference to recover it from
    call_002  bash   608        keep      no reference to recover it from
    call_003  bash   608        keep      no reference to recover it from
    call_004  bash   608        keep      no reference to recover it from
    call_005  bash   608        keep      among the newest 6 steps
    call_006  bash   744        keep      among the newest 6 steps
    call_007  bash   608        keep      among the newest 6 steps
    call_008  bash   608        keep      among the newest 6 steps
    call_009  bash   472        keep      among the newest 6 steps
    call_010  bash   608        keep      among the newest 6 steps

    characters  10,148, unchanged
    results     10: 0 cut, 10 kept; 0 candidates, 10 protected
    protected   6 recent, 4 no reference
    model       rules, 0 requests, <time>
    hint: standard input cannot be read again to recover originals, so nothing is cut; give a file, or a request with source_refs
    --- stderr
    ");
}

#[test]
fn a_request_brings_its_own_references() {
    let place = Place::new();
    let long = "x".repeat(2000);
    let list = messages(&[("a", "read", &long), ("b", "write", &long), ("c", "read", &long)]);
    let request = format!(
        r#"{{"messages":{list},"goal":"g","source_refs":{{"a":"archive/1","b":"archive/2"}},
            "eligible_tool_names":["read"],"options":{{"preserve_recent_messages":0}}}}"#
    );
    let output = fed(place.ratoon("compact - --explain"), request.as_bytes());
    insta::assert_snapshot!(shown(&output), @"
    exit 0
    --- stdout
    id  tool    size   need  decision  reason                           saved
    a   read   2,000  0.000  cut       repeated by a later result       1,656
    b   write  2,000         keep      results of this tool stay
    c   read   2,000         keep      no reference to recover it from

    characters  6,692 -> 5,039 (-24.7 %)
    results     3: 1 cut, 2 kept; 1 candidate, 2 protected
    protected   1 tool not eligible, 1 no reference
    model       rules, 1 request, <time>
    hint: no reference for 1 result; add to source_refs
    hint: 1 result of tools that are not eligible; pass --tools A,B or --tools all
    --- stderr
    ");
}

#[test]
fn what_prevents_every_cut_is_explained() {
    let place = Place::new();
    let long = "x".repeat(2000);
    let list = messages(&[("a", "read", &long), ("b", "read", &long)]);
    let hints = |request: &str| {
        place.write("request.json", request);
        let shown = place.shown("compact request.json --explain");
        shown.lines().filter(|line| line.starts_with("hint:")).collect::<Vec<_>>().join("\n")
    };
    let with = |fields: &str| {
        format!(
            r#"{{"messages":{list},"source_refs":{{"a":"r/1","b":"r/2"}},"eligible_tool_names":["read"]{fields}}}"#
        )
    };
    insta::assert_snapshot!(hints(&list), @"hint: all results are in the newest 6 steps; try a smaller --option preserve_recent_messages=3");
    insta::assert_snapshot!(hints(&with("")), @"hint: all results are in the newest 6 messages; try --option recent_unit=step or a smaller --option preserve_recent_messages=3");
    insta::assert_snapshot!(hints(&with(r#","goal":" ","options":{"preserve_recent_messages":0}"#)), @"hint: nothing says what the agent is after, so nothing could be judged; pass --goal TEXT");
}

#[test]
fn long_histories_stay_readable() {
    let place = Place::new();
    let ids: Vec<String> = (0..1000).map(|number| format!("call_{number:04}")).collect();
    let texts: Vec<String> = (0..1000).map(|number| format!("{:01500}", number.min(950))).collect();
    let results: Vec<(&str, &str, &str)> =
        ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), "read", text.as_str())).collect();
    place.write("run.json", messages(&results));
    let shown = place.shown("compact run.json --explain");
    let rows = shown.lines().filter(|line| line.starts_with("call_")).count();
    let cut = shown.lines().filter(|line| line.starts_with("call_") && line.contains(" cut ")).count();
    assert_eq!((rows, cut), (200, 45));
    assert!(shown.contains("\n800 more results not shown; --json has them all\n"), "{shown}");
    assert!(shown.contains("\nresults     1,000: 45 cut, 955 kept"), "{shown}");
}

#[test]
fn ids_and_names_cannot_disturb_the_terminal() {
    let place = Place::new();
    let long = "x".repeat(2000);
    let id = format!("\u{1b}]0;title\u{7}\u{202e}{}\n", "long".repeat(50));
    place.write(
        "run.json",
        messages(&[(&id, "read\u{1b}[2J\r\n", &long), ("b", "工具", &long), ("c", "t", "")]),
    );
    let shown = place.shown("compact run.json --explain --option preserve_recent_messages=1");
    assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown}");
    insta::assert_snapshot!(shown, @"
    exit 0
    --- stdout
    run.json is a list of messages; assumed: the recommended profile, all tools and the file as the archive of its originals

    id                        tool      size   need  decision  reason                         saved
    ]0;titlelong…onglonglong  read[2J  2,000  0.000  cut       repeated by a later result     1,434
    b                         工具     2,000  0.500  keep      needed or uncertain
    c                         t            0         keep      an excerpt would save nothing

    characters  5,150 -> 3,719 (-27.8 %)
    results     3: 1 cut, 2 kept; 3 candidates, 0 protected
    model       rules, 1 request, <time>
    hint: rules cut only what the history itself repeats; a decision model judges what is left (1 result): --model agentscope
    --- stderr
    ");
}
