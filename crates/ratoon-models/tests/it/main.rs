//! Models against real HTTP servers, and whole calls against models.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod servers;

mod drive;
mod exchange;
mod failures;
mod rules;
mod secrets;
mod wire;
