//! What the agent is after, when the host did not say so.

use std::borrow::Cow;

use super::join;
use crate::request::Request;
use crate::snapshot::{Block, Role};
use crate::text::{cut, is_blank};

/// The goal to judge by: the one given, or else the newest text that a person wrote, cut to `evidence_chars`
/// (contract, section 7). A goal of white space counts as given.
///
/// Notices that a host writes into user messages are passed over as long as there is anything else: judging
/// relevance by "background task 12 finished" gives nonsense.
pub(super) fn goal<'r>(request: &'r Request<'_>) -> Cow<'r, str> {
    if !request.goal.is_empty() {
        return Cow::Borrowed(&request.goal);
    }
    let snapshot = &request.snapshot;
    let newest = |keep: fn(&str) -> bool| {
        let users = snapshot.messages().iter().rev().filter(|message| message.role == Role::User);
        let texts = users.map(|message| {
            join(snapshot.blocks_of(message).iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.decode_lossy()).filter(|text| keep(text)),
                _ => None,
            }))
        });
        texts.into_iter().find(|text| !is_blank(text))
    };
    let text = newest(|text| !is_host_notice(text)).or_else(|| newest(|_| true)).unwrap_or_default();
    Cow::Owned(cut(&text, request.options.evidence_chars))
}

/// Elements in which hosts wrap what they, and not the person, have to say.
const NOTICE_ELEMENTS: [&str; 6] = [
    "system-reminder",
    "system-notification",
    "system_warning",
    "task-notification",
    "environment_context",
    "local-command-stdout",
];

/// True if the whole text is one element that hosts use for notices.
fn is_host_notice(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    NOTICE_ELEMENTS.iter().any(|name| {
        inner.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| {
            rest.starts_with('>') && rest.strip_suffix(name).is_some_and(|rest| rest.ends_with("</"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_host_notice;

    #[test]
    fn only_a_text_that_is_a_notice_as_a_whole_is_one() {
        assert!(is_host_notice(" <system-reminder>Task 12 finished.</system-reminder>\n"));
        assert!(!is_host_notice("<system-reminder>a</system-reminder> and fix the login"));
        assert!(!is_host_notice("Why does <system-reminder> appear?"));
        assert!(!is_host_notice("<div>a</div>"));
        assert!(!is_host_notice(""));
    }
}
