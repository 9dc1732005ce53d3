//! Where the test data lie and how they are read: conformance cases, hostile cases and recorded runs.
//!
//! Requests and messages stay the JSON text that stands in the file, because the code under test promises to
//! return every byte it does not shorten. Everything else is read with [`crate::exact`].

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exact;

/// One line of a conformance file; the shape is described in `testdata/conformance/README.md`.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Unique name of the case.
    pub name: String,
    /// What the case exercises; several files share a group.
    pub group: String,
    /// Further marks such as `timing` or `lax-coercion`; empty for wire cases.
    #[serde(default)]
    pub tags: Vec<String>,
    /// A remark for people.
    #[serde(default)]
    pub note: Option<String>,
    /// The whole request, as it stands in the file.
    pub request: Box<RawValue>,
    /// What the decision model answers, see [`crate::hash_model::plan`]; null for wire cases.
    #[serde(default, deserialize_with = "exact::deserialize")]
    pub model: Value,
    /// Name of the token counter the host supplies.
    pub token_counter: Option<String>,
    /// Between which estimated sizes of one question text the batches stay as recorded.
    #[serde(default)]
    pub instruction_tokens_ok: Option<(f64, f64)>,
    /// The recorded outcome: `answer` or `error`, and the decision requests or HTTP calls.
    #[serde(deserialize_with = "exact::deserialize")]
    pub expect: Value,
    /// Wire cases: `rule` and `script` of the fake provider.
    #[serde(default, deserialize_with = "exact::deserialize")]
    pub server: Value,
    /// Wire cases: `timeout`, `max_retries` and `retry_delay` in seconds.
    #[serde(default, deserialize_with = "exact::deserialize")]
    pub client: Value,
    /// Wire cases: the outcome follows from the reference's strict client and may differ, see the README.
    #[serde(default)]
    pub advisory: bool,
}

/// One file of `testdata/cases`; the shape is described in the README beside it.
#[derive(Debug, Deserialize)]
pub struct HostileCase {
    /// Unique name of the case.
    pub name: String,
    /// The family of faults it belongs to.
    pub kind: String,
    /// Where people reported the fault.
    #[serde(deserialize_with = "exact::deserialize")]
    pub source: Value,
    /// `must` or `should`.
    pub level: String,
    /// What goes wrong elsewhere, in plain words.
    pub note: String,
    /// The whole request, as it stands in the file.
    pub request: Box<RawValue>,
    /// What the decision model answers, see [`crate::case_model::plan`].
    #[serde(deserialize_with = "exact::deserialize")]
    pub decision_model: Value,
    /// Name of the token counter the host supplies.
    #[serde(default)]
    pub token_counter: Option<String>,
    /// The outcome that is right for the user.
    #[serde(deserialize_with = "exact::deserialize")]
    pub expect: Value,
    /// What the reference did with the same input.
    #[serde(deserialize_with = "exact::deserialize")]
    pub reference_behaviour: Value,
    /// Whether AgentScope itself accepts all the messages.
    pub agentscope_valid: bool,
}

/// A recorded run of a real agent.
#[derive(Debug)]
pub struct Run {
    /// File name without its extension.
    pub name: String,
    /// Licence of the repository that published the run.
    pub licence: String,
    /// The message list, as it stands in the file.
    pub messages: Box<RawValue>,
}

/// The directory of the test data.
pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The names of all conformance files, in alphabetical order.
pub fn conformance_files() -> Vec<String> {
    files(&testdata().join("conformance"), "jsonl")
        .iter()
        .map(|path| path.file_name().expect("a listed file has a name").to_string_lossy().into_owned())
        .collect()
}

/// The cases of one conformance file, for example `seed.jsonl`.
pub fn conformance(file: &str) -> Vec<Case> {
    let path = testdata().join("conformance").join(file);
    text(&path)
        .lines()
        .enumerate()
        .map(|(index, line)| parsed(line, &format!("{}:{}", path.display(), index + 1)))
        .collect()
}

/// All hostile cases, in the order of their numbers.
pub fn cases() -> Vec<HostileCase> {
    files(&testdata().join("cases"), "json")
        .iter()
        .map(|path| parsed(&text(path), &path.display().to_string()))
        .collect()
}

/// The recorded runs of `testdata/runs`, or of another directory with files of the same shape.
pub fn runs(dir: Option<PathBuf>) -> Vec<Run> {
    /// The part of the file that [`Run`] takes over.
    #[derive(Deserialize)]
    struct Recorded {
        licence: String,
        messages: Box<RawValue>,
    }
    files(&dir.unwrap_or_else(|| testdata().join("runs")), "json")
        .iter()
        .map(|path| {
            let Recorded { licence, messages } = parsed(&text(path), &path.display().to_string());
            let name = path.file_stem().expect("a listed file has a name").to_string_lossy().into_owned();
            Run { name, licence, messages }
        })
        .collect()
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("cannot list {}: {error}", dir.display())).path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str, place: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{place} is not of the expected shape: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_case_is_read() {
        let all: Vec<Case> = conformance_files().iter().flat_map(|file| conformance(file)).collect();
        assert_eq!(all.len(), 452);
        assert_eq!(all.iter().filter(|case| !case.server.is_null()).count(), 39);
        assert!(all.iter().all(|case| case.server.is_null() != case.model.is_null()));
    }

    #[test]
    fn requests_keep_their_spelling() {
        let request = &conformance("seed.jsonl")[0].request;
        assert!(text(&testdata().join("conformance/seed.jsonl")).contains(request.get()));
    }

    #[test]
    fn probabilities_beside_the_threshold_stay_beside_it() {
        let written = |case: &Case| case.expect.to_string().contains("0.09999999999999999");
        assert!(conformance("threshold.jsonl").iter().any(written));
    }

    #[test]
    fn every_hostile_case_is_read() {
        let all = cases();
        assert_eq!(all.len(), 32);
        assert!(all.iter().all(|case| case.level == "must" || case.level == "should"));
        assert_eq!(all.iter().filter(|case| case.token_counter.is_some()).count(), 2);
    }

    #[test]
    fn runs_are_permissive_and_varied() {
        let all = runs(None);
        assert!(all.len() >= 50, "only {} runs", all.len());
        assert!(all.iter().all(|run| run.licence == "MIT" || run.licence == "Apache-2.0"));
        assert!(all.iter().all(|run| run.messages.get().starts_with('[')));
        let sizes: Vec<usize> = all.iter().map(|run| run.messages.get().len()).collect();
        assert!(sizes.iter().any(|&size| size < 10_000) && sizes.iter().any(|&size| size > 200_000));
    }

    #[test]
    fn another_directory_can_be_read() {
        let missing = testdata().join("tools");
        assert!(runs(Some(missing)).is_empty());
    }
}
