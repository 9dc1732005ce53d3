//! A whole call against a model: all requests started in order, a limited number in flight, one deadline over
//! everything. What is asked and what the answers mean is decided in `ratoon`.

use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use ratoon::count::TokenCounter;
use ratoon::model::{ModelError, Reply};
use ratoon::{Answers, Compaction, CompactionError, DecisionModel, Proposal, Request, Settings};

/// How far the asking has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How many requests are planned.
    pub requests: usize,
    /// How many of them have ended, well or badly.
    pub completed: usize,
}

/// Plans a call, asks the model, and puts the proposal together.
///
/// The deadline is `started` plus the request's `total_timeout_seconds`, so everything counts that happened since
/// `started`; what has no answer by then is kept. A failing request keeps its own evidence and is listed in
/// [`ratoon::proposal::Stats::failures`]. `progress` is called before the first request and after each that ends.
///
/// Nothing runs outside the returned future: dropping it cancels every request in flight.
///
/// # Errors
/// [`CompactionError`]: a budget without a counter, or a counter that fails. A failing model is no error.
///
/// # Panics
/// If the model panics, and outside a Tokio runtime with its timer (unless nothing has to be asked).
pub async fn compact<'r, 'a>(
    request: &'r Request<'a>,
    model: &dyn DecisionModel,
    counter: Option<&'r dyn TokenCounter>,
    settings: &Settings,
    started: Instant,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Proposal<'r, 'a>, CompactionError> {
    let compaction = Compaction::new(request, counter, model.reading(), settings)?;
    let mut answers = compaction.answers();
    ask(&compaction, model, started, &mut answers, progress).await;
    compaction.finish(answers, model.name(), started.elapsed())
}

async fn ask(
    compaction: &Compaction<'_, '_>,
    model: &dyn DecisionModel,
    started: Instant,
    answers: &mut Answers,
    progress: &(dyn Fn(Progress) + Sync),
) {
    let requests = compaction.requests();
    progress(Progress { requests, completed: 0 });
    if requests == 0 {
        return;
    }
    // A deadline beyond the end of the clock never comes.
    let deadline = started.checked_add(compaction.total_timeout());
    let expired = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    let mut expired = std::pin::pin!(expired);
    let mut outcomes = stream::iter((0..requests).map(|index| ask_one(compaction, model, index)))
        .buffer_unordered(compaction.max_concurrency());
    let mut completed = 0;
    while completed < requests {
        // Tokio's timers only advance while the runtime has nothing else to do, so a model that always answers at
        // once would outrun them.
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            answers.expire();
            return;
        }
        tokio::select! {
            biased;
            () = &mut expired => {
                answers.expire();
                return;
            }
            Some((index, outcome)) = outcomes.next() => {
                answers.record(index, outcome);
                completed += 1;
                progress(Progress { requests, completed });
            }
        }
    }
}

/// One request, put together when its turn has come: few are in flight at a time.
async fn ask_one(
    compaction: &Compaction<'_, '_>,
    model: &dyn DecisionModel,
    index: usize,
) -> (usize, Result<Reply, ModelError>) {
    let request = compaction.request(index);
    (index, model.decide(&request).await)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    /// Hosts spawn calls on their runtime.
    #[test]
    fn a_call_can_move_between_threads() {
        fn assert_send<T: Send>(value: T) -> T {
            value
        }
        let request = Request::parse(br#"{"messages":[{"role":"user","content":[]}]}"#).unwrap();
        let settings = Settings::default();
        drop(assert_send(compact(&request, &Rules, None, &settings, Instant::now(), &|_| {})));
    }
}
