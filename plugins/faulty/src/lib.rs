//! A compute driver that misbehaves on instruction: the host's tests use it.
//!
//! It runs nothing, like the null driver. Which call fails how is told by the arguments
//! (`OCC_FAULT` in a plan's environment, a tenant called `fault-...`), else by the
//! settings; with settings `{}` each call has a fault of its own (`orders`). What a fault
//! does is in `fault`.

mod fault;
mod orders;
#[cfg(test)]
mod tests;

use occ_plugin_sdk::bindings::compute::{
    Agent, Instance, LogLine, LogRequest, Observation, Phase, Revision, RevisionRef, Tenant,
};
use occ_plugin_sdk::bindings::types::{Failure, Progress, Reason, SettingProblem};
use occ_plugin_sdk::bindings::workload::{Plan, Role};
use occ_plugin_sdk::reason::problem;
use occ_plugin_sdk::{Compute, Host, Plugin};
use serde_json::{Value, json};

pub use fault::Fault;
use fault::commit;

/// An agent that nobody asked about.
const FOREIGN: &str = "agt_of_somebody_else";

/// The driver.
#[derive(Debug)]
pub struct Faulty;

impl Plugin for Faulty {
    const NAME: &'static str = "faulty";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SETTINGS_SCHEMA: &'static str = orders::SCHEMA;

    fn preflight(host: &dyn Host) -> Result<Vec<Reason>, Failure> {
        let progress = commit(host, orders::by_settings(host, "preflight"))?;
        Ok(answer(progress, Vec::new(), |reason| vec![reason]))
    }
}

impl Compute for Faulty {
    fn platform(host: &dyn Host) -> Result<Value, Failure> {
        commit(host, orders::by_settings(host, "platform"))?;
        Ok(json!({"bind": "loopback", "gatewayPort": 18789, "trustedProxies": []}))
    }

    fn check_plan(host: &dyn Host, plan: &Plan) -> Vec<SettingProblem> {
        match orders::by_plan(host, "check-plan", plan) {
            Fault::BadPath => vec![problem("not a pointer", "is at fault")],
            fault => match commit(host, fault) {
                Ok(Progress::Done) => Vec::new(),
                Ok(Progress::Waiting(reason)) => vec![problem("/containers", reason.message)],
                Err(_) => vec![problem("/containers", "cannot run here")],
            },
        }
    }

    fn ensure_tenant(host: &dyn Host, tenant: &Tenant) -> Result<Progress, Failure> {
        commit(host, orders::by_tenant(host, "ensure-tenant", tenant))
    }

    fn delete_tenant(host: &dyn Host, tenant: &Tenant) -> Result<Progress, Failure> {
        commit(host, orders::by_tenant(host, "delete-tenant", tenant))
    }

    fn prepare(
        host: &dyn Host,
        revision: &Revision,
        _serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        commit(host, orders::by_revision(host, "prepare", revision))
    }

    fn activate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure> {
        commit(host, orders::by_revision(host, "activate", revision))
    }

    fn deactivate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure> {
        commit(host, orders::by_revision(host, "deactivate", revision))
    }

    fn retire(
        host: &dyn Host,
        agent: &Agent,
        _gone: &[RevisionRef],
        _serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        commit(host, orders::by_tenant(host, "retire", &agent.tenant))
    }

    fn stop(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure> {
        commit(host, orders::by_tenant(host, "stop", &agent.tenant))
    }

    fn destroy(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure> {
        commit(host, orders::by_tenant(host, "destroy", &agent.tenant))
    }

    fn observe(host: &dyn Host, revision: &Revision) -> Result<Observation, Failure> {
        let fault = orders::by_revision(host, "observe", revision);
        let drift = answer(commit(host, fault)?, Vec::new(), |reason| vec![reason]);
        let instances = if fault == Fault::ForeignId { vec![instance(FOREIGN)] } else { Vec::new() };
        Ok(Observation { phase: Phase::Absent, instances, drift, held_failure: None })
    }

    fn locate(host: &dyn Host, revision: &Revision) -> Result<Vec<Instance>, Failure> {
        let fault = orders::by_revision(host, "locate", revision);
        let with = |reason| vec![Instance { reason: Some(reason), ..instance(&revision.agent.agent_id) }];
        let located = answer(commit(host, fault)?, Vec::new(), with);
        Ok(if fault == Fault::ForeignId { vec![instance(FOREIGN)] } else { located })
    }

    fn runtime(host: &dyn Host, revision: &Revision) -> Result<Value, Failure> {
        let fault = orders::by_revision(host, "runtime", revision);
        let text = answer(commit(host, fault)?, String::new(), |reason| reason.message);
        let pods =
            if fault == Fault::ForeignId { json!([{ "name": FOREIGN, "uid": "1" }]) } else { json!([]) };
        let mut document = json!({ "pods": pods, "sources": [] });
        if let (false, Some(fields)) = (text.is_empty(), document.as_object_mut()) {
            fields.insert("filler".to_owned(), Value::from(text));
        }
        Ok(document)
    }

    fn read_logs(
        host: &dyn Host,
        revision: &Revision,
        _request: &LogRequest,
    ) -> Result<Vec<LogLine>, Failure> {
        let line = |text: String| LogLine { time_ms: None, error_stream: false, text };
        let fault = orders::by_revision(host, "read-logs", revision);
        let told = |reason: Reason| vec![line(reason.data.unwrap_or(reason.message))];
        Ok(answer(commit(host, fault)?, Vec::new(), told))
    }
}

/// What a call answers that has no progress of its own: nothing, or the fault's reason.
fn answer<T>(progress: Progress, nothing: T, with: impl FnOnce(Reason) -> T) -> T {
    match progress {
        Progress::Done => nothing,
        Progress::Waiting(reason) => with(reason),
    }
}

fn instance(agent: &str) -> Instance {
    Instance {
        role: Role::Gateway,
        coordinates: json!({ "agent": agent }).to_string(),
        ready: true,
        restarts: 0,
        started_at_ms: None,
        reason: None,
    }
}

occ_plugin_sdk::export!(compute: Faulty);
