//! A directory of its own for each test, and the binary run in it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

/// A directory in which the binary runs.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { directory: tempfile::tempdir().unwrap() }
    }

    /// With a copy of a recorded run as `run.json`.
    pub(crate) fn with_run(name: &str) -> Place {
        let place = Place::new();
        let run = ratoon_testing::data::testdata().join("runs").join(format!("{name}.json"));
        fs::copy(run, place.path("run.json")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Place {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of all files, hidden ones included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The binary with these arguments (split at spaces), in an environment that says nothing.
    pub(crate) fn ratoon(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ratoon"));
        command.args(arguments.split_whitespace()).current_dir(self.directory.path()).stdin(Stdio::null());
        let silenced = ["BACKEND", "NAME", "API_KEY", "BASE_URL"];
        for name in silenced {
            command.env_remove(format!("DECISION_MODEL_{name}"));
        }
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "HTTP_PROXY", "http_proxy"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the binary and shows what came of it.
    pub(crate) fn shown(&self, arguments: &str) -> String {
        shown(&self.ratoon(arguments).output().unwrap())
    }

    /// Runs the binary, which must succeed, and reads the answer it prints.
    pub(crate) fn answer(&self, arguments: &str) -> Value {
        answer(&self.ratoon(arguments).output().unwrap())
    }
}

/// Runs a command with a text on its standard input.
pub(crate) fn fed(mut command: Command, text: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap()
}

/// The answer that a successful run printed.
pub(crate) fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", shown(output));
    ratoon_testing::exact::value(str::from_utf8(&output.stdout).unwrap())
}

/// Exit code, standard output and standard error, with times replaced.
pub(crate) fn shown(output: &Output) -> String {
    let text = format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().map_or("by signal".to_owned(), |code| code.to_string()),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let times = Regex::new(r"\b(\d+ ms|\d+\.\d s)\b").unwrap();
    times.replace_all(&text, "<time>").into_owned()
}

/// The texts of all results of a message list or recorded run, by call id, read without the code under test.
pub(crate) fn result_texts(file: &Path) -> Vec<(String, Option<String>)> {
    let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let messages = document.get("messages").unwrap_or(&document).as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| {
            let text = match &block["output"] {
                Value::String(text) => Some(text.clone()),
                Value::Array(items) => items
                    .iter()
                    .map(|item| item["text"].as_str().filter(|_| item["type"] == "text"))
                    .collect::<Option<Vec<_>>>()
                    .map(|texts| texts.join("\n")),
                _ => None,
            };
            (block["id"].as_str().unwrap_or_default().to_owned(), text)
        })
        .collect()
}

/// The call ids that an answer cuts back.
pub(crate) fn cut(answer: &Value) -> Vec<String> {
    let decisions = answer["decisions"].as_array().unwrap();
    let previews = decisions.iter().filter(|decision| decision["action"] == "preview");
    previews.map(|decision| decision["call_id"].as_str().unwrap().to_owned()).collect()
}

/// A message list: a question, then a call and its result a message, then a word of the agent.
pub(crate) fn messages(results: &[(&str, &str, &str)]) -> String {
    let mut list =
        vec![serde_json::json!({"role": "user", "content": [{"type": "text", "text": "Find the fault."}]})];
    for (id, tool, text) in results {
        list.push(serde_json::json!({"role": "assistant", "content": [
            {"type": "tool_call", "id": id, "name": tool, "input": "{}", "state": "finished"},
            {"type": "tool_result", "id": id, "name": tool, "output": text, "state": "success"}]}));
    }
    list.push(serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": "I see."}]}));
    Value::from(list).to_string()
}
