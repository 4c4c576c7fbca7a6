//! Pure: what a process's status means.

use occ_plugin_sdk::bindings::compute::{Instance, Observation, Phase};
use occ_plugin_sdk::bindings::process::{Spec, Status};
use occ_plugin_sdk::bindings::types::{Failure, Progress, Reason};
use occ_plugin_sdk::bindings::workload::Role;
use occ_plugin_sdk::reason::{reason, reason_with, waiting};
use serde_json::{Map, Value, json};

use crate::desired;

/// OpenClaw's exit code for a configuration that it will never accept.
const EXIT_CONFIGURATION_INVALID: i32 = 78;
/// Exits without a ready between them after which nothing is tried any more.
const EXITS_HELD: u32 = 3;

/// How far the start of a process is; `code` is what waiting is called in this step.
pub(crate) fn progress(status: &Status, code: &str) -> Result<Progress, Failure> {
    if let Some(held) = held(status) {
        return Err(Failure::Permanent(held));
    }
    if status.running && status.ready && !status.stopping {
        return Ok(Progress::Done);
    }
    if !status.running && status.exits_since_ready > 0 {
        return Ok(waiting("REVISION_CRASHING", "The process ended and will be started again."));
    }
    Ok(waiting(code, "The process runs and its readiness probe has not answered yet."))
}

/// Why nothing starts this process again, if so.
pub(crate) fn held(status: &Status) -> Option<Reason> {
    let code = status.last_exit.as_ref().and_then(|exit| exit.code);
    let given_up = code == Some(EXIT_CONFIGURATION_INVALID) || status.exits_since_ready >= EXITS_HELD;
    if status.running || status.stopped || !(status.held || given_up) {
        return None;
    }
    let data = json!({ "exitCode": code, "restarts": status.restarts });
    Some(reason_with("RUNTIME_STARTUP_FAILED", "The process ends before it is ready.", &data))
}

/// The entry of the agent, if any, as an observation of the revision that wants `spec`.
pub(crate) fn observation(status: Option<&Status>, spec: &Spec, revision_id: &str) -> Observation {
    let absent = |drift: Reason| Observation {
        phase: Phase::Absent,
        instances: Vec::new(),
        drift: vec![drift],
        held_failure: None,
    };
    let Some(status) = status.filter(|status| desired::is_of(status, revision_id)) else {
        return absent(reason("PROCESS_ABSENT", "No process of this revision exists."));
    };
    if status.stopped && !status.running {
        return absent(reason("PROCESS_ABSENT", "The process of this revision is stopped."));
    }
    let held_failure = held(status);
    let mut drift = Vec::new();
    if !desired::is_rendering_of(status, spec) {
        drift.push(reason("PROCESS_OUTDATED", "The process was started from another rendering."));
    }
    if !status.running && !status.restarting && held_failure.is_none() {
        drift.push(reason("PROCESS_EXITED", "The process ended and nothing starts it again."));
    }
    Observation { phase: phase(status), instances: vec![instance(status)], drift, held_failure }
}

fn phase(status: &Status) -> Phase {
    match (status.stopping, status.running && status.ready, status.ready_once || !status.running) {
        (true, ..) => Phase::Stopping,
        (false, true, _) => Phase::Ready,
        (false, false, true) => Phase::Degraded,
        (false, false, false) => Phase::Starting,
    }
}

/// Where the process is. Exited ones are named too: their output can be read.
pub(crate) fn instance(status: &Status) -> Instance {
    let ports: Map<String, Value> =
        status.ports.iter().map(|port| (port.name.clone(), Value::from(port.number))).collect();
    let coordinates = json!({ "process": status.id, "startId": status.start_id, "ports": ports });
    let why = held(status).or_else(|| {
        let exited = !status.running && status.exits_since_ready > 0;
        exited.then(|| reason("REVISION_CRASHING", "The process ended and will be started again."))
    });
    Instance {
        role: Role::Gateway,
        coordinates: coordinates.to_string(),
        ready: status.running && status.ready && !status.stopping,
        restarts: status.restarts,
        started_at_ms: status.running.then_some(status.started_at_ms),
        reason: why,
    }
}
