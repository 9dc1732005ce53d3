//! Single exchanges: headers, retries, limits, and replies that come slowly, compressed, too long or not at all.

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use ratoon::answers::Failure;
use ratoon::{FailureKind, Request};
use ratoon_models::ModelSettings;
use ratoon_testing::fake_provider::FakeProvider;
use serde_json::{Value, json};

use crate::calls::{local, model, one_request, propose, reasons, six_requests};
use crate::servers::{Server, both, ok};

/// The reasons of the two decisions, and the failure of the one request.
async fn outcome(settings: ModelSettings) -> (Vec<&'static str>, Option<Failure>) {
    let request = one_request();
    let request = Request::parse(request.as_bytes()).unwrap();
    let mut proposal = propose(&request, &*model(settings)).await;
    (reasons(&proposal), proposal.stats.failures.pop())
}

async fn failure(settings: ModelSettings) -> Failure {
    let (reasons, failure) = outcome(settings).await;
    assert_eq!(reasons, ["model_error"; 2]);
    failure.expect("a failure")
}

const GONE: [&str; 2] = ["low_relevance"; 2];

#[tokio::test]
async fn headers_are_our_own() {
    let unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let server = Server::replying(unavailable);
    let mut settings = local(&format!("{}/v1/", server.base_url));
    settings.api_key = Some("  the-key\n".into());
    settings.max_retries = 2;
    assert_eq!(failure(settings).await.message, "HTTP 503 from the decision model after 3 attempts");
    let heads = server.heads();
    assert_eq!(heads.len(), 3);
    for (retries, head) in heads.iter().enumerate() {
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        assert_eq!(lines.remove(0), "POST /v1/systemone HTTP/1.1");
        let mut expected = vec![
            "authorization: Bearer the-key".to_owned(),
            "accept: application/json".to_owned(),
            "content-type: application/json".to_owned(),
            format!("user-agent: ratoon/{}", env!("CARGO_PKG_VERSION")),
            "accept-encoding: gzip".to_owned(),
        ];
        if retries > 0 {
            expected.push(format!("x-typesafe-retry-count: {retries}"));
        }
        lines.retain(|line| !line.starts_with("host: ") && !line.starts_with("content-length: "));
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
    }
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn local_servers_get_a_token_without_a_key() {
    let server = Server::replying(ok(&both("0.01")));
    let mut settings = local(&server.base_url);
    settings.api_key = None;
    assert_eq!(outcome(settings).await.0, GONE);
    assert!(server.heads()[0].contains("authorization: Bearer local\r\n"));
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::replying(ok(&both("0.01")));
    let request = six_requests(&json!({"max_concurrency": 1}));
    let request = Request::parse(request.as_bytes()).unwrap();
    propose(&request, &*model(local(&server.base_url))).await;
    assert_eq!((server.heads().len(), server.connections()), (6, 1));
}

fn refusing_once(status: u16, headers: Value) -> FakeProvider {
    let action = json!({"status": status, "headers": headers});
    FakeProvider::start("const:0.01", &json!({"rules": [{"match": {"attempt": 1}, "action": action}]}))
}

/// Milliseconds between the two requests that the provider saw.
fn pause(provider: &FakeProvider) -> f64 {
    let requests = provider.requests();
    assert_eq!(requests.as_array().unwrap().len(), 2);
    assert_eq!(requests[1]["headers"]["x-typesafe-retry-count"], "1");
    requests[1]["at_ms"].as_f64().unwrap() - requests[0]["at_ms"].as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_asked_for_is_kept() {
    let provider = refusing_once(429, json!({"Retry-After": "1"}));
    assert_eq!(outcome(local(provider.base_url())).await, (GONE.to_vec(), None));
    assert!(pause(&provider) >= 990.0);
    let provider = refusing_once(503, json!({"Retry-After": "9", "retry-after-ms": "300"}));
    assert_eq!(outcome(local(provider.base_url())).await, (GONE.to_vec(), None));
    assert!((290.0..8000.0).contains(&pause(&provider)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_does_not_fit_fails_at_once() {
    let provider = refusing_once(429, json!({"Retry-After": "31"}));
    let started = Instant::now();
    let failure = failure(local(provider.base_url())).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(failure.kind, Some(FailureKind::RateLimited));
    assert_eq!((failure.status, failure.attempts, &provider.stats()["calls"]), (Some(429), 1, &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_are_not_followed() {
    let elsewhere = Server::replying(ok(&both("0.01")));
    for status in [301, 302, 303, 307, 308] {
        let action = json!({"status": status, "headers": {"Location": format!("{}/v1/systemone", elsewhere.base_url)}});
        let provider = FakeProvider::start("hash", &json!({"default": action}));
        let failure = failure(local(provider.base_url())).await;
        assert_eq!(
            (failure.kind, failure.status, failure.attempts),
            (Some(FailureKind::Protocol), Some(status), 1)
        );
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_and_truncated_replies_are_tried_again() {
    for action in [json!({"drop": true}), json!({"truncate": 0}), json!({"truncate": 40})] {
        let once = json!({"rules": [{"match": {"attempt": 1}, "action": action}]});
        let provider = FakeProvider::start("const:0.01", &once);
        assert_eq!(outcome(local(provider.base_url())).await, (GONE.to_vec(), None), "{action}");
        let provider = FakeProvider::start("const:0.01", &json!({"default": action}));
        let failure = failure(local(provider.base_url())).await;
        assert_eq!((failure.kind, failure.attempts), (Some(FailureKind::Connection), 2), "{action}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connection_failure() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failure = failure(local(&base_url)).await;
    assert_eq!((failure.kind, failure.status, failure.attempts), (Some(FailureKind::Connection), None, 2));
    assert!(failure.message.starts_with("no connection to the decision model"), "{}", failure.message);
}

/// A byte every 100 ms keeps each single read short; the attempt as a whole is what counts.
#[tokio::test]
async fn a_trickling_reply_is_cut_at_the_attempt_timeout() {
    let reply = ok(&both("0.01"));
    let server = Server::start(move |stream| {
        for byte in reply.bytes() {
            stream.write_all(&[byte])?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    let mut settings = local(&server.base_url);
    settings.timeout = Duration::from_millis(700);
    let started = Instant::now();
    let failure = failure(settings).await;
    assert_eq!((failure.kind, failure.attempts), (Some(FailureKind::AttemptTimeout), 2));
    assert_eq!(failure.message, "no complete reply from the decision model within 700ms after 2 attempts");
    // Whole, the reply would take longer than 20 seconds.
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_reply_over_the_limit_is_not_read() {
    let server = Server::start(|stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let chunk = [b' '; 0x10000];
        loop {
            write!(stream, "10000\r\n")?;
            stream.write_all(&chunk)?;
            write!(stream, "\r\n")?;
        }
    });
    let failure = failure(local(&server.base_url)).await;
    assert_eq!((failure.kind, failure.status, failure.attempts), (Some(FailureKind::Protocol), Some(200), 1));
    assert!(failure.message.contains("8388608 bytes"), "{}", failure.message);
}

#[tokio::test]
async fn a_long_reply_within_the_limit_is_read() {
    let padding = " ".repeat(4 << 20);
    let server = Server::replying(ok(&format!("{padding}{}", both("0.01"))));
    assert_eq!(outcome(local(&server.base_url)).await, (GONE.to_vec(), None));
}

#[tokio::test]
async fn compressed_replies_are_read() {
    let mut reply =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", GZIP.len())
            .into_bytes();
    reply.extend_from_slice(&GZIP);
    let server = Server::replying(reply);
    assert_eq!(outcome(local(&server.base_url)).await, (GONE.to_vec(), None));
}

#[tokio::test]
async fn any_2xx_is_decoded() {
    let reply =
        ok(&both("0.01")).replacen("200 OK", "201 Created", 1).replacen("application/json", "text/html", 1);
    assert_eq!(outcome(local(&Server::replying(reply).base_url)).await, (GONE.to_vec(), None));
    let empty = Server::replying("HTTP/1.1 204 No Content\r\n\r\n");
    let failure = failure(local(&empty.base_url)).await;
    assert_eq!((failure.kind, failure.attempts), (Some(FailureKind::Protocol), 1));
    assert_eq!(failure.message, "the reply of the decision model is not System One: it is not JSON");
}

#[tokio::test]
async fn criteria_and_the_model_name_are_sent() {
    let provider = FakeProvider::start("const:0.01", &Value::Null);
    let request = one_request();
    let request = Request::parse(request.as_bytes()).unwrap();
    let mut settings = local(provider.base_url());
    settings.model_name = Some("a \"name\"".to_owned());
    let mut asking = ratoon::Settings::default();
    asking.question = ratoon::Template::Criteria;
    let model = model(settings);
    ratoon_models::compact(&request, &*model, None, &asking, Instant::now(), &|_| {}).await.unwrap();
    let body = &provider.requests()[0]["body"];
    assert_eq!(body["model"], "a \"name\"");
    let question = body["questions"]["t2"].as_object().unwrap();
    assert_eq!(question.keys().collect::<Vec<_>>(), ["type", "instructions", "criteria"]);
    let criteria = ratoon::Template::Criteria.criteria().unwrap();
    assert_eq!(
        question["criteria"].to_string(),
        json!({"true": criteria.when_true, "false": criteria.when_false}).to_string()
    );
    assert_eq!(question["instructions"], ratoon::Template::Criteria.instructions("t2"));
}

/// gzip of {"model":"m","answers":{"t1":{"type":"noul","noul":0.01},"t2":{"type":"noul","noul":0.01}},"usage":{}}
const GZIP: [u8; 84] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 202, 205, 79, 73, 205, 81, 178, 82, 202, 85, 210, 81, 74, 204,
    43, 46, 79, 45, 42, 86, 178, 170, 86, 42, 49, 4, 147, 149, 5, 169, 64, 185, 188, 252, 210, 28, 160, 52,
    152, 178, 50, 208, 51, 48, 172, 213, 81, 42, 49, 194, 171, 0, 168, 162, 180, 56, 49, 29, 40, 89, 93, 91,
    11, 0, 176, 91, 0, 107, 102, 0, 0, 0,
];
