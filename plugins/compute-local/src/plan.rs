//! Pure: what of a workload plan this machine cannot run.

use std::collections::BTreeSet;

use occ_plugin_sdk::bindings::types::SettingProblem;
use occ_plugin_sdk::bindings::workload::{Container, EnvValue, ExecutionMode, Plan, Role};
use occ_plugin_sdk::reason::problem;

use crate::settings::Settings;

/// Environment names that run code, choose where code comes from, or mark processes.
const RESERVED: [&str; 5] = ["PATH", "NODE_OPTIONS", "NODE_PATH", "ENV", "BASH_ENV"];
const RESERVED_PREFIXES: [&str; 2] = ["LD_", "OCC_PROCESS_"];

/// Every reason why the plan cannot run here; paths point into the plan.
pub(crate) fn problems(plan: &Plan, settings: &Settings) -> Vec<SettingProblem> {
    let mut found = Vec::new();
    if plan.harness.mode != ExecutionMode::Embedded {
        found.push(problem("/harness/mode", "must be embedded: local processes do not run dedicated agents"));
    }
    let [container] = plan.containers.as_slice() else {
        let count = plan.containers.len();
        found.push(problem(
            "/containers",
            format!("must be exactly one, not {count}: an agent is one process"),
        ));
        return found;
    };
    if container.role != Role::Gateway {
        found.push(problem("/containers/0/role", "must be gateway"));
    }
    if !settings.commands.contains_key(&container.image_slot) {
        let known: Vec<_> = settings.commands.keys().map(String::as_str).collect();
        let message = format!("has no command in the settings; known: {}", known.join(", "));
        found.push(problem("/containers/0/imageSlot", message));
    }
    if !container.ports.iter().any(|port| port.name == container.readiness.port) {
        found.push(problem("/containers/0/readiness/port", "must name a port of the container"));
    }
    if !container.readiness.path.starts_with('/') {
        found.push(problem("/containers/0/readiness/path", "must begin with a slash"));
    }
    names(container, &mut found);
    environment(container, &mut found);
    found
}

/// Names by which parts of the container refer to each other must be unique.
fn names(container: &Container, found: &mut Vec<SettingProblem>) {
    let parts: [(&str, &str, Vec<&str>); 4] = [
        ("ports", "name", container.ports.iter().map(|port| port.name.as_str()).collect()),
        ("state", "name", container.state.iter().map(|mount| mount.name.as_str()).collect()),
        ("scratch", "name", container.scratch.iter().map(|mount| mount.name.as_str()).collect()),
        ("files", "path", container.files.iter().map(|file| file.path.as_str()).collect()),
    ];
    for (part, field, values) in parts {
        let mut seen = BTreeSet::new();
        for (at, value) in values.into_iter().enumerate() {
            if !seen.insert(value) {
                found.push(problem(format!("/containers/0/{part}/{at}/{field}"), "is there already"));
            }
        }
    }
}

fn environment(container: &Container, found: &mut Vec<SettingProblem>) {
    let mut seen = BTreeSet::new();
    for (at, variable) in container.env.iter().enumerate() {
        let name = variable.name.as_str();
        let path = format!("/containers/0/env/{at}");
        if !seen.insert(name) {
            found.push(problem(format!("{path}/name"), "is there already"));
        }
        if RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            found.push(problem(
                format!("{path}/name"),
                "is reserved: the machine sets it, or it decides what code runs",
            ));
        }
        let dangling = match &variable.value {
            EnvValue::FilePath(file) => !container.files.iter().any(|one| one.path == *file),
            EnvValue::StatePath(mount) => !container.state.iter().any(|one| one.name == *mount),
            EnvValue::ScratchPath(mount) => !container.scratch.iter().any(|one| one.name == *mount),
            EnvValue::PortNumber(port) => !container.ports.iter().any(|one| one.name == *port),
            EnvValue::Literal(_) | EnvValue::Secret(_) | EnvValue::Generated(_) | EnvValue::RevisionId => {
                false
            }
        };
        if dangling {
            found.push(problem(format!("{path}/value"), "names nothing in this container"));
        }
    }
}
