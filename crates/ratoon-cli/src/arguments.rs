//! What was typed, exactly. The doc comments are the help texts.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use ratoon::count::NamedCounter;
use ratoon::{Format, Overrides, Template};
use ratoon_models::Backend;
use regex::Regex;

/// Shrink what an AI agent has to carry: cut old tool results back to an excerpt from which the original grows
/// again.
#[derive(Debug, Parser)]
#[command(name = "ratoon", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ratoon compact run.json                         what would be cut, and why
  ratoon compact run.json --messages small.json   write the smaller message list
  ratoon recover 'run.json#call_7'                get an original back";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compact(Compact),
    Recover(Recover),
    Completions(Completions),
}

/// Propose which old tool results can be cut back to an excerpt
///
/// Everything uncertain is kept, and apart from the cut texts every byte stays as it is. FILE is never changed.
/// If FILE holds messages without a request around them, FILE itself is the archive: each excerpt names the file
/// and the call, and `ratoon recover` brings the original back as long as FILE is there.
#[derive(Debug, Args)]
#[command(after_help = COMPACT_EXAMPLES, after_long_help = format!("{COMPACT_DETAILS}\n\n{COMPACT_EXAMPLES}"))]
pub(crate) struct Compact {
    /// A request object, a list of messages, or a recorded run; `-` reads standard input
    pub(crate) file: PathBuf,

    /// The shape of the messages [default: auto]
    #[arg(long, value_name = "F", value_parser = formats(), help_heading = REQUEST)]
    pub(crate) format: Option<String>,

    /// What the agent is after [default: the last thing a person wrote]
    #[arg(long, value_name = "TEXT", help_heading = REQUEST)]
    pub(crate) goal: Option<String>,

    /// What the agent does next
    #[arg(long, value_name = "TEXT", help_heading = REQUEST)]
    pub(crate) next_action: Option<String>,

    /// The tools whose results may be cut, or `all` [default: those of the request; all for bare messages]
    #[arg(long, value_name = "A,B|all", value_delimiter = ',', help_heading = REQUEST)]
    pub(crate) tools: Option<Vec<String>>,

    /// An option of the request, repeatable; `--help` lists them
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_and_value, help_heading = REQUEST)]
    pub(crate) options: Vec<(String, String)>,

    /// What counts the tokens for max_output_tokens
    #[arg(long, value_name = "NAME", value_parser = counters(), help_heading = REQUEST)]
    pub(crate) token_counter: Option<String>,

    /// Who decides [env: DECISION_MODEL_BACKEND] [default: rules, offline]
    #[arg(long, value_name = "BACKEND", value_parser = backends(), help_heading = MODEL)]
    pub(crate) model: Option<Backend>,

    /// Where the decision model is served [env: DECISION_MODEL_BASE_URL]
    #[arg(long, value_name = "URL", help_heading = MODEL)]
    pub(crate) base_url: Option<String>,

    /// The model's name at its provider [env: DECISION_MODEL_NAME]
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    pub(crate) model_name: Option<String>,

    /// The wording of the questions [default: criteria]
    #[arg(long, value_name = "TEMPLATE", value_parser = templates(), help_heading = MODEL)]
    pub(crate) question: Option<Template>,

    /// Print the answer as JSON; the default unless standard output is a terminal
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Write the answer to a file
    #[arg(short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,

    /// Write only the messages to a file; `-` prints them
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) messages: Option<PathBuf>,

    /// Print a table that explains every decision; the default on a terminal
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) explain: bool,
}

const REQUEST: &str = "Request (what is given here wins over FILE)";
const MODEL: &str = "Decision model (what is given here wins over the environment)";
const OUTPUT: &str = "Output";

const COMPACT_EXAMPLES: &str = "\
Examples:
  ratoon compact run.json
  ratoon compact run.json --messages small.json --option preserve_recent_messages=2
  ratoon compact request.json --model agentscope -o answer.json
  agent --dump | ratoon compact - --json | jq .stats";

const COMPACT_DETAILS: &str = "\
Options of a request, with their defaults:
  drop_threshold=0.1            cut what is needed with at most this probability
  preserve_recent_messages=6    keep the results of so many newest messages or steps
  preview_chars=300             characters of the excerpt that stays
  max_output_tokens=null        stop cutting when so many tokens are left; needs a token counter
  evidence_chars=2000           characters of a result that the decision model sees
  max_state_tokens=25000        estimated tokens of the evidence in one request
  max_request_tokens=30000      estimated tokens of one request
  max_concurrency=4             requests at a time, at most 32
  total_timeout_seconds=30      for everything; what has no answer by then is kept
  profile=contract              recommended for bare messages: turns the next four on
  recent_unit=message           or step: one turn of the agent, however it is stored
  protect_unread=false          keep results that the agent has not answered yet
  skip_unshortenable=false      ask no questions about results that cannot get shorter
  keep_output_shape=false       a list of text blocks stays a list

Environment, also read from .env in this directory or the nearest one above it:
  DECISION_MODEL_BACKEND        as --model
  DECISION_MODEL_NAME           as --model-name
  DECISION_MODEL_BASE_URL       as --base-url
  DECISION_MODEL_API_KEY        the key of the decision model; there is no option for it
  NO_COLOR                      no colours

Exit codes:
  0 done, also if nothing could be cut; 1 failed; 2 wrong usage or invalid request; 130 interrupted";

impl Compact {
    /// What is laid over the document.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            format: self.format.clone(),
            goal: self.goal.clone(),
            next_action: self.next_action.clone(),
            tools: self.tools.clone(),
            options: self.options.clone(),
            token_counter: self.token_counter.clone(),
        }
    }
}

/// Print the original of a cut result, exactly as it was
#[derive(Debug, Args)]
#[command(after_help = RECOVER_EXAMPLES)]
pub(crate) struct Recover {
    /// The reference in the excerpt's last line: FILE#CALL_ID
    #[arg(value_name = "REF")]
    pub(crate) reference: String,

    /// Only the lines A to B, counted from 1; either end may be left out
    #[arg(long, value_name = "A:B", value_parser = LineRange::parse)]
    pub(crate) lines: Option<LineRange>,

    /// Only the lines that match this regular expression, with their numbers
    #[arg(long, value_name = "PATTERN", value_parser = |pattern: &str| Regex::new(pattern))]
    pub(crate) grep: Option<Regex>,
}

const RECOVER_EXAMPLES: &str = "\
Examples:
  ratoon recover 'run.json#call_7'
  ratoon recover 'run.json#call_7' --lines 100:140
  ratoon recover 'run.json#call_7' --grep '(?i)error'";

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  source <(ratoon completions bash)\n  ratoon completions fish | source")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// A range of lines, both ends included; an end that is left out is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineRange {
    pub(crate) from: Option<usize>,
    pub(crate) to: Option<usize>,
}

impl LineRange {
    fn parse(text: &str) -> Result<LineRange, String> {
        let end = |text: &str| match text {
            "" => Ok(None),
            _ => match text.parse() {
                Ok(line) if line > 0 => Ok(Some(line)),
                _ => Err("use A:B with line numbers from 1, for example 10:20, 10: or :20".to_owned()),
            },
        };
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        match (end(from)?, end(to)?) {
            (Some(from), Some(to)) if from > to => Err(format!("line {from} comes after line {to}")),
            (None, None) => Err("at least one end is needed".to_owned()),
            (from, to) => Ok(LineRange { from, to }),
        }
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("use KEY=VALUE, for example drop_threshold=0.2".to_owned()),
    }
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(["auto"].into_iter().chain(Format::ALL.iter().map(|format| format.name())))
}

fn counters() -> PossibleValuesParser {
    PossibleValuesParser::new(NamedCounter::ALL.map(NamedCounter::name))
}

fn backends() -> impl TypedValueParser<Value = Backend> {
    let values = Backend::ALL.iter().flat_map(|backend| backend.names()).map(PossibleValue::new);
    PossibleValuesParser::new(values)
        .map(|name| Backend::from_name(&name).expect("only names of backends are accepted"))
}

fn templates() -> impl TypedValueParser<Value = Template> {
    PossibleValuesParser::new(Template::ALL.map(Template::name))
        .map(|name| Template::from_name(&name).expect("only names of templates are accepted"))
}

#[cfg(test)]
mod tests {
    use ratoon::Document;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_listed_option_exists() {
        let listed = COMPACT_DETAILS.lines().skip(1).take_while(|line| !line.is_empty());
        let options: Vec<_> = listed
            .map(|line| key_and_value(line.split_whitespace().next().expect("a line")).expect("an option"))
            .collect();
        assert_eq!(options.len(), 14);
        let overrides = Overrides { options, ..Overrides::default() };
        let Document::Transcript(request) =
            Document::parse(b"[]", &overrides).expect("the options are valid")
        else {
            panic!("a list is a transcript");
        };
        assert_eq!(
            request.options,
            ratoon::Options::default(),
            "the listed defaults are those of the contract"
        );
    }

    #[test]
    fn ranges_of_lines() {
        let range = |from, to| Ok(LineRange { from, to });
        assert_eq!(LineRange::parse("2:10"), range(Some(2), Some(10)));
        assert_eq!(LineRange::parse("2:"), range(Some(2), None));
        assert_eq!(LineRange::parse(":10"), range(None, Some(10)));
        assert_eq!(LineRange::parse("7"), range(Some(7), Some(7)));
        for wrong in ["", ":", "0:1", "a:b", "3:2", "1:2:3", "-1:2"] {
            assert!(LineRange::parse(wrong).is_err(), "{wrong}");
        }
    }
}
