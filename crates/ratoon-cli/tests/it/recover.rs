//! Originals come back, and everything that can be in the way of that.

use crate::support::{Place, cut, messages, result_texts};

#[test]
fn every_cut_result_comes_back_byte_for_byte() {
    let mut recovered = 0;
    for run in
        ["intercode-bash-023", "openhands-examples-003", "sweagent-openrouter-009", "claudecode-sessions-007"]
    {
        let place = Place::with_run(run);
        let originals = result_texts(&place.path("run.json"));
        let answer = place.answer("compact run.json --json");
        for decision in answer["decisions"].as_array().unwrap().iter().filter(|d| d["action"] == "preview") {
            let reference = decision["source_ref"].as_str().unwrap();
            let output = place.ratoon("recover").arg(reference).output().unwrap();
            let original = originals.iter().find(|(id, _)| decision["call_id"] == **id);
            let original = original.and_then(|(_, text)| text.as_ref()).expect("a text was cut");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), *original, "{run} {reference}");
            assert!(output.status.success() && output.stderr.is_empty(), "{run} {reference}");
            recovered += 1;
        }
    }
    assert!(recovered >= 10, "{recovered}");
}

#[test]
fn odd_ids_and_file_names_come_back() {
    let place = Place::new();
    let text = format!("{}\n\ttabs, \"quotes\" and 文字\r\n", "é".repeat(2000));
    let ids = ["a b", "100%", "a#b", "x\ny", "'q'", "工具"];
    let results: Vec<(&str, &str, &str)> = ids.iter().map(|id| (*id, "read", text.as_str())).collect();
    place.write("-runs #1/run\n 1%.json", messages(&results));
    let compact = || {
        let mut command = place.ratoon("compact --json --option preserve_recent_messages=1");
        command.arg("./-runs #1/run\n 1%.json");
        command
    };
    let answer = crate::support::answer(&compact().output().unwrap());
    assert_eq!(cut(&answer), ids[..5]);
    for decision in answer["decisions"].as_array().unwrap() {
        let reference = decision["source_ref"].as_str().unwrap();
        assert!(!reference.contains('\n'), "{reference}");
        let output = place.ratoon("recover").arg(reference).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{reference}");
    }
}

#[test]
fn parts_of_an_original() {
    let place = Place::new();
    place.write("run.json", messages(&[("a", "read", "one\r\ntwo\nthree\nfour")]));
    insta::assert_snapshot!(place.shown("recover run.json#a --lines 2:3"), @"
    exit 0
    --- stdout
    two
    three
    --- stderr
    ");
    insta::assert_snapshot!(place.shown("recover run.json#a --grep o --lines 2:"), @"
    exit 0
    --- stdout
    2:two
    4:four
    --- stderr
    ");
    insta::assert_snapshot!(place.shown("recover run.json#a --lines 9:"), @"
    exit 1
    --- stdout
    --- stderr
    error: the original has no such lines
    hint: it has 4 lines
    ");
    insta::assert_snapshot!(place.shown("recover run.json#a --grep zzz"), @"
    exit 1
    --- stdout
    --- stderr
    error: no line of the original matches
    ");
    insta::assert_snapshot!(place.shown("recover run.json#a --lines 3:2"), @"
    exit 2
    --- stdout
    --- stderr
    error: invalid value '3:2' for '--lines <A:B>': line 3 comes after line 2

    For more information, try '--help'.
    ");
    let whole = place.ratoon("recover run.json#a").output().unwrap();
    assert_eq!(whole.stdout, b"one\r\ntwo\nthree\nfour");
}

#[test]
fn every_failure_is_distinct() {
    let place = Place::new();
    let list = messages(&[("twice", "read", "secret"), ("twice", "read", "secret")]);
    place.write("run.json", list).write("other.txt", "secret");
    place.write(
        "image.json",
        messages(&[("a", "read", "secret")]).replace("\"secret\"", "[{\"type\":\"data\"}]"),
    );
    insta::assert_snapshot!(place.shown("recover none.json#a"), @"
    exit 2
    --- stdout
    --- stderr
    error: there is no file none.json
    hint: the file of a reference is relative to where ratoon compact ran
    ");
    place.write("sub/file", "");
    insta::assert_snapshot!(place.shown("recover sub#a"), @"
    exit 2
    --- stdout
    --- stderr
    error: sub is a directory, not a file
    ");
    insta::assert_snapshot!(place.shown("recover run.json#a"), @"
    exit 1
    --- stdout
    --- stderr
    error: run.json, a: no result in the file has this id
    ");
    insta::assert_snapshot!(place.shown("recover run.json#twice"), @"
    exit 1
    --- stdout
    --- stderr
    error: run.json, twice: 2 results in the file have this id, so it is not clear which one is meant
    ");
    insta::assert_snapshot!(place.shown("recover image.json#a"), @"
    exit 1
    --- stdout
    --- stderr
    error: image.json, a: the result is not text
    ");
    insta::assert_snapshot!(place.shown("recover other.txt#a"), @"
    exit 1
    --- stdout
    --- stderr
    error: other.txt holds no messages: the input is not JSON: a value is expected here (line 1, column 1)
    ");
    insta::assert_snapshot!(place.shown("recover archive/1"), @"
    exit 2
    --- stdout
    --- stderr
    error: this is no reference to a file: it has the form FILE#CALL_ID
    hint: other references belong to whoever wrote the request
    ");
}

#[test]
fn an_excerpt_leads_on_to_its_original() {
    let place = Place::with_run("intercode-bash-023");
    let first = cut(&place.answer("compact run.json --json")).remove(0);
    place.ratoon("compact run.json --messages small.json").output().unwrap();
    let output = place.ratoon("recover").arg(format!("small.json#{first}")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(&format!("run.json#{first}]")));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"hint: this is an excerpt itself; its original: ratoon recover 'run.json#call_001'");
}
