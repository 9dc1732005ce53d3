//! Decision models for ratoon, and the driver that asks them.
//!
//! [`build`] turns a backend and its settings into a [`DecisionModel`]; [`compact`] runs a whole call against one:
//! requests in parallel, one deadline, cancellation by dropping the future. Which evidence goes and what the
//! answer looks like is decided in `ratoon`; nothing here edits a history.
//!
//! Nothing that is printed from here, `Debug` included, holds a key or message content.
//!
//! ```
//! use std::time::Instant;
//!
//! use ratoon::{Request, Settings};
//! use ratoon_models::{Backend, ModelSettings, build, compact};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let model = build(ModelSettings::new(Backend::Rules))?;
//! let request = Request::parse(br#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#)?;
//! let settings = Settings::default();
//! let proposal = compact(&request, &*model, None, &settings, Instant::now(), &|_| {}).await?;
//! assert!(!proposal.changed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// What can be set, and what can be wrong with it.
mod settings;
/// A backend and its settings become a model.
mod backends;
/// A call against a model: concurrency, deadline, cancellation.
mod drive;
/// The offline model: what the history itself proves.
mod rules;
/// The System One wire: bytes out, bytes in.
mod systemone;
/// The HTTP client that every wire uses: TLS, attempts, limits.
mod http;

pub use backends::build;
pub use drive::{Progress, compact};
pub use ratoon::DecisionModel;
pub use rules::Rules;
pub use secrecy::SecretString;
pub use settings::{Backend, ModelSettings, SettingsError};
pub use systemone::SystemOne;

/// The page about embedding, whose examples run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
