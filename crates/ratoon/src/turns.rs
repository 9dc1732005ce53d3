//! Step 3 of 10, first half: what `preserve_recent_messages` counts.
//!
//! By default a turn is a message. AgentScope stores a whole autonomous run as one message, so a host may count
//! model steps instead. A step ends where something other than a result follows a result; where one assistant
//! message ends and the next begins does not matter, so a run joined into one message and the same run with one
//! message a step have the same turns.

use std::ops::Range;

use crate::request::RecentUnit;
use crate::snapshot::{Block, Role, Snapshot};

/// The unit in which recency is counted and task context is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) role: Role,
    pub(crate) messages: Range<usize>,
    pub(crate) blocks: Range<usize>,
}

/// All turns of a snapshot in order; together they cover every block.
pub(crate) fn turns(snapshot: &Snapshot<'_>, unit: RecentUnit) -> Vec<Turn> {
    let messages = snapshot.messages().iter().enumerate();
    let whole = |(index, message): (usize, &crate::snapshot::Message<'_>)| Turn {
        role: message.role,
        messages: index..index + 1,
        blocks: message.block_range(),
    };
    match unit {
        RecentUnit::Message => messages.map(whole).collect(),
        RecentUnit::Step => {
            let mut turns: Vec<Turn> = Vec::new();
            for (index, message) in messages {
                if message.role == Role::Assistant {
                    push_steps(&mut turns, snapshot, index);
                } else {
                    turns.push(whole((index, message)));
                }
            }
            turns
        }
    }
}

/// Continues the last step, or begins new ones, with the blocks of an assistant message.
fn push_steps(turns: &mut Vec<Turn>, snapshot: &Snapshot<'_>, message: usize) {
    for block in snapshot.messages()[message].block_range() {
        let is_result = |block: usize| matches!(snapshot.blocks()[block], Block::Result(_));
        match turns.last_mut() {
            Some(step)
                if step.role == Role::Assistant && (is_result(block) || !is_result(step.blocks.end - 1)) =>
            {
                step.blocks.end = block + 1;
                step.messages.end = message + 1;
            }
            _ => turns.push(Turn {
                role: Role::Assistant,
                messages: message..message + 1,
                blocks: block..block + 1,
            }),
        }
    }
}
