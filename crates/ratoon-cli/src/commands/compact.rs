//! `ratoon compact`: one call, in this process.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use ratoon::preview::marker_reference;
use ratoon::snapshot::Block;
use ratoon::{CompactionError, DecisionModel, Proposal, Request};
use ratoon_archive::transcript::split;

use crate::arguments::Compact;
use crate::explain::{self, Explained};
use crate::failure::Failure;
use crate::input::{Input, Shape, Source};
use crate::interrupt::{Cancelled, Interrupted, runtime};
use crate::output::{Outputs, Stream, Target, buffered};
use crate::progress::Bar;
use crate::settings;
use crate::terminal::{self, counted, grouped, shown};

pub(crate) fn run(arguments: &Compact, cancelled: &Cancelled) -> anyhow::Result<()> {
    // The deadline covers reading, too.
    let started = Instant::now();
    if arguments.tools.iter().flatten().any(|tool| tool.trim().is_empty()) {
        return Err(Failure::usage("--tools holds an empty name")
            .with_hint("use --tools A,B or --tools all")
            .into());
    }
    let model = settings::model(arguments)?;
    let source = Source::new(&arguments.file);
    let outputs = Outputs::plan(arguments, &source, io::stdout().is_terminal())?;
    let bytes = source.read()?;
    let input = Input::parse(&bytes, &source, &arguments.overrides())?;
    warn_about_tools(arguments, &input.request);
    keep_archives(&input, &outputs)?;
    let proposal = ask(arguments, &input.request, &*model, started, cancelled.clone())?;
    warn_about_failures(&proposal);
    let explained = Explained { input: &input, source: &source, arguments, proposal: &proposal };
    write(&explained, &outputs, cancelled)
}

/// Asks the decision model, showing a person how far it has come.
fn ask<'r, 'a>(
    arguments: &Compact,
    request: &'r Request<'a>,
    model: &dyn DecisionModel,
    started: Instant,
    mut cancelled: Cancelled,
) -> anyhow::Result<Proposal<'r, 'a>> {
    let settings = settings::flow(arguments);
    let bar = Bar::hidden();
    let update = |progress| bar.update(progress);
    let asked = runtime()?.block_on(async {
        tokio::select! {
            proposal = ratoon_models::compact(request, model, None, &settings, started, &update) => Some(proposal),
            () = bar.appear() => None,
            () = cancelled.wait() => None,
        }
    });
    match asked {
        Some(Ok(proposal)) => Ok(proposal),
        Some(Err(CompactionError::TokenCounterRequired)) => {
            Err(Failure::usage(CompactionError::TokenCounterRequired.to_string())
                .with_hint("add --token-counter chars4")
                .into())
        }
        Some(Err(error)) => Err(error.into()),
        None => Err(Interrupted.into()),
    }
}

/// A name that was mistyped would silently keep everything.
fn warn_about_tools(arguments: &Compact, request: &Request<'_>) {
    let typed = arguments.tools.as_deref().unwrap_or_default();
    if typed.is_empty() || typed == ["all"] {
        return;
    }
    let mut known: HashSet<String> = HashSet::new();
    for block in request.snapshot.blocks() {
        if let Block::Result(result) = block
            && let Some(name) = result.name.as_ref()
        {
            known.insert(name.decode_lossy().into_owned());
        }
    }
    let unknown: Vec<String> =
        typed.iter().filter(|tool| !known.contains(*tool)).map(|tool| shown(tool, 60)).collect();
    if !unknown.is_empty() {
        terminal::warn(&format!("no result is of a tool named {}", unknown.join(" or ")));
    }
}

/// Refuses to overwrite a file that references of the input lead to: a message list that was compacted before
/// needs the file it was compacted from.
fn keep_archives(input: &Input<'_>, outputs: &Outputs) -> Result<(), Failure> {
    let replaced: Vec<&Target> = outputs.targets().filter(|target| target.replaces()).collect();
    if replaced.is_empty() {
        return Ok(());
    }
    let mut archives: HashSet<PathBuf> = HashSet::new();
    let mut note = |reference: &str| {
        if let Some((file, _)) = split(reference, |file| fs::metadata(file).is_ok_and(|meta| meta.is_file()))
        {
            archives.extend(fs::canonicalize(&*file));
        }
    };
    if input.shape == Shape::Request {
        input.request.source_refs.values().for_each(|reference| note(reference));
    }
    for block in input.request.snapshot.blocks() {
        if let Block::Result(result) = block
            && let Some(text) = result.output.as_ref().and_then(|output| output.text())
            && let Some(reference) = marker_reference(&text.decode_lossy(), None)
        {
            note(reference);
        }
    }
    match replaced.iter().find(|target| archives.iter().any(|archive| target.is(archive))) {
        None => Ok(()),
        Some(target) => Err(Failure::usage(format!(
            "{} is not overwritten: references of the input lead to it",
            target.name()
        ))
        .with_hint("the originals of cut results are recovered from it; write to another file")),
    }
}

/// A failing model is no failure of the call, since what it did not judge is kept; but it is not silent.
fn warn_about_failures(proposal: &Proposal<'_, '_>) {
    let failures = &proposal.stats.failures;
    if failures.is_empty() {
        return;
    }
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for failure in failures {
        *causes.entry(shown(&failure.message, 300)).or_default() += 1;
    }
    let several = causes.len() > 1;
    let listed: Vec<String> = causes
        .into_iter()
        .map(|(cause, times)| if several { format!("{cause} ({times} times)") } else { cause })
        .collect();
    terminal::warn(&format!(
        "{} of {} to the decision model failed: {}; {} results are kept",
        failures.len(),
        counted(proposal.stats.requests, "request"),
        listed.join("; "),
        if failures.len() == 1 { "its" } else { "their" }
    ));
}

fn write(explained: &Explained<'_, '_, '_>, outputs: &Outputs, cancelled: &Cancelled) -> anyhow::Result<()> {
    let proposal = explained.proposal;
    let answer = |out: &mut dyn Write| {
        proposal.write_answer(out)?;
        out.write_all(b"\n")
    };
    if let Some(target) = &outputs.answer {
        target.write(cancelled, answer)?;
    }
    let messages = |out: &mut dyn Write| match explained.input.shape {
        Shape::Messages => proposal.write_document(out),
        Shape::Request | Shape::Run => proposal.write_messages(out),
    };
    if let Some(target) = &outputs.messages {
        target.write(cancelled, messages)?;
    }
    if outputs.messages_printed {
        buffered(cancelled.watch(io::stdout().lock()), messages)
            .context("the messages cannot be written to standard output")?;
    }
    if outputs.answer_printed {
        buffered(cancelled.watch(io::stdout().lock()), answer)
            .context("the answer cannot be written to standard output")?;
    }
    match outputs.table {
        Some(Stream::Output) => terminal::print(&explain::table(explained, Stream::Output))?,
        Some(Stream::Error) => terminal::say(explain::table(explained, Stream::Error).trim_end()),
        None => {}
    }
    if outputs.table.is_none() {
        let hints =
            [explain::hints::no_archive(explained.input.archive), explain::hints::cuts_unjudged(explained)];
        hints.into_iter().flatten().for_each(terminal::hint);
    }
    if outputs.summary {
        terminal::say(&summary(proposal, outputs));
    }
    Ok(())
}

/// The outcome in a line.
fn summary(proposal: &Proposal<'_, '_>, outputs: &Outputs) -> String {
    let cut = proposal.decisions.iter().filter(|decision| decision.is_preview()).count();
    let printed = outputs.messages_printed.then(|| "standard output".to_owned());
    let names: Vec<String> = outputs.targets().map(Target::name).chain(printed).collect();
    format!(
        "{} of {} cut back, {} -> {} characters; wrote {}",
        grouped(cut as u64),
        counted(proposal.decisions.len(), "result"),
        grouped(proposal.stats.chars_before),
        grouped(proposal.stats.chars_after),
        names.join(" and ")
    )
}
