//! One task per entry: it alone starts, probes, restarts and stops its process.
//!
//! Requests come through an inbox and are carried out to their end even when the caller
//! goes away, so a call dropped at its deadline leaves no half-started process.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ProcessHostConfig;
use super::folder::{Folder, Lock};
use super::launch::failed;
use super::life::{AfterExit, BACKOFF_RESET, after_exit};
use super::linux::{self, ProcessRef};
use super::ports::PortBook;
use super::record::Record;
use super::stopping::{STOP_POLL, Stop};
use super::types::{
    ChangeKind, ProcessChange, ProcessError, ProcessExit, ProcessRefusal, ProcessSpec, ProcessStatus,
};
use crate::call::{CallAuthority, CallContext};

/// Requests that wait for one entry.
pub(super) const INBOX_MAX: usize = 16;
/// Distance of probes while a process starts.
pub(super) const PROBE_STARTING: Duration = Duration::from_millis(100);
/// How often the end of an adopted process, which is nobody's child here, is looked for.
const ADOPTED_POLL: Duration = Duration::from_millis(100);
/// How often the size of the output is looked at.
pub(super) const OUTPUT_POLL: Duration = Duration::from_secs(1);
/// How often the family of a running process is noted.
pub(super) const FAMILY_POLL: Duration = Duration::from_secs(10);
/// When nothing is due.
const IDLE: Duration = Duration::from_secs(3600);
/// What all entries of a host share.
pub(super) struct Shared {
    pub(super) config: ProcessHostConfig,
    pub(super) authority: Arc<dyn CallAuthority>,
    pub(super) boot_id: String,
    pub(super) changes: broadcast::Sender<ProcessChange>,
    pub(super) ports: PortBook,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, ProcessError>>;

/// What an entry can be asked for. The caller has checked tenant and lease.
pub(super) enum Request {
    Start {
        cx: CallContext,
        spec: Box<ProcessSpec>,
        reply: Reply<ProcessStatus>,
    },
    Stop {
        cx: CallContext,
        reply: Reply<()>,
    },
    Remove {
        cx: CallContext,
        reply: Reply<()>,
    },
    /// Ends the process without a word on what is wanted; answered when all is gone.
    End {
        grace: Duration,
        reply: Reply<()>,
    },
}

/// What others see of an entry.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) tenant: String,
    pub(super) agent: Option<String>,
    pub(super) status: ProcessStatus,
    /// Wanted, but it ended while no host looked, and nobody has started it since.
    pub(super) lost: bool,
}

/// The way to an entry's task.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) inbox: mpsc::Sender<Request>,
    pub(super) view: watch::Receiver<View>,
}

/// The task's state.
pub(super) struct Supervisor {
    pub(super) shared: Arc<Shared>,
    pub(super) folder: Folder,
    pub(super) record: Record,
    /// The live process of the last launch.
    pub(super) leader: Option<ProcessRef>,
    /// The same, when it is a child of this host.
    pub(super) child: Option<Child>,
    /// Members of its family as last seen.
    pub(super) known: BTreeSet<ProcessRef>,
    pub(super) probes: JoinSet<bool>,
    pub(super) probe_failures: u32,
    pub(super) probe_due: Instant,
    pub(super) output_due: Instant,
    pub(super) family_due: Instant,
    pub(super) started: Instant,
    pub(super) restarts_in_row: u32,
    pub(super) restart_at: Option<Instant>,
    pub(super) stop: Option<Stop>,
    pub(super) inbox: mpsc::Receiver<Request>,
    pub(super) view: watch::Sender<View>,
    _lock: Lock,
}

enum Event {
    Shutdown,
    Request(Request),
    Exited(io::Result<ExitStatus>),
    Probed(bool),
    Tick,
}

impl Supervisor {
    /// Takes over an entry whose lock is held: adopts a live process, notes a lost one,
    /// goes on with a stop.
    pub(super) async fn take_over(
        shared: Arc<Shared>,
        folder: Folder,
        lock: Lock,
        mut record: Record,
    ) -> (Self, Handle) {
        // That wait was another host's.
        record.restarting = false;
        let now = Instant::now();
        let (inbox_sender, inbox) = mpsc::channel(INBOX_MAX);
        let view = watch::Sender::new(view_of(&record, false));
        let handle = Handle { inbox: inbox_sender, view: view.subscribe() };
        shared.ports.hold(&record.spec.id, &record.ports);
        let mut supervisor = Self {
            shared,
            folder,
            record,
            leader: None,
            child: None,
            known: BTreeSet::new(),
            probes: JoinSet::new(),
            probe_failures: 0,
            probe_due: now,
            output_due: now,
            family_due: now,
            started: now,
            restarts_in_row: 0,
            restart_at: None,
            stop: None,
            inbox,
            view,
            _lock: lock,
        };
        supervisor.adopt().await;
        supervisor.publish();
        (supervisor, handle)
    }

    /// Works until the host shuts down or the entry is removed. The process is left
    /// running for the next host.
    pub(super) async fn run(mut self) {
        loop {
            match self.next().await {
                Event::Shutdown => return,
                Event::Request(Request::Remove { cx, reply }) => {
                    let removed = self.remove(&cx).await;
                    let is_removed = removed.is_ok();
                    drop(reply.send(removed));
                    if is_removed {
                        return;
                    }
                }
                Event::Request(request) => self.answer(request).await,
                Event::Exited(status) => self.exited(status.ok()).await,
                Event::Probed(answer) => self.probed(answer).await,
                Event::Tick => self.tick().await,
            }
            self.publish();
        }
    }

    async fn next(&mut self) -> Event {
        let due = self.due();
        let Self { shared, inbox, child, probes, .. } = self;
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => Event::Shutdown,
            request = inbox.recv() => request.map_or(Event::Shutdown, Event::Request),
            status = child_end(child) => Event::Exited(status),
            Some(answer) = probes.join_next() => Event::Probed(answer.unwrap_or(false)),
            () = sleep_until(due) => Event::Tick,
        }
    }

    fn due(&self) -> Instant {
        let now = Instant::now();
        if self.stop.is_some() {
            return now + STOP_POLL;
        }
        if self.leader.is_none() {
            return self.restart_at.unwrap_or(now + IDLE);
        }
        let mut due = self.output_due.min(self.family_due);
        if self.probes.is_empty() {
            due = due.min(self.probe_due);
        }
        if self.child.is_none() {
            due = due.min(now + ADOPTED_POLL);
        }
        due
    }

    async fn answer(&mut self, request: Request) {
        match request {
            Request::Start { cx, spec, reply } => {
                let started = self.start(&cx, *spec).await;
                // The caller's next list must already show what it was told.
                self.publish();
                drop(reply.send(started));
            }
            Request::Stop { cx, reply } => {
                let stopped = self.ask_stop(&cx).await;
                self.publish();
                drop(reply.send(stopped));
            }
            Request::End { grace, reply } => self.end(grace, reply).await,
            Request::Remove { .. } => {}
        }
    }

    fn publish(&self) {
        self.view.send_replace(view_of(&self.record, self.leader.is_some()));
    }

    pub(super) fn announce(&self, kind: ChangeKind) {
        self.publish();
        tracing::info!(event = "process.changed", id = %self.record.spec.id, ?kind);
        let change = change_of(&self.view.borrow(), kind);
        // Nobody needs to listen.
        drop(self.shared.changes.send(change));
    }

    pub(super) async fn save(&self) -> Result<(), ProcessError> {
        let folder = self.folder.clone();
        let bytes =
            self.record.to_bytes().map_err(|error| failed("process.json cannot be written", &error))?;
        let written = blocking(move || folder.write_record(&bytes)).await;
        written.map_err(|error| failed("process.json cannot be written", &error))
    }

    /// For changes that the next save repeats: a failure is logged only.
    pub(super) async fn save_or_log(&self) {
        if let Err(error) = self.save().await {
            tracing::warn!(event = "process.record_not_saved", id = %self.record.spec.id, %error);
        }
    }

    async fn adopt(&mut self) {
        let Some(launch) = self.record.launch.clone().filter(|launch| !launch.ended) else {
            self.record.stopping = false;
            return;
        };
        let of_this_boot = launch.boot_id == self.shared.boot_id;
        let process = match launch.process {
            _ if !of_this_boot => None,
            // The host died between spawn and record: the marker tells which it was.
            None => blocking(move || linux::find_leader(&launch.marker())).await.unwrap_or(None),
            process => process,
        };
        if let Some(process) = process.filter(|process| linux::is_alive(*process)) {
            self.leader = Some(process);
            if let Some(launch) = &mut self.record.launch {
                launch.process = Some(process);
            }
            self.save_or_log().await;
            tracing::info!(event = "process.adopted", id = %self.record.spec.id, pid = process.pid);
            if self.record.stopping {
                self.begin_stop(self.grace(), Vec::new()).await;
            }
            return;
        }
        self.note_end(None);
        self.kill_family_or_log().await;
        self.record.stopping = false;
        self.save_or_log().await;
        tracing::info!(event = "process.lost", id = %self.record.spec.id);
    }

    /// When the process is started again by itself.
    pub(super) fn restart_at(&mut self, at: Option<Instant>) {
        self.restart_at = at;
        self.record.restarting = at.is_some();
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(u64::from(self.record.spec.grace_seconds))
    }

    /// Refuses an older writer, before any effect.
    pub(super) fn check_fence(&self, cx: &CallContext) -> Result<u64, ProcessError> {
        let fence = self.shared.authority.fence(cx);
        if fence < self.record.epoch { Err(ProcessRefusal::Fenced.into()) } else { Ok(fence) }
    }

    pub(super) fn end_launch(&mut self) {
        if let Some(launch) = &mut self.record.launch {
            launch.ended = true;
        }
    }

    /// Notes that the process is gone.
    pub(super) fn note_end(&mut self, status: Option<ExitStatus>) {
        self.child = None;
        self.leader = None;
        self.probes = JoinSet::new();
        self.record.ready = false;
        self.end_launch();
        self.record.last_exit = Some(ProcessExit {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            at_ms: (self.shared.config.now_ms)(),
        });
    }

    pub(super) async fn exited(&mut self, status: Option<ExitStatus>) {
        self.note_end(status);
        if self.stop.is_some() {
            self.stop_step().await;
            return;
        }
        if self.started.elapsed() >= BACKOFF_RESET {
            self.restarts_in_row = 0;
        }
        self.record.exits_since_ready = self.record.exits_since_ready.saturating_add(1);
        self.kill_family_or_log().await;
        let code = self.record.last_exit.and_then(|exit| exit.code);
        let kind = match after_exit(code, self.record.exits_since_ready, self.restarts_in_row) {
            AfterExit::Hold => {
                self.record.held = true;
                ChangeKind::Held
            }
            AfterExit::Restart(wait) => {
                self.restarts_in_row = self.restarts_in_row.saturating_add(1);
                self.restart_at(Some(Instant::now() + wait));
                ChangeKind::Exited
            }
        };
        self.save_or_log().await;
        self.announce(kind);
    }
}

/// The change that a view has gone through.
pub(super) fn change_of(view: &View, kind: ChangeKind) -> ProcessChange {
    ProcessChange {
        id: view.status.id.clone(),
        tenant: view.tenant.clone(),
        agent: view.agent.clone(),
        labels: view.status.labels.clone(),
        kind,
    }
}

fn view_of(record: &Record, running: bool) -> View {
    let status = record.status(running);
    let lost = record.wanted && !running && !record.restarting && !record.held && !record.stopping;
    View { tenant: record.tenant.clone(), agent: record.agent.clone(), status, lost }
}

async fn child_end(child: &mut Option<Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => pending().await,
    }
}

/// Runs file and `/proc` work where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::other("the work was cut")),
    }
}
