//! The whole call with an instant model, against the floor: parsing and writing the same bytes with `serde_json`.
//!
//! `cargo bench -p ratoon` prints one table: medians of interleaved runs, their ratio (the number to quote, since
//! machines drift), and peak memory as a multiple of the input. `cargo bench -p ratoon -- detail` prints the
//! distribution of each as well.

use std::io::Write;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use ratoon::count::{NamedCounter, TokenCounter};
use ratoon::model::{Answer, Reply};
use ratoon::{Compaction, Reading, Request, Settings};
use ratoon_testing::snapshots::synthetic;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Pairs and characters a result. The last one is a snapshot of about 100 MB.
const SHAPES: [(usize, usize); 6] =
    [(10, 2000), (100, 2000), (1000, 2000), (5000, 2000), (100, 200_000), (45_000, 2000)];

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.any(|argument| argument == "detail") {
        return divan::main();
    }
    let mut out = std::io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{text}").expect("standard output takes the table");
    line(format!(
        "{:>6} {:>7} {:>9} {:>10} {:>10} {:>7} {:>10} {:>7} {:>7} {:>7}",
        "pairs", "chars", "input", "floor", "call", "ratio", "budget", "ratio", "memory", "ns/byte"
    ));
    for (pairs, chars) in SHAPES {
        let input = synthetic(pairs, chars, 7).into_bytes();
        let limit = budget(&input);
        let rounds = (200_000_000 / input.len()).clamp(3, 101);
        let (mut floors, mut calls, mut budgets, mut ratios, mut budget_ratios) =
            (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..rounds {
            let floor_time = time(|| floor(&input));
            let call_time = time(|| call(&input, None));
            let budget_time = time(|| call(&input, Some(limit)));
            ratios.push(call_time.as_secs_f64() / floor_time.as_secs_f64());
            budget_ratios.push(budget_time.as_secs_f64() / floor_time.as_secs_f64());
            floors.push(floor_time);
            calls.push(call_time);
            budgets.push(budget_time);
        }
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        call(&input, None);
        // The input itself is held as well.
        let memory = 1.0 + (MEMORY.peak_usage() - before) as f64 / input.len() as f64;
        let call_time = median(&mut calls);
        line(format!(
            "{pairs:>6} {chars:>7} {:>7.2}MB {:>10.2?} {call_time:>10.2?} {:>6.2}x {:>10.2?} {:>6.2}x {memory:>6.2}x {:>7.2}",
            input.len() as f64 / 1e6,
            median(&mut floors),
            median(&mut ratios),
            median(&mut budgets),
            median(&mut budget_ratios),
            call_time.as_nanos() as f64 / input.len() as f64,
        ));
    }
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

fn median<T: PartialOrd + Copy>(values: &mut [T]) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("times can be compared"));
    values[values.len() / 2]
}

/// A budget that half of what could go must go for.
fn budget(input: &[u8]) -> u64 {
    let request = Request::parse(input).expect("a generated request is valid");
    request.snapshot.size() / 4 * 6 / 10
}

/// Parse and write as values.
fn floor(input: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(input).expect("a generated request is JSON");
    serde_json::to_vec(&value).expect("a value can be written")
}

/// From request bytes to answer bytes, with a model that at once finds everything unneeded.
fn call(input: &[u8], limit: Option<u64>) -> Vec<u8> {
    let mut request = Request::parse(input).expect("a generated request is valid");
    request.options.max_output_tokens = limit;
    request.options.drop_threshold = 1.0;
    let counter: Option<&dyn TokenCounter> = Some(&NamedCounter::Chars4);
    let compaction =
        Compaction::new(&request, counter, Reading::State, &Settings::default()).expect("there is a counter");
    let mut answers = compaction.answers();
    for index in 0..compaction.requests() {
        let asked = compaction.request(index);
        std::hint::black_box(asked.state.len());
        let all = asked.questions.iter().map(|question| (question.id.to_owned(), Answer::Binary(0.0)));
        answers.record(index, Ok(Reply { answers: all.collect(), usage: None }));
    }
    let proposal = compaction.finish(answers, "instant", Duration::ZERO).expect("chars4 does not fail");
    let mut answer = Vec::with_capacity(input.len());
    proposal.write_answer(&mut answer).expect("memory takes the answer");
    assert!(proposal.changed());
    answer
}

mod detail {
    //! The same two, one by one, with distributions.

    use super::{SHAPES, call, floor};
    use divan::counter::BytesCount;

    fn input(shape: (usize, usize)) -> Vec<u8> {
        ratoon_testing::snapshots::synthetic(shape.0, shape.1, 7).into_bytes()
    }

    #[divan::bench(args = &SHAPES[..5], max_time = 5)]
    fn parse_and_write_values(bencher: divan::Bencher<'_, '_>, shape: &(usize, usize)) {
        let input = input(*shape);
        bencher.counter(BytesCount::new(input.len())).bench(|| floor(&input));
    }

    #[divan::bench(args = &SHAPES[..5], max_time = 5)]
    fn whole_call(bencher: divan::Bencher<'_, '_>, shape: &(usize, usize)) {
        let input = input(*shape);
        bencher.counter(BytesCount::new(input.len())).bench(|| call(&input, None));
    }
}
