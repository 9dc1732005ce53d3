//! Models against real HTTP servers, and whole calls against models.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests read recorded cases, run servers and look at the clock"
)]

mod calls;
mod servers;

mod drive;
mod exchange;
mod failures;
mod rules;
mod secrets;
mod wire;
