//! A running process: is it ready, does it still live, how much does it print?

use std::time::Duration;

use tokio::time::Instant;

use super::linux;
use super::output::{OUTPUT_FLOOD_BYTES, cut_flood};
use super::probe::{Target, is_ready};
use super::supervise::{FAMILY_POLL, OUTPUT_POLL, PROBE_STARTING, Supervisor, blocking};
use super::types::ChangeKind;

/// So long after its start a process is probed at [`PROBE_STARTING`].
const STARTING: Duration = Duration::from_secs(120);
/// Distance of probes of a process that starts slowly or has ceased to answer.
const PROBE_SLOW: Duration = Duration::from_secs(1);
/// So many probes in a row fail before a ready process is unready.
const PROBE_FAILURES_MAX: u32 = 3;

impl Supervisor {
    pub(super) async fn probed(&mut self, answer: bool) {
        if self.leader.is_none() || self.stop.is_some() {
            return;
        }
        let now = Instant::now();
        if answer {
            self.probe_failures = 0;
            self.probe_due = now + Duration::from_secs(u64::from(self.record.spec.readiness.period_seconds));
            if !self.record.ready {
                (self.record.ready, self.record.ready_once) = (true, true);
                self.record.exits_since_ready = 0;
                self.announce(ChangeKind::Ready);
                self.save_or_log().await;
            }
            return;
        }
        self.probe_failures = self.probe_failures.saturating_add(1);
        let starting = !self.record.ready_once && self.started.elapsed() < STARTING;
        self.probe_due = now + if starting { PROBE_STARTING } else { PROBE_SLOW };
        if self.record.ready && self.probe_failures >= PROBE_FAILURES_MAX {
            self.record.ready = false;
            self.announce(ChangeKind::Unready);
            self.save_or_log().await;
        }
    }

    pub(super) async fn tick(&mut self) {
        let now = Instant::now();
        if self.stop.is_some() {
            self.stop_step().await;
            return;
        }
        let Some(leader) = self.leader else {
            if self.restart_at.is_some_and(|at| at <= now) {
                self.restart().await;
            }
            return;
        };
        if self.child.is_none() && !linux::is_alive(leader) {
            self.exited(None).await;
            return;
        }
        if self.probe_due <= now && self.probes.is_empty() {
            self.spawn_probe();
        }
        if self.output_due <= now {
            self.output_due = now + OUTPUT_POLL;
            self.bound_output().await;
        }
        if self.family_due <= now {
            self.family_due = now + FAMILY_POLL;
            self.known = self.family().await.unwrap_or_default();
        }
    }

    fn spawn_probe(&mut self) {
        let probe = &self.record.spec.readiness;
        let Some(port) = self.record.ports.iter().find(|port| port.name == probe.port) else {
            return;
        };
        let timeout = Duration::from_secs(u64::from(probe.timeout_seconds));
        let target = Target { port: port.number, path: probe.path.clone(), timeout };
        self.probes.spawn(async move { is_ready(&target).await });
    }

    async fn bound_output(&self) {
        let (current, previous) = (self.folder.output(), self.folder.previous_output());
        match blocking(move || cut_flood(&current, &previous, OUTPUT_FLOOD_BYTES)).await {
            Ok(true) => tracing::warn!(event = "process.output_cut", id = %self.record.spec.id),
            Ok(false) => {}
            Err(error) => tracing::warn!(event = "process.output_not_cut", id = %self.record.spec.id, %error),
        }
    }
}
