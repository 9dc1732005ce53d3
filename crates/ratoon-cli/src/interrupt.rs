//! Ctrl-C. The work runs on a thread of its own, so that the signal is seen while the work computes or blocks.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::{oneshot, watch};

/// How long the work may take to clean up: close connections, remove a half-written file.
const GRACE: Duration = Duration::from_millis(250);

/// The command was cancelled with Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Tells the work that it is to stop.
#[derive(Debug, Clone)]
pub(crate) struct Cancelled(watch::Receiver<bool>);

impl Cancelled {
    /// Returns when the work is to stop.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|cancelled| *cancelled).await.is_err() {
            // Nobody is left who could cancel.
            std::future::pending().await
        }
    }

    /// A writer that fails as soon as the work is to stop.
    pub(crate) fn watch<W: Write>(&self, inner: W) -> Watched<W> {
        Watched { inner, cancelled: self.clone() }
    }
}

/// See [`Cancelled::watch`].
#[derive(Debug)]
pub(crate) struct Watched<W> {
    inner: W,
    cancelled: Cancelled,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if *self.cancelled.0.borrow() {
            return Err(io::Error::other(Interrupted));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Runs the work until it ends or Ctrl-C is pressed.
pub(crate) fn interruptible(
    work: impl FnOnce(Cancelled) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<()> {
    let (cancel, cancelled) = watch::channel(false);
    let (report, mut done) = oneshot::channel();
    let runtime = runtime()?;
    let worker = thread::spawn(move || {
        // The main thread waits for this until it has given up.
        let _ = report.send(work(Cancelled(cancelled)));
    });
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = &mut done => outcome.ok(),
            Ok(()) = tokio::signal::ctrl_c() => {
                let _ = cancel.send(true);
                let _ = tokio::time::timeout(GRACE, &mut done).await;
                Some(Err(Interrupted.into()))
            }
        }
    });
    match outcome {
        Some(outcome) => outcome,
        // The work sends nothing only if it panics.
        None => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the work ends with a report or a panic"),
        },
    }
}

/// A runtime on the current thread.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the async runtime could not be started")
}
