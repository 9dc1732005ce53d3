//! The offline model: says that evidence is not needed where the history itself proves it, and nothing else.
//!
//! Proof is that the whole text of a result stands in a later result of the history, byte for byte: as the text of
//! any later result, or inside the result of the same call made again. A later result that is judged not needed
//! has its own proof further on, which then holds for the earlier one, too; so the last of them always stays.
//!
//! Takes time linear in the size of the history.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use memchr::memmem;
use ratoon::model::{Decide, Reply};
use ratoon::{Answer, DecisionModel, DecisionRequest, Reading};

/// The decision model `rules`: exact, offline, immediate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules;

/// The answer for evidence that is proven to stand elsewhere.
const REPEATED: f64 = 0.0;
/// The answer for all other evidence.
const UNKNOWN: f64 = 0.5;

impl DecisionModel for Rules {
    fn name(&self) -> &str {
        crate::settings::Backend::Rules.name()
    }

    fn reading(&self) -> Reading {
        Reading::Snapshot
    }

    fn decide<'a>(&'a self, request: &'a DecisionRequest<'a>) -> Decide<'a> {
        Box::pin(async move { Ok(answer(request)) })
    }
}

fn answer(request: &DecisionRequest<'_>) -> Reply {
    let mut history = History::new(request);
    let answers = request.questions.iter().map(|question| {
        let need = if history.is_repeated(question.pair) { REPEATED } else { UNKNOWN };
        (question.id.to_owned(), Answer::Binary(need))
    });
    Reply { answers: answers.collect(), usage: None }
}

/// A result that can prove something or be proven: text that is valid and not empty.
struct Evidence<'a> {
    text: Cow<'a, str>,
    /// Whether a later result has the same text.
    recurs: bool,
    /// The result of the next same call, an index into the evidence.
    next_repeat: Option<usize>,
    /// The result of the last same call, possibly this one.
    last_repeat: usize,
}

struct History<'a> {
    /// From the end of the history to its beginning.
    evidence: Vec<Evidence<'a>>,
    /// By pair: an index into the evidence.
    of_pair: Vec<Option<usize>>,
    /// Bytes that may still be searched. One long result of a call that was made thousands of times would
    /// otherwise be searched thousands of times.
    searchable: usize,
}

impl<'a> History<'a> {
    fn new(request: &DecisionRequest<'a>) -> History<'a> {
        const SEARCHES_PER_BYTE: usize = 8;
        let mut by_place: Vec<usize> = (0..request.pairs.len()).collect();
        by_place.sort_unstable_by_key(|&pair| request.pairs[pair].result_block());
        let mut history =
            History { evidence: Vec::new(), of_pair: vec![None; request.pairs.len()], searchable: 0 };
        // From the end of the history, so that what comes later is known.
        let mut repeats: HashMap<(Cow<'_, str>, &str), (usize, usize)> = HashMap::new();
        for pair in by_place.into_iter().rev() {
            let (index, pair) = (pair, &request.pairs[pair]);
            let text = pair.output(request.snapshot).and_then(|output| output.text());
            let Some(text) = text.filter(|text| text.code_points() > 0 && !text.has_lone_surrogate()) else {
                continue;
            };
            let text = text.decode_lossy();
            let this = history.evidence.len();
            let tool = pair.call(request.snapshot).name.and_then(|name| name.decode());
            let repeat = tool.map(|tool| repeats.entry((tool, &pair.arguments)).or_insert((this, this)));
            let (next_repeat, last_repeat) = match repeat {
                Some((next, last)) => {
                    (Some(std::mem::replace(next, this)).filter(|&next| next != this), *last)
                }
                None => (None, this),
            };
            history.searchable += SEARCHES_PER_BYTE * text.len();
            history.of_pair[index] = Some(this);
            history.evidence.push(Evidence { text, recurs: false, next_repeat, last_repeat });
        }
        history.mark_recurring();
        history
    }

    /// The evidence begins at the end of the history, so whoever finds a text known has a later equal.
    fn mark_recurring(&mut self) {
        let mut later = HashSet::new();
        let recurs: Vec<bool> = self.evidence.iter().map(|evidence| !later.insert(&*evidence.text)).collect();
        for (evidence, recurs) in self.evidence.iter_mut().zip(recurs) {
            evidence.recurs = recurs;
        }
    }

    /// True if the text of this pair's result stands in a later result.
    fn is_repeated(&mut self, pair: usize) -> bool {
        let Some(this) = self.of_pair[pair] else { return false };
        let evidence = &self.evidence[this];
        if evidence.recurs {
            return true;
        }
        let Some(next) = evidence.next_repeat else { return false };
        let last = evidence.last_repeat;
        self.holds(next, this) || (last != next && self.holds(last, this))
    }

    fn holds(&mut self, later: usize, earlier: usize) -> bool {
        let (later, earlier) = (&self.evidence[later].text, &self.evidence[earlier].text);
        if later.len() < earlier.len() || later.len() > self.searchable {
            return false;
        }
        self.searchable -= later.len();
        memmem::find(later.as_bytes(), earlier.as_bytes()).is_some()
    }
}
