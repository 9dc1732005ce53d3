//! Where files may be written, and how.

use std::fs;

use crate::support::{Place, messages, shown};

const RUN: &str = "intercode-bash-023";

/// Runs a command that must be refused and must leave all files as they are.
fn refused(place: &Place, arguments: &str) -> String {
    let names = place.names();
    let run = place.read("run.json");
    let output = place.ratoon(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {}", shown(&output));
    assert_eq!(place.read("run.json"), run);
    assert_eq!(place.names(), names);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_input_is_never_overwritten() {
    let place = Place::with_run(RUN);
    place.write("sub/file", "");
    insta::assert_snapshot!(refused(&place, "compact run.json -o run.json"), @"
    error: run.json is the input and is not overwritten
    hint: the originals of cut results are recovered from it; write to another file
    ");
    insta::assert_snapshot!(refused(&place, "compact run.json --messages sub/../run.json"), @"
    error: sub/../run.json is the input and is not overwritten
    hint: the originals of cut results are recovered from it; write to another file
    ");
    let absolute = place.path("run.json");
    let output = place.ratoon("compact run.json --messages").arg(absolute).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("run.json", place.path("link.json")).unwrap();
        refused(&place, "compact run.json -o link.json");
        refused(&place, "compact link.json -o run.json");
    }
}

#[test]
fn the_archive_of_an_earlier_round_is_not_overwritten() {
    let place = Place::with_run(RUN);
    place.ratoon("compact run.json --messages small.json").output().unwrap();
    insta::assert_snapshot!(refused(&place, "compact small.json --messages run.json"), @"
    error: run.json is not overwritten: references of the input lead to it
    hint: the originals of cut results are recovered from it; write to another file
    ");
    assert!(place.ratoon("compact small.json --messages smaller.json").output().unwrap().status.success());
    let refs = r#""source_refs":{"a":"run.json#call_1"}"#;
    place.write("request.json", format!(r#"{{"messages":{},{refs}}}"#, messages(&[("a", "read", "text")])));
    refused(&place, "compact request.json -o run.json");
}

#[test]
fn places_that_cannot_be_written_are_found_before_anything_is_asked() {
    let place = Place::with_run(RUN);
    place.write("sub/file", "");
    insta::assert_snapshot!(refused(&place, "compact run.json -o none/answer.json"), @"error: there is no directory none");
    insta::assert_snapshot!(refused(&place, "compact run.json -o sub"), @"error: sub is a directory, not a file");
    insta::assert_snapshot!(refused(&place, "compact run.json -o sub/.."), @"error: sub/.. is a directory, not a file");
    insta::assert_snapshot!(refused(&place, "compact run.json -o x.json --messages ./x.json"), @"error: x.json cannot hold both answer and messages");
    insta::assert_snapshot!(refused(&place, "compact run.json --json --messages -"), @"
    error: standard output cannot hold both answer and messages
    hint: write one of them to a file
    ");
    refused(&place, "compact run.json -o - --messages /dev/stdout");
    refused(&place, "compact run.json -o /dev/stdout --messages -");
}

#[test]
fn files_are_replaced_whole() {
    let place = Place::with_run(RUN);
    place.write("answer.json", "x".repeat(1 << 20));
    assert!(place.ratoon("compact run.json -o answer.json").output().unwrap().status.success());
    assert!(place.read("answer.json").ends_with("}\n"));
    assert_eq!(place.names(), ["answer.json", "run.json"]);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay_as_they_are() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_run(RUN);
    place.write("sub/real.json", "").write("usual", "");
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(place.path("sub/real.json"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("sub/real.json", place.path("link.json")).unwrap();
    assert!(place.ratoon("compact run.json -o link.json").output().unwrap().status.success());
    assert!(fs::symlink_metadata(place.path("link.json")).unwrap().is_symlink());
    assert!(place.read("sub/real.json").starts_with('{'));
    assert_eq!(mode("sub/real.json"), 0o640);
    assert!(place.ratoon("compact run.json -o new.json").output().unwrap().status.success());
    assert_eq!(mode("new.json"), mode("usual"));
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_written_directly() {
    let place = Place::with_run(RUN);
    let output = place.ratoon("compact run.json --messages /dev/stdout").output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"["), "{}", shown(&output));
    assert!(place.ratoon("compact run.json -o /dev/null").output().unwrap().status.success());
    let output = place.ratoon("compact run.json -o /dev/full").output().unwrap();
    insta::assert_snapshot!(shown(&output), @"
    exit 1
    --- stdout
    --- stderr
    error: /dev/full cannot be written: No space left on device (os error 28)
    ");
}

/// What stands behind `/dev/stdout` belongs to whoever opened it: it is written to, never replaced.
#[test]
fn an_open_descriptor_is_written_to() {
    let place = Place::with_run("intercode-bash-023");
    let log = place.path("log.txt");
    std::fs::write(&log, "HEADER\n").unwrap();
    let out = std::fs::File::options().append(true).open(&log).unwrap();
    let mut command = place.ratoon("compact run.json --messages /dev/stdout");
    assert!(command.stdout(out).stderr(std::process::Stdio::null()).status().unwrap().success());
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("HEADER\n[") || text.starts_with("HEADER\n{"), "{}", &text[..40]);
}

#[test]
fn messages_are_printed_if_nothing_else_is() {
    let place = Place::with_run(RUN);
    place.ratoon("compact run.json --messages small.json").output().unwrap();
    let printed = place.ratoon("compact run.json --messages -").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), place.read("small.json"));
    insta::assert_snapshot!(String::from_utf8_lossy(&printed.stderr), @"3 of 10 results cut back, 10,148 -> 9,363 characters; wrote standard output");
    let explained = place.ratoon("compact run.json --messages - --explain").output().unwrap();
    assert_eq!(explained.stdout, printed.stdout);
    assert!(explained.stderr.starts_with(b"run.json is a recorded run"), "{}", shown(&explained));
    assert_eq!(place.names(), ["run.json", "small.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_an_open_descriptor_is_written_through() {
    let place = Place::with_run(RUN);
    std::os::unix::fs::symlink("/dev/stderr", place.path("link")).unwrap();
    let log = fs::File::create(place.path("log.txt")).unwrap();
    let mut command = place.ratoon("compact run.json --messages link");
    assert!(command.stdout(std::process::Stdio::null()).stderr(log).status().unwrap().success());
    assert!(place.path("link").is_symlink());
    assert_eq!(place.names(), ["link", "log.txt", "run.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_replaced() {
    let place = Place::with_run("intercode-bash-023");
    std::os::unix::fs::symlink("nowhere.json", place.path("link.json")).unwrap();
    let output = place.ratoon("compact run.json -o link.json").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(place.path("link.json").is_symlink());
}

#[test]
fn a_hash_in_a_file_name_leads_to_that_file() {
    let place = Place::with_run("openhands-examples-003");
    std::fs::rename(place.path("run.json"), place.path("run #2.json")).unwrap();
    place.write("run ", "[]");
    let output = place.ratoon("compact --json").arg("run #2.json").output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cut =
        answer["decisions"].as_array().unwrap().iter().find(|found| found["action"] == "preview").unwrap();
    let reference = cut["source_ref"].as_str().unwrap();
    assert_eq!(reference.matches('#').count(), 1);
    let original = place.ratoon("recover").arg(reference).output().unwrap();
    assert!(original.status.success() && original.stdout.len() > 1000);
    let whole_marker = format!("[Compacted output. Recover from: {reference}]");
    assert_eq!(place.ratoon("recover").arg(&whole_marker).output().unwrap().stdout, original.stdout);
}
