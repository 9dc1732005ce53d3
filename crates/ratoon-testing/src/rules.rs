//! An independent checker of the general rules of `testdata/cases/README.md`. It works on bytes: what was not
//! shortened must be spelt exactly as it came in.
//!
//! Rule 8 (the input object is not modified) cannot be seen from two texts and is left to the caller.

mod preview;
mod accounting;
mod unsent;

use std::collections::HashMap;

use crate::document::{Block, Message, Object, decoded, read_messages, spliced};
use accounting::Account;
pub use preview::ExcerptForm;

/// What the caller wants checked beyond or instead of the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demands {
    /// Every result of the input must have a decision or be listed in `stats.skipped`.
    pub skipped_listed: bool,
    /// The form of excerpt that the request asked for.
    pub excerpt: ExcerptForm,
}

impl Default for Demands {
    fn default() -> Demands {
        Demands { skipped_listed: true, excerpt: ExcerptForm::HeadTail }
    }
}

/// Checks an answer against its input and returns the violations as sentences; none means that all rules hold.
///
/// `input_messages_json` is the spelling of the request's `messages`, `answer_json` the whole answer, `sent_states` the
/// states that were sent to the decision model (JSON texts).
pub fn check_general_rules(
    input_messages_json: &str,
    answer_json: &str,
    source_refs: &HashMap<String, String>,
    sent_states: &[String],
) -> Vec<String> {
    check_general_rules_with(input_messages_json, answer_json, source_refs, sent_states, Demands::default())
}

/// The same with other demands.
pub fn check_general_rules_with(
    input_messages_json: &str,
    answer_json: &str,
    source_refs: &HashMap<String, String>,
    sent_states: &[String],
    demands: Demands,
) -> Vec<String> {
    match check(input_messages_json.trim(), answer_json, source_refs, sent_states, demands) {
        Ok(violations) => violations,
        Err(unreadable) => vec![unreadable],
    }
}

fn check(
    input_json: &str,
    answer_json: &str,
    source_refs: &HashMap<String, String>,
    sent_states: &[String],
    demands: Demands,
) -> Result<Vec<String>, String> {
    let input = read_messages(input_json).ok_or("the input is not a list of messages")?;
    let answer = Object::read(answer_json).ok_or("the answer is not a JSON object")?;
    let proposal_json = answer.get("messages").ok_or("the answer has no messages")?;
    let proposal = read_messages(proposal_json).ok_or("the proposal is not a list of messages")?;
    let account = Account::read(&answer)?;

    let mut violations = Vec::new();
    let changes = find_changes(&input, &proposal, &mut violations);
    let restored: Vec<(&str, &str)> =
        changes.iter().map(|change| (change.proposed, change.original)).collect();
    // Only the white space and fields around the blocks are left to differ; after other faults it would repeat them.
    if violations.is_empty() && spliced(proposal_json, &restored) != input_json {
        violations.push("the proposal differs outside the outputs of results".to_owned());
    }
    for change in &changes {
        let reference = decoded(change.id).and_then(|id| source_refs.get(&id));
        let faults = preview::check_preview(change.original, change.proposed, reference, demands.excerpt);
        violations.extend(faults.iter().map(|fault| format!("the output of {} {fault}", change.id)));
    }
    let changed: Vec<&str> = changes.iter().map(|change| change.id).collect();
    violations.extend(account.check_decisions(&input, &changed, source_refs));
    violations.extend(account.check_summary(!changed.is_empty()));
    if demands.skipped_listed {
        violations.extend(account.check_skipped(&input));
    }
    violations.extend(unsent::check_unsent(&input, sent_states));
    Ok(violations)
}

/// A result whose output differs; all parts as they are spelt.
struct Change<'a> {
    id: &'a str,
    original: &'a str,
    proposed: &'a str,
}

fn find_changes<'a>(
    input: &[Message<'a>],
    proposal: &[Message<'a>],
    violations: &mut Vec<String>,
) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    if input.len() != proposal.len() {
        violations.push(format!("{} messages became {}", input.len(), proposal.len()));
    }
    for (at, (before, after)) in input.iter().zip(proposal).enumerate() {
        if before.raw == after.raw {
            continue;
        }
        let (Some(old), Some(new)) = (&before.blocks, &after.blocks) else {
            violations.push(format!("message {at} differs and is not a list of blocks"));
            continue;
        };
        if old.len() != new.len() {
            violations.push(format!("{} blocks of message {at} became {}", old.len(), new.len()));
        }
        for (number, (old, new)) in old.iter().zip(new).enumerate() {
            match change_of(old, new) {
                Ok(change) => changes.extend(change),
                Err(fault) => violations.push(format!("block {number} of message {at} {fault}")),
            }
        }
    }
    changes
}

fn change_of<'a>(old: &Block<'a>, new: &Block<'a>) -> Result<Option<Change<'a>>, &'static str> {
    if old.raw == new.raw {
        return Ok(None);
    }
    if !old.is_result() {
        return Err("differs and is not a result");
    }
    match (old.output(), new.output()) {
        (Some(original), Some(proposed)) if spliced(new.raw, &[(proposed, original)]) == old.raw => {
            Ok(Some(Change { id: old.id(), original, proposed }))
        }
        _ => Err("differs outside its output"),
    }
}

#[cfg(test)]
mod tests;
