//! Test support for the other crates: recorded cases, an independent checker of the general rules, generated
//! snapshots, deterministic decision models and a real fake provider process.
//!
//! Nothing here depends on the code under test, so that a fault there cannot hide itself. Broken test data is a
//! fault of the test, not of its user: everything here panics with the reason instead of returning errors.

pub mod exact;
pub mod data;
pub mod layouts;
pub mod snapshots;
pub mod hash_model;
pub mod case_model;
pub mod fake_provider;
pub mod comparison;
pub mod rules;
mod document;
