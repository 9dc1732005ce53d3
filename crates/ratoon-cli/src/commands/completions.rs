//! `ratoon completions`: the completion script of a shell.

use std::io::Write;

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};

pub(crate) fn run(arguments: &Completions) -> anyhow::Result<()> {
    // Into memory first, since the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "ratoon", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
