//! One shutdown token and one set of tracked tasks per process: nothing is spawned
//! anywhere else, so that a stop can wait for all of it.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handed to everything that runs in the background; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Nothing asked to stop yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The token that background work selects on.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `task` until it ends; [`Shutdown::drain`] waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Asks everything to stop.
    pub fn begin(&self) {
        self.token.cancel();
    }

    /// Has a stop been asked for?
    #[must_use]
    pub fn begun(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits for `time`, or less once a stop has been asked for.
    pub async fn pause(&self, time: Duration) {
        tokio::select! {
            () = self.token.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
    }

    /// Waits for every tracked task, at most `patience`. False when something had to be cut.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(patience, self.tasks.wait()).await.is_ok()
    }

    /// Waits for SIGTERM or SIGINT, or for somebody else's [`Shutdown::begin`].
    ///
    /// # Errors
    /// When the process cannot listen for signals.
    pub async fn on_signal(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = self.token.cancelled() => {}
        }
        self.begin();
        Ok(())
    }
}
