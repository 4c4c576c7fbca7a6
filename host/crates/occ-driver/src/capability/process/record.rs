//! `process.json`: what the next host needs to know about a process.
//!
//! **It holds no secret value**: the spec names secrets by id. It is written to a
//! temporary file, synced and renamed, so that a reader sees a whole old or a whole
//! new one.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::linux::{self, ProcessRef};
use super::types::{Port, ProcessExit, ProcessSpec, ProcessStatus};

/// Version of this document.
const FORMAT: u32 = 1;

/// One start of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Launch {
    /// Random; stands in the environment of the process and of all that it starts.
    pub(super) id: String,
    /// Boot of the machine in which it happened.
    pub(super) boot_id: String,
    /// The process; `None` from just before the spawn until just after it.
    pub(super) process: Option<ProcessRef>,
    /// Milliseconds since 1970.
    pub(super) started_at_ms: u64,
    /// The end was seen, or had happened when a host looked again.
    pub(super) ended: bool,
}

impl Launch {
    /// What stands in the environment of everything that this launch started.
    pub(super) fn marker(&self) -> String {
        format!("{MARKER_NAME}={}", self.id)
    }
}

/// Environment name of the marker.
pub(super) const MARKER_NAME: &str = "OCC_PROCESS_LAUNCH";

/// The document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    format: u32,
    /// Namespace id of the tenant.
    pub(super) tenant: String,
    /// Plugin whose call wrote it last.
    pub(super) plugin: String,
    /// Agent of that call.
    pub(super) agent: Option<String>,
    /// Revision of the starting call, for the authority at a restart.
    pub(super) revision: Option<String>,
    /// Fence of the last writer; a lower one is refused.
    pub(super) epoch: u64,
    /// What is wanted.
    pub(super) spec: ProcessSpec,
    /// SHA-256 of the spec, in hex.
    pub(super) spec_digest: String,
    /// Ports as bound.
    pub(super) ports: Vec<Port>,
    /// A start was asked for and no stop since.
    pub(super) wanted: bool,
    /// A stop was asked for and the family still lives.
    pub(super) stopping: bool,
    /// The last start.
    pub(super) launch: Option<Launch>,
    /// The probe answers.
    pub(super) ready: bool,
    /// A start of this spec was ready.
    pub(super) ready_once: bool,
    /// The supervisor waits for its next start.
    #[serde(default)]
    pub(super) restarting: bool,
    /// See [`ProcessStatus::held`].
    pub(super) held: bool,
    /// Restarts since the spec was accepted.
    pub(super) restarts: u32,
    /// Exits since it was ready last.
    pub(super) exits_since_ready: u32,
    /// The last end.
    pub(super) last_exit: Option<ProcessExit>,
}

impl Record {
    /// A fresh record of something that was never started.
    pub(super) fn new(tenant: String, plugin: String, spec: ProcessSpec, spec_digest: String) -> Self {
        Self {
            format: FORMAT,
            tenant,
            plugin,
            agent: None,
            revision: None,
            epoch: 0,
            spec,
            spec_digest,
            ports: Vec::new(),
            wanted: false,
            stopping: false,
            launch: None,
            ready: false,
            ready_once: false,
            restarting: false,
            held: false,
            restarts: 0,
            exits_since_ready: 0,
            last_exit: None,
        }
    }

    /// The process of the last start, unless its end is known.
    pub(super) fn process(&self) -> Option<ProcessRef> {
        self.launch.as_ref().filter(|launch| !launch.ended).and_then(|launch| launch.process)
    }

    /// The process of the last start if it lives still, in this boot.
    pub(super) fn live_process(&self, boot_id: &str) -> Option<ProcessRef> {
        let launch = self.launch.as_ref().filter(|launch| launch.boot_id == boot_id)?;
        self.process().filter(|process| !launch.ended && linux::is_alive(*process))
    }

    /// What callers see. Whether it runs is the caller's knowledge.
    pub(super) fn status(&self, running: bool) -> ProcessStatus {
        ProcessStatus {
            id: self.spec.id.clone(),
            labels: self.spec.labels.clone(),
            spec_digest: self.spec_digest.clone(),
            start_id: self.launch.as_ref().map(|launch| launch.id.clone()).unwrap_or_default(),
            running,
            ready: running && self.ready && !self.stopping,
            ready_once: self.ready_once,
            stopping: self.stopping,
            stopped: !self.wanted,
            held: self.held,
            restarting: self.restarting,
            restarts: self.restarts,
            exits_since_ready: self.exits_since_ready,
            last_exit: self.last_exit,
            ports: self.ports.clone(),
            started_at_ms: self.launch.as_ref().map_or(0, |launch| launch.started_at_ms),
        }
    }

    /// The document as bytes.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads one; `None` when there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let record: Self = serde_json::from_slice(&bytes)?;
        if record.format != FORMAT {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "process.json has another format"));
        }
        Ok(Some(record))
    }
}

/// Replaces the file: 0600, synced, by rename.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("json.new");
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&temporary, path)
}

/// Names what a start is about: another digest is another process.
pub(super) fn spec_digest(spec: &ProcessSpec) -> io::Result<String> {
    let bytes = serde_json::to_vec(spec)?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
