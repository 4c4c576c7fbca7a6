//! The beginning of a process: asked for, or again after a back-off.
//!
//! The order makes every crash of this host recoverable: what an old process left is
//! killed, folders, ports and values are prepared, the launch is written with its
//! marker, the process is spawned, its pid is written. A host that dies between the
//! last three leaves a process that the next one finds by the marker.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::launch::{self, failed};
use super::life::backoff;
use super::linux;
use super::record::{Launch, spec_digest};
use super::supervise::{FAMILY_POLL, OUTPUT_POLL, PROBE_STARTING, Supervisor, blocking};
use super::types::{ProcessError, ProcessRefusal, ProcessSpec, ProcessStatus};
use crate::call::CallContext;

/// A restart's own call must end within this.
const RESTART_CALL: Duration = Duration::from_secs(30);

impl Supervisor {
    pub(super) async fn start(
        &mut self,
        cx: &CallContext,
        spec: ProcessSpec,
    ) -> Result<ProcessStatus, ProcessError> {
        let epoch = self.check_fence(cx)?;
        if self.stop.is_some() {
            return Err(ProcessError::InUse);
        }
        let digest = spec_digest(&spec);
        let digest = digest.map_err(|error| failed("the spec cannot be written", &error))?;
        let same = digest == self.record.spec_digest;
        let in_hand = self.leader.is_some() || self.restart_at.is_some() || self.record.held;
        if same && self.record.wanted && in_hand {
            if epoch > self.record.epoch {
                self.record.epoch = epoch;
                self.save().await?;
            }
            return Ok(self.status());
        }
        if self.leader.is_some() {
            return Err(ProcessError::InUse);
        }
        self.restart_at(None);
        self.restarts_in_row = 0;
        self.record.held = false;
        let again = same && self.record.wanted && self.record.launch.is_some();
        if !same {
            (self.record.restarts, self.record.exits_since_ready) = (0, 0);
            (self.record.last_exit, self.record.ready_once) = (None, false);
        }
        self.record.spec = spec;
        self.record.spec_digest = digest;
        self.record.plugin.clone_from(&cx.plugin);
        self.record.agent.clone_from(&cx.agent);
        self.record.revision.clone_from(&cx.revision);
        self.record.epoch = epoch;
        self.record.wanted = true;
        if let Err(error) = self.launch(cx, true).await {
            self.save_or_log().await;
            return Err(error);
        }
        if again {
            self.record.restarts = self.record.restarts.saturating_add(1);
        }
        Ok(self.status())
    }

    pub(super) fn status(&self) -> ProcessStatus {
        self.record.status(self.leader.is_some())
    }

    /// Starts the process of the record. `leased`: on behalf of a call, whose lease must
    /// still hold when everything slow has been done.
    async fn launch(&mut self, cx: &CallContext, leased: bool) -> Result<(), ProcessError> {
        // Never two on one state folder.
        self.kill_family().await?;
        let spec = &self.record.spec;
        self.record.ports = self.shared.ports.assign(&spec.id, &spec.ports, &self.record.ports)?;
        let (folder, spec) = (self.folder.clone(), spec.clone());
        let prepared = blocking(move || folder.prepare(&spec)).await;
        prepared.map_err(|error| failed("the folders cannot be prepared", &error))?;
        let authority = Arc::clone(&self.shared.authority);
        let environment =
            launch::resolve_environment(cx, authority.as_ref(), &self.folder, &self.record).await?;
        if leased && !authority.lease_alive(cx).await {
            return Err(ProcessRefusal::LeaseLost.into());
        }
        let launch = Launch {
            id: uuid::Uuid::new_v4().to_string(),
            boot_id: self.shared.boot_id.clone(),
            process: None,
            started_at_ms: (self.shared.config.now_ms)(),
            ended: false,
        };
        self.record.launch = Some(launch.clone());
        self.record.ready = false;
        self.save().await?;
        let search_path = &self.shared.config.search_path;
        let spawned = launch::spawn(&self.folder, &self.record, &launch, environment, search_path);
        self.spawned(spawned).await
    }

    async fn spawned(&mut self, spawned: Result<Child, ProcessError>) -> Result<(), ProcessError> {
        let child = match spawned {
            Ok(child) => child,
            Err(error) => {
                self.end_launch();
                self.save_or_log().await;
                return Err(error);
            }
        };
        // Nobody but us can reap it, so its pid is still its own.
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        self.leader = pid.and_then(linux::process_of);
        self.child = Some(child);
        if let Some(launch) = &mut self.record.launch {
            launch.process = self.leader;
        }
        let now = Instant::now();
        (self.started, self.output_due, self.family_due) = (now, now + OUTPUT_POLL, now + FAMILY_POLL);
        (self.probe_due, self.probe_failures) = (now + PROBE_STARTING, 0);
        self.probes = JoinSet::new();
        tracing::info!(event = "process.started", id = %self.record.spec.id, pid);
        // Without the pid on disk the marker still finds it.
        self.save_or_log().await;
        Ok(())
    }

    pub(super) async fn restart(&mut self) {
        self.restart_at(None);
        let cx = CallContext {
            plugin: self.record.plugin.clone(),
            operation: "restart",
            tenant: Some(self.record.tenant.clone()),
            agent: self.record.agent.clone(),
            revision: self.record.revision.clone(),
            work_key: None,
            epoch: self.record.epoch,
            deadline: Instant::now() + RESTART_CALL,
        };
        self.record.restarts = self.record.restarts.saturating_add(1);
        if let Err(error) = self.launch(&cx, false).await {
            tracing::warn!(event = "process.restart_failed", id = %self.record.spec.id, %error);
            self.restart_at(Some(Instant::now() + backoff(self.restarts_in_row)));
            self.restarts_in_row = self.restarts_in_row.saturating_add(1);
        }
    }
}
