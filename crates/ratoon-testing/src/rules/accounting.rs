//! Rule 7 and the answer's own bookkeeping: decisions, changed outputs and skipped results must tell the same story.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::Value;

use crate::document::{Message, Object, decoded, raw_items};

/// What an answer says besides its messages.
#[derive(Debug)]
pub(super) struct Account<'a> {
    decisions: Vec<Decision>,
    changed: Option<bool>,
    reason: Option<String>,
    /// Spellings of the call ids of skipped results.
    skipped: Vec<&'a str>,
}

#[derive(Debug, Deserialize)]
struct Decision {
    call_id: String,
    action: String,
    probability: Option<f64>,
    source_ref: Option<String>,
}

impl<'a> Account<'a> {
    pub(super) fn read(answer: &Object<'a>) -> Result<Account<'a>, String> {
        let decisions = answer.get("decisions").ok_or("the answer has no decisions")?;
        let decisions = serde_json::from_str(decisions)
            .map_err(|error| format!("the decisions cannot be read: {error}"))?;
        let stats = answer.get("stats").and_then(Object::read).ok_or("the answer has no stats")?;
        let skipped = stats.get("skipped").and_then(raw_items).unwrap_or_default();
        let skipped = skipped.iter().filter_map(|entry| Object::read(entry.get())?.get("call_id")).collect();
        let changed = answer.get("changed").and_then(|raw| serde_json::from_str(raw).ok());
        Ok(Account { decisions, changed, reason: answer.text("reason"), skipped })
    }

    /// Checks the decisions against the outputs that really changed (spellings of their call ids).
    pub(super) fn check_decisions(
        &self,
        input: &[Message<'_>],
        changed: &[&str],
        source_refs: &HashMap<String, String>,
    ) -> Vec<String> {
        let mut violations = Vec::new();
        let mut results_of: HashMap<String, usize> = HashMap::new();
        for id in results(input).filter_map(decoded) {
            *results_of.entry(id).or_default() += 1;
        }
        let changed_ids: HashSet<String> = changed.iter().filter_map(|id| decoded(id)).collect();
        let mut decided = HashSet::new();
        for decision in &self.decisions {
            let call_id = &decision.call_id;
            let mut faults = decision.faults(changed_ids.contains(call_id), source_refs.get(call_id));
            if !decided.insert(call_id) {
                faults.push("is there twice");
            }
            if !results_of.contains_key(call_id) {
                faults.push("is about no result of the input");
            }
            violations.extend(faults.iter().map(|fault| format!("the decision for {call_id:?} {fault}")));
        }
        for raw in changed {
            let id = decoded(raw);
            if !id.as_ref().is_some_and(|id| decided.contains(id)) {
                violations.push(format!("the output of {raw} changed without a decision"));
            } else if id.and_then(|id| results_of.get(&id)) != Some(&1) {
                violations.push(format!("the output of {raw} changed although the id is ambiguous"));
            }
        }
        violations
    }

    /// Checks the flags that sum up the answer.
    pub(super) fn check_summary(&self, any_changed: bool) -> Option<String> {
        let reason_fits = match self.reason.as_deref() {
            Some("compacted") => any_changed,
            Some("no_change" | "no_candidates") => !any_changed,
            Some("budget_exceeded") => true,
            _ => false,
        };
        if self.changed != Some(any_changed) {
            Some(format!("changed is {:?}, but outputs changed: {any_changed}", self.changed))
        } else if !reason_fits {
            Some(format!("the reason {:?} does not fit, outputs changed: {any_changed}", self.reason))
        } else {
            None
        }
    }

    /// Checks that every result of the input has a decision or is listed as skipped.
    pub(super) fn check_skipped(&self, input: &[Message<'_>]) -> Vec<String> {
        let decided: HashSet<&str> =
            self.decisions.iter().map(|decision| decision.call_id.as_str()).collect();
        let accounted = |id: &str| {
            decoded(id).is_some_and(|id: String| decided.contains(id.as_str()))
                || self.skipped.iter().any(|found| same_value(found, id))
        };
        let silent = results(input).filter(|id| !accounted(id));
        silent.map(|id| format!("the result of {id} is neither decided nor listed as skipped")).collect()
    }
}

impl Decision {
    fn faults(&self, output_changed: bool, reference: Option<&String>) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, fault| {
            if !holds {
                faults.push(fault);
            }
        };
        if self.action == "preview" {
            require(output_changed, "is a preview, but the output is unchanged");
            let usable = self.probability.is_some_and(|probability| (0.0..=1.0).contains(&probability));
            require(usable, "previews without a usable probability");
            require(
                reference.is_some() && reference == self.source_ref.as_ref(),
                "previews with another reference",
            );
        } else {
            require(self.action == "keep", "has an unknown action");
            require(!output_changed, "is not a preview, but the output changed");
        }
        faults
    }
}

/// The spellings of the call ids of all results, in their order.
fn results<'a>(input: &[Message<'a>]) -> impl Iterator<Item = &'a str> {
    input
        .iter()
        .flat_map(|message| message.blocks.iter().flatten())
        .filter(|block| block.is_result())
        .map(|block| block.id())
}

/// Ids can be any value; those that cannot be decoded (lone surrogates) must be spelt alike.
fn same_value(left: &str, right: &str) -> bool {
    let value = |raw: &str| serde_json::from_str::<Value>(raw).ok();
    left == right || value(left).is_some_and(|left| Some(left) == value(right))
}
