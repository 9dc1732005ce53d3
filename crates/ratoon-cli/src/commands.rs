//! One module a command.

/// `ratoon compact`
pub(crate) mod compact;
/// `ratoon recover`
pub(crate) mod recover;
/// `ratoon completions`
pub(crate) mod completions;
