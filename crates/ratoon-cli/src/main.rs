//! The program `ratoon`: exit codes, and what is said when something fails.
//!
//! `arguments` is what was typed; each file of `commands` carries one command out. Data goes to standard output,
//! everything meant for the person who typed to standard error. 0: done. 1: failed. 2: wrong usage or invalid
//! request. 130: interrupted. A reader that closes the pipe has seen enough; that is success.

mod arguments;
mod settings;
mod commands;
mod input;
mod output;
mod explain;
mod progress;
mod interrupt;
mod failure;
mod terminal;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::interrupt::Interrupted;

/// The exit code of shells for programs that end on Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way, too. Nobody is left to tell if they cannot be printed.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let done = match arguments.command {
        Command::Compact(arguments) => {
            interrupt::interruptible(move |cancelled| commands::compact::run(&arguments, &cancelled))
        }
        Command::Recover(arguments) => commands::recover::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
    };
    done.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
}

/// Says what went wrong and chooses the exit code.
fn report(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(is_closed_pipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Interrupted>() {
        terminal::say(&error.to_string());
        return ExitCode::from(INTERRUPTED);
    }
    match error.downcast_ref::<Failure>() {
        Some(failure) => {
            failure.print();
            failure.exit_code()
        }
        None => {
            Failure::new(format!("{error:#}")).print();
            ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
