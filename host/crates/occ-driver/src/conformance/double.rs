//! A supervisor that starts nothing: processes become ready and end one look after they
//! were told to, as real ones do later.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::call::CallContext;
use crate::capability::ProcessSupervisor;
use crate::capability::process::{
    LogLine, Port, ProcessError, ProcessGrant, ProcessRefusal, ProcessSpec, ProcessStatus,
};
use crate::digest;

/// First port that is drawn.
const PORT_FIRST: u16 = 20_000;

/// The double. It confines to the call's tenant and keeps to the rules of the contract's
/// `process` interface, but for fences and leases: the suite's calls have neither.
#[derive(Debug, Default)]
pub struct FakeSupervisor {
    entries: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    tenant: String,
    spec: ProcessSpec,
    life: Life,
    starts: u32,
    ready_once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Starting,
    Ready,
    Stopping,
    Stopped,
}

/// What the double holds of one entry, to compare states of the world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Its id.
    pub id: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Digest of its newest spec.
    pub spec_digest: String,
    /// A process lives.
    pub running: bool,
}

impl FakeSupervisor {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything of a tenant.
    #[must_use]
    pub fn held(&self, tenant: &str) -> Vec<Held> {
        let entries = self.entries();
        let own = entries.values().filter(|entry| entry.tenant == tenant);
        own.map(|entry| Held {
            id: entry.spec.id.clone(),
            labels: entry.spec.labels.clone(),
            spec_digest: digest_of(&entry.spec),
            running: entry.life != Life::Stopped,
        })
        .collect()
    }

    /// How often processes were started, over all entries of a tenant.
    #[must_use]
    pub fn starts(&self, tenant: &str) -> u32 {
        self.entries().values().filter(|entry| entry.tenant == tenant).map(|entry| entry.starts).sum()
    }

    /// Lets a tenant own a running entry of this id, as if another driver had made it.
    pub fn plant(&self, tenant: &str, spec: ProcessSpec) {
        let entry = Entry { tenant: tenant.to_owned(), spec, life: Life::Ready, starts: 1, ready_once: true };
        self.entries().insert(entry.spec.id.clone(), entry);
    }

    fn start_now(&self, cx: &CallContext, spec: ProcessSpec) -> Result<ProcessStatus, ProcessError> {
        let tenant = tenant(cx)?;
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&spec.id) else {
            let entry = Entry { tenant, spec, life: Life::Starting, starts: 1, ready_once: false };
            let status = entry.status();
            entries.insert(entry.spec.id.clone(), entry);
            return Ok(status);
        };
        if entry.tenant != tenant {
            return Err(ProcessRefusal::OutsideTenant.into());
        }
        entry.look();
        match entry.life {
            Life::Stopping => return Err(ProcessError::InUse),
            Life::Starting | Life::Ready if entry.spec != spec => return Err(ProcessError::InUse),
            Life::Starting | Life::Ready => {}
            Life::Stopped => {
                entry.ready_once &= entry.spec == spec;
                entry.spec = spec;
                entry.life = Life::Starting;
                entry.starts += 1;
            }
        }
        Ok(entry.status())
    }

    fn own<T>(
        &self,
        cx: &CallContext,
        id: &str,
        then: impl FnOnce(&mut Entry) -> Result<T, ProcessError>,
    ) -> Result<T, ProcessError> {
        let tenant = tenant(cx)?;
        match self.entries().get_mut(id) {
            Some(entry) if entry.tenant == tenant => then(entry),
            Some(_) => Err(ProcessRefusal::OutsideTenant.into()),
            None => Err(ProcessError::NotFound),
        }
    }
}

fn tenant(cx: &CallContext) -> Result<String, ProcessError> {
    cx.tenant.clone().ok_or_else(|| ProcessRefusal::OutsideTenant.into())
}

fn digest_of(spec: &ProcessSpec) -> String {
    digest::sha256(serde_json::to_string(spec).unwrap_or_default().as_bytes())
}

impl Entry {
    /// Time passes when somebody looks.
    fn look(&mut self) {
        self.life = match self.life {
            Life::Starting => Life::Ready,
            Life::Stopping => Life::Stopped,
            settled => settled,
        };
        self.ready_once |= self.life == Life::Ready;
    }

    fn status(&self) -> ProcessStatus {
        let number = |index: usize| PORT_FIRST.saturating_add(u16::try_from(index).unwrap_or(0));
        let bound = |(index, port): (usize, &Port)| Port {
            name: port.name.clone(),
            number: if port.number == 0 { number(index) } else { port.number },
        };
        ProcessStatus {
            id: self.spec.id.clone(),
            labels: self.spec.labels.clone(),
            spec_digest: digest_of(&self.spec),
            start_id: self.starts.to_string(),
            running: self.life != Life::Stopped,
            ready: self.life == Life::Ready,
            ready_once: self.ready_once,
            stopping: self.life == Life::Stopping,
            stopped: matches!(self.life, Life::Stopping | Life::Stopped),
            held: false,
            restarting: false,
            restarts: 0,
            exits_since_ready: 0,
            last_exit: None,
            ports: self.spec.ports.iter().enumerate().map(bound).collect(),
            started_at_ms: 1,
        }
    }
}

impl ProcessSupervisor for FakeSupervisor {
    fn check(&self, _grant: &ProcessGrant, command: &[String]) -> Result<(), ProcessError> {
        if command.is_empty() { Err(ProcessRefusal::Malformed.into()) } else { Ok(()) }
    }

    fn start<'a>(
        &'a self,
        cx: &'a CallContext,
        _grant: &'a ProcessGrant,
        spec: ProcessSpec,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        ready(self.start_now(cx, spec)).boxed()
    }

    fn stop<'a>(&'a self, cx: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ProcessError>> {
        let stopped = self.own(cx, id, |entry| {
            if entry.life != Life::Stopped {
                entry.life = Life::Stopping;
            }
            Ok(())
        });
        ready(stopped).boxed()
    }

    fn remove_state<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        let gone = self
            .own(cx, id, |entry| if entry.life == Life::Stopped { Ok(()) } else { Err(ProcessError::InUse) });
        if gone.is_ok() {
            self.entries().remove(id);
        }
        ready(gone).boxed()
    }

    fn list<'a>(
        &'a self,
        cx: &'a CallContext,
        labels: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>> {
        let listed = tenant(cx).map(|tenant| {
            let mut entries = self.entries();
            let own = entries.values_mut().filter(|entry| entry.tenant == tenant);
            own.filter(|entry| labels.iter().all(|label| entry.spec.labels.contains(label)))
                .map(|entry| {
                    entry.look();
                    entry.status()
                })
                .collect()
        });
        ready(listed).boxed()
    }

    fn logs<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
        _previous: bool,
        tail_lines: u32,
        _since_seconds: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<LogLine>, ProcessError>> {
        let line =
            |number: u32| LogLine { time_ms: None, error_stream: false, text: format!("line {number}") };
        ready(self.own(cx, id, |_| Ok((0..tail_lines.min(3)).map(line).collect()))).boxed()
    }
}
