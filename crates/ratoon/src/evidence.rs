//! Step 4 of 10: what the decision model sees. The goal, the next action, the task context, one unit a candidate.
//!
//! Everything is written once, as compact JSON in the contract's notation, and estimated once; a batch only puts
//! pieces together. Tool output is data in the state, never prose of ours. Values that look like credentials are
//! masked in these copies, at the same length, so that no excerpt or limit depends on the masking.

mod credentials;
mod goal;

use std::borrow::Cow;

use crate::count::Estimate;
use crate::json::push_text;
use crate::model::State;
use crate::pairs::Pair;
use crate::protection::{Candidate, TurnProtection};
use crate::request::Request;
use crate::snapshot::{Block, Snapshot};
use crate::text::{ELLIPSIS, Excerpt, code_points, cut, is_blank};
use crate::turns::Turn;

/// The shared part of all states of a call, serialised.
pub(crate) struct Evidence {
    opening: String,
    has_aim: bool,
    limit: u64,
    mask: bool,
}

const CLOSING: &str = "]}";

impl Evidence {
    /// Writes the shared part.
    pub(crate) fn new(
        request: &Request<'_>,
        turns: &[Turn],
        protection: &TurnProtection,
        mask: bool,
    ) -> Evidence {
        let limit = request.options.evidence_chars;
        let goal = goal::goal(request);
        let has_aim = is_aim(&goal, &request.next_action);
        let mut opening = String::new();
        let field = |name: &str, text: &str, out: &mut String| {
            out.push_str(name);
            push_text(out, &masked(text, mask));
        };
        field("{\"goal\":", &goal, &mut opening);
        field(",\"next_action\":", &request.next_action, &mut opening);
        opening.push_str(",\"task_context\":[");
        for (at, turn) in context(request, turns, protection).enumerate() {
            opening.push_str(if at > 0 { ",{\"role\":\"" } else { "{\"role\":\"" });
            opening.push_str(turn.role.as_str());
            let text = said(&request.snapshot, turn);
            opening.push_str("\",\"text\":");
            push_text(&mut opening, &cut(&masked(&text, mask), limit));
            opening.push('}');
        }
        opening.push_str("],\"evidence_units\":[");
        Evidence { opening, has_aim, limit, mask }
    }

    /// False if there is neither a goal nor a next action to judge against.
    pub(crate) fn has_aim(&self) -> bool {
        self.has_aim
    }

    /// Writes the unit of a candidate.
    pub(crate) fn unit(&self, id: &str, candidate: &Candidate<'_, '_>, pair: &Pair<'_>) -> String {
        let (limit, mask) = (self.limit, self.mask);
        let length = candidate.text.code_points();
        let input_length = code_points(&pair.arguments);
        let mut json = String::new();
        json.push_str("{\"id\":");
        push_text(&mut json, id);
        json.push_str(",\"tool\":");
        push_text(&mut json, &candidate.tool);
        json.push_str(",\"input\":");
        push_excerpt(&mut json, &pair.arguments, input_length, limit, mask);
        json.push_str(",\"input_complete\":");
        json.push_str(if input_length <= limit { "true" } else { "false" });
        json.push_str(",\"result_preview\":");
        match candidate.text.canonical() {
            // Shown whole, spelled as it will be sent, nothing to hide: the bytes are there already.
            Some(raw) if length <= limit && !(mask && credentials::suspected(raw)) => {
                json.reserve(raw.len() + 64);
                json.push('"');
                json.push_str(raw);
                json.push('"');
            }
            _ => push_excerpt(&mut json, &candidate.text.decode_lossy(), length, limit, mask),
        }
        json.push_str(",\"preview_complete\":");
        json.push_str(if length <= limit { "true" } else { "false" });
        json.push_str(",\"result_chars\":");
        json.push_str(&length.to_string());
        json.push('}');
        json
    }

    /// The estimate of a state without any unit.
    pub(crate) fn frame_estimate(&self) -> Estimate {
        Estimate::of(&self.opening) + Estimate::of(CLOSING)
    }

    /// The state with these units, which are separated by commas.
    pub(crate) fn state<'e>(&'e self, units: &'e str) -> State<'e> {
        State::new(&self.opening, units, CLOSING)
    }
}

/// Whether there is anything to judge results against: a goal, given or found, or a next action. Without, nothing
/// is asked.
pub fn has_aim(request: &Request<'_>) -> bool {
    is_aim(&goal::goal(request), &request.next_action)
}

fn is_aim(goal: &str, next_action: &str) -> bool {
    !is_blank(goal) || !is_blank(next_action)
}

/// The turns that are told as context: the first, the system's, the listed ones, and the newest, at least one.
fn context<'t>(
    request: &Request<'_>,
    turns: &'t [Turn],
    protection: &'t TurnProtection,
) -> impl Iterator<Item = &'t Turn> {
    let at_least_one = request.options.preserve_recent_messages == 0;
    let last = turns.len().saturating_sub(1);
    let told = turns.iter().zip(&protection.reasons).enumerate();
    told.filter(move |(at, (_, reason))| reason.is_some() || (at_least_one && *at == last))
        .map(|(_, (turn, _))| turn)
}

/// What was said in a turn: its text blocks joined with newlines. Never thinking, calls or results.
fn said<'a>(snapshot: &Snapshot<'a>, turn: &Turn) -> Cow<'a, str> {
    join(snapshot.blocks()[turn.blocks.clone()].iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.decode_lossy()),
        _ => None,
    }))
}

fn join<'a>(mut texts: impl Iterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    texts.fold(first, |mut joined, text| {
        let all = joined.to_mut();
        all.push('\n');
        all.push_str(&text);
        joined
    })
}

fn masked(text: &str, mask: bool) -> Cow<'_, str> {
    if mask { credentials::mask(text) } else { Cow::Borrowed(text) }
}

/// Appends the excerpt of a text as a JSON string. Only what may be shown, and a margin around the cut so that a
/// credential is recognised although it is cut in two, is searched for credentials.
fn push_excerpt(json: &mut String, text: &str, length: u64, limit: u64, mask: bool) {
    const MARGIN: usize = 4096;
    let excerpt = Excerpt::of(text, length, limit);
    let mut shown = String::new();
    match &excerpt {
        Excerpt::Whole => return push_text(json, &masked(text, mask)),
        Excerpt::Head(head) => {
            let window = &text[..text.floor_char_boundary(head.end + MARGIN)];
            shown.push_str(&masked(window, mask)[head.clone()]);
        }
        Excerpt::HeadTail(head, tail) => {
            if mask && tail.start.saturating_sub(head.end) > 2 * MARGIN {
                let front = masked(&text[..text.floor_char_boundary(head.end + MARGIN)], mask);
                let start = text.floor_char_boundary(tail.start - MARGIN);
                let back = masked(&text[start..], mask);
                shown.push_str(&front[head.clone()]);
                shown.push_str(ELLIPSIS);
                shown.push_str(&back[tail.start - start..]);
            } else {
                excerpt.push(&mut shown, &masked(text, mask));
            }
        }
    }
    push_text(json, &shown);
}
