//! The settings of the decision model: command line, then environment, then `.env`.
//!
//! The process environment is only read, never changed. Blank values count as unset everywhere.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ratoon::{DecisionModel, Settings, Template};
use ratoon_models::{Backend, ModelSettings, SecretString};

use crate::arguments::Compact;
use crate::failure::Failure;
use crate::terminal::{say, shown, warn};

const BACKEND: &str = "DECISION_MODEL_BACKEND";
const MODEL_NAME: &str = "DECISION_MODEL_NAME";
const API_KEY: &str = "DECISION_MODEL_API_KEY";
const BASE_URL: &str = "DECISION_MODEL_BASE_URL";

/// The decision model that the command line and the environment ask for.
pub(crate) fn model(arguments: &Compact) -> Result<Box<dyn DecisionModel>, Failure> {
    let environment = Environment::read()?;
    let chosen_by_file = arguments.model.is_none() && environment.is_of_the_file(BACKEND);
    if chosen_by_file {
        environment.name_the_file();
    }
    let backend = match arguments.model {
        Some(backend) => backend,
        None => environment.get(BACKEND).map_or(Ok(Backend::Rules), backend_named)?,
    };
    if arguments.base_url.as_deref().is_some_and(|url| url.trim().is_empty()) {
        return Err(Failure::usage("--base-url is empty").with_hint("leave it out to ask the public address"));
    }
    if backend == Backend::Rules && (arguments.base_url.is_some() || arguments.model_name.is_some()) {
        return Err(Failure::usage("--base-url and --model-name need a decision model behind them")
            .with_hint("add --model agentscope"));
    }
    if backend != Backend::Rules && arguments.base_url.is_none() && environment.redirects_the_key() {
        return Err(Failure::usage(format!(
            "{API_KEY} comes from the environment, but {BASE_URL} from .env"
        ))
        .with_hint(format!("set {BASE_URL} in the environment as well, or pass --base-url")));
    }
    let of_the_file = |typed: &Option<String>, name| typed.is_none() && environment.is_of_the_file(name);
    if !chosen_by_file
        && backend != Backend::Rules
        && (of_the_file(&arguments.model_name, MODEL_NAME)
            || of_the_file(&arguments.base_url, BASE_URL)
            || of_the_file(&None, API_KEY))
    {
        environment.name_the_file();
    }
    let mut settings = ModelSettings::new(backend);
    settings.model_name = arguments.model_name.clone().or(environment.get(MODEL_NAME).map(str::to_owned));
    settings.base_url = arguments.base_url.clone().or(environment.get(BASE_URL).map(str::to_owned));
    settings.api_key = environment.get(API_KEY).map(SecretString::from);
    ratoon_models::build(settings).map_err(|error| Failure::usage(error.to_string()))
}

/// The settings of the flow.
pub(crate) fn flow(arguments: &Compact) -> Settings {
    let mut settings = Settings::default();
    // Public replays found questions with explicit criteria far better; models that read the history itself never
    // see them.
    settings.question = arguments.question.unwrap_or(Template::Criteria);
    settings
}

fn backend_named(name: &str) -> Result<Backend, Failure> {
    Backend::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Backend::ALL.iter().flat_map(|backend| backend.names()).copied().collect();
        Failure::usage(format!("{BACKEND} names no decision model: {}", shown(name, 40)))
            .with_hint(format!("use one of: {}", known.join(", ")))
    })
}

/// The variables that matter, wherever they come from.
#[derive(Debug)]
struct Environment {
    /// Of the process.
    process: HashMap<String, String>,
    /// Of the nearest `.env`, for what the process does not set.
    file: HashMap<String, String>,
    /// Where that file is.
    path: PathBuf,
}

impl Environment {
    fn read() -> Result<Environment, Failure> {
        let (path, file) = std::env::current_dir().map(|directory| dot_env(&directory)).unwrap_or_default();
        let mut process = HashMap::new();
        for name in [BACKEND, MODEL_NAME, API_KEY, BASE_URL] {
            let Some(value) = std::env::var_os(name) else { continue };
            let value =
                value.into_string().map_err(|_| Failure::usage(format!("{name} is not UTF-8 text")))?;
            if !value.trim().is_empty() {
                process.insert(name.to_owned(), value);
            }
        }
        Ok(Environment { process, file, path })
    }

    fn get(&self, name: &str) -> Option<&str> {
        let values = [&self.process, &self.file];
        let mut given = values.into_iter().filter_map(|values| values.get(name)).map(|value| value.trim());
        given.find(|value| !value.is_empty())
    }

    /// True if the value comes from `.env`.
    fn is_of_the_file(&self, name: &str) -> bool {
        !self.process.contains_key(name) && self.get(name).is_some()
    }

    /// Says that a file in the folder has an effect, since somebody else may have put it there.
    fn name_the_file(&self) {
        say(&format!("using .env at {}", shown(&self.path.to_string_lossy(), 400)));
    }

    /// True if a key of the person would be sent to an address that a file in the folder names: a repository that
    /// somebody else wrote must not collect keys.
    fn redirects_the_key(&self) -> bool {
        self.process.contains_key(API_KEY) && self.is_of_the_file(BASE_URL)
    }
}

/// The nearest `.env`, in this directory or above, and its values.
fn dot_env(directory: &Path) -> (PathBuf, HashMap<String, String>) {
    for directory in directory.ancestors() {
        let path = directory.join(".env");
        // A pipe of this name would be waited for without end.
        if fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            warn(&format!("{} is ignored: it is not a regular file", name_of(&path)));
            continue;
        }
        match fs::read(&path) {
            Ok(bytes) => {
                let values = parsed(&path, &bytes);
                return (path, values);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Virtual environments of Python are often directories of this name.
            Err(_) if path.is_dir() => {}
            Err(error) => warn(&format!("{} cannot be read: {error}", name_of(&path))),
        }
    }
    Default::default()
}

fn parsed(path: &Path, bytes: &[u8]) -> HashMap<String, String> {
    let Ok(text) = str::from_utf8(bytes) else {
        warn(&format!("{} is ignored: it is not UTF-8 text", name_of(path)));
        return HashMap::new();
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The parser takes white space before the end of the file for an unfinished line.
    let ended = format!("{text}\n");
    let mut values = HashMap::new();
    for item in dotenvy::from_read_iter(ended.as_bytes()) {
        match item {
            // As everywhere with .env files, the first of several values counts.
            Ok((name, value)) => drop(values.entry(name).or_insert(value)),
            Err(dotenvy::Error::LineParse(line, _)) => {
                let place = line_number(text, &line).map_or(String::new(), |line| format!(", line {line}"));
                // The line may hold a key, so it is not quoted.
                warn(&format!("{}{place} is not NAME=VALUE and is ignored", name_of(path)));
            }
            Err(_) => {}
        }
    }
    values
}

/// The line, from 1, in which an entry begins that the parser has given back.
fn line_number(text: &str, entry: &str) -> Option<usize> {
    let first = entry.lines().next()?;
    text.lines().position(|line| line.starts_with(first)).map(|at| at + 1)
}

/// Short, since it is nearly always the file in the working directory.
fn name_of(path: &Path) -> String {
    let working = std::env::current_dir().unwrap_or_else(|_| PathBuf::new());
    let path = path.strip_prefix(&working).unwrap_or(path);
    shown(&path.to_string_lossy(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_env_follows_the_usual_rules() {
        let text =
            "# a comment\nexport A=one\nB='two # three'\nC=\"four\\nfive\" # six\r\nA=seven\nD=${A}-x\nE= ";
        let values = parsed(Path::new(".env"), text.as_bytes());
        let get = |name: &str| values.get(name).map(String::as_str);
        assert_eq!([get("A"), get("B"), get("C")], [Some("one"), Some("two # three"), Some("four\nfive")]);
        assert_eq!([get("E"), get("F")], [Some(""), None]);
        assert!(get("D").is_some_and(|value| value.ends_with("-x")));
        assert_eq!(parsed(Path::new(".env"), b"\xef\xbb\xbfA=1").get("A").map(String::as_str), Some("1"));
        assert!(parsed(Path::new(".env"), b"A=\xff").is_empty());
    }

    #[test]
    fn the_nearest_file_counts() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(top.path().join(".env"), "A=top").unwrap();
        assert_eq!(dot_env(&deep).1.get("A").map(String::as_str), Some("top"));
        fs::create_dir(deep.join(".env")).unwrap();
        assert_eq!(dot_env(&deep).1.get("A").map(String::as_str), Some("top"));
        fs::write(top.path().join("a/.env"), "B=middle").unwrap();
        let (path, values) = dot_env(&deep);
        assert_eq!(path, top.path().join("a/.env"));
        assert_eq!((values.get("A"), values.get("B").map(String::as_str)), (None, Some("middle")));
    }

    #[test]
    fn a_broken_line_is_found_again() {
        assert_eq!(line_number("A=1\nnonsense here\nB=2", "nonsense here"), Some(2));
        assert_eq!(line_number("A=1\nB=\"open\nC=3\n", "B=\"open\nC=3\n\n"), Some(2));
    }
}
