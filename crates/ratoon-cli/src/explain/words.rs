//! Decisions and numbers in words.

use std::time::Duration;

use ratoon::Request;
use ratoon::proposal::Decision;
use ratoon::protection::Protection;
use ratoon::request::RecentUnit;
use ratoon::selection::Reason;

use ratoon_models::Backend;

use super::Explained;
use crate::terminal::{counted, grouped, shown};

/// Why a result goes or stays.
pub(crate) fn reason(decision: &Decision<'_, '_>, request: &Request<'_>, model: &str) -> String {
    // The rules say 0 only where this is proven.
    let is_rules = model == Backend::Rules.name();
    let proven = is_rules && decision.probability.is_some_and(|p| p.get() == 0.0);
    let words = match decision.reason {
        Reason::LowRelevance if proven => "repeated by a later result",
        Reason::LowRelevance if is_rules => "cannot tell; drop_threshold cuts it",
        Reason::Protected | Reason::AlreadyCompacted => match decision.protection {
            Some(protection) => return protection_in_words(protection, request),
            None => "protected",
        },
        Reason::WithinBudget => "the budget is met without it",
        Reason::ModelError => "the decision model failed",
        Reason::Timeout => "no answer before the deadline",
        Reason::InvalidAnswer => "the answer was not usable",
        Reason::Unobserved => "not asked about",
        Reason::NeededOrUncertain => "needed or uncertain",
        Reason::NoSavings => "an excerpt would save nothing",
        Reason::LowRelevance => "clearly not needed any more",
        other => other.as_str(),
    };
    words.to_owned()
}

fn protection_in_words(protection: Protection, request: &Request<'_>) -> String {
    let words = match protection {
        Protection::FirstMessage => "at the start, which frames the task",
        Protection::SystemMessage => "in a system message",
        Protection::Recent => return format!("among the {}", newest(request)),
        Protection::ProtectedMessage => "its message is protected by the request",
        Protection::ProtectedCall => "its call is protected by the request",
        Protection::ToolNotEligible => "results of this tool stay",
        Protection::CallNotFinished => "the call did not run to its end",
        Protection::NotSuccessful => "the result reports no success",
        Protection::NamesDiffer => "call and result name different tools",
        Protection::NotText => "not only text",
        Protection::NoReference => "no reference to recover it from",
        Protection::NotUnicode => "not valid Unicode",
        Protection::AlreadyCompacted => "an excerpt already",
        Protection::Recovery => "a recovered original",
        Protection::Unread => "not answered by the agent yet",
        other => other.as_str(),
    };
    words.to_owned()
}

/// What is protected because it is new.
pub(crate) fn newest(request: &Request<'_>) -> String {
    let unit = match request.options.recent_unit {
        RecentUnit::Step => "step",
        _ => "message",
    };
    let count = usize::try_from(request.options.preserve_recent_messages).unwrap_or(usize::MAX);
    format!("newest {}", counted(count, unit))
}

/// The numbers of the call as name and text.
pub(crate) fn totals(explained: &Explained<'_, '_, '_>) -> Vec<(&'static str, String)> {
    let proposal = explained.proposal;
    let stats = &proposal.stats;
    let mut totals = vec![("characters", change(stats.chars_before, stats.chars_after))];
    if let (Some(before), Some(after), Some(limit)) =
        (stats.tokens_before, stats.tokens_after, explained.input.request.options.max_output_tokens)
    {
        let verdict = if proposal.budget_met == Some(true) { "met" } else { "not met" };
        totals.push(("tokens", format!("{}; budget {} {verdict}", change(before, after), grouped(limit))));
    }
    let cut = proposal.decisions.iter().filter(|decision| decision.is_preview()).count();
    totals.push((
        "results",
        format!(
            "{}: {} cut, {} kept; {}, {} protected",
            grouped(proposal.decisions.len() as u64),
            grouped(cut as u64),
            grouped((proposal.decisions.len() - cut) as u64),
            counted(stats.candidates, "candidate"),
            grouped(stats.protected as u64)
        ),
    ));
    let protections = proposal.decisions.iter().filter_map(|decision| decision.protection);
    let protected = by_reason(protections.map(Protection::as_str));
    if !protected.is_empty() {
        totals.push(("protected", protected));
    }
    let skipped = by_reason(stats.skipped.iter().map(|skipped| skipped.reason.as_str()));
    if !skipped.is_empty() {
        totals.push(("skipped", skipped));
    }
    totals.push((
        "model",
        format!(
            "{}, {}, {}",
            shown(&stats.model, 40),
            counted(stats.requests, "request"),
            duration(stats.elapsed)
        ),
    ));
    totals
}

fn change(before: u64, after: u64) -> String {
    if before == after {
        return format!("{}, unchanged", grouped(before));
    }
    let percent = (after as f64 - before as f64) / before as f64 * 100.0;
    format!("{} -> {} ({percent:+.1} %)", grouped(before), grouped(after))
}

/// How often each reason occurs, the most frequent first.
fn by_reason(reasons: impl Iterator<Item = &'static str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let listed: Vec<String> = counts
        .into_iter()
        .map(|(reason, count)| format!("{} {}", grouped(count as u64), reason.replace('_', " ")))
        .collect();
    listed.join(", ")
}

fn duration(elapsed: Duration) -> String {
    match elapsed.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", elapsed.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_times_are_readable() {
        assert_eq!(change(1000, 1000), "1,000, unchanged");
        assert_eq!(change(251_629, 120_123), "251,629 -> 120,123 (-52.3 %)");
        assert_eq!(duration(Duration::from_millis(7)), "7 ms");
        assert_eq!(duration(Duration::from_millis(1340)), "1.3 s");
    }

    #[test]
    fn reasons_are_counted() {
        let reasons = ["recent", "no_reference", "recent"];
        assert_eq!(by_reason(reasons.into_iter()), "2 recent, 1 no reference");
        assert_eq!(by_reason(std::iter::empty()), "");
    }
}
