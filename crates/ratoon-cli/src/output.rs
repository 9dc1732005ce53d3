//! Where the outcome goes: decided before anything is read or asked, written whole or not at all.
//!
//! The input is the archive that references lead to, so nothing is ever written over it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::arguments::Compact;
use crate::failure::Failure;
use crate::input::Source;
use crate::interrupt::Cancelled;
use crate::terminal::shown;

/// Everything that is written, and where.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// The answer on standard output.
    pub(crate) answer_printed: bool,
    /// The answer in a file.
    pub(crate) answer: Option<Target>,
    /// The messages on standard output.
    pub(crate) messages_printed: bool,
    /// The messages in a file.
    pub(crate) messages: Option<Target>,
    /// The table for people.
    pub(crate) table: Option<Stream>,
    /// One line for people who get neither table nor answer.
    pub(crate) summary: bool,
}

/// A stream for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// A file to write.
#[derive(Debug)]
pub(crate) struct Target {
    typed: PathBuf,
    /// Where the file really is, links followed.
    place: PathBuf,
    /// True for an open descriptor, such as `/dev/stdout`.
    is_descriptor: bool,
}

/// What stands for the stream that is open already: opening it again would not do for sockets, and would lose
/// the place in a file.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

impl Outputs {
    /// What the command line asks for. `-` as a file is standard output, and so are its other names.
    pub(crate) fn plan(arguments: &Compact, source: &Source, is_terminal: bool) -> Result<Outputs, Failure> {
        let is_stdout = |path: &Path| STANDARD_OUTPUT.iter().any(|name| path == Path::new(name));
        let is_printed = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
        let messages_printed = is_printed(&arguments.messages);
        let json = arguments.json || is_printed(&arguments.output);
        if messages_printed && json {
            return Err(Failure::usage("standard output cannot hold both answer and messages")
                .with_hint("write one of them to a file"));
        }
        let file = |path: &Option<PathBuf>| {
            path.as_deref().filter(|path| !is_stdout(path)).map(|path| Target::new(path, source)).transpose()
        };
        let (answer, messages) = (file(&arguments.output)?, file(&arguments.messages)?);
        if let (Some(answer), Some(messages)) = (&answer, &messages)
            && answer.place == messages.place
        {
            return Err(Failure::usage(format!("{} cannot hold both answer and messages", answer.name())));
        }
        let written = answer.is_some() || messages.is_some() || messages_printed;
        let by_default = !json && !arguments.explain && !written;
        let table = match (arguments.explain, json || messages_printed) {
            (true, true) => Some(Stream::Error),
            (true, false) => Some(Stream::Output),
            (false, false) if is_terminal => Some(Stream::Output),
            _ => None,
        };
        Ok(Outputs {
            answer_printed: json || (by_default && !is_terminal),
            answer,
            messages_printed,
            messages,
            table,
            summary: written && !json && !arguments.explain,
        })
    }

    /// The files that are written.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.answer.iter().chain(&self.messages)
    }
}

impl Target {
    fn new(typed: &Path, source: &Source) -> Result<Target, Failure> {
        // What stands behind an open descriptor belongs to whoever opened it and is never replaced.
        let is_open = |path: &Path| {
            ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|at| path.starts_with(at))
        };
        let is_descriptor = is_open(typed) || fs::read_link(typed).is_ok_and(|to| is_open(&to));
        let place = if is_descriptor { typed.to_owned() } else { place(typed)? };
        let target = Target { typed: typed.to_owned(), place, is_descriptor };
        if target.place.is_dir() {
            return Err(Failure::usage(format!("{} is a directory, not a file", target.name())));
        }
        if let Source::File(input) = source
            && fs::canonicalize(input).is_ok_and(|input| target.is(&input) && input.is_file())
        {
            return Err(Failure::usage(format!("{} is the input and is not overwritten", target.name()))
                .with_hint("the originals of cut results are recovered from it; write to another file"));
        }
        Ok(target)
    }

    /// The name to show.
    pub(crate) fn name(&self) -> String {
        shown(&self.typed.to_string_lossy(), 200)
    }

    /// True for this file, given by its canonical path.
    pub(crate) fn is(&self, canonical: &Path) -> bool {
        self.place == canonical
    }

    /// True if there is something that would be replaced.
    pub(crate) fn replaces(&self) -> bool {
        !self.is_descriptor && self.place.is_file()
    }

    /// Writes the file: whole, or not at all. What is not a regular file is written directly.
    pub(crate) fn write(
        &self,
        cancelled: &Cancelled,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let write = || {
            if self.is_descriptor {
                let file = File::options().append(true).open(&self.place)?;
                return buffered(cancelled.watch(file), content);
            }
            let existing = fs::metadata(&self.place).ok();
            if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
                let file = File::options().write(true).open(&self.place)?;
                return buffered(cancelled.watch(file), content);
            }
            let mut file = new_file_beside(&self.place)?;
            buffered(cancelled.watch(file.as_file_mut()), content)?;
            if let Some(existing) = existing {
                fs::set_permissions(file.path(), existing.permissions())?;
            }
            file.persist(&self.place)?;
            Ok(())
        };
        write().with_context(|| format!("{} cannot be written", self.name()))
    }
}

/// Streams content through a buffer.
pub(crate) fn buffered(
    out: impl Write,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    content(&mut out)?;
    out.flush()
}

fn new_file_beside(place: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ratoon-");
    #[cfg(unix)]
    {
        // As any program would create the file; temporary files are private otherwise.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(place.parent().unwrap_or(Path::new(".")))
}

/// Where a file is or will be, links followed.
fn place(typed: &Path) -> Result<PathBuf, Failure> {
    if let Ok(place) = fs::canonicalize(typed) {
        return Ok(place);
    }
    if fs::symlink_metadata(typed).is_ok() {
        return Err(Failure::usage(format!(
            "{} is a link that leads nowhere",
            shown(&typed.to_string_lossy(), 200)
        )));
    }
    let Some(name) = typed.file_name() else {
        return Err(Failure::usage(format!("{} is not a file name", shown(&typed.to_string_lossy(), 200))));
    };
    let directory = match typed.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory_place = fs::canonicalize(directory).map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "there is no directory".to_owned(),
            _ => format!("{error}:"),
        };
        Failure::usage(format!("{what} {}", shown(&directory.to_string_lossy(), 200)))
    })?;
    Ok(directory_place.join(name))
}
