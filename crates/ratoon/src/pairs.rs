//! Step 2 of 10: calls matched to their results by id; what is left over, with its reason.
//!
//! A pair needs exactly one call and exactly one result with the id in the whole history, the result behind the
//! call, and arguments that are one JSON object (contract, section 6). Everything else gets no decision and no
//! number, but is listed, so that no tool result goes unaccounted for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::json::{Text, canonical_object};
use crate::snapshot::{Block, BlockId, Call, Output, Snapshot, ToolResult};

/// A call and its one result.
#[non_exhaustive]
pub struct Pair<'a> {
    /// The id both share.
    pub call_id: Text<'a>,
    /// The call's arguments as compact JSON, equal for equal arguments however they were spelled.
    pub arguments: String,
    call: usize,
    result: usize,
}

impl fmt::Debug for Pair<'_> {
    // Arguments are message content, which never belongs in debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("call", &self.call).field("result", &self.result).finish_non_exhaustive()
    }
}

impl<'a> Pair<'a> {
    /// The call.
    pub fn call<'s>(&self, snapshot: &'s Snapshot<'a>) -> &'s Call<'a> {
        match &snapshot.blocks()[self.call] {
            Block::Call(call) => call,
            _ => unreachable!("pairs are made from call blocks"),
        }
    }

    /// The result.
    pub fn result<'s>(&self, snapshot: &'s Snapshot<'a>) -> &'s ToolResult<'a> {
        match &snapshot.blocks()[self.result] {
            Block::Result(result) => result,
            _ => unreachable!("pairs are made from result blocks"),
        }
    }

    /// The output of the result, if there is one.
    pub fn output<'s>(&self, snapshot: &'s Snapshot<'a>) -> Option<&'s Output<'a>> {
        self.result(snapshot).output.as_ref()
    }

    /// Which block of the snapshot the call is.
    pub fn call_block(&self) -> usize {
        self.call
    }

    /// Which block of the snapshot the result is.
    pub fn result_block(&self) -> usize {
        self.result
    }
}

/// A call or result that is part of no pair.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Skipped<'a> {
    /// Its id, as far as it has one.
    pub id: BlockId<'a>,
    /// Why it is part of no pair.
    pub reason: SkipReason,
}

/// Why a call or result is part of no pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// Several calls or several results share the id.
    AmbiguousId,
    /// The id is missing, empty, or not text.
    UnusableId,
    /// No result answers the call.
    CallWithoutResult,
    /// No call precedes the result or follows it.
    ResultWithoutCall,
    /// The result stands before its call.
    ResultBeforeCall,
    /// The arguments are not one JSON object that can be written again.
    UnreadableInput,
}

impl SkipReason {
    /// The name used in `stats.skipped`.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::AmbiguousId => "ambiguous_id",
            SkipReason::UnusableId => "unusable_id",
            SkipReason::CallWithoutResult => "call_without_result",
            SkipReason::ResultWithoutCall => "result_without_call",
            SkipReason::ResultBeforeCall => "result_before_call",
            SkipReason::UnreadableInput => "unreadable_input",
        }
    }
}

/// All occurrences of one id.
struct Occurrences<'a> {
    id: Text<'a>,
    calls: usize,
    results: usize,
    first_call: Option<usize>,
    first_result: Option<usize>,
}

/// Matches calls and results. Pairs come in the order in which their calls appear, leftovers in the order in
/// which their ids appear.
pub(crate) fn match_pairs<'a>(snapshot: &Snapshot<'a>) -> (Vec<Pair<'a>>, Vec<Skipped<'a>>) {
    let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
    let mut ids: Vec<Result<Occurrences<'a>, BlockId<'a>>> = Vec::new();
    for (block, content) in snapshot.blocks().iter().enumerate() {
        let (id, is_call) = match content {
            Block::Call(call) => (call.id, true),
            Block::Result(result) => (result.id, false),
            _ => continue,
        };
        let BlockId::Usable(text) = id else {
            ids.push(Err(id));
            continue;
        };
        let place = match places.entry(text.decode_lossy()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                ids.push(Ok(Occurrences {
                    id: text,
                    calls: 0,
                    results: 0,
                    first_call: None,
                    first_result: None,
                }));
                *entry.insert(ids.len() - 1)
            }
        };
        let Ok(occurrences) = &mut ids[place] else { unreachable!("places only lead to usable ids") };
        if is_call {
            occurrences.calls += 1;
            occurrences.first_call.get_or_insert(block);
        } else {
            occurrences.results += 1;
            occurrences.first_result.get_or_insert(block);
        }
    }
    let (mut pairs, mut skipped) = (Vec::new(), Vec::new());
    for id in ids {
        match id {
            Ok(occurrences) => match pair(&occurrences, snapshot) {
                Ok(pair) => pairs.push(pair),
                Err(reason) => skipped.push(Skipped { id: BlockId::Usable(occurrences.id), reason }),
            },
            Err(id) => skipped.push(Skipped { id, reason: SkipReason::UnusableId }),
        }
    }
    (pairs, skipped)
}

fn pair<'a>(found: &Occurrences<'a>, snapshot: &Snapshot<'a>) -> Result<Pair<'a>, SkipReason> {
    let call = found.first_call.ok_or(SkipReason::ResultWithoutCall)?;
    let result = found.first_result.ok_or(SkipReason::CallWithoutResult)?;
    if found.calls > 1 || found.results > 1 {
        return Err(SkipReason::AmbiguousId);
    }
    if result < call {
        return Err(SkipReason::ResultBeforeCall);
    }
    let Block::Call(block) = &snapshot.blocks()[call] else { unreachable!("found among the calls") };
    let arguments = block
        .input
        .and_then(|input| input.decode())
        .and_then(|input| canonical_object(&input))
        .ok_or(SkipReason::UnreadableInput)?;
    Ok(Pair { call_id: found.id, arguments, call, result })
}
