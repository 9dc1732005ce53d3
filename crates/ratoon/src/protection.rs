//! Step 3 of 10: who may be asked about. A pair becomes a `Candidate` or is kept with a reason.
//!
//! The rules are those of the contract (section 6), plus a few that keep where a cut would be wrong: excerpts made
//! earlier, results of a recovery, text that is not valid Unicode, and, on request, results no model has read.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::pairs::Pair;
use crate::preview::marker_reference;
use crate::request::Request;
use crate::snapshot::{Block, ResultText, Role, Snapshot};
use crate::turns::Turn;

/// A pair that may be asked about: textual, archived, allowed, and not protected.
#[derive(Clone)]
pub(crate) struct Candidate<'r, 'a> {
    /// Index among the pairs.
    pub(crate) pair: usize,
    pub(crate) tool: Cow<'a, str>,
    pub(crate) text: ResultText<'r, 'a>,
    pub(crate) reference: &'r str,
}

/// Why a pair is kept without being asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// The first message, which frames the task.
    FirstMessage,
    /// A system message.
    SystemMessage,
    /// One of the newest messages or steps.
    Recent,
    /// In a message of `protected_message_ids`.
    ProtectedMessage,
    /// Listed in `protected_call_ids`.
    ProtectedCall,
    /// The tool is not in `eligible_tool_names`.
    ToolNotEligible,
    /// The call did not run to its end.
    CallNotFinished,
    /// The result does not report success.
    NotSuccessful,
    /// Call and result name different tools.
    NamesDiffer,
    /// The output is not purely textual.
    NotText,
    /// There is no reference to recover the original from.
    NoReference,
    /// The text is not valid Unicode.
    NotUnicode,
    /// The text is an excerpt made earlier.
    AlreadyCompacted,
    /// The call names one of the references: its result is a recovered original.
    Recovery,
    /// The model has said and done nothing since the result came back.
    Unread,
}

impl Protection {
    /// The name used in `stats.protections`.
    pub fn as_str(self) -> &'static str {
        match self {
            Protection::FirstMessage => "first_message",
            Protection::SystemMessage => "system_message",
            Protection::Recent => "recent",
            Protection::ProtectedMessage => "protected_message_id",
            Protection::ProtectedCall => "protected_call_id",
            Protection::ToolNotEligible => "tool_not_eligible",
            Protection::CallNotFinished => "call_not_finished",
            Protection::NotSuccessful => "result_not_successful",
            Protection::NamesDiffer => "names_differ",
            Protection::NotText => "not_text",
            Protection::NoReference => "no_reference",
            Protection::NotUnicode => "not_unicode",
            Protection::AlreadyCompacted => "already_compacted",
            Protection::Recovery => "recovery",
            Protection::Unread => "unread",
        }
    }
}

/// What becomes of a pair before anything is asked.
pub(crate) type Standing<'r, 'a> = Result<Candidate<'r, 'a>, Protection>;

/// Which turns are told to the decision model as context and protect what is in them.
#[derive(Debug)]
pub(crate) struct TurnProtection {
    /// By turn: why its pairs stay, if they do.
    pub(crate) reasons: Vec<Option<Protection>>,
    /// By block: the turn it belongs to.
    turn_of_block: Vec<usize>,
}

impl TurnProtection {
    pub(crate) fn new(request: &Request<'_>, turns: &[Turn]) -> TurnProtection {
        let recent = usize::try_from(request.options.preserve_recent_messages).unwrap_or(usize::MAX);
        let first_recent = turns.len().saturating_sub(recent);
        // By message, since a message may hold many steps.
        let listed: Vec<bool> = request
            .snapshot
            .messages()
            .iter()
            .map(|message| {
                !request.protected_message_ids.is_empty()
                    && message
                        .id
                        .and_then(|id| id.decode())
                        .is_some_and(|id| request.protected_message_ids.contains(&id))
            })
            .collect();
        let reason = |(at, turn): (usize, &Turn)| {
            if at == 0 {
                Some(Protection::FirstMessage)
            } else if turn.role == Role::System {
                Some(Protection::SystemMessage)
            } else if listed[turn.messages.clone()].contains(&true) {
                Some(Protection::ProtectedMessage)
            } else {
                (at >= first_recent).then_some(Protection::Recent)
            }
        };
        let mut turn_of_block = vec![0; request.snapshot.blocks().len()];
        for (at, turn) in turns.iter().enumerate() {
            turn_of_block[turn.blocks.clone()].fill(at);
        }
        TurnProtection { reasons: turns.iter().enumerate().map(reason).collect(), turn_of_block }
    }

    fn of_block(&self, block: usize) -> Option<Protection> {
        self.reasons[self.turn_of_block[block]]
    }
}

/// Sorts the pairs into candidates and protected ones.
pub(crate) fn standings<'r, 'a>(
    request: &'r Request<'a>,
    pairs: &[Pair<'a>],
    turns: &TurnProtection,
) -> Vec<Standing<'r, 'a>> {
    let snapshot = &request.snapshot;
    let earlier: Vec<Option<String>> = pairs.iter().map(|pair| earlier_reference(request, pair)).collect();
    let references: HashSet<&str> = request
        .source_refs
        .values()
        .map(|reference| &**reference)
        .chain(earlier.iter().flatten().map(String::as_str))
        .collect();
    let read_until = last_model_activity(snapshot);
    let stand = |(index, pair): (usize, &Pair<'a>)| {
        let candidate = contract(request, index, pair, turns)?;
        if candidate.text.has_lone_surrogate() {
            Err(Protection::NotUnicode)
        } else if earlier[index].is_some() {
            Err(Protection::AlreadyCompacted)
        } else if names_reference(&pair.arguments, &references) {
            Err(Protection::Recovery)
        } else if request.options.protect_unread && read_until.is_none_or(|block| pair.result_block() > block)
        {
            Err(Protection::Unread)
        } else {
            Ok(candidate)
        }
    };
    pairs.iter().enumerate().map(stand).collect()
}

/// The contract's own rules.
fn contract<'r, 'a>(
    request: &'r Request<'a>,
    index: usize,
    pair: &Pair<'a>,
    turns: &TurnProtection,
) -> Standing<'r, 'a> {
    let snapshot = &request.snapshot;
    let (call, result) = (pair.call(snapshot), pair.result(snapshot));
    if let Some(reason) = turns.of_block(pair.call_block()).or(turns.of_block(pair.result_block())) {
        return Err(reason);
    }
    let call_id = pair.call_id.decode().unwrap_or_default();
    if request.protected_call_ids.contains(&call_id) {
        return Err(Protection::ProtectedCall);
    }
    let tool = call.name.and_then(|name| name.decode()).filter(|name| request.eligible_tools.contains(name));
    let tool = tool.ok_or(Protection::ToolNotEligible)?;
    if !call.finished {
        return Err(Protection::CallNotFinished);
    }
    if !result.success {
        return Err(Protection::NotSuccessful);
    }
    if !result.name.is_some_and(|other| other.is(&tool)) {
        return Err(Protection::NamesDiffer);
    }
    let text = result.output.as_ref().and_then(|output| output.text()).ok_or(Protection::NotText)?;
    let reference = request.source_refs.get(&call_id).ok_or(Protection::NoReference)?;
    Ok(Candidate { pair: index, tool, text, reference })
}

/// The reference in the marker of an excerpt made earlier, if the result is one.
fn earlier_reference(request: &Request<'_>, pair: &Pair<'_>) -> Option<String> {
    let text = pair.output(&request.snapshot)?.text()?;
    if !text.may_end_with(']') {
        return None;
    }
    let own = pair.call_id.decode().and_then(|id| request.source_refs.get(&id)).map(|own| &**own);
    marker_reference(&text.decode_lossy(), own).map(str::to_owned)
}

/// The last block in which the model said or did something. Results behind it have not been read.
fn last_model_activity(snapshot: &Snapshot<'_>) -> Option<usize> {
    let assistant = snapshot.messages().iter().rev().filter(|message| message.role == Role::Assistant);
    assistant.flat_map(|message| message.block_range().rev()).find(|&block| match &snapshot.blocks()[block] {
        Block::Text(text) => !crate::text::is_blank(&text.decode_lossy()),
        Block::Thinking | Block::Call(_) => true,
        Block::Result(_) | Block::Other => false,
    })
}

/// True if one of the argument strings is a reference or holds one as a word of its own, as a shell command does.
fn names_reference(arguments: &str, references: &HashSet<&str>) -> bool {
    !references.is_empty()
        && crate::json::strings(arguments).any(|text| {
            let delimiter = |character: char| {
                crate::text::is_whitespace(character) || "\"'`()[]<>|&\\,;=".contains(character)
            };
            references.contains(&*text) || text.split(delimiter).any(|word| references.contains(word))
        })
}
