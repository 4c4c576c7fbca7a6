//! Types of version 0.1 to the host's: shapes only; the rules are in `verify`.

use serde_json::Value;

use super::bindings::exports::occ::plugin::{compute, driver, harness};
use super::bindings::occ::plugin::{types as wit, workload};
use crate::error::DriverError;
use crate::types;

type Checked<T> = Result<T, DriverError>;

/// Reads a document that the contract says is JSON.
pub(super) fn json(text: &str, what: &str) -> Checked<Value> {
    serde_json::from_str(text).map_err(|error| {
        DriverError::Contract(format!("{what} is no JSON (line {}, column {})", error.line(), error.column()))
    })
}

pub(super) fn description(description: driver::Description) -> Checked<types::Description> {
    Ok(types::Description {
        name: description.name,
        version: description.version,
        settings_schema: json(&description.settings_schema, "settings-schema")?,
    })
}

pub(super) fn problems(problems: Vec<wit::SettingProblem>) -> Vec<types::SettingProblem> {
    problems
        .into_iter()
        .map(|problem| types::SettingProblem { path: problem.path, message: problem.message })
        .collect()
}

pub(super) fn reason(reason: wit::Reason) -> Checked<types::Reason> {
    let data = reason.data.as_deref().map(|data| json(data, "a reason's data")).transpose()?;
    Ok(types::Reason { code: reason.code, message: reason.message, data })
}

pub(super) fn reasons(reasons: Vec<wit::Reason>) -> Checked<Vec<types::Reason>> {
    reasons.into_iter().map(reason).collect()
}

/// The plugin's failure as the error that ends the call.
pub(super) fn failure(failure: wit::Failure) -> DriverError {
    let checked = match failure {
        wit::Failure::Outage(outage) => Ok(types::Failure::Outage(types::Outage {
            dependency: outage.dependency,
            kind: match outage.kind {
                wit::OutageKind::Unreachable => types::OutageKind::Unreachable,
                wit::OutageKind::Timeout => types::OutageKind::Timeout,
                wit::OutageKind::Unavailable => types::OutageKind::Unavailable,
                wit::OutageKind::Throttled => types::OutageKind::Throttled,
            },
            retry_after_ms: outage.retry_after_ms,
        })),
        wit::Failure::Retry(why) => reason(why).map(types::Failure::Retry),
        wit::Failure::Permanent(why) => reason(why).map(types::Failure::Permanent),
    };
    match checked {
        Ok(failure) => DriverError::Failure(failure),
        Err(broken) => broken,
    }
}

pub(super) fn progress(progress: wit::Progress) -> Checked<types::Progress> {
    Ok(match progress {
        wit::Progress::Done => types::Progress::Done,
        wit::Progress::Waiting(why) => types::Progress::Waiting(reason(why)?),
    })
}

pub(super) fn observation(observation: compute::Observation) -> Checked<types::Observation> {
    Ok(types::Observation {
        phase: match observation.phase {
            compute::Phase::Absent => types::Phase::Absent,
            compute::Phase::Starting => types::Phase::Starting,
            compute::Phase::Ready => types::Phase::Ready,
            compute::Phase::Degraded => types::Phase::Degraded,
            compute::Phase::Stopping => types::Phase::Stopping,
        },
        instances: instances(observation.instances)?,
        drift: reasons(observation.drift)?,
        held_failure: observation.held_failure.map(reason).transpose()?,
    })
}

pub(super) fn instances(instances: Vec<compute::Instance>) -> Checked<Vec<types::Instance>> {
    instances
        .into_iter()
        .map(|instance| {
            Ok(types::Instance {
                role: role(instance.role),
                coordinates: json(&instance.coordinates, "an instance's coordinates")?,
                ready: instance.ready,
                restarts: instance.restarts,
                started_at_ms: instance.started_at_ms,
                reason: instance.reason.map(reason).transpose()?,
            })
        })
        .collect()
}

pub(super) fn lines(lines: Vec<compute::LogLine>) -> Vec<types::LogLine> {
    lines
        .into_iter()
        .map(|line| types::LogLine {
            time_ms: line.time_ms,
            error_stream: line.error_stream,
            text: line.text,
        })
        .collect()
}

pub(super) fn platform(text: &str) -> Checked<types::PlatformFacts> {
    serde_json::from_value(json(text, "platform")?).map_err(|error| {
        DriverError::Contract(format!("platform is not the closed document of the contract: {error}"))
    })
}

pub(super) fn refusal(refusal: harness::Refusal) -> types::Refusal {
    match refusal {
        harness::Refusal::Invalid(list) => types::Refusal::Invalid(problems(list)),
        harness::Refusal::Unsupported(list) => types::Refusal::Unsupported(problems(list)),
    }
}

pub(super) fn plan(plan: workload::Plan) -> Checked<types::Plan> {
    Ok(types::Plan {
        harness: types::HarnessIdentity {
            id: plan.harness.id,
            version: plan.harness.version,
            mode: match plan.harness.mode {
                workload::ExecutionMode::Embedded => types::ExecutionMode::Embedded,
                workload::ExecutionMode::Dedicated => types::ExecutionMode::Dedicated,
            },
        },
        containers: plan.containers.into_iter().map(container).collect(),
        warnings: reasons(plan.warnings)?,
    })
}

fn container(container: workload::Container) -> types::Container {
    types::Container {
        role: role(container.role),
        image_slot: container.image_slot,
        command: container.command,
        args: container.args,
        env: container.env.into_iter().map(env_var).collect(),
        ports: container.ports.into_iter().map(port).collect(),
        readiness: probe(container.readiness),
        state: container.state.into_iter().map(state_mount).collect(),
        scratch: container.scratch.into_iter().map(scratch_mount).collect(),
        files: container.files.into_iter().map(file).collect(),
        grace_seconds: container.grace_seconds,
        egress: match container.egress {
            workload::Egress::None => types::Egress::None,
            workload::Egress::PublicHttps => types::Egress::PublicHttps,
        },
    }
}

fn role(role: workload::Role) -> types::Role {
    match role {
        workload::Role::Gateway => types::Role::Gateway,
        workload::Role::Agent => types::Role::Agent,
    }
}

pub(super) fn env_var(var: workload::EnvVar) -> types::EnvVar {
    use types::EnvValue as Native;
    use workload::EnvValue as Wit;
    types::EnvVar {
        name: var.name,
        value: match var.value {
            Wit::Literal(text) => Native::Literal(text),
            Wit::Secret(id) => Native::Secret(id),
            Wit::Generated(name) => Native::Generated(name),
            Wit::RevisionId => Native::RevisionId,
            Wit::FilePath(path) => Native::FilePath(path),
            Wit::StatePath(name) => Native::StatePath(name),
            Wit::ScratchPath(name) => Native::ScratchPath(name),
            Wit::PortNumber(name) => Native::PortNumber(name),
        },
    }
}

pub(super) fn port(port: workload::Port) -> types::Port {
    types::Port { name: port.name, number: port.number }
}

pub(super) fn probe(probe: workload::HttpProbe) -> types::HttpProbe {
    types::HttpProbe {
        path: probe.path,
        port: probe.port,
        period_seconds: probe.period_seconds,
        timeout_seconds: probe.timeout_seconds,
    }
}

pub(super) fn state_mount(mount: workload::StateMount) -> types::StateMount {
    types::StateMount { name: mount.name, path: mount.path }
}

pub(super) fn scratch_mount(mount: workload::ScratchMount) -> types::ScratchMount {
    types::ScratchMount { name: mount.name, path: mount.path, size_mib: mount.size_mib }
}

pub(super) fn file(file: workload::File) -> types::File {
    types::File { path: file.path, contents: file.contents }
}
