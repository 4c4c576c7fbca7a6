//! The `process` capability: agents as supervised processes on this machine.
//!
//! For development only; the driver that uses it is `compute-local`. [`ProcessHost`]
//! keeps one folder with one sub-folder per process:
//!
//! ```text
//! ProcessHost ── admit (pure) ── supervise: one task per entry ── launch, probe, output
//!                │                  ├ starting: folders, ports, values, spawn
//!                │                  ├ watching: ready? alive? how much output?
//!                │                  ├ stopping: TERM, grace, KILL of the family
//!                └ entries          └ record: process.json by rename
//! ```
//!
//! - **A process outlives its host.** It writes its own output file, has its own group
//!   and no pipe to us; the next host adopts it by boot id, pid and start ticks.
//! - **One supervisor per entry**: the holder of a file lock in its folder.
//! - **Never two processes on one state folder**: what an ended process left behind is
//!   killed before the next starts.
//! - **No secret value is kept**: they are asked for at each spawn and dropped.
//! - **A late writer loses**: an entry carries the fence of its last writer.

mod admit;
mod entries;
mod folder;
mod launch;
mod life;
mod linux;
mod output;
mod ports;
mod probe;
mod record;
mod starting;
mod stopping;
mod supervise;
mod types;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, broadcast, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::folder::Folder;
use self::launch::{failed, outside_tenant};
use self::ports::PortBook;
use self::supervise::{Handle, Request, Shared, blocking, change_of};
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
        source: io::Error,
    },
    /// The kernel does not tell its boot id: this is not a Linux machine.
    #[error("processes cannot be supervised here: {0}")]
    Boot(io::Error),
}

/// Most processes of one folder.
const ENTRIES_MAX: usize = 256;
/// Changes that a slow receiver may lag behind.
const CHANGES_MAX: usize = 256;
/// How often folders that another host has given up are looked for.
const RESCAN: Duration = Duration::from_secs(1);

const FOREIGN: &str = "another host supervises this process";
const ENDED: &str = "the supervisor has ended";

type Entries = BTreeMap<String, Handle>;

/// Supervises the processes of one folder. Cheap to clone; when the last clone goes,
/// supervision ends and the processes run on.
#[derive(Clone)]
pub struct ProcessHost {
    shared: Arc<Shared>,
    entries: Arc<Mutex<Entries>>,
    _ends_tasks: Arc<DropGuard>,
}

impl ProcessHost {
    /// Opens the folder and adopts what still runs in it.
    ///
    /// `authority` is kept: a restart after a back-off happens outside of any call and
    /// asks it for the secret values again.
    pub async fn open(
        config: ProcessHostConfig,
        authority: Arc<dyn CallAuthority>,
    ) -> Result<Self, ProcessOpenError> {
        let folder = config.folder.clone();
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            boot_id: linux::boot_id().map_err(ProcessOpenError::Boot)?,
            changes: broadcast::Sender::new(CHANGES_MAX),
            ports: PortBook::new(config.port_range.clone()),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
            config,
            authority,
        });
        let entries = Arc::new(Mutex::new(BTreeMap::new()));
        let host = Self { shared, entries, _ends_tasks: Arc::new(stop.drop_guard()) };
        if host.shared.config.mode == ProcessMode::Supervise {
            let root = folder.clone();
            let opened = blocking(move || folder::open_root(&root)).await;
            opened.map_err(|source| ProcessOpenError::Folder { folder: folder.clone(), source })?;
            let adopted = host.adopt_all().await;
            let not_ours = adopted.map_err(|source| ProcessOpenError::Folder { folder, source })?;
            for (id, error) in not_ours.unreadable {
                tracing::warn!(event = "process.not_adopted", %id, %error);
            }
        }
        Ok(host)
    }

    /// Would this command be allowed and found? Starts nothing.
    pub fn check(&self, grant: &ProcessGrant, command: &[String]) -> Result<(), ProcessError> {
        admit::check_command(grant, command)
    }

    /// Starts the process unless this very spec already runs, waits for its back-off or
    /// is held: then answers its status. Another spec takes the entry over, state kept;
    /// while a process of the entry lives, that is `InUse`.
    pub async fn start(
        &self,
        cx: &CallContext,
        grant: &ProcessGrant,
        spec: ProcessSpec,
    ) -> Result<ProcessStatus, ProcessError> {
        admit::check_spec(&spec).map_err(|broken| {
            tracing::warn!(event = "process.refused", plugin = %cx.plugin, rule = broken.rule);
            ProcessError::Refused(broken.refusal)
        })?;
        admit::check_command(grant, &spec.command)?;
        let tenant = self.authorise(cx).await?;
        let handle = self.entry_for_start(cx, tenant, &spec).await?;
        let (reply, answer) = oneshot::channel();
        let request = Request::Start { cx: cx.clone(), spec: Box::new(spec), reply };
        ask(&handle, request, answer).await
    }

    /// Begins the stop and returns; `status.stopping` tells. Stopping what is stopped
    /// is fine; an id that nobody knows is `NotFound`.
    pub async fn stop(&self, cx: &CallContext, id: &str) -> Result<(), ProcessError> {
        let handle = self.entry_for_write(cx, id).await?;
        let (reply, answer) = oneshot::channel();
        ask(&handle, Request::Stop { cx: cx.clone(), reply }, answer).await
    }

    /// Removes the entry with its state; `InUse` while it lives. An id that nobody knows
    /// is `NotFound`.
    pub async fn remove_state(&self, cx: &CallContext, id: &str) -> Result<(), ProcessError> {
        let handle = self.entry_for_write(cx, id).await?;
        let (reply, answer) = oneshot::channel();
        ask(&handle, Request::Remove { cx: cx.clone(), reply }, answer).await
    }

    /// The tenant's processes that carry all of these labels, by id.
    pub async fn list(
        &self,
        cx: &CallContext,
        labels: &[(String, String)],
    ) -> Result<Vec<ProcessStatus>, ProcessError> {
        let tenant = cx.tenant.as_deref().ok_or(ProcessRefusal::OutsideTenant)?;
        let mut statuses = Vec::new();
        let root = self.shared.config.folder.clone();
        let ids = blocking(move || folder::ids(&root)).await;
        for id in ids.map_err(|error| failed("the process folder cannot be read", &error))? {
            let Some((owner, status)) = self.look(&id).await? else {
                continue;
            };
            if owner == tenant && labels_match(labels, &status.labels) {
                statuses.push(status);
            }
        }
        Ok(statuses)
    }

    /// The last lines of the present (or the rotated) output, oldest first.
    ///
    /// Lines carry no time, so `since_seconds` only tells whether the process has printed
    /// anything in that time.
    pub async fn logs(
        &self,
        cx: &CallContext,
        id: &str,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> Result<Vec<LogLine>, ProcessError> {
        let tenant = cx.tenant.as_deref().ok_or(ProcessRefusal::OutsideTenant)?;
        if !admit::is_name(id) {
            return Err(ProcessRefusal::Malformed.into());
        }
        let (owner, _) = self.look(id).await?.ok_or(ProcessError::NotFound)?;
        if owner != tenant {
            return Err(self.refuse_stranger(cx, id).await);
        }
        let folder = self.folder(id);
        let path = if previous { folder.previous_output() } else { folder.output() };
        let since = since_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
        let lines = blocking(move || output::tail(&path, tail_lines, since)).await;
        lines.map_err(|error| failed("the output cannot be read", &error))
    }

    /// Wakes waiters when a process becomes ready or ends. A receiver that lags misses
    /// the oldest; it should then look at everything.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<ProcessChange> {
        self.shared.changes.subscribe()
    }

    /// Supervises until `shutdown`, then returns and leaves every process running for
    /// the next host to adopt. First announces what ended while no host looked.
    pub async fn run(&self, shutdown: CancellationToken) {
        for handle in self.entries.lock().await.values() {
            let view = handle.view.borrow();
            if view.lost {
                // Nobody needs to listen.
                drop(self.shared.changes.send(change_of(&view, ChangeKind::Exited)));
            }
        }
        let mut unreadable = BTreeSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(RESCAN) => {}
            }
            if self.shared.config.mode == ProcessMode::Supervise {
                self.rescan(&mut unreadable).await;
            }
        }
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Takes over what another host has given up; complains once about each bad entry.
    async fn rescan(&self, unreadable: &mut BTreeSet<String>) {
        match self.adopt_all().await {
            Ok(not_ours) => {
                for (id, error) in not_ours.unreadable {
                    if unreadable.insert(id.clone()) {
                        tracing::warn!(event = "process.not_adopted", %id, %error);
                    }
                }
            }
            Err(error) => tracing::warn!(event = "process.folder_not_read", %error),
        }
    }

    /// Ends every process of the folder, with this grace for all of them; state stays,
    /// and so does the wish to run. Fails, after it has ended its own, when another host
    /// supervises some.
    pub async fn shutdown_all(&self, grace: Duration) -> Result<(), ProcessError> {
        let unreadable = |error: io::Error| failed("the process folder cannot be read", &error);
        let not_ours = self.adopt_all().await.map_err(unreadable)?;
        let handles: Vec<Handle> = self.entries.lock().await.values().cloned().collect();
        let mut ends = Vec::with_capacity(handles.len());
        for handle in &handles {
            let (reply, answer) = oneshot::channel();
            ends.push(ask(handle, Request::End { grace, reply }, answer));
        }
        let ended = futures_util::future::join_all(ends).await;
        ended.into_iter().collect::<Result<(), ProcessError>>()?;
        if not_ours.foreign { Err(ProcessError::Failed(FOREIGN.to_owned())) } else { Ok(()) }
    }

    fn folder(&self, id: &str) -> Folder {
        Folder::new(&self.shared.config.folder, id)
    }

    /// May this call write at all? Answers its tenant.
    async fn authorise(&self, cx: &CallContext) -> Result<String, ProcessError> {
        if self.shared.config.mode == ProcessMode::Observe {
            return Err(ProcessRefusal::NotGranted.into());
        }
        let tenant = cx.tenant.clone().ok_or(ProcessRefusal::OutsideTenant)?;
        if cx.epoch == 0 || !self.shared.authority.lease_alive(cx).await {
            return Err(ProcessRefusal::LeaseLost.into());
        }
        Ok(tenant)
    }

    async fn refuse_stranger(&self, cx: &CallContext, id: &str) -> ProcessError {
        self.shared.authority.security_event(cx, outside_tenant(id.to_owned())).await;
        ProcessRefusal::OutsideTenant.into()
    }

    /// Tenant and status of an id, from its task or from its record.
    async fn look(&self, id: &str) -> Result<Option<(String, ProcessStatus)>, ProcessError> {
        if let Some(handle) = self.entries.lock().await.get(id).filter(|handle| !handle.inbox.is_closed()) {
            let view = handle.view.borrow();
            return Ok(Some((view.tenant.clone(), view.status.clone())));
        }
        let (folder, boot_id) = (self.folder(id), self.shared.boot_id.clone());
        let read = blocking(move || {
            let record = folder.read_record()?;
            Ok(record.map(|record| {
                let running = record.live_process(&boot_id).is_some();
                let status = record.status(running);
                (record.tenant, status)
            }))
        });
        read.await.map_err(|error| failed("the process folder cannot be read", &error))
    }
}

/// Sends a request to an entry's task, which carries it out whether or not the caller
/// still waits.
async fn ask<T>(
    handle: &Handle,
    request: Request,
    answer: oneshot::Receiver<Result<T, ProcessError>>,
) -> Result<T, ProcessError> {
    let ended = || ProcessError::Failed(ENDED.to_owned());
    handle.inbox.send(request).await.map_err(|_| ended())?;
    answer.await.map_err(|_| ended())?
}

impl fmt::Debug for ProcessHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHost").field("config", &self.shared.config).finish_non_exhaustive()
    }
}
