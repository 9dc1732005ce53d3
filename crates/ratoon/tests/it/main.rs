//! Behaviour of the whole library, from the bytes of a request to the bytes of an answer.

mod generated;
mod support;

mod cases;
mod runs;
mod roundtrip;
mod model_visible;
mod options;
mod properties;
