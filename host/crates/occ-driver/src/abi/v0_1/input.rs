//! The host's types to those of version 0.1.

use serde_json::Value;

use super::bindings::exports::occ::plugin::{compute, harness};
use super::bindings::occ::plugin::{types as wit, workload};
use crate::types;

pub(super) fn json(value: &Value) -> String {
    value.to_string()
}

pub(super) fn tenant(tenant: types::Tenant) -> compute::Tenant {
    compute::Tenant {
        namespace_id: tenant.namespace_id,
        name: tenant.name,
        existing_namespace: tenant.existing_namespace,
    }
}

pub(super) fn agent(agent: types::Agent) -> compute::Agent {
    compute::Agent {
        tenant: tenant(agent.tenant),
        agent_id: agent.agent_id,
        service_principal_id: agent.service_principal_id,
    }
}

pub(super) fn reference(reference: types::RevisionRef) -> compute::RevisionRef {
    compute::RevisionRef { revision_id: reference.revision_id, number: reference.number }
}

pub(super) fn revision(revision: types::Revision) -> compute::Revision {
    compute::Revision {
        agent: agent(revision.agent),
        ref_: reference(revision.reference),
        configuration: compute::ConfigurationRef {
            id: revision.configuration.id,
            kind: revision.configuration.kind,
            generation: revision.configuration.generation,
        },
        harness: identity(revision.harness),
        plan: plan(revision.plan),
        secrets: revision
            .secrets
            .into_iter()
            .map(|secret| compute::SecretLocation {
                secret_id: secret.secret_id,
                location: json(&secret.location),
            })
            .collect(),
    }
}

pub(super) fn log_request(request: types::LogRequest) -> compute::LogRequest {
    compute::LogRequest {
        role: role(request.role),
        previous: request.previous,
        tail_lines: request.tail_lines,
        since_seconds: request.since_seconds,
    }
}

pub(super) fn request(request: &types::HarnessRequest) -> harness::Request {
    harness::Request {
        configuration: json(&request.configuration),
        mode: mode(request.mode),
        auth: request.auth.as_ref().map(|auth| harness::HarnessAuth {
            method: auth.method.clone(),
            secret_id: auth.secret_id.clone(),
            source: auth.source.as_ref().map(json),
        }),
        secret_bindings: request.secret_bindings.clone(),
        platform: platform(&request.platform),
    }
}

fn platform(facts: &types::PlatformFacts) -> String {
    let bind = match facts.bind {
        types::Bind::Loopback => "loopback",
        types::Bind::Lan => "lan",
    };
    let proxies = facts.trusted_proxies.clone();
    json(&serde_json::json!({ "bind": bind, "gatewayPort": facts.gateway_port, "trustedProxies": proxies }))
}

pub(super) fn plan(plan: types::Plan) -> workload::Plan {
    workload::Plan {
        harness: identity(plan.harness),
        containers: plan.containers.into_iter().map(container).collect(),
        warnings: plan.warnings.into_iter().map(reason).collect(),
    }
}

fn container(container: types::Container) -> workload::Container {
    workload::Container {
        role: role(container.role),
        image_slot: container.image_slot,
        command: container.command,
        args: container.args,
        env: container.env.into_iter().map(env_var).collect(),
        ports: container.ports.iter().map(port).collect(),
        readiness: workload::HttpProbe {
            path: container.readiness.path,
            port: container.readiness.port,
            period_seconds: container.readiness.period_seconds,
            timeout_seconds: container.readiness.timeout_seconds,
        },
        state: container
            .state
            .into_iter()
            .map(|mount| workload::StateMount { name: mount.name, path: mount.path })
            .collect(),
        scratch: container
            .scratch
            .into_iter()
            .map(|mount| workload::ScratchMount {
                name: mount.name,
                path: mount.path,
                size_mib: mount.size_mib,
            })
            .collect(),
        files: container
            .files
            .into_iter()
            .map(|file| workload::File { path: file.path, contents: file.contents })
            .collect(),
        grace_seconds: container.grace_seconds,
        egress: match container.egress {
            types::Egress::None => workload::Egress::None,
            types::Egress::PublicHttps => workload::Egress::PublicHttps,
        },
    }
}

fn env_var(var: types::EnvVar) -> workload::EnvVar {
    use types::EnvValue as Native;
    use workload::EnvValue as Wit;
    workload::EnvVar {
        name: var.name,
        value: match var.value {
            Native::Literal(text) => Wit::Literal(text),
            Native::Secret(id) => Wit::Secret(id),
            Native::Generated(name) => Wit::Generated(name),
            Native::RevisionId => Wit::RevisionId,
            Native::FilePath(path) => Wit::FilePath(path),
            Native::StatePath(name) => Wit::StatePath(name),
            Native::ScratchPath(name) => Wit::ScratchPath(name),
            Native::PortNumber(name) => Wit::PortNumber(name),
        },
    }
}

pub(super) fn port(port: &types::Port) -> workload::Port {
    workload::Port { name: port.name.clone(), number: port.number }
}

fn reason(reason: types::Reason) -> wit::Reason {
    wit::Reason { code: reason.code, message: reason.message, data: reason.data.as_ref().map(json) }
}

fn identity(identity: types::HarnessIdentity) -> workload::HarnessIdentity {
    workload::HarnessIdentity { id: identity.id, version: identity.version, mode: mode(identity.mode) }
}

fn mode(mode: types::ExecutionMode) -> workload::ExecutionMode {
    match mode {
        types::ExecutionMode::Embedded => workload::ExecutionMode::Embedded,
        types::ExecutionMode::Dedicated => workload::ExecutionMode::Dedicated,
    }
}

fn role(role: types::Role) -> workload::Role {
    match role {
        types::Role::Gateway => workload::Role::Gateway,
        types::Role::Agent => workload::Role::Agent,
    }
}
