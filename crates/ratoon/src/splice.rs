//! Step 10 of 10, first half: replacements put into the original bytes.

use std::borrow::Cow;

use crate::json::{Span, push_text, serialised_code_points};
use crate::snapshot::{Content, Output, Snapshot};

/// The JSON that takes the place of one output.
#[derive(Clone)]
pub(crate) struct Replacement {
    span: Span,
    json: String,
    /// Code points that the message list loses.
    saved: i64,
}

impl Replacement {
    /// A replacement of an output by a text. With `keep_shape` a list of text blocks stays a list: its first
    /// block with the new text, every other field of it untouched.
    pub(crate) fn of(
        snapshot: &Snapshot<'_>,
        output: &Output<'_>,
        text: &str,
        keep_shape: bool,
    ) -> Replacement {
        let mut json = String::with_capacity(text.len() + 32);
        let text_size = serialised_code_points(text);
        let size = match &output.content {
            Content::TextBlocks(blocks) if keep_shape => {
                let first = &blocks[0];
                json.push('[');
                json.push_str(&snapshot.input()[first.block.start..first.string.start]);
                push_text(&mut json, text);
                json.push_str(&snapshot.input()[first.string.end..first.block.end]);
                json.push(']');
                2 + first.size - first.text.size() + text_size
            }
            _ => {
                push_text(&mut json, text);
                text_size
            }
        };
        Replacement { span: output.span, json, saved: output.size as i64 - size as i64 }
    }
}

/// A message list with some outputs replaced.
pub(crate) struct Edits<'s, 'a> {
    snapshot: &'s Snapshot<'a>,
    replacements: Vec<Replacement>,
    code_points: i64,
}

impl<'s, 'a> Edits<'s, 'a> {
    pub(crate) fn new(snapshot: &'s Snapshot<'a>) -> Edits<'s, 'a> {
        Edits { snapshot, replacements: Vec::new(), code_points: snapshot.size() as i64 }
    }

    pub(crate) fn push(&mut self, replacement: Replacement) {
        self.code_points -= replacement.saved;
        self.replacements.push(replacement);
    }

    /// Takes the last replacement back.
    pub(crate) fn pop(&mut self) {
        if let Some(replacement) = self.replacements.pop() {
            self.code_points += replacement.saved;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    /// Code points of the edited list as compact JSON.
    pub(crate) fn code_points(&self) -> u64 {
        self.code_points as u64
    }

    /// The edited list.
    pub(crate) fn json(&self) -> Cow<'s, str> {
        if self.replacements.is_empty() {
            return Cow::Borrowed(self.snapshot.json());
        }
        let mut order: Vec<&Replacement> = self.replacements.iter().collect();
        order.sort_by_key(|replacement| replacement.span.start);
        let span = self.snapshot.span();
        let mut out = String::with_capacity(span.end - span.start);
        out.extend(pieces(self.snapshot.input(), span, &order));
        Cow::Owned(out)
    }

    /// The replacements in the order of the document.
    pub(crate) fn into_replacements(self) -> Vec<Replacement> {
        let mut replacements = self.replacements;
        replacements.sort_by_key(|replacement| replacement.span.start);
        replacements
    }
}

/// The text of `input` in `within`, with the replacements (in the order of the document) in their places.
pub(crate) fn pieces<'t, R: std::borrow::Borrow<Replacement>>(
    input: &'t str,
    within: Span,
    replacements: &'t [R],
) -> impl Iterator<Item = &'t str> {
    let mut copied = within.start;
    let replaced = replacements.iter().flat_map(move |replacement| {
        let replacement: &'t Replacement = replacement.borrow();
        let before = &input[copied..replacement.span.start];
        copied = replacement.span.end;
        [before, replacement.json.as_str()]
    });
    let last = replacements.last().map_or(within.start, |replacement| replacement.borrow().span.end);
    replaced.chain(std::iter::once(&input[last..within.end]))
}
