//! Runs the real binary in a directory of its own and looks at what people and programs get: standard output,
//! standard error, exit code.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; helpers are not seen as tests by the lint"
)]

mod support;
mod compact;
mod recover;
mod refusals;
mod files;
mod environment;
mod systemone;
mod conformance;
mod signals;
mod help;
