//! The end of a process: asked for, forced, cleaned up.
//!
//! SIGTERM goes to the leader alone, which may end its own helpers in order. After the
//! grace every member of its family is killed by pid, whatever session it moved to and
//! whoever its parent is now.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::launch::failed;
use super::linux::{self, ProcessRef};
use super::supervise::{Reply, Supervisor, blocking};
use super::types::{ChangeKind, ProcessError};
use crate::call::CallContext;

/// How often a stop looks at what still lives.
pub(super) const STOP_POLL: Duration = Duration::from_millis(50);
/// Descendants may outlive the leader of a stopped process by this before they are killed.
const LEFTOVER_WAIT: Duration = Duration::from_secs(1);
/// Killed processes must be gone within this.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// A stop on its way.
pub(super) struct Stop {
    kill_at: Instant,
    waiting: Vec<Reply<()>>,
}

impl Supervisor {
    pub(super) async fn ask_stop(&mut self, cx: &CallContext) -> Result<(), ProcessError> {
        let epoch = self.check_fence(cx)?;
        self.record.epoch = epoch;
        self.record.wanted = false;
        self.record.held = false;
        self.restart_at(None);
        if self.stop.is_some() {
            return self.save().await;
        }
        if self.leader.is_none() && self.family().await?.is_empty() {
            (self.record.restarts, self.record.exits_since_ready) = (0, 0);
            return self.save().await;
        }
        self.record.stopping = true;
        self.save().await?;
        self.begin_stop(self.grace(), Vec::new()).await;
        Ok(())
    }

    pub(super) async fn end(&mut self, grace: Duration, reply: Reply<()>) {
        self.restart_at(None);
        if let Some(stop) = &mut self.stop {
            stop.kill_at = stop.kill_at.min(Instant::now() + grace);
            stop.waiting.push(reply);
            return;
        }
        match self.family().await {
            Ok(family) if family.is_empty() && self.leader.is_none() => drop(reply.send(Ok(()))),
            Ok(_) => self.begin_stop(grace, vec![reply]).await,
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) async fn begin_stop(&mut self, grace: Duration, waiting: Vec<Reply<()>>) {
        self.record.stopping = true;
        self.record.ready = false;
        self.probes = JoinSet::new();
        self.known = self.family().await.unwrap_or_default();
        if let Some(leader) = self.leader
            && let Err(error) = linux::signal(leader, Signal::SIGTERM)
        {
            tracing::warn!(event = "process.not_signalled", id = %self.record.spec.id, %error);
        }
        let wait = if self.leader.is_some() { grace } else { Duration::ZERO };
        self.stop = Some(Stop { kill_at: Instant::now() + wait, waiting });
    }

    /// One look at a stop on its way: who still lives, is it time to kill, is it over?
    pub(super) async fn stop_step(&mut self) {
        let now = Instant::now();
        if self.child.is_none() && self.leader.is_some_and(|leader| !linux::is_alive(leader)) {
            self.note_end(None);
        }
        let family = match self.family().await {
            Ok(family) => family,
            Err(error) => {
                tracing::warn!(event = "process.family_unknown", id = %self.record.spec.id, %error);
                return;
            }
        };
        self.known = family;
        let Some(stop) = &mut self.stop else { return };
        if self.leader.is_none() {
            stop.kill_at = stop.kill_at.min(now + LEFTOVER_WAIT);
            if self.known.is_empty() {
                self.finish_stop().await;
                return;
            }
        }
        if stop.kill_at <= now {
            kill_all(&self.known);
        }
    }

    async fn finish_stop(&mut self) {
        let waiting = self.stop.take().map(|stop| stop.waiting).unwrap_or_default();
        self.record.stopping = false;
        (self.record.restarts, self.record.exits_since_ready) = (0, 0);
        self.save_or_log().await;
        self.announce(ChangeKind::Stopped);
        for reply in waiting {
            drop(reply.send(Ok(())));
        }
    }

    pub(super) async fn remove(&mut self, cx: &CallContext) -> Result<(), ProcessError> {
        self.check_fence(cx)?;
        if self.leader.is_some() || self.stop.is_some() {
            return Err(ProcessError::InUse);
        }
        self.kill_family().await?;
        let (folder, root) = (self.folder.clone(), self.shared.config.folder.clone());
        let removed = blocking(move || folder.remove(&root)).await;
        removed.map_err(|error| failed("the folder cannot be removed", &error))?;
        self.shared.ports.release(&self.record.spec.id);
        Ok(())
    }

    /// Everything of the last launch that lives, its leader included.
    pub(super) async fn family(&self) -> Result<BTreeSet<ProcessRef>, ProcessError> {
        let Some(launch) = self.record.launch.clone() else {
            return Ok(BTreeSet::new());
        };
        if launch.boot_id != self.shared.boot_id {
            return Ok(BTreeSet::new());
        }
        let known = self.known.clone();
        let family = blocking(move || linux::family(launch.process, &known, &launch.marker())).await;
        family.map_err(|error| failed("the processes of this machine cannot be listed", &error))
    }

    /// Ends what an ended process left behind.
    pub(super) async fn kill_family(&mut self) -> Result<(), ProcessError> {
        let patience = Instant::now() + KILL_WAIT;
        loop {
            self.known = self.family().await?;
            if self.known.is_empty() {
                return Ok(());
            }
            if Instant::now() >= patience {
                return Err(ProcessError::Failed("descendants of the old process do not end".to_owned()));
            }
            kill_all(&self.known);
            sleep(STOP_POLL).await;
        }
    }

    pub(super) async fn kill_family_or_log(&mut self) {
        if let Err(error) = self.kill_family().await {
            tracing::warn!(event = "process.family_lives", id = %self.record.spec.id, %error);
        }
    }
}

fn kill_all(family: &BTreeSet<ProcessRef>) {
    for process in family {
        if let Err(error) = linux::signal(*process, Signal::SIGKILL) {
            tracing::warn!(event = "process.not_killed", pid = process.pid, %error);
        }
    }
}
