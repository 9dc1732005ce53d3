//! Settings from the environment and `.env`.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use ratoon_testing::fake_provider::FakeProvider;
use serde_json::Value;

use crate::support::{Place, answer, shown};

/// The model that answers, as the answer names it.
fn model(place: &Place, arguments: &str, environment: &[(&str, &str)]) -> String {
    let mut command = place.ratoon(arguments);
    command.envs(environment.iter().copied());
    answer(&command.output().unwrap())["stats"]["model"].as_str().unwrap().to_owned()
}

const COMPACT: &str = "compact run.json --json";

#[test]
fn the_command_line_beats_the_environment_and_that_the_file() {
    let provider = FakeProvider::start("const:0.5", &Value::Null);
    let place = Place::with_run("intercode-bash-023");
    assert_eq!(model(&place, COMPACT, &[]), "rules");
    place.write(
        ".env",
        format!("DECISION_MODEL_BACKEND=typesafe\nDECISION_MODEL_BASE_URL='{}'\n", provider.base_url()),
    );
    assert_eq!(model(&place, COMPACT, &[]), "agentscope");
    assert_eq!(model(&place, COMPACT, &[("DECISION_MODEL_BACKEND", "rules")]), "rules");
    assert_eq!(model(&place, COMPACT, &[("DECISION_MODEL_BACKEND", " ")]), "agentscope");
    let arguments = format!("{COMPACT} --model typesafe");
    assert_eq!(model(&place, &arguments, &[("DECISION_MODEL_BACKEND", "rules")]), "agentscope");
    let arguments = format!("{COMPACT} --model rules");
    assert_eq!(model(&place, &arguments, &[]), "rules");
}

/// Key and model name of the first request that a command sends.
fn sent(place: &Place, environment: &[(&str, &str)], more: &str) -> (String, String) {
    // The fake provider does not show keys, so this server does nothing but listen.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", server.local_addr().unwrap());
    let mut command = place.ratoon(&format!("{COMPACT} {more}"));
    command.envs([("DECISION_MODEL_BACKEND", "agentscope"), ("DECISION_MODEL_BASE_URL", &address)]);
    let mut child = command
        .envs(environment.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut connection, _) = server.accept().unwrap();
    let mut request = Vec::new();
    while !request.windows(9).any(|end| end == b"questions") {
        let mut piece = [0; 4096];
        let length = connection.read(&mut piece).unwrap();
        assert!(length > 0, "the request ends early");
        request.extend_from_slice(&piece[..length]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let text = String::from_utf8_lossy(&request).into_owned();
    let after = |what: &str, end: char| {
        let at = text.to_ascii_lowercase().find(what).unwrap_or_else(|| panic!("no {what} in {text}"))
            + what.len();
        text[at..].split(end).next().unwrap().to_owned()
    };
    (after("authorization: bearer ", '\r'), after("\"model\":\"", '"'))
}

#[test]
fn key_address_and_name_arrive() {
    let place = Place::with_run("intercode-bash-023");
    place.write(
        ".env",
        "export DECISION_MODEL_API_KEY=\"from-the-file\" # a comment\nDECISION_MODEL_NAME=name-of-the-file\n",
    );
    let pair = |key: &str, name: &str| (key.to_owned(), name.to_owned());
    assert_eq!(sent(&place, &[], ""), pair("from-the-file", "name-of-the-file"));
    assert_eq!(sent(&place, &[("DECISION_MODEL_API_KEY", "real")], ""), pair("real", "name-of-the-file"));
    assert_eq!(sent(&place, &[], "--model-name typed"), pair("from-the-file", "typed"));
    assert_eq!(sent(&place, &[("DECISION_MODEL_NAME", "")], ""), pair("from-the-file", "name-of-the-file"));
}

/// What a run shows, without the place of its `.env`.
fn anonymous(place: &Place, output: &Output) -> String {
    let path = fs::canonicalize(place.path(".env")).unwrap();
    shown(output).replace(path.to_str().unwrap(), "<PATH>")
}

/// What stands in a file is only named if it counts.
#[test]
fn a_file_without_effect_is_not_named() {
    let place = Place::with_run("intercode-bash-023");
    let said = |arguments: &str| String::from_utf8(place.ratoon(arguments).output().unwrap().stderr).unwrap();
    place.write(".env", "DECISION_MODEL_API_KEY=planted-key\nOTHER=1\n");
    assert_eq!(said(COMPACT), "");
    let asked = said(&format!("{COMPACT} --model agentscope --base-url http://127.0.0.1:9"));
    assert!(asked.starts_with("using .env at /") && !asked.contains("planted-key"), "{asked}");
    assert_eq!(asked.matches("using .env").count(), 1, "{asked}");
}

#[cfg(unix)]
#[test]
fn a_pipe_named_like_the_file_is_not_waited_for() {
    let place = Place::with_run("intercode-bash-023");
    let made = Command::new("mkfifo").arg(place.path(".env")).status().unwrap();
    assert!(made.success());
    let output = place.ratoon("compact run.json -o answer.json").output().unwrap();
    insta::assert_snapshot!(shown(&output), @"
    exit 0
    --- stdout
    --- stderr
    warning: .env is ignored: it is not a regular file
    3 of 10 results cut back, 10,148 -> 9,363 characters; wrote answer.json
    ");
}

#[test]
fn broken_lines_are_named_but_not_shown() {
    let place = Place::with_run("intercode-bash-023");
    place.write(".env", "A=1\nsk-secret without a name\nDECISION_MODEL_BACKEND=nonsense\n");
    let output = place.ratoon(COMPACT).output().unwrap();
    insta::assert_snapshot!(anonymous(&place, &output), @"
    exit 2
    --- stdout
    --- stderr
    warning: .env, line 2 is not NAME=VALUE and is ignored
    using .env at <PATH>
    error: DECISION_MODEL_BACKEND names no decision model: nonsense
    hint: use one of: rules, agentscope, typesafe
    ");
    let output = place.ratoon("compact run.json -o answer.json --model rules").output().unwrap();
    insta::assert_snapshot!(shown(&output), @"
    exit 0
    --- stdout
    --- stderr
    warning: .env, line 2 is not NAME=VALUE and is ignored
    3 of 10 results cut back, 10,148 -> 9,363 characters; wrote answer.json
    ");
}

#[test]
fn the_file_of_a_directory_above_counts() {
    let place = Place::with_run("intercode-bash-023");
    place.write(".env", "DECISION_MODEL_BACKEND=typesafe").write("sub/.env/file", "a directory of that name");
    let mut command = place.ratoon("compact ../run.json");
    command.current_dir(place.path("sub"));
    insta::assert_snapshot!(anonymous(&place, &command.output().unwrap()), @"
    exit 2
    --- stdout
    --- stderr
    using .env at <PATH>
    error: the decision model agentscope needs a key: set DECISION_MODEL_API_KEY
    ");
}

/// A repository that somebody else wrote must not collect the keys of whoever runs ratoon in it.
#[test]
fn a_file_cannot_redirect_a_key_of_the_environment() {
    let provider = FakeProvider::start("const:0.5", &Value::Null);
    let place = Place::with_run("intercode-bash-023");
    place.write(
        ".env",
        format!("DECISION_MODEL_BACKEND=agentscope\nDECISION_MODEL_BASE_URL={}\n", provider.base_url()),
    );
    let mut command = place.ratoon(COMPACT);
    command.env("DECISION_MODEL_API_KEY", "planted-key");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("DECISION_MODEL_BASE_URL from .env") && !said.contains("planted-key"), "{said}");
    assert_eq!(provider.stats()["calls"], 0);
    let named = format!("{COMPACT} --base-url {}", provider.base_url());
    assert_eq!(model(&place, &named, &[("DECISION_MODEL_API_KEY", "planted-key")]), "agentscope");
    let offline = format!("{COMPACT} --model rules");
    assert_eq!(model(&place, &offline, &[("DECISION_MODEL_API_KEY", "planted-key")]), "rules");
}

#[test]
fn an_address_without_a_model_behind_it_is_refused() {
    let place = Place::with_run("intercode-bash-023");
    for arguments in ["--base-url http://127.0.0.1:9", "--model-name x", "--model agentscope --base-url= "] {
        let output = place.ratoon(&format!("{COMPACT} {arguments}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}
