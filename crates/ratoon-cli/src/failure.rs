//! What a person gets to read when something fails: one line that says what, details below it, and a hint.
//! Never message content.

use std::fmt;
use std::process::ExitCode;

use crate::terminal::{self, ERROR, HINT};

/// A failure that is explained to the person who typed the command.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    details: Vec<String>,
    hint: Option<String>,
    is_usage: bool,
}

impl Failure {
    /// Something that could not be done.
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), details: Vec::new(), hint: None, is_usage: false }
    }

    /// Wrong usage or an invalid request.
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure { is_usage: true, ..Failure::new(what) }
    }

    /// With lines that belong below the first one.
    pub(crate) fn with_details(mut self, details: Vec<String>) -> Failure {
        self.details = details;
        self
    }

    /// With what to do about it.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_usage { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    /// Prints the failure to standard error.
    pub(crate) fn print(&self) {
        let mut text = format!("{ERROR}error:{ERROR:#} {}", self.what);
        for detail in &self.details {
            text += &format!("\n  {detail}");
        }
        if let Some(hint) = &self.hint {
            text += &format!("\n{HINT}hint:{HINT:#} {hint}");
        }
        terminal::say(&text);
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}
