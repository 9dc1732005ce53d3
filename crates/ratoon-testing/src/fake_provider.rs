//! The fake System One provider as a real process, and the little HTTP needed to steer it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::data::testdata;

/// A running `testdata/tools/fake_systemone.py`; the process ends when this is dropped.
#[derive(Debug)]
pub struct FakeProvider {
    process: Child,
    base_url: String,
    // Kept open: the process would be killed by a write to a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

impl FakeProvider {
    /// Starts a provider on a free loopback port with a probability rule (`hash`, `const:0.02`, ...) and a behaviour
    /// script (null for none).
    pub fn start(rule: &str, script: &Value) -> FakeProvider {
        // A killed test run cannot stop the process; then this time does.
        const LONGEST_LIFE_SECONDS: &str = "1800";
        let mut process = Command::new("python3")
            .arg(testdata().join("tools/fake_systemone.py"))
            .args(["--port", "0", "--rule", rule, "--exit-after", LONGEST_LIFE_SECONDS])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for the fake provider");
        let mut stdout = BufReader::new(process.stdout.take().expect("standard output is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the fake provider prints text");
        let Some(base_url) = line.trim_end().strip_prefix("listening on ").map(str::to_owned) else {
            // Not yet a FakeProvider, so nothing else would reap it.
            let _ = process.kill();
            let status = process.wait();
            panic!("the fake provider did not start: {line:?}, {status:?}");
        };
        let provider = FakeProvider { process, base_url, _stdout: stdout };
        if !script.is_null() {
            provider.script(script);
        }
        provider
    }

    /// The base URL for a client, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Replaces the behaviour script.
    pub fn script(&self, script: &Value) {
        self.control("POST", "script", &script.to_string());
    }

    /// Forgets calls, recorded requests and the counters of the script's rules.
    pub fn reset(&self) {
        self.control("POST", "reset", "");
    }

    /// Counters: `calls`, `in_flight`, `max_in_flight`, `connections`, `by_status`.
    pub fn stats(&self) -> Value {
        self.control("GET", "stats", "")
    }

    /// The recorded requests: a list of `call`, `attempt`, `at_ms`, `headers` and `body`.
    pub fn requests(&self) -> Value {
        self.control("GET", "requests", "")
    }

    fn control(&self, method: &str, name: &str, body: &str) -> Value {
        let (status, answer) = self.exchange(method, &format!("/_fake/{name}"), body);
        assert_eq!(status, 200, "the fake provider refused {name}: {answer}");
        serde_json::from_str(&answer).expect("the fake provider answers JSON")
    }

    /// One HTTP/1.1 exchange on a connection of its own.
    fn exchange(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let address = self.base_url.strip_prefix("http://").expect("the fake provider speaks plain HTTP");
        let mut stream = TcpStream::connect(address).expect("the fake provider listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("the timeout is not zero");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer test\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the fake provider reads the request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the fake provider answers text and closes");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("an HTTP answer has a status"), body.to_owned())
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to do about a failure here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_model::Rule;
    use serde_json::json;

    fn ask(provider: &FakeProvider) -> (u16, Value) {
        let body = json!({"model": "jev-latest",
            "state": {"evidence_units": [{"id": "t1", "tool": "grep", "input": "{\"q\":\"é\"}"}]},
            "questions": {"t1": {"type": "noul", "instructions": "needed?"}}});
        let (status, answer) = provider.exchange("POST", "/v1/systemone", &body.to_string());
        (status, serde_json::from_str(&answer).unwrap())
    }

    #[test]
    fn answers_by_the_rule_and_counts() {
        let provider = FakeProvider::start("hash", &Value::Null);
        let (status, answer) = ask(&provider);
        assert_eq!(status, 200);
        assert_eq!(answer["answers"]["t1"]["noul"], Rule::Hash.probability("t1", "grep", "{\"q\":\"é\"}"));
        assert_eq!(provider.stats()["calls"], 1);
        assert_eq!(provider.requests()[0]["body"]["questions"]["t1"]["instructions"], "needed?");
        provider.reset();
        assert_eq!(provider.stats()["calls"], 0);
        assert_eq!(provider.requests(), json!([]));
    }

    #[test]
    fn follows_its_script() {
        let script = json!({"rules": [{"match": {"attempt": 1}, "action": {"status": 500}}]});
        let provider = FakeProvider::start("const:0.25", &script);
        assert_eq!(ask(&provider).0, 500);
        assert_eq!(ask(&provider).1["answers"]["t1"]["noul"], 0.25);
        provider.script(&json!({"default": {"status": 429}}));
        assert_eq!(ask(&provider).0, 429);
    }

    #[test]
    #[should_panic(expected = "did not start")]
    fn a_bad_rule_is_reported() {
        FakeProvider::start("no-such-rule", &Value::Null);
    }

    #[test]
    fn the_process_ends_with_the_value() {
        let provider = FakeProvider::start("hash", &Value::Null);
        let address = provider.base_url().strip_prefix("http://").unwrap().to_owned();
        assert!(TcpStream::connect(&address).is_ok());
        drop(provider);
        assert!(TcpStream::connect(&address).is_err());
    }
}
