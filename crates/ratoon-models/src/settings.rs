//! What can be set about a decision model, and what can be wrong with it.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;

/// Which decision model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// [`crate::Rules`]: offline, cuts only what the history itself proves to be repeated.
    Rules,
    /// [`crate::SystemOne`]: System One over HTTP, at TypeSafe or any server that speaks it.
    SystemOne,
}

impl Backend {
    /// All backends, in the order in which help texts list them.
    pub const ALL: [Backend; 2] = [Backend::Rules, Backend::SystemOne];

    /// The backend's name in settings and receipts.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Every name that leads to the backend, the one of [`Backend::name`] first.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Backend::Rules => &["rules"],
            Backend::SystemOne => &["agentscope", "typesafe"],
        }
    }

    /// The backend with that name, exactly as written.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.names().contains(&name))
    }
}

/// How to reach a decision model. Blank texts count as not given.
#[derive(Clone)]
pub struct ModelSettings {
    /// Which model answers.
    pub backend: Backend,
    /// The name of the model at its provider. Default for System One: `jev-latest`.
    pub model_name: Option<String>,
    /// The key. White space around it does not count. Not needed for servers on this machine.
    pub api_key: Option<SecretString>,
    /// Where the provider is, with or without `/v1`. Default for System One: `https://api.typesafe.ai`.
    pub base_url: Option<String>,
    /// How long one attempt may take, from connecting to the last byte of the reply. Default 10 s.
    pub timeout: Duration,
    /// How often a request is sent again after a failure that may pass. Default 1.
    pub max_retries: u32,
    /// The wait before the first retry; it doubles from retry to retry. Default 0.5 s, never more than 5 s.
    pub retry_delay: Duration,
}

impl ModelSettings {
    /// The defaults of a backend.
    pub fn new(backend: Backend) -> ModelSettings {
        ModelSettings {
            backend,
            model_name: None,
            api_key: None,
            base_url: None,
            timeout: Duration::from_secs(10),
            max_retries: 1,
            retry_delay: Duration::from_millis(500),
        }
    }
}

impl fmt::Debug for ModelSettings {
    // A base URL may carry a password, so it is not printed either.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("backend", &self.backend)
            .field("model_name", &self.model_name)
            .field("api_key", &self.api_key.is_some())
            .field("base_url", &self.base_url.is_some())
            .field("timeout", &self.timeout)
            .field("max_retries", &self.max_retries)
            .field("retry_delay", &self.retry_delay)
            .finish()
    }
}

/// What is wrong with settings. Each message is one line that says what to do; none carries the key or the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The backend needs a key and none is given.
    #[error("the decision model {backend} needs a key: set DECISION_MODEL_API_KEY")]
    MissingKey {
        /// The backend's name.
        backend: &'static str,
    },
    /// The key cannot be one.
    #[error(
        "the key of the decision model {backend} holds {what}: set DECISION_MODEL_API_KEY to the key alone, as the \
         provider shows it"
    )]
    BadKey {
        /// The backend's name.
        backend: &'static str,
        /// What does not belong into a key.
        what: &'static str,
    },
    /// The base URL cannot be used.
    #[error(
        "the base URL of the decision model {backend} {what}: set DECISION_MODEL_BASE_URL to an address like \
         https://api.example.com"
    )]
    BadBaseUrl {
        /// The backend's name.
        backend: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Key and evidence would travel unencrypted.
    #[error(
        "the base URL of the decision model {backend} is plain http to another machine, which would show the key and \
         the evidence to everyone in between: set DECISION_MODEL_BASE_URL to an https address"
    )]
    InsecureBaseUrl {
        /// The backend's name.
        backend: &'static str,
    },
    /// The attempt timeout is zero, so nothing could ever be answered.
    #[error(
        "the timeout of the decision model {backend} is zero: set it to at least a few hundred milliseconds"
    )]
    ZeroTimeout {
        /// The backend's name.
        backend: &'static str,
    },
    /// The HTTP client could not be set up.
    #[error(
        "the HTTP client for the decision model {backend} could not be set up: report this as a fault of ratoon"
    )]
    Transport {
        /// The backend's name.
        backend: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
