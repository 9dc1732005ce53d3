//! What could be done so that more is cut.

use ratoon::protection::Protection;
use ratoon::request::RecentUnit;
use ratoon::selection::Reason;
use ratoon_models::Backend;

use super::{Explained, words};
use crate::input::Archive;
use crate::terminal::{counted, grouped};

/// Hints, most important first.
pub(crate) fn hints(explained: &Explained<'_, '_, '_>) -> Vec<String> {
    let proposal = explained.proposal;
    let (request, archive) = (&explained.input.request, explained.input.archive);
    let protected = |protection: Protection| {
        proposal.decisions.iter().filter(|decision| decision.protection == Some(protection)).count()
    };
    let decided = |reason: Reason| proposal.decisions.iter().filter(|d| d.reason == reason).count();
    let mut hints = Vec::new();
    hints.extend(no_archive(archive).map(str::to_owned));
    hints.extend(cuts_unjudged(explained).map(str::to_owned));
    let unarchived = protected(Protection::NoReference);
    if unarchived > 0 && archive == Archive::References {
        hints.push(format!("no reference for {}; add to source_refs", counted(unarchived, "result")));
    }
    let tools = protected(Protection::ToolNotEligible);
    if tools > 0 {
        hints.push(format!(
            "{} of tools that are not eligible; pass --tools A,B or --tools all",
            counted(tools, "result")
        ));
    }
    let recent = protected(Protection::Recent);
    let framing = protected(Protection::FirstMessage) + protected(Protection::SystemMessage);
    if recent > 0 && recent + framing == proposal.decisions.len() {
        let step = match request.options.recent_unit {
            RecentUnit::Step => "",
            _ => "--option recent_unit=step or ",
        };
        hints.push(format!(
            "all results are in the {}; try {step}a smaller --option preserve_recent_messages={}",
            words::newest(request),
            request.options.preserve_recent_messages / 2
        ));
    }
    let unobserved = decided(Reason::Unobserved);
    if unobserved > 0 {
        hints.push(if !ratoon::has_aim(request) {
            "nothing says what the agent is after, so nothing could be judged; pass --goal TEXT".to_owned()
        } else {
            format!(
                "{} not asked about, since not even one fits the {} and {} tokens of max_state_tokens and \
                 max_request_tokens",
                counted(unobserved, "result"),
                grouped(request.options.max_state_tokens),
                grouped(request.options.max_request_tokens)
            )
        });
    }
    let late = decided(Reason::Timeout);
    if late > 0 {
        hints.push(format!(
            "{} without an answer after {} s; raise --option total_timeout_seconds",
            counted(late, "result"),
            request.options.total_timeout_seconds
        ));
    }
    let undecided = decided(Reason::NeededOrUncertain);
    if undecided > 0 && proposal.stats.model == Backend::Rules.name() {
        hints.push(format!(
            "rules cut only what the history itself repeats; a decision model judges what is left ({}): --model {}",
            counted(undecided, "result"),
            Backend::SystemOne.name()
        ));
    }
    if proposal.budget_met == Some(false) {
        hints.push("everything that is clearly not needed is cut and the budget is still not met".to_owned());
    }
    hints
}

/// What is wrong with a threshold under which the rules cut what they cannot judge.
pub(crate) fn cuts_unjudged(explained: &Explained<'_, '_, '_>) -> Option<&'static str> {
    let is_rules = explained.proposal.stats.model == Backend::Rules.name();
    (is_rules && explained.input.request.options.drop_threshold >= 0.5).then_some(
        "for rules a need of 0.5 means \"cannot tell\", and this drop_threshold cuts that, too; use less than 0.5",
    )
}

/// Why nothing can be cut although the input holds messages, if it is read in a way that leaves no archive.
pub(crate) fn no_archive(archive: Archive) -> Option<&'static str> {
    match archive {
        Archive::StandardInput => Some(
            "standard input cannot be read again to recover originals, so nothing is cut; give a file, or a request \
             with source_refs",
        ),
        Archive::NotRegular => Some(
            "a pipe or device cannot be read again to recover originals, so nothing is cut; give a regular file, or \
             a request with source_refs",
        ),
        Archive::NotNameable => Some(
            "the file's name is not UTF-8 text and cannot stand in an excerpt, so nothing is cut; rename the file",
        ),
        Archive::References | Archive::File => None,
    }
}
