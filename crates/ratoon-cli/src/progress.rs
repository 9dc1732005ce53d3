//! How far the asking has come, for a person who waits at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ratoon_models::Progress;

/// Shorter waits need no explanation.
const DELAY: Duration = Duration::from_millis(300);

/// A bar on standard error. Disappears when dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar that nobody sees yet.
    pub(crate) fn hidden() -> Bar {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = "{spinner} asking the decision model: {pos} of {len} requests, {elapsed}";
        Bar(bar.with_style(ProgressStyle::with_template(template).expect("the template is valid")))
    }

    /// Takes in how far the asking has come.
    pub(crate) fn update(&self, progress: Progress) {
        self.0.set_length(progress.requests as u64);
        self.0.set_position(progress.completed as u64);
    }

    /// Shows the bar after a while, if standard error is a terminal. Never returns.
    pub(crate) async fn appear(&self) {
        tokio::time::sleep(DELAY).await;
        self.0.set_draw_target(ProgressDrawTarget::stderr());
        self.0.enable_steady_tick(Duration::from_millis(120));
        std::future::pending().await
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
