//! Runs agents as supervised processes of one machine: for development.
//!
//! The host spawns, probes, restarts and keeps folders; this component decides what
//! should run and reads what does. One entry per agent, named by the agent's id and
//! labelled with the revision, so that two revisions never hold one state folder:
//! starting the next revision is refused by the host while the last one lives.
//!
//! `settings` · `plan` (can it run?) · `desired` (revision -> process) · `judge`
//! (status -> meaning) · `runtime` (status -> the API's document) · `failure`; all pure
//! but this file.

mod desired;
mod failure;
mod judge;
mod plan;
mod runtime;
mod settings;
#[cfg(test)]
mod tests;

use occ_plugin_sdk::bindings::compute::{
    Agent, Instance, LogLine, LogRequest, Observation, Revision, RevisionRef, Tenant,
};
use occ_plugin_sdk::bindings::process::{ProcessError, Spec, Status};
use occ_plugin_sdk::bindings::types::{Failure, Progress, Reason, SettingProblem};
use occ_plugin_sdk::bindings::workload::{Plan, Role};
use occ_plugin_sdk::host::settings_of;
use occ_plugin_sdk::reason::{permanent, problem, reason, waiting};
use occ_plugin_sdk::{Compute, Host, Plugin};
use serde_json::{Value, json};

pub use settings::Settings;

/// The driver.
#[derive(Debug)]
pub struct Local;

impl Plugin for Local {
    const NAME: &'static str = "compute-local";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SETTINGS_SCHEMA: &'static str = settings::SCHEMA;

    /// A missing program lets the host start: it may be installed later. A command
    /// outside the grant does not.
    fn preflight(host: &dyn Host) -> Result<Vec<Reason>, Failure> {
        let settings: Settings = settings_of(host)?;
        let mut warnings = Vec::new();
        for command in settings.commands.values() {
            match host.process().check(command) {
                Ok(()) => {}
                Err(ProcessError::CommandNotFound(_)) => warnings
                    .push(reason("RUNTIME_COMMAND_MISSING", "The runtime's program is not on this machine.")),
                Err(error) => return Err(failure::of(error)),
            }
        }
        Ok(warnings)
    }
}

impl Compute for Local {
    fn platform(host: &dyn Host) -> Result<Value, Failure> {
        let port = desired::gateway_port(&settings_of(host)?);
        Ok(json!({ "bind": "loopback", "gatewayPort": port, "trustedProxies": [] }))
    }

    fn check_plan(host: &dyn Host, plan: &Plan) -> Vec<SettingProblem> {
        match settings_of(host) {
            Ok(settings) => plan::problems(plan, &settings),
            Err(_) => vec![problem("", "cannot be checked: the driver's settings cannot be read")],
        }
    }

    /// A tenant needs nothing on one machine: each process has its own folder.
    fn ensure_tenant(_host: &dyn Host, tenant: &Tenant) -> Result<Progress, Failure> {
        if tenant.existing_namespace.is_some() {
            let message = "Local processes have no namespace that could be adopted.";
            return Err(permanent("EXISTING_NAMESPACE_MISSING", message));
        }
        Ok(Progress::Done)
    }

    fn delete_tenant(host: &dyn Host, _tenant: &Tenant) -> Result<Progress, Failure> {
        let left = host.process().list(&[]).map_err(failure::of)?;
        remove(host, &left)
    }

    /// The first revision is started and proven here. A replacement starts nothing: the
    /// state folder belongs to the one that serves.
    fn prepare(
        host: &dyn Host,
        revision: &Revision,
        serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        let spec = wanted(host, revision)?;
        if serving.is_some_and(|serving| serving.revision_id != revision.ref_.revision_id) {
            return match host.process().check(&spec.command) {
                Ok(()) => Ok(Progress::Done),
                Err(error) => Err(failure::of(error)),
            };
        }
        converge(host, &spec, "REVISION_INCOMPLETE")
    }

    fn activate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure> {
        let spec = wanted(host, revision)?;
        converge(host, &spec, "REVISION_FINALIZATION_INCOMPLETE")
    }

    fn deactivate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure> {
        let entry = entry(host, &revision.agent)?;
        let ours = entry.filter(|entry| desired::is_of(entry, &revision.ref_.revision_id));
        end(host, ours.as_ref(), "STOP_INCOMPLETE")
    }

    /// Only the entry's process can belong to a revision; what it stored is the agent's.
    fn retire(
        host: &dyn Host,
        agent: &Agent,
        gone: &[RevisionRef],
        serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        let retired = entry(host, agent)?.filter(|entry| {
            let serves = serving.is_some_and(|serving| desired::is_of(entry, &serving.revision_id));
            !serves && gone.iter().any(|revision| desired::is_of(entry, &revision.revision_id))
        });
        end(host, retired.as_ref(), "REVISION_FINALIZATION_INCOMPLETE")
    }

    fn stop(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure> {
        end(host, entry(host, agent)?.as_ref(), "STOP_INCOMPLETE")
    }

    fn destroy(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure> {
        remove(host, entry(host, agent)?.as_slice())
    }

    fn observe(host: &dyn Host, revision: &Revision) -> Result<Observation, Failure> {
        let spec = wanted(host, revision)?;
        let entry = entry(host, &revision.agent)?;
        Ok(judge::observation(entry.as_ref(), &spec, &revision.ref_.revision_id))
    }

    fn locate(host: &dyn Host, revision: &Revision) -> Result<Vec<Instance>, Failure> {
        let entry = entry_of(host, revision)?.filter(|entry| entry.running);
        Ok(entry.iter().map(judge::instance).collect())
    }

    fn runtime(host: &dyn Host, revision: &Revision) -> Result<Value, Failure> {
        Ok(runtime::document(entry_of(host, revision)?.as_ref()))
    }

    fn read_logs(
        host: &dyn Host,
        revision: &Revision,
        request: &LogRequest,
    ) -> Result<Vec<LogLine>, Failure> {
        let entry = entry_of(host, revision)?.filter(|_| request.role == Role::Gateway);
        let Some(entry) = entry else { return Ok(Vec::new()) };
        let process = host.process();
        match process.logs(&entry.id, request.previous, request.tail_lines, request.since_seconds) {
            Ok(lines) => Ok(lines
                .into_iter()
                .map(|(time_ms, error_stream, text)| LogLine { time_ms, error_stream, text })
                .collect()),
            Err(ProcessError::NotFound) => Ok(Vec::new()),
            Err(error) => Err(failure::of(error)),
        }
    }
}

/// The process that the revision wants, if this machine can run it.
fn wanted(host: &dyn Host, revision: &Revision) -> Result<Spec, Failure> {
    let settings: Settings = settings_of(host)?;
    let refused = !plan::problems(&revision.plan, &settings).is_empty();
    match revision.plan.containers.first() {
        Some(container) if !refused => Ok(desired::spec(revision, container, &settings)),
        _ => Err(permanent("PLAN_NOT_SUPPORTED", "This machine cannot run the revision's workload plan.")),
    }
}

/// The agent's entry; there is at most one, since the agent's id names it.
fn entry(host: &dyn Host, agent: &Agent) -> Result<Option<Status>, Failure> {
    let label = (desired::AGENT.to_owned(), agent.agent_id.clone());
    match host.process().list(&[label]) {
        Ok(entries) => Ok(entries.into_iter().find(|entry| entry.id == agent.agent_id)),
        Err(ProcessError::NotFound) => Ok(None),
        Err(error) => Err(failure::of(error)),
    }
}

/// The agent's entry while it is about this revision.
fn entry_of(host: &dyn Host, revision: &Revision) -> Result<Option<Status>, Failure> {
    Ok(entry(host, &revision.agent)?.filter(|entry| desired::is_of(entry, &revision.ref_.revision_id)))
}

/// One step towards this process and no other: the host refuses to start it while
/// another one is alive, so that one is stopped first and its end awaited.
fn converge(host: &dyn Host, spec: &Spec, code: &str) -> Result<Progress, Failure> {
    match host.process().start(spec) {
        Ok(status) => judge::progress(&status, code),
        Err(ProcessError::InUse) => match host.process().stop(&spec.id) {
            Ok(()) | Err(ProcessError::NotFound) => {
                Ok(waiting(code, "The process that ran before is ending."))
            }
            Err(error) => Err(failure::of(error)),
        },
        Err(error) => Err(failure::of(error)),
    }
}

/// One step towards no process, state kept. An exited process that would be started
/// again is stopped too, and looked at once more: it may just have been.
fn end(host: &dyn Host, entry: Option<&Status>, code: &str) -> Result<Progress, Failure> {
    let Some(entry) = entry else {
        return Ok(Progress::Done);
    };
    let mut running = entry.running;
    if !entry.stopped {
        match host.process().stop(&entry.id) {
            Ok(()) => {
                running = host
                    .process()
                    .list(&[])
                    .map_err(failure::of)?
                    .iter()
                    .any(|now| now.id == entry.id && now.running)
            }
            Err(ProcessError::NotFound) => return Ok(Progress::Done),
            Err(error) => return Err(failure::of(error)),
        }
    }
    if running { Ok(waiting(code, "The process is ending.")) } else { Ok(Progress::Done) }
}

/// One step towards no process and no state.
fn remove(host: &dyn Host, entries: &[Status]) -> Result<Progress, Failure> {
    let mut progress = Progress::Done;
    for entry in entries {
        if let waits @ Progress::Waiting(_) = end(host, Some(entry), "DELETION_INCOMPLETE")? {
            progress = waits;
            continue;
        }
        match host.process().remove_state(&entry.id) {
            Ok(()) | Err(ProcessError::NotFound) => {}
            Err(ProcessError::InUse) => progress = waiting("DELETION_INCOMPLETE", "The process is ending."),
            Err(error) => return Err(failure::of(error)),
        }
    }
    Ok(progress)
}

occ_plugin_sdk::export!(compute: Local);
