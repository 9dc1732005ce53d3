//! Ctrl-C and closed pipes.

#![cfg(unix)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ratoon_testing::fake_provider::FakeProvider;
use serde_json::json;

use crate::support::{Place, shown};

/// Looks again and again, for a while.
fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::yield_now();
    }
}

#[test]
fn control_c_cancels_what_is_in_flight() {
    let provider = FakeProvider::start("const:0.02", &json!({"default": {"hang": true}}));
    let place = Place::with_run("intercode-bash-023");
    let arguments =
        format!("compact run.json --model typesafe --base-url {} -o answer.json", provider.base_url());
    let mut command = place.ratoon(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a request", || provider.stats()["in_flight"] == 1);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    insta::assert_snapshot!(shown(&output), @"
    exit 130
    --- stdout
    --- stderr
    interrupted
    ");
    eventually("the end of the request", || provider.stats()["in_flight"] == 0);
    assert_eq!(provider.stats()["calls"], 1);
    assert_eq!(place.names(), ["run.json"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let place = Place::with_run("pi-sessions-001");
    for arguments in ["compact run.json --json", "compact run.json --explain", "completions bash"] {
        let mut command = place.ratoon(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0; 1];
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", shown(&output));
        assert!(output.stderr.is_empty(), "{arguments}: {}", shown(&output));
    }
}

#[test]
fn a_pipe_closed_from_the_start_is_no_failure() {
    let place = Place::with_run("pi-sessions-001");
    for arguments in ["compact run.json --json", "compact run.json --explain", "--help", "completions zsh"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.ratoon(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", shown(&output));
        assert!(output.stderr.is_empty(), "{arguments}: {}", shown(&output));
    }
}
