//! The driver: order, concurrency, deadline, cancellation, progress.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use ratoon::model::{Decide, Reply};
use ratoon::{DecisionModel, DecisionRequest, Request, Settings};
use ratoon_models::{Progress, compact};
use ratoon_testing::fake_provider::FakeProvider;
use serde_json::{Value, json};

use crate::calls::{local, model, one_request, propose, reasons, six_requests};

/// Waits, generously, until the provider has this many requests in flight.
async fn in_flight(provider: &FakeProvider, count: u64) {
    let started = Instant::now();
    while provider.stats()["in_flight"] != count {
        assert!(started.elapsed() < Duration::from_secs(20), "{}", provider.stats());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn first_questions(provider: &FakeProvider) -> Vec<String> {
    let requests = provider.requests();
    let requests = requests.as_array().expect("a list").iter();
    requests
        .map(|request| request["body"]["questions"].as_object().unwrap().keys().next().unwrap().clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_so_many_requests_are_in_flight() {
    for limit in [1, 2, 4] {
        let provider = FakeProvider::start("hash", &json!({"default": {"delay_ms": 150}}));
        let request = six_requests(&json!({"max_concurrency": limit}));
        let request = Request::parse(request.as_bytes()).unwrap();
        let proposal = propose(&request, &*model(local(provider.base_url()))).await;
        assert_eq!(proposal.stats.usage.len(), 6);
        let stats = provider.stats();
        assert_eq!((&stats["max_in_flight"], &stats["calls"]), (&json!(limit), &json!(6)));
        if limit == 1 {
            assert_eq!(first_questions(&provider), ["t1", "t2", "t3", "t4", "t5", "t6"]);
        }
    }
}

/// Never answers; notes what it is asked.
#[derive(Debug, Default)]
struct Silent {
    asked: Mutex<Vec<String>>,
}

impl DecisionModel for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn decide<'a>(&'a self, request: &'a DecisionRequest<'a>) -> Decide<'a> {
        self.asked.lock().unwrap().push(request.questions[0].id.to_owned());
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn requests_start_in_order_and_the_rest_waits() {
    let request = six_requests(&json!({"max_concurrency": 4, "total_timeout_seconds": 0.05}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let silent = Silent::default();
    let proposal = propose(&request, &silent).await;
    assert_eq!(*silent.asked.lock().unwrap(), ["t1", "t2", "t3", "t4"]);
    assert_eq!(reasons(&proposal), ["timeout"; 6]);
    assert_eq!(proposal.stats.failures.len(), 6);
}

#[tokio::test]
async fn a_deadline_that_has_passed_asks_nothing() {
    let request = six_requests(&json!({"total_timeout_seconds": 5}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let silent = Silent::default();
    let started = Instant::now().checked_sub(Duration::from_secs(6)).expect("a clock older than six seconds");
    let proposal = compact(&request, &silent, None, &Settings::default(), started, &|_| {}).await.unwrap();
    assert!(silent.asked.lock().unwrap().is_empty());
    assert_eq!(reasons(&proposal), ["timeout"; 6]);
    assert!(proposal.stats.elapsed >= Duration::from_secs(6));
}

/// Answers nothing, but at once.
#[derive(Debug)]
struct Hasty;

impl DecisionModel for Hasty {
    fn name(&self) -> &str {
        "hasty"
    }

    fn decide<'a>(&'a self, _: &'a DecisionRequest<'a>) -> Decide<'a> {
        std::thread::sleep(Duration::from_millis(60));
        Box::pin(std::future::ready(Ok(Reply::default())))
    }
}

#[tokio::test]
async fn a_model_that_never_waits_does_not_outrun_the_deadline() {
    let request = six_requests(&json!({"total_timeout_seconds": 0.1, "max_concurrency": 1}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let proposal = propose(&request, &Hasty).await;
    assert_eq!(reasons(&proposal).first(), Some(&"invalid_answer"));
    assert_eq!(reasons(&proposal).last(), Some(&"timeout"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_deadline_open_requests_are_given_up() {
    let script = json!({"rules": [{"match": {"question": "t1"}, "action": {}}], "default": {"hang": true}});
    let provider = FakeProvider::start("hash", &script);
    let request = six_requests(&json!({"total_timeout_seconds": 1.5, "max_concurrency": 3}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let proposal = propose(&request, &*model(local(provider.base_url()))).await;
    assert_eq!(reasons(&proposal), ["low_relevance", "timeout", "timeout", "timeout", "timeout", "timeout"]);
    assert!(proposal.stats.failures.iter().all(|failure| failure.kind.is_none()));
    in_flight(&provider, 0).await;
    assert_eq!(provider.stats()["calls"], 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_call_cancels_its_requests() {
    let provider = FakeProvider::start("hash", &json!({"default": {"hang": true}}));
    let request = six_requests(&json!({"max_concurrency": 3}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let model = model(local(provider.base_url()));
    tokio::select! {
        _ = propose(&request, &*model) => panic!("nothing was answered"),
        () = in_flight(&provider, 3) => {}
    }
    in_flight(&provider, 0).await;
    assert_eq!(provider.stats()["calls"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_told_at_the_start_and_after_each_request() {
    let script = json!({"rules": [{"match": {"question": "t3"}, "action": {"status": 400}}]});
    let provider = FakeProvider::start("hash", &script);
    let request = six_requests(&json!({}));
    let request = Request::parse(request.as_bytes()).unwrap();
    let told: Mutex<Vec<Progress>> = Mutex::default();
    let tell = |progress| told.lock().unwrap().push(progress);
    let model = model(local(provider.base_url()));
    let proposal =
        compact(&request, &*model, None, &Settings::default(), Instant::now(), &tell).await.unwrap();
    assert_eq!(proposal.stats.failures.len(), 1);
    let told: Vec<(usize, usize)> =
        told.into_inner().unwrap().iter().map(|progress| (progress.requests, progress.completed)).collect();
    assert_eq!(told, [(6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (6, 6)]);
}

/// Not a Tokio test: there is nothing to wait for.
#[test]
fn a_call_without_questions_needs_no_runtime() {
    let mut request: Value = serde_json::from_str(&one_request()).unwrap();
    request["eligible_tool_names"] = json!([]);
    let request = request.to_string();
    let request = Request::parse(request.as_bytes()).unwrap();
    let silent = Silent::default();
    let mut call = Box::pin(propose(&request, &silent));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_ready());
    assert!(silent.asked.lock().unwrap().is_empty());
}

#[derive(Debug)]
struct Broken;

impl DecisionModel for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn decide<'a>(&'a self, _: &'a DecisionRequest<'a>) -> Decide<'a> {
        Box::pin(async { panic!("a fault of the model") })
    }
}

#[tokio::test]
#[should_panic(expected = "a fault of the model")]
async fn a_panic_of_the_model_is_not_hidden() {
    let request = one_request();
    let request = Request::parse(request.as_bytes()).unwrap();
    propose(&request, &Broken).await;
}
