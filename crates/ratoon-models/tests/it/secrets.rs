//! Neither the key nor evidence ever shows in what is printed.

use ratoon::Request;
use ratoon_models::{Backend, ModelSettings, SecretString, SettingsError, build};
use ratoon_testing::fake_provider::FakeProvider;
use serde_json::json;

use crate::calls::{history, local, propose};
use crate::servers::Server;

const KEY: &str = "planted-key-7d1f";
const EVIDENCE: &str = "planted-evidence-93ac";

#[track_caller]
fn assert_clean(printed: &str) {
    for secret in [KEY, EVIDENCE] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}

fn settings(base_url: &str) -> ModelSettings {
    let mut settings = local(base_url);
    settings.api_key = Some(SecretString::from(KEY));
    settings
}

#[test]
fn settings_and_models_print_without_the_key() {
    let settings = settings("https://api.example.com");
    assert_clean(&format!("{settings:?} {settings:#?}"));
    let model = build(settings).unwrap();
    let printed = format!("{model:?} {model:#?}");
    assert_clean(&printed);
    assert!(printed.contains("jev-latest"), "{printed}");
}

fn refused(key: &str, base_url: &str) -> SettingsError {
    let mut settings = ModelSettings::new(Backend::SystemOne);
    settings.api_key = Some(SecretString::from(key));
    settings.base_url = Some(base_url.to_owned());
    assert_clean(&format!("{settings:?}"));
    build(settings).expect_err("the settings are bad")
}

#[test]
fn settings_errors_print_without_the_key() {
    for (key, base_url) in [
        (&*format!("{KEY} {KEY}"), "https://api.example.com".to_owned()),
        (&*format!("{KEY}\u{e9}"), "https://api.example.com".to_owned()),
        (KEY, format!("https://user:{KEY}@api.example.com")),
        (KEY, format!("https://api.example.com/?key={KEY}")),
        (KEY, format!("http://{KEY}.example.com")),
        (KEY, format!("{KEY}://")),
        (KEY, KEY.to_owned()),
    ] {
        let error = refused(key, &base_url);
        assert_clean(&format!("{error} {error:?}"));
    }
}

/// Everything that a call prints, asked with the planted key about planted evidence.
async fn printed(base_url: &str) -> String {
    let output = json!(format!("{EVIDENCE} ").repeat(100));
    let request = history(&[("read", json!({"path": EVIDENCE}), output)]);
    let request = Request::parse(request.as_bytes()).unwrap();
    let model = build(settings(base_url)).unwrap();
    let proposal = propose(&request, &*model).await;
    assert_eq!(proposal.stats.failures.len(), 1);
    format!("{:?} {} {model:?}", proposal.stats.failures, proposal.stats_json())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_quote_nothing_of_what_came_back() {
    let echo = format!("{KEY} {EVIDENCE}");
    let quoted = json!({"detail": [{"loc": ["body"], "msg": echo, "type": "x", "input": echo}]});
    for action in [
        json!({"status": 422, "body": quoted}),
        json!({"status": 401, "body": echo}),
        json!({"status": 413, "body": echo}),
        json!({"status": 500, "body": echo}),
        json!({"status": 302, "headers": {"Location": format!("http://127.0.0.1:1/{KEY}/{EVIDENCE}")}}),
        json!({"status": 503, "headers": {"Retry-After": echo, "x-echo": echo}}),
        json!({"raw": echo}),
        json!({"raw": json!({echo.clone(): echo}).to_string()}),
        json!({"model": null, "answers": {"t1": {echo.clone(): echo}}}),
        json!({"headers": {"Content-Encoding": "gzip"}, "raw": echo}),
        json!({"drop": true}),
    ] {
        let provider = FakeProvider::start("hash", &json!({"default": action}));
        assert_clean(&printed(provider.base_url()).await);
    }
}

#[tokio::test]
async fn broken_replies_and_connections_quote_nothing() {
    for reply in [
        format!("{KEY} {EVIDENCE}\r\n\r\n"),
        format!("HTTP/1.1 200 {KEY}\r\n{EVIDENCE}\r\n\r\n"),
        format!("HTTP/1.1 599 {EVIDENCE}\r\nContent-Length: 0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{EVIDENCE}\r\n"),
    ] {
        assert_clean(&printed(&Server::replying(reply).base_url).await);
    }
    assert_clean(&printed("http://127.0.0.1:1").await);
}
