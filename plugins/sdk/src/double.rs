//! Capabilities that run natively, for tests of a plugin's logic.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::bindings::log::Level;
use crate::bindings::process::{Exit, ProcessError, Spec, Status};
use crate::bindings::workload::Port;
use crate::host::LogLine;
use crate::{Host, Process, json};

/// A [`Host`] whose capabilities are doubles.
#[derive(Debug, Default)]
pub struct FakeHost {
    /// The settings document.
    pub settings: String,
    /// Log lines as `level message`, in order.
    pub lines: RefCell<Vec<String>>,
    /// Processes of this machine.
    pub process: FakeProcess,
}

impl FakeHost {
    /// A host with these settings and no process.
    #[must_use]
    pub fn with_settings(settings: &serde_json::Value) -> Self {
        Self { settings: settings.to_string(), ..Self::default() }
    }
}

impl Host for FakeHost {
    fn log(&self, level: Level, message: &str, _fields: &[(&str, &str)]) {
        self.lines.borrow_mut().push(format!("{level:?} {message}"));
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn process(&self) -> &dyn Process {
        &self.process
    }
}

/// One entry: its newest spec and what became of it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The newest spec.
    pub spec: Spec,
    /// Its status, as `list` answers it.
    pub status: Status,
    /// Spec digests of all processes that were started here, in order.
    pub started: Vec<String>,
}

/// Processes that live and end when the test says so.
#[derive(Debug, Default)]
pub struct FakeProcess {
    /// Entries by id.
    pub entries: RefCell<BTreeMap<String, Entry>>,
    /// Every call that could change something, as `function id`, in order.
    pub calls: RefCell<Vec<String>>,
    /// Answer of the next call of any function, once.
    pub fails_next: RefCell<Option<ProcessError>>,
    starts: Cell<u32>,
}

impl FakeProcess {
    /// The status of an entry.
    #[must_use]
    pub fn status(&self, id: &str) -> Option<Status> {
        self.entries.borrow().get(id).map(|entry| entry.status.clone())
    }

    /// The running process of `id` answers its probe.
    pub fn becomes_ready(&self, id: &str) {
        self.change(id, |status| {
            status.ready = true;
            status.ready_once = true;
            status.exits_since_ready = 0;
        });
    }

    /// The process of `id` ends by itself with this code; held as the contract says.
    pub fn exits(&self, id: &str, code: i32) {
        self.change(id, |status| {
            let stopping = std::mem::take(&mut status.stopping);
            status.running = false;
            status.ready = false;
            status.last_exit = Some(Exit { code: Some(code), signal: None, at_ms: 2_000 });
            if !stopping {
                status.exits_since_ready += 1;
                status.held = code == 78 || status.exits_since_ready >= 3;
                status.restarting = !status.held;
            }
        });
    }

    /// The host starts the exited process of `id` again.
    pub fn restarts(&self, id: &str) {
        let start_id = self.next_start_id();
        self.change(id, |status| {
            status.running = true;
            status.restarting = false;
            status.restarts += 1;
            status.start_id = start_id;
        });
    }

    /// The process of `id` and the host that supervised it end, as in a reboot.
    pub fn is_lost(&self, id: &str) {
        self.change(id, |status| {
            status.running = false;
            status.ready = false;
            status.last_exit = Some(Exit { code: None, signal: None, at_ms: 2_000 });
        });
    }

    /// How many processes are alive.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.entries.borrow().values().filter(|entry| entry.status.running).count()
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Status)) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(id) {
            change(&mut entry.status);
        }
    }

    fn next_start_id(&self) -> String {
        self.starts.set(self.starts.get() + 1);
        format!("start-{}", self.starts.get())
    }

    fn called(&self, call: String) -> Result<(), ProcessError> {
        self.calls.borrow_mut().push(call);
        self.fails_next.borrow_mut().take().map_or(Ok(()), Err)
    }

    fn fresh(&self, spec: &Spec) -> Status {
        let ports = spec.ports.iter().map(|port| Port {
            name: port.name.clone(),
            number: if port.number == 0 { 40_000 } else { port.number },
        });
        Status {
            id: spec.id.clone(),
            labels: spec.labels.clone(),
            spec_digest: json::fingerprint(format!("{spec:?}").as_bytes()),
            start_id: self.next_start_id(),
            running: true,
            ready: false,
            stopping: false,
            stopped: false,
            held: false,
            restarting: false,
            ready_once: false,
            restarts: 0,
            exits_since_ready: 0,
            last_exit: None,
            ports: ports.collect(),
            started_at_ms: 1_000,
        }
    }
}

impl Process for FakeProcess {
    fn check(&self, _command: &[String]) -> Result<(), ProcessError> {
        self.fails_next.borrow_mut().take().map_or(Ok(()), Err)
    }

    fn start(&self, spec: &Spec) -> Result<Status, ProcessError> {
        self.called(format!("start {}", spec.id))?;
        let mut entries = self.entries.borrow_mut();
        let mut started = Vec::new();
        if let Some(entry) = entries.get(&spec.id) {
            let same = entry.spec == *spec;
            if entry.status.running && (!same || entry.status.stopping) {
                return Err(ProcessError::InUse);
            }
            let in_hand = entry.status.running || entry.status.restarting || entry.status.held;
            if same && in_hand && !entry.status.stopped {
                return Ok(entry.status.clone());
            }
            started.clone_from(&entry.started);
        }
        let status = self.fresh(spec);
        started.push(status.spec_digest.clone());
        entries.insert(spec.id.clone(), Entry { spec: spec.clone(), status: status.clone(), started });
        Ok(status)
    }

    fn stop(&self, id: &str) -> Result<(), ProcessError> {
        self.called(format!("stop {id}"))?;
        let mut entries = self.entries.borrow_mut();
        let status = &mut entries.get_mut(id).ok_or(ProcessError::NotFound)?.status;
        status.stopped = true;
        status.stopping = status.running;
        status.ready = false;
        status.restarting = false;
        Ok(())
    }

    fn remove_state(&self, id: &str) -> Result<(), ProcessError> {
        self.called(format!("remove-state {id}"))?;
        let mut entries = self.entries.borrow_mut();
        if entries.get(id).ok_or(ProcessError::NotFound)?.status.running {
            return Err(ProcessError::InUse);
        }
        entries.remove(id);
        Ok(())
    }

    fn list(&self, labels: &[(String, String)]) -> Result<Vec<Status>, ProcessError> {
        self.fails_next.borrow_mut().take().map_or(Ok(()), Err)?;
        let entries = self.entries.borrow();
        let statuses = entries.values().map(|entry| entry.status.clone());
        Ok(statuses.filter(|status| labels.iter().all(|label| status.labels.contains(label))).collect())
    }

    fn logs(
        &self,
        id: &str,
        previous: bool,
        tail_lines: u32,
        _since_seconds: Option<u32>,
    ) -> Result<Vec<LogLine>, ProcessError> {
        let entries = self.entries.borrow();
        let entry = entries.get(id).ok_or(ProcessError::NotFound)?;
        let text = if previous { "previous" } else { entry.status.start_id.as_str() };
        Ok(vec![(Some(1_000), false, text.to_owned()); tail_lines.min(2) as usize])
    }
}
