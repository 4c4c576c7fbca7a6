//! The agents, revisions and plans that the suite calls with.

use serde_json::json;

use crate::types::{
    Agent, Bind, ConfigurationRef, Container, Egress, EnvValue, EnvVar, ExecutionMode, File, HarnessAuth,
    HarnessIdentity, HarnessRequest, HttpProbe, Plan, PlatformFacts, Port, Revision, RevisionRef, Role,
    ScratchMount, SecretLocation, StateMount, Tenant,
};

/// The tenant of the suite.
pub(super) const TENANT: &str = "ns_00000000-0000-4000-8000-000000000001";
/// Somebody else.
pub(super) const STRANGER: &str = "ns_00000000-0000-4000-8000-000000000002";
const AGENT: &str = "agt_00000000-0000-4000-8000-000000000001";
/// An agent that was never deployed.
const UNKNOWN_AGENT: &str = "agt_00000000-0000-4000-8000-00000000000f";
const SECRET: &str = "sec_00000000-0000-4000-8000-000000000001";
const STATE: &str = "/home/agent/state";
const SCRATCH: &str = "/tmp";
const CONFIGURATION: &str = "/etc/agent/configuration.json";

pub(super) fn tenant() -> Tenant {
    Tenant { namespace_id: TENANT.to_owned(), name: "conformance".to_owned(), existing_namespace: None }
}

pub(super) fn agent() -> Agent {
    Agent {
        tenant: tenant(),
        agent_id: AGENT.to_owned(),
        service_principal_id: "spn_00000000-0000-4000-8000-000000000001".to_owned(),
    }
}

pub(super) fn unknown_agent() -> Agent {
    Agent { agent_id: UNKNOWN_AGENT.to_owned(), ..agent() }
}

pub(super) fn reference(number: u64) -> RevisionRef {
    RevisionRef { revision_id: format!("rev_00000000-0000-4000-8000-{number:012}"), number }
}

pub(super) fn revision(number: u64) -> Revision {
    let plan = plan(number);
    Revision {
        agent: agent(),
        reference: reference(number),
        configuration: ConfigurationRef {
            id: "cfg_00000000-0000-4000-8000-000000000001".to_owned(),
            kind: "agent".to_owned(),
            generation: number,
        },
        harness: plan.harness.clone(),
        plan,
        secrets: vec![SecretLocation { secret_id: SECRET.to_owned(), location: json!({}) }],
    }
}

/// A plan of one container with every kind of environment value.
pub(super) fn plan(number: u64) -> Plan {
    let env = |name: &str, value| EnvVar { name: name.to_owned(), value };
    let literal = |text: &str| EnvValue::Literal(text.to_owned());
    Plan {
        harness: HarnessIdentity {
            id: "openclaw".to_owned(),
            version: "1.0.0".to_owned(),
            mode: ExecutionMode::Embedded,
        },
        containers: vec![Container {
            role: Role::Gateway,
            image_slot: "gateway".to_owned(),
            command: Vec::new(),
            args: vec!["gateway".to_owned(), "run".to_owned()],
            env: vec![
                env("AGENT_GENERATION", literal(&number.to_string())),
                env("AGENT_CONFIGURATION", EnvValue::FilePath(CONFIGURATION.to_owned())),
                env("AGENT_STATE", EnvValue::StatePath("state".to_owned())),
                env("AGENT_SCRATCH", EnvValue::ScratchPath("scratch".to_owned())),
                env("AGENT_PORT", EnvValue::PortNumber("gateway".to_owned())),
                env("AGENT_REVISION", EnvValue::RevisionId),
                env("AGENT_KEY", EnvValue::Secret(SECRET.to_owned())),
                env("AGENT_PASSWORD", EnvValue::Generated("gateway-password".to_owned())),
            ],
            ports: vec![Port { name: "gateway".to_owned(), number: 18_789 }],
            readiness: HttpProbe {
                path: "/readyz".to_owned(),
                port: "gateway".to_owned(),
                period_seconds: 5,
                timeout_seconds: 2,
            },
            state: vec![StateMount { name: "state".to_owned(), path: STATE.to_owned() }],
            scratch: vec![ScratchMount {
                name: "scratch".to_owned(),
                path: SCRATCH.to_owned(),
                size_mib: 64,
            }],
            files: vec![File {
                path: CONFIGURATION.to_owned(),
                contents: format!("{{\"generation\":{number}}}"),
            }],
            grace_seconds: 30,
            egress: Egress::PublicHttps,
        }],
        warnings: Vec::new(),
    }
}

/// A configuration that a harness of OpenClaw serves.
pub(super) fn request() -> HarnessRequest {
    HarnessRequest {
        configuration: json!({
            "agents": {"defaults": {
                "model": "openai/test-model",
                "models": {"openai/test-model": {"agentRuntime": {"id": "openclaw"}}}
            }},
            "models": {"providers": {"openai": {
                "baseUrl": "https://models.example.com/v1",
                "api": "openai-responses",
                "models": [{"id": "test-model", "name": "test-model"}]
            }}}
        }),
        mode: ExecutionMode::Embedded,
        auth: Some(HarnessAuth {
            method: "api_key".to_owned(),
            secret_id: Some(SECRET.to_owned()),
            source: None,
        }),
        secret_bindings: Vec::new(),
        platform: PlatformFacts { bind: Bind::Loopback, gateway_port: 18_789, trusted_proxies: Vec::new() },
    }
}
