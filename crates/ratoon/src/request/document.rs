//! What a file may hold: a request object, a bare message list, or a recorded run.

use std::borrow::Cow;
use std::fmt;

use super::{Options, Profile, Request, Tools, fields};
use crate::count::NamedCounter;
use crate::error::RequestError;
use crate::json::{Kind, Scanner, Span, SyntaxError, Value};
use crate::problems::{Place, Problems};
use crate::snapshot::{Format, Snapshot};

/// A parsed document.
#[derive(Debug)]
pub enum Document<'a> {
    /// A request object: the contract applies.
    Request(Request<'a>),
    /// Messages without a request around them: the `recommended` profile, all tools, no references yet.
    Transcript(Request<'a>),
}

/// Values that win over those of the document, as given on a command line.
#[derive(Clone, Default)]
pub struct Overrides {
    /// The message format.
    pub format: Option<String>,
    /// The goal.
    pub goal: Option<String>,
    /// The next action.
    pub next_action: Option<String>,
    /// The tools whose results may be shortened; `["all"]` for all of them.
    pub tools: Option<Vec<String>>,
    /// Options as name and value; a value that is not JSON counts as text.
    pub options: Vec<(String, String)>,
    /// A built-in token counter.
    pub token_counter: Option<String>,
}

impl fmt::Debug for Overrides {
    // Goal and next action are content of the host, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides")
            .field("format", &self.format)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a> Document<'a> {
    /// Reads a document from its bytes. A byte-order mark in front is allowed.
    ///
    /// # Errors
    /// [`RequestError`]: empty, not UTF-8, not JSON, neither a request nor messages, or an invalid request.
    pub fn parse(bytes: &'a [u8], overrides: &Overrides) -> Result<Document<'a>, RequestError> {
        if bytes.is_empty() {
            return Err(RequestError::Empty);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| RequestError::NotUtf8 { offset: error.valid_up_to() })?;
        let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut scanner = Scanner::starting_at(text, bom);
        let mut problems = Problems::default();
        let format = match &overrides.format {
            Some(name) => format_named(name, &mut problems),
            None => Format::default(),
        };
        let syntax = |error: SyntaxError| RequestError::syntax(text, &error);
        let mut reading = Reading { input: text, overrides, format, problems };
        let document = match scanner.peek().map_err(syntax)? {
            b'[' => reading.messages(&mut scanner),
            b'{' => reading.object(&mut scanner),
            _ => {
                scanner.value().map_err(syntax)?;
                return Err(RequestError::NotADocument);
            }
        }
        .map_err(syntax)?;
        scanner.end().map_err(syntax)?;
        if reading.problems.is_empty() { Ok(document) } else { Err(RequestError::Invalid(reading.problems)) }
    }

    /// The request, whatever it was read from.
    pub fn into_request(self) -> Request<'a> {
        match self {
            Document::Request(request) | Document::Transcript(request) => request,
        }
    }
}

/// The fields of a recorded run besides its messages. The first four must be there and no other may be, so that
/// neither a misspelt request nor a request's field is mistaken for a part of one.
const RECORDED_RUN: [&str; 5] = ["source", "licence", "task", "run", "origin"];

struct Reading<'a, 'o> {
    input: &'a str,
    overrides: &'o Overrides,
    format: Format,
    problems: Problems,
}

impl<'a> Reading<'a, '_> {
    fn messages(&mut self, scanner: &mut Scanner<'a>) -> Result<Document<'a>, SyntaxError> {
        let snapshot = Snapshot::read(scanner, self.input, self.format, &mut self.problems)?;
        let mut request = Request::about(snapshot);
        self.apply(&mut request, &[], Profile::Recommended);
        Ok(Document::Transcript(request))
    }

    fn object(&mut self, scanner: &mut Scanner<'a>) -> Result<Document<'a>, SyntaxError> {
        let nothing = Span { start: scanner.position(), end: scanner.position() };
        let mut request = Request::about(Snapshot::empty(self.input, nothing));
        request.eligible_tools = Tools::Named(Default::default());
        let mut options = Vec::new();
        let (mut has_messages, mut has_request_fields) = (false, false);
        // Fields no request has: name and place, judged when all are known.
        let mut unknown: Vec<String> = Vec::new();
        let mut format: Option<Value<'a>> = None;
        scanner.object(|scanner, key| {
            let name = key.decode_lossy();
            let place = Place::field(&name);
            let start = scanner.position();
            let is_shared = matches!(&*name, "messages" | "format");
            let unknown_before = unknown.len();
            match &*name {
                "messages" => {
                    has_messages = true;
                    request.snapshot = Snapshot::read(scanner, self.input, self.format, &mut self.problems)?;
                }
                "goal" | "next_action" => {
                    let value = scanner.value()?;
                    let text = fields::text(&value, &place, &mut self.problems).unwrap_or_default();
                    *if name == "goal" { &mut request.goal } else { &mut request.next_action } = text;
                }
                "source_refs" => {
                    request.source_refs = fields::source_refs(scanner, &place, &mut self.problems)?;
                }
                "protected_message_ids" => {
                    request.protected_message_ids = fields::texts(scanner, &place, &mut self.problems)?;
                }
                "protected_call_ids" => {
                    request.protected_call_ids = fields::texts(scanner, &place, &mut self.problems)?;
                }
                "eligible_tool_names" => {
                    request.eligible_tools =
                        Tools::Named(fields::texts(scanner, &place, &mut self.problems)?);
                }
                "options" => options = fields::members(scanner, &place, &mut self.problems)?,
                "token_counter" => {
                    let value = scanner.value()?;
                    if !matches!(value.kind, Kind::Null)
                        && let Some(counter) = fields::text(&value, &place, &mut self.problems)
                    {
                        request.token_counter = counter_named(&counter, &mut self.problems);
                    }
                }
                "format" => format = Some(scanner.value()?),
                _ => {
                    unknown.push(name.into_owned());
                    scanner.value()?;
                }
            }
            has_request_fields |= !is_shared && unknown.len() == unknown_before;
            // Sizes of a request object are never asked for.
            Ok((scanner.position() - start) as u64)
        })?;
        if !has_messages {
            self.problems.add(Place::field("messages"), "missing", "is missing");
        }
        let is_run = !has_request_fields
            && RECORDED_RUN[..4].iter().all(|field| unknown.iter().any(|name| name == field))
            && unknown.iter().all(|name| RECORDED_RUN.contains(&name.as_str()));
        if has_messages && is_run {
            let mut request = Request::about(request.snapshot);
            self.apply(&mut request, &[], Profile::Recommended);
            return Ok(Document::Transcript(request));
        }
        if let Some(value) = format
            && let Some(name) = fields::text(&value, &Place::field("format"), &mut self.problems)
        {
            format_named(&name, &mut self.problems);
        }
        for name in unknown {
            self.problems.add(Place::field(&name), "extra_forbidden", "is not a field of a request");
        }
        self.apply(&mut request, &options, Profile::Contract);
        Ok(Document::Request(request))
    }

    /// Reads the options and lays the overrides over the request.
    fn apply(&mut self, request: &mut Request<'a>, given: &[(String, Value<'a>)], profile: Profile) {
        let overrides = self.overrides;
        let spelled: Vec<(&String, Cow<'_, str>)> =
            overrides.options.iter().map(|(name, value)| (name, as_json(value))).collect();
        let values = spelled.iter().map(|(name, json)| {
            let value = Scanner::new(json).value().expect("the value was made to be JSON");
            ((*name).clone(), value)
        });
        let named: Vec<(String, Value<'_>)> = given.iter().cloned().chain(values).collect();
        request.options = Options::read(&named, profile, &mut self.problems);
        if let Some(goal) = &overrides.goal {
            request.goal = Cow::Owned(goal.clone());
        }
        if let Some(next_action) = &overrides.next_action {
            request.next_action = Cow::Owned(next_action.clone());
        }
        if let Some(tools) = &overrides.tools {
            request.eligible_tools = match tools.as_slice() {
                [all] if all == "all" => Tools::All,
                names => Tools::Named(names.iter().cloned().map(Cow::Owned).collect()),
            };
        }
        if let Some(counter) = &overrides.token_counter {
            request.token_counter = counter_named(counter, &mut self.problems);
        }
    }
}

/// A command-line value as JSON: itself if it is JSON, else a string.
fn as_json(value: &str) -> Cow<'_, str> {
    let mut scanner = Scanner::new(value);
    if scanner.value().is_ok() && scanner.end().is_ok() {
        return Cow::Borrowed(value);
    }
    let mut quoted = String::new();
    crate::json::push_text(&mut quoted, value);
    Cow::Owned(quoted)
}

fn format_named(name: &str, problems: &mut Problems) -> Format {
    Format::from_name(name).unwrap_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let message = format!("is not a known message format; use {} or auto", known.join(", "));
        problems.add(Place::field("format"), "literal_error", message);
        Format::default()
    })
}

fn counter_named(name: &str, problems: &mut Problems) -> Option<NamedCounter> {
    let counter = NamedCounter::from_name(name);
    if counter.is_none() {
        let known: Vec<&str> = NamedCounter::ALL.iter().map(|counter| counter.name()).collect();
        let message = format!("is not a built-in token counter; use one of: {}", known.join(", "));
        problems.add(Place::field("token_counter"), "literal_error", message);
    }
    counter
}
