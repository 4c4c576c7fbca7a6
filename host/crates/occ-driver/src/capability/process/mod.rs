//! The `process` capability: agents as supervised processes on this machine.
//!
//! For development only; the pages of the product call it `compute-local`.

mod types;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::call::{CallAuthority, CallContext};

pub use types::*;

/// What this host may do with the process folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessMode {
    /// Start, adopt, probe, restart and stop.
    Supervise,
    /// Read what a supervisor of the same folder wrote; every writing call is refused
    /// with `not-granted`.
    Observe,
}

/// How a [`ProcessHost`] is opened.
#[derive(Clone)]
pub struct ProcessHostConfig {
    /// `<state>/processes`; made with mode 0700.
    pub folder: PathBuf,
    /// Ports that are drawn.
    pub port_range: RangeInclusive<u16>,
    /// Supervise or only read.
    pub mode: ProcessMode,
    /// `PATH` of every process; nothing else is inherited.
    pub search_path: String,
    /// Milliseconds since 1970, from the host's clock.
    pub now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for ProcessHostConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHostConfig")
            .field("folder", &self.folder)
            .field("port_range", &self.port_range)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Why the process folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProcessOpenError {
    /// The folder cannot be made or read.
    #[error("the process folder {folder} cannot be used: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Supervises the processes of one folder. Cheap to clone.
#[derive(Clone)]
pub struct ProcessHost {
    config: ProcessHostConfig,
    changes: broadcast::Sender<ProcessChange>,
}

const NOT_BUILT: &str = "the process supervisor is not built yet";

impl ProcessHost {
    /// Opens the folder and adopts what still runs in it.
    ///
    /// `authority` is kept: a restart after a back-off happens outside of any call and
    /// asks it for the secret values again.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn open(
        config: ProcessHostConfig,
        _authority: Arc<dyn CallAuthority>,
    ) -> Result<Self, ProcessOpenError> {
        Ok(Self {
            config,
            changes: broadcast::channel(16).0,
        })
    }

    /// Would this command be allowed and found? Starts nothing.
    pub fn check(&self, _grant: &ProcessGrant, _command: &[String]) -> Result<(), ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// Starts the process unless this very spec already runs, waits for its back-off or
    /// is held: then answers its status. Another spec under a live id fails; stop first.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn start(
        &self,
        _cx: &CallContext,
        _grant: &ProcessGrant,
        _spec: ProcessSpec,
    ) -> Result<ProcessStatus, ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// Begins the stop and returns; `status.stopping` tells. Stopping what is stopped
    /// is fine; an id that nobody knows is `NotFound`.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn stop(&self, _cx: &CallContext, _id: &str) -> Result<(), ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// Removes the entry with its state; fails while it lives.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn remove_state(&self, _cx: &CallContext, _id: &str) -> Result<(), ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// The tenant's processes that carry all of these labels, by id.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn list(
        &self,
        _cx: &CallContext,
        _labels: &[(String, String)],
    ) -> Result<Vec<ProcessStatus>, ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// The last lines of the present (or the rotated) output, oldest first.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn logs(
        &self,
        _cx: &CallContext,
        _id: &str,
        _previous: bool,
        _tail_lines: u32,
        _since_seconds: Option<u32>,
    ) -> Result<Vec<LogLine>, ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }

    /// Wakes waiters when a process becomes ready or ends. A receiver that lags misses
    /// the oldest; it should then look at everything.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<ProcessChange> {
        self.changes.subscribe()
    }

    /// Supervises until `shutdown`, then returns and leaves every process running for
    /// the next host to adopt.
    pub async fn run(&self, shutdown: CancellationToken) {
        shutdown.cancelled().await;
    }

    /// Ends every process of the folder, with this grace for all of them; state stays.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn shutdown_all(&self, _grace: Duration) -> Result<(), ProcessError> {
        Err(ProcessError::Failed(NOT_BUILT.to_owned()))
    }
}

impl fmt::Debug for ProcessHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHost")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
