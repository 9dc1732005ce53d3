//! Step 10 of 10: the answer. The messages with their replacements, a decision a pair, and the numbers.

use std::fmt;
use std::io;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::answers::{Failure, Probability};
use crate::json::{Span, Text, float_notation, push_text};
use crate::pairs::Skipped;
use crate::protection::Protection;
use crate::selection::Reason;
use crate::snapshot::{BlockId, Snapshot};
use crate::splice::{Replacement, pieces};

/// What is proposed: the same messages, in which some old tool results are cut back to an excerpt.
///
/// Everything outside the replaced outputs is the input, byte for byte. The host decides what to do with it.
#[non_exhaustive]
pub struct Proposal<'r, 'a> {
    pub(crate) snapshot: &'r Snapshot<'a>,
    pub(crate) replacements: Vec<Replacement>,
    /// One decision a pair, in the order of the calls.
    pub decisions: Vec<Decision<'r, 'a>>,
    /// What happened as a whole.
    pub outcome: ProposalReason,
    /// Whether the messages fit the budget; `None` without one.
    pub budget_met: Option<bool>,
    /// The numbers.
    pub stats: Stats<'a>,
}

/// What is decided about one pair.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Decision<'r, 'a> {
    /// `t1`, `t2`, ... in the order of the calls.
    pub id: String,
    /// The pair's id in the history.
    pub call_id: Text<'a>,
    /// The tool, as far as the call names one.
    pub tool: Option<Text<'a>>,
    /// Why the result goes or stays.
    pub reason: Reason,
    /// What protects it, if it was not asked about.
    pub protection: Option<Protection>,
    /// The probability of need that the model gave.
    pub probability: Option<Probability>,
    /// Where the original can be recovered, if the host said so.
    pub source_ref: Option<&'r str>,
    /// Code points of the result's text, if it is text.
    pub result_chars: Option<u64>,
    /// Code points that the text loses, if it is cut back.
    pub saved_chars: Option<u64>,
}

impl Decision<'_, '_> {
    /// True if the result is cut back.
    pub fn is_preview(&self) -> bool {
        self.reason == Reason::LowRelevance
    }
}

/// What happened as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProposalReason {
    /// The budget is not met.
    BudgetExceeded,
    /// Something was cut back.
    Compacted,
    /// Nothing may be cut back.
    NoCandidates,
    /// Nothing was cut back.
    NoChange,
}

impl ProposalReason {
    /// The name in the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            ProposalReason::BudgetExceeded => "budget_exceeded",
            ProposalReason::Compacted => "compacted",
            ProposalReason::NoCandidates => "no_candidates",
            ProposalReason::NoChange => "no_change",
        }
    }
}

/// The numbers of a call, and everything that needs an account.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stats<'a> {
    /// Messages in the history; none is ever added or removed.
    pub messages: usize,
    /// Code points of the messages as compact JSON, before.
    pub chars_before: u64,
    /// The same after.
    pub chars_after: u64,
    /// The host's count before; `None` without a budget.
    pub tokens_before: Option<u64>,
    /// The host's count after.
    pub tokens_after: Option<u64>,
    /// Pairs that might have been asked about.
    pub candidates: usize,
    /// Pairs that were kept without asking.
    pub protected: usize,
    /// Largest estimate of a state that was planned.
    pub state_tokens: u64,
    /// Planned requests.
    pub requests: usize,
    /// Usage objects of the provider, in the order in which requests completed.
    pub usage: Vec<Box<RawValue>>,
    /// Time the call took.
    pub elapsed: Duration,
    /// Calls and results that are part of no pair.
    pub skipped: Vec<Skipped<'a>>,
    /// Requests that failed, with their cause.
    pub failures: Vec<Failure>,
    /// The decision model that was configured.
    pub model: String,
}

impl Proposal<'_, '_> {
    /// True if at least one result is cut back.
    pub fn changed(&self) -> bool {
        !self.replacements.is_empty()
    }

    /// The proposed message list.
    pub fn messages_json(&self) -> String {
        self.message_pieces(self.snapshot.span()).collect()
    }

    /// The proposed message list in the document it came in: everything around it untouched.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_document(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let whole = Span { start: 0, end: self.snapshot.input().len() };
        self.message_pieces(whole).try_for_each(|piece| out.write_all(piece.as_bytes()))
    }

    /// The proposed message list, without holding it in memory a second time.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_messages(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.message_pieces(self.snapshot.span()).try_for_each(|piece| out.write_all(piece.as_bytes()))
    }

    fn message_pieces(&self, within: Span) -> impl Iterator<Item = &str> {
        pieces(self.snapshot.input(), within, &self.replacements)
    }

    /// The answer with `schema_version` 2.
    pub fn answer_json(&self) -> String {
        let mut out = Vec::with_capacity(self.snapshot.json().len() + 4096);
        self.write_answer(&mut out).expect("writing to memory does not fail");
        String::from_utf8(out).expect("the answer is put together from text")
    }

    /// Writes the answer without holding it in memory.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_answer(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(b"{\"schema_version\":2,\"messages\":")?;
        self.write_messages(out)?;
        out.write_all(self.verdict_json().as_bytes())
    }

    /// The answer behind the messages.
    fn verdict_json(&self) -> String {
        let mut out = String::from(",\"decisions\":");
        push_list(&mut out, &self.decisions, |out, decision| decision.push_json(out));
        out.push_str(",\"changed\":");
        out.push_str(if self.changed() { "true" } else { "false" });
        out.push_str(",\"reason\":\"");
        out.push_str(self.outcome.as_str());
        out.push_str("\",\"budget_met\":");
        out.push_str(self.budget_met.map_or("null", |met| if met { "true" } else { "false" }));
        out.push_str(",\"stats\":");
        self.push_stats(&mut out);
        out.push('}');
        out
    }

    /// The stats object of the answer.
    pub fn stats_json(&self) -> String {
        let mut out = String::new();
        self.push_stats(&mut out);
        out
    }

    fn push_stats(&self, out: &mut String) {
        let stats = &self.stats;
        let number = |value: Option<u64>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        let numbers = [
            ("messages_before", Some(stats.messages as u64)),
            ("messages_after", Some(stats.messages as u64)),
            ("chars_before", Some(stats.chars_before)),
            ("chars_after", Some(stats.chars_after)),
            ("tokens_before", stats.tokens_before),
            ("tokens_after", stats.tokens_after),
            ("candidates", Some(stats.candidates as u64)),
            ("protected", Some(stats.protected as u64)),
            ("state_tokens", Some(stats.state_tokens)),
            ("requests", Some(stats.requests as u64)),
        ];
        out.push('{');
        for (name, value) in numbers {
            out.push_str(&format!("\"{name}\":{},", number(value)));
        }
        out.push_str("\"usage\":");
        push_list(out, &stats.usage, |out, usage| out.push_str(usage.get()));
        out.push_str(&format!(",\"elapsed_ms\":{},\"model\":", stats.elapsed.as_millis()));
        push_text(out, &stats.model);
        out.push_str(",\"skipped\":");
        push_list(out, &stats.skipped, |out, skipped| {
            out.push_str("{\"call_id\":");
            push_id(out, &skipped.id);
            out.push_str(&format!(",\"reason\":\"{}\"}}", skipped.reason.as_str()));
        });
        out.push_str(",\"protections\":");
        let protected =
            self.decisions.iter().filter_map(|decision| Some((&decision.id, decision.protection?)));
        push_list(out, protected, |out, (id, protection)| {
            out.push_str(&format!("{{\"id\":\"{id}\",\"reason\":\"{}\"}}", protection.as_str()));
        });
        out.push_str(",\"failures\":");
        push_list(out, &stats.failures, |out, failure| {
            let kind = failure.kind.map_or("deadline", |kind| kind.as_str());
            let status = number(failure.status.map(u64::from));
            out.push_str(&format!(
                "{{\"request\":{},\"kind\":\"{kind}\",\"status\":{status},",
                failure.request
            ));
            out.push_str(&format!("\"attempts\":{},\"message\":", failure.attempts));
            push_text(out, &failure.message);
            out.push('}');
        });
        out.push('}');
    }
}

impl Decision<'_, '_> {
    fn push_json(&self, out: &mut String) {
        let action = if self.is_preview() { "preview" } else { "keep" };
        out.push_str(&format!(
            "{{\"id\":\"{}\",\"call_id\":\"{}\",\"action\":\"{action}\"",
            self.id,
            self.call_id.raw()
        ));
        out.push_str(&format!(",\"reason\":\"{}\",\"probability\":", self.reason.as_str()));
        match self.probability {
            Some(probability) => out.push_str(&float_notation(probability.get())),
            None => out.push_str("null"),
        }
        out.push_str(",\"source_ref\":");
        match self.source_ref {
            Some(reference) => push_text(out, reference),
            None => out.push_str("null"),
        }
        out.push('}');
    }
}

/// An id as it stands in the history.
fn push_id(out: &mut String, id: &BlockId<'_>) {
    match id {
        BlockId::Usable(text) => {
            out.push('"');
            out.push_str(text.raw());
            out.push('"');
        }
        BlockId::Unusable(raw) => out.push_str(raw),
        BlockId::Missing => out.push_str("null"),
    }
}

fn push_list<I: IntoIterator>(out: &mut String, items: I, mut push: impl FnMut(&mut String, I::Item)) {
    out.push('[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push(out, item);
    }
    out.push(']');
}

impl fmt::Debug for Proposal<'_, '_> {
    // Replacements and snapshot are message content, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proposal")
            .field("outcome", &self.outcome)
            .field("decisions", &self.decisions.len())
            .field("replacements", &self.replacements.len())
            .field("budget_met", &self.budget_met)
            .finish_non_exhaustive()
    }
}
