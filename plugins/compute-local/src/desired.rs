//! Pure: the process that a revision wants.

use occ_plugin_sdk::bindings::compute::Revision;
use occ_plugin_sdk::bindings::process::{Spec, Status};
use occ_plugin_sdk::bindings::workload::{Container, EnvValue, EnvVar, Port};
use occ_plugin_sdk::json;

use crate::settings::{GATEWAY_PORT_DEFAULT, Settings};

pub(crate) const AGENT: &str = "openclaw.dev/agent";
pub(crate) const REVISION: &str = "openclaw.dev/revision";
const NUMBER: &str = "openclaw.dev/agent-revision";
const ROLE: &str = "openclaw.dev/workload-role";
/// Fingerprint of the rendering: tells "same revision, other settings" apart.
const RENDERING: &str = "openclaw.dev/spec-digest";

/// The process of a revision. One entry per agent, so that two revisions of one agent
/// never hold its state at once.
pub(crate) fn spec(revision: &Revision, container: &Container, settings: &Settings) -> Spec {
    let mut command = settings.commands.get(&container.image_slot).cloned().unwrap_or_default();
    command.extend(container.args.iter().cloned());
    let mut spec = Spec {
        id: revision.agent.agent_id.clone(),
        labels: vec![
            (AGENT.to_owned(), revision.agent.agent_id.clone()),
            (REVISION.to_owned(), revision.ref_.revision_id.clone()),
            (NUMBER.to_owned(), revision.ref_.number.to_string()),
            (ROLE.to_owned(), "gateway".to_owned()),
        ],
        command,
        env: container.env.iter().map(|variable| resolved(variable, revision)).collect(),
        state: container.state.clone(),
        scratch: container.scratch.clone(),
        files: container.files.clone(),
        ports: container.ports.iter().map(|port| assigned(port, settings)).collect(),
        readiness: container.readiness.clone(),
        grace_seconds: container.grace_seconds,
    };
    let rendering = rendering(&spec);
    spec.labels.push((RENDERING.to_owned(), rendering));
    spec
}

/// Is this entry what `spec` wants, label by label?
pub(crate) fn is_rendering_of(status: &Status, spec: &Spec) -> bool {
    spec.labels.iter().all(|label| status.labels.contains(label))
}

/// Does this entry belong to the revision?
pub(crate) fn is_of(status: &Status, revision_id: &str) -> bool {
    status.labels.iter().any(|(name, value)| name == REVISION && value == revision_id)
}

fn resolved(variable: &EnvVar, revision: &Revision) -> EnvVar {
    let value = match &variable.value {
        EnvValue::RevisionId => EnvValue::Literal(revision.ref_.revision_id.clone()),
        other => other.clone(),
    };
    EnvVar { name: variable.name.clone(), value }
}

/// Agents share one address, so a port is drawn, unless the settings fix the gateway's.
fn assigned(port: &Port, settings: &Settings) -> Port {
    let wanted = settings.gateway_port.filter(|fixed| port.number == *fixed);
    Port { name: port.name.clone(), number: wanted.unwrap_or(0) }
}

/// The port that the gateway is told to ask for.
pub(crate) fn gateway_port(settings: &Settings) -> u16 {
    settings.gateway_port.unwrap_or(GATEWAY_PORT_DEFAULT)
}

/// Fingerprint of everything in the spec. Each part is written with its length, so
/// that no two specs give the same bytes.
fn rendering(spec: &Spec) -> String {
    let mut parts: Vec<String> = vec![spec.id.clone(), spec.grace_seconds.to_string()];
    parts.extend(spec.labels.iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
    parts.extend(spec.command.iter().cloned());
    parts.extend(spec.env.iter().flat_map(|variable| {
        let (kind, value) = match &variable.value {
            EnvValue::Literal(text) => ("literal", text.as_str()),
            EnvValue::Secret(id) => ("secret", id.as_str()),
            EnvValue::Generated(name) => ("generated", name.as_str()),
            EnvValue::RevisionId => ("revision", ""),
            EnvValue::FilePath(path) => ("file", path.as_str()),
            EnvValue::StatePath(name) => ("state", name.as_str()),
            EnvValue::ScratchPath(name) => ("scratch", name.as_str()),
            EnvValue::PortNumber(name) => ("port", name.as_str()),
        };
        [variable.name.clone(), kind.to_owned(), value.to_owned()]
    }));
    parts.extend(spec.state.iter().flat_map(|mount| [mount.name.clone(), mount.path.clone()]));
    parts.extend(
        spec.scratch
            .iter()
            .flat_map(|mount| [mount.name.clone(), mount.path.clone(), mount.size_mib.to_string()]),
    );
    parts.extend(spec.files.iter().flat_map(|file| [file.path.clone(), file.contents.clone()]));
    parts.extend(spec.ports.iter().flat_map(|port| [port.name.clone(), port.number.to_string()]));
    let probe = &spec.readiness;
    parts.extend([probe.path.clone(), probe.port.clone()]);
    parts.extend([probe.period_seconds.to_string(), probe.timeout_seconds.to_string()]);
    let text: String = parts.iter().map(|part| format!("{}:{part},", part.len())).collect();
    json::fingerprint(text.as_bytes())
}
