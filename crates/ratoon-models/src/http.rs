//! The HTTP client that every wire uses: TLS, attempts with their limits, and what a failed exchange means.
//!
//! A wire hands over a body and gets the body of a 2xx reply or a typed failure. Redirects are not followed and no
//! proxy is used: key and evidence go to the configured host and nowhere else. Errors carry neither key nor body.

mod endpoint;
mod retry;

pub(crate) use endpoint::Endpoint;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ratoon::{FailureKind, ModelError};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::time::Instant;

use crate::settings::ModelSettings;
use retry::{Policy, asked_wait, forbids_retry};

/// Longest body that is read of a reply. A reply of 10,000 answers has about half a megabyte.
const MAX_REPLY: usize = 8 * 1024 * 1024;
/// Longest body that is read of a refusal, to classify it and to use the connection again.
const MAX_REFUSAL: usize = 64 * 1024;
const RETRY_COUNT: &str = "x-typesafe-retry-count";

/// Posts JSON to one address.
pub(crate) struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    headers: HeaderMap,
    timeout: Duration,
    policy: Policy,
}

/// The body of a 2xx reply.
pub(crate) struct Received {
    pub(crate) body: Vec<u8>,
    /// How often the request was sent.
    pub(crate) attempts: u32,
}

/// Why one attempt failed.
struct Fault {
    kind: FailureKind,
    status: Option<StatusCode>,
    /// What happened, as the beginning of a message.
    what: String,
    may_pass: bool,
    /// How long the provider asked to wait.
    wait: Option<Duration>,
}

impl Client {
    /// A client for an address. `key` has been checked to fit into a header.
    pub(crate) fn new(
        endpoint: Endpoint,
        key: &str,
        settings: &ModelSettings,
    ) -> Result<Client, Box<dyn Error + Send + Sync>> {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {key}"))?;
        bearer.set_sensitive(true);
        let json = HeaderValue::from_static("application/json");
        let headers = [(AUTHORIZATION, bearer), (ACCEPT, json.clone()), (CONTENT_TYPE, json)];
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls()?)
            .user_agent(concat!("ratoon/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .build()?;
        Ok(Client {
            http,
            endpoint,
            headers: headers.into_iter().collect(),
            timeout: settings.timeout,
            policy: Policy { max_retries: settings.max_retries, delay: settings.retry_delay },
        })
    }

    /// Sends a body until there is a 2xx reply, the failure is one that stays, or no retry is left.
    pub(crate) async fn post(&self, body: String) -> Result<Received, ModelError> {
        let first_attempt = Instant::now();
        let request = self.http.post(self.endpoint.url().clone()).headers(self.headers.clone()).body(body);
        let mut retries = 0;
        loop {
            let mut again = request.try_clone().expect("a body in memory can be sent again");
            if retries > 0 {
                again = again.header(RETRY_COUNT, retries);
            }
            let outcome = tokio::time::timeout(self.timeout, attempt(again)).await;
            let attempts = retries + 1;
            let fault = match outcome {
                Ok(Ok(body)) => return Ok(Received { body, attempts }),
                Ok(Err(fault)) => fault,
                Err(_) => Fault::attempt_timeout(self.timeout),
            };
            let wait = self.policy.wait(retries, fault.wait, first_attempt.elapsed());
            let Some(wait) = wait.filter(|_| fault.may_pass) else { return Err(fault.into_error(attempts)) };
            tokio::time::sleep(wait).await;
            retries += 1;
        }
    }
}

impl fmt::Debug for Client {
    // Neither the headers, which hold the key, nor the address, which may name an account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("timeout", &self.timeout)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// The TLS settings. Passed along instead of installed, because a process-wide provider is the host's choice.
fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// One exchange: the body of a 2xx reply, whatever its content type.
async fn attempt(request: reqwest::RequestBuilder) -> Result<Vec<u8>, Fault> {
    let mut response = request.send().await.map_err(|error| Fault::connection(&error))?;
    let status = response.status();
    if status.is_success() {
        return match read(&mut response, MAX_REPLY).await {
            Ok(body) => Ok(body),
            Err(Unread::TooLong) => Err(Fault::reply_too_long(status)),
            Err(Unread::Broken(error)) => Err(Fault::connection(&error)),
        };
    }
    let headers = response.headers().clone();
    // An unreadable explanation does not change what the status says.
    let explanation = read(&mut response, MAX_REFUSAL).await.unwrap_or_default();
    Err(Fault::refusal(status, &headers, &explanation))
}

enum Unread {
    TooLong,
    Broken(reqwest::Error),
}

/// The body, after decompression, if it is not longer than the limit.
async fn read(response: &mut Response, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(Unread::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

impl Fault {
    fn attempt_timeout(limit: Duration) -> Fault {
        Fault {
            kind: FailureKind::AttemptTimeout,
            status: None,
            what: format!("no complete reply from the decision model within {limit:?}"),
            may_pass: true,
            wait: None,
        }
    }

    fn connection(error: &reqwest::Error) -> Fault {
        // The outer layers only say "error sending request" and repeat the address.
        let mut cause: &dyn Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let what = if error.is_connect() { "no connection to" } else { "broken connection to" };
        let cause = if error.source().is_some() { format!(" ({cause})") } else { String::new() };
        Fault {
            kind: FailureKind::Connection,
            status: None,
            what: format!("{what} the decision model{cause}"),
            may_pass: true,
            wait: None,
        }
    }

    fn reply_too_long(status: StatusCode) -> Fault {
        Fault {
            kind: FailureKind::Protocol,
            status: Some(status),
            what: format!("a reply of more than {MAX_REPLY} bytes from the decision model"),
            may_pass: false,
            wait: None,
        }
    }

    fn refusal(status: StatusCode, headers: &HeaderMap, explanation: &[u8]) -> Fault {
        let kind = refusal_kind(status, explanation);
        let repeatable = matches!(status.as_u16(), 408 | 429 | 500..=599);
        Fault {
            kind,
            status: Some(status),
            what: format!("HTTP {} from the decision model", status.as_u16()),
            // A used-up quota is still used up a second later.
            may_pass: repeatable && kind != FailureKind::Quota && !forbids_retry(headers),
            wait: asked_wait(headers),
        }
    }

    fn into_error(self, attempts: u32) -> ModelError {
        let times = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let error = ModelError::new(self.kind, format!("{} after {times}", self.what), attempts);
        match self.status {
            Some(status) => error.with_status(status.as_u16()),
            None => error,
        }
    }
}

/// What a status that is not 2xx means. Some providers only say in the body which of two things it is; nothing of
/// the body goes further than this.
fn refusal_kind(status: StatusCode, explanation: &[u8]) -> FailureKind {
    let says = |words: &[&str]| {
        words.iter().any(|word| memchr::memmem::find(explanation, word.as_bytes()).is_some())
    };
    match status.as_u16() {
        402 => FailureKind::Quota,
        403 if says(&["customer_verification_required"]) => FailureKind::Quota,
        429 if says(&["insufficient_quota"]) => FailureKind::Quota,
        401 | 403 => FailureKind::Authentication,
        413 => FailureKind::TooLarge,
        400 | 422 if says(&["max_tokens_exceeded", "INPUT_TOO_LONG", "STATE_TRUNCATED"]) => {
            FailureKind::TooLarge
        }
        429 => FailureKind::RateLimited,
        // The provider gave up waiting for a request that was sent whole: its fault, not that of the request.
        408 | 500..=599 => FailureKind::Provider,
        400..=499 => FailureKind::Refused,
        _ => FailureKind::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_a_kind() {
        use FailureKind::*;
        for (status, explanation, kind) in [
            (302, "", Protocol),
            (400, "", Refused),
            (400, r#"{"detail":{"error_type":"max_tokens_exceeded"}}"#, TooLarge),
            (401, "", Authentication),
            (402, "", Quota),
            (403, "", Authentication),
            (403, r#"{"code":"customer_verification_required"}"#, Quota),
            (404, "", Refused),
            (408, "", Provider),
            (409, "", Refused),
            (413, "", TooLarge),
            (422, "", Refused),
            (429, "", RateLimited),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, Quota),
            (500, "max_tokens_exceeded", Provider),
            (501, "", Provider),
            (529, "", Provider),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refusal_kind(status, explanation.as_bytes()), kind, "{status} {explanation}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, may_pass) in
            [(302, false), (401, false), (408, true), (409, false), (413, false), (425, false), (429, true)]
                .into_iter()
                .chain([(500, true), (501, true), (503, true), (529, true), (599, true)])
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Fault::refusal(status, &HeaderMap::new(), b"").may_pass, may_pass, "{status}");
        }
        assert!(
            !Fault::refusal(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), b"insufficient_quota").may_pass
        );
        let forbidden =
            HeaderMap::from_iter([("x-should-retry".parse().unwrap(), HeaderValue::from_static("false"))]);
        assert!(!Fault::refusal(StatusCode::SERVICE_UNAVAILABLE, &forbidden, b"").may_pass);
    }

    #[test]
    fn messages_count_attempts() {
        let fault = || Fault::refusal(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new(), b"secret");
        assert_eq!(fault().into_error(1).message, "HTTP 503 from the decision model after 1 attempt");
        let error = fault().into_error(2);
        assert_eq!(error.message, "HTTP 503 from the decision model after 2 attempts");
        assert_eq!((error.status, error.attempts), (Some(503), 2));
    }
}
