//! What is compacted: bytes from a file or standard input, read as a document, with the file as its archive.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ratoon::problems::{Problems, Step};
use ratoon::snapshot::{Block, BlockId};
use ratoon::{Document, Format, Overrides, Request, RequestError};
use ratoon_archive::transcript::reference;

use crate::failure::Failure;
use crate::terminal::shown;

/// Where the bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    File(PathBuf),
    StandardInput,
}

impl Source {
    /// The source that was typed.
    pub(crate) fn new(typed: &Path) -> Source {
        if typed.as_os_str() == "-" { Source::StandardInput } else { Source::File(typed.to_owned()) }
    }

    /// The name to show.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::File(path) => shown(&path.to_string_lossy(), 200),
            Source::StandardInput => "standard input".to_owned(),
        }
    }

    /// All bytes, read once.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        let read = match self {
            Source::File(path) => fs::read(path),
            Source::StandardInput => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
        };
        read.map_err(|error| match (self, error.kind()) {
            (_, io::ErrorKind::NotFound) => Failure::usage(format!("there is no file {}", self.name())),
            (_, io::ErrorKind::IsADirectory) => {
                Failure::usage(format!("{} is a directory, not a file", self.name()))
            }
            _ => Failure::new(format!("{} cannot be read: {error}", self.name())),
        })
    }

    /// The file's name as it stands in references, if they would lead back: only a regular file can be read
    /// again, and a marker is text.
    fn archive(&self) -> Result<&str, Archive> {
        match self {
            Source::StandardInput => Err(Archive::StandardInput),
            Source::File(path) => {
                if !path.is_file() {
                    return Err(Archive::NotRegular);
                }
                path.to_str().ok_or(Archive::NotNameable)
            }
        }
    }
}

/// What the originals of cut results can be recovered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Archive {
    /// Whatever the request's own references lead to.
    References,
    /// The file itself.
    File,
    /// Nothing: standard input cannot be read again.
    StandardInput,
    /// Nothing: a pipe or device cannot be read again.
    NotRegular,
    /// Nothing: the file's name is no text.
    NotNameable,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) shape: Shape,
    pub(crate) archive: Archive,
}

/// What the document holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A request object.
    Request,
    /// A list of messages and nothing else.
    Messages,
    /// Messages inside a recorded run.
    Run,
}

impl<'a> Input<'a> {
    /// Reads the document; the results of bare messages get references to their own file.
    pub(crate) fn parse(
        bytes: &'a [u8],
        source: &Source,
        overrides: &Overrides,
    ) -> Result<Input<'a>, Failure> {
        match Document::parse(bytes, overrides).map_err(|error| refused(source, bytes, overrides, error))? {
            Document::Request(request) => {
                Ok(Input { request, shape: Shape::Request, archive: Archive::References })
            }
            Document::Transcript(mut request) => {
                let archive = match source.archive() {
                    Ok(file) => {
                        refer_to(file, &mut request);
                        Archive::File
                    }
                    Err(none) => none,
                };
                let before = &request.snapshot.input()[..request.snapshot.span().start];
                let is_bare = before.trim_start_matches('\u{feff}').trim().is_empty();
                Ok(Input { request, shape: if is_bare { Shape::Messages } else { Shape::Run }, archive })
            }
        }
    }
}

/// Gives every result of a transcript a reference to the file it stands in.
fn refer_to(file: &str, request: &mut Request<'_>) {
    for block in request.snapshot.blocks() {
        if let Block::Result(result) = block
            && let BlockId::Usable(id) = result.id
            && let Some(id) = id.decode()
        {
            let reference = reference(file, &id);
            request.source_refs.insert(id, Cow::Owned(reference));
        }
    }
}

const EXPECTED: &str = "a request object or a list of messages is expected";

/// Says why a document is refused.
fn refused(source: &Source, bytes: &[u8], overrides: &Overrides, error: RequestError) -> Failure {
    let text = error.to_string();
    let what = format!("{} {}", source.name(), text.strip_prefix("the input ").unwrap_or(&text));
    match error {
        RequestError::NotJson { line, .. } if line > 1 && is_json_lines(bytes) => Failure::usage(what)
            .with_hint("this looks like one JSON value a line; put the messages into one list"),
        RequestError::Empty | RequestError::NotADocument => Failure::usage(what).with_hint(EXPECTED),
        RequestError::Invalid(problems) => invalid(source, overrides, &problems),
        _ => Failure::usage(what),
    }
}

/// Lists what is wrong with a request.
fn invalid(source: &Source, overrides: &Overrides, problems: &Problems) -> Failure {
    let found = problems.found();
    let mut lines: Vec<String> =
        found.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
    if problems.total() > lines.len() {
        lines.push(format!("and {} more", problems.total() - lines.len()));
    }
    let all_in = |field: &str, depth: usize| {
        let key = Step::Key(field.to_owned());
        found.iter().map(|problem| problem.place.steps()).all(|place| place.len() >= depth && place[0] == key)
    };
    if !overrides.options.is_empty() && all_in("options", 1) {
        return Failure::usage("the options are not valid").with_details(lines);
    }
    let failure = Failure::usage(format!("{} is not a valid request", source.name())).with_details(lines);
    if all_in("messages", 2) {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        failure.with_hint(format!("known message formats: {}", known.join(", ")))
    } else if all_in("messages", 1) {
        failure.with_hint(EXPECTED)
    } else {
        failure
    }
}

/// True if the second line begins a JSON object of its own.
fn is_json_lines(bytes: &[u8]) -> bool {
    let mut lines =
        bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let is_object =
        |line: Option<&[u8]>| line.is_some_and(|line| line.starts_with(b"{") && line.ends_with(b"}"));
    is_object(lines.next()) && is_object(lines.next())
}
