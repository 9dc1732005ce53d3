//! Gets originals back: a cut result carries a reference, and from the reference the original text comes back.
//!
//! So far there is one archive, the transcript file itself. Its promise: what [`transcript::recover`] returns is
//! the text of the one result the reference names, whole, or an error that says why there is none.

/// A transcript file as the archive of its own results.
pub mod transcript;
/// Parts of an original: a range of lines, the lines that match a pattern.
pub mod recover;

pub use transcript::RecoverError;
