//! What plugins take and answer, in the host's own terms.
//!
//! **Generated types of a contract version never leave `abi`**: each version's adapter
//! maps to and from these. What a revision freezes (`Plan` and everything in it) has a
//! stored JSON form, so its serde attributes are part of the database. Documents that
//! the contract does not interpret are [`Value`]s here and JSON text on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::capability::process::{
    EnvValue, EnvVar, File, HttpProbe, LogLine, Port, ScratchMount, StateMount,
};

/// A stable reason. `message` is for logs and operators, never for clients of the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// `[A-Z][A-Z0-9_]{0,63}`.
    pub code: String,
    /// One sentence without tenant data.
    pub message: String,
    /// A small closed document that belongs to the code; at most 1 KiB of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// How a dependency failed to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageKind {
    /// No connection.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// It says that it cannot serve now.
    Unavailable,
    /// It asks for fewer requests.
    Throttled,
}

impl OutageKind {
    /// Lower-case name, for logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Throttled => "throttled",
        }
    }
}

/// A dependency that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Slug such as `kubernetes-api`.
    pub dependency: String,
    /// How it failed.
    pub kind: OutageKind,
    /// When it wants to be asked again, in milliseconds.
    pub retry_after_ms: Option<u32>,
}

/// The plugin's own verdict that a call did not succeed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The work waits and the attempt is given back.
    Outage(Outage),
    /// Try again with back-off; costs an attempt.
    Retry(Reason),
    /// Cannot succeed without a new revision or an operator.
    Permanent(Reason),
}

impl Failure {
    /// The reason's code, or `DEPENDENCY_UNAVAILABLE` for an outage.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Outage(_) => "DEPENDENCY_UNAVAILABLE",
            Self::Retry(reason) | Self::Permanent(reason) => &reason.code,
        }
    }
}

/// What one reconciling call saw.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Everything stands.
    Done,
    /// Applied, not converged yet; look again.
    Waiting(Reason),
}

/// One value that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// JSON Pointer.
    pub path: String,
    /// The rule, never the value.
    pub message: String,
}

/// What a plugin says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Name for people.
    pub name: String,
    /// Version that the component was built as.
    pub version: String,
    /// JSON Schema (2020-12) of the settings, closed at every level.
    pub settings_schema: Value,
}

/// How the gateway and the agent of a workload are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionMode {
    /// One container is both.
    Embedded,
    /// They run apart.
    Dedicated,
}

/// Which part of a workload a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The gateway.
    Gateway,
    /// The agent.
    Agent,
}

/// Which harness made a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessIdentity {
    /// Such as `openclaw`.
    pub id: String,
    /// Version of the harness that runs.
    pub version: String,
    /// Arrangement that was asked for.
    pub mode: ExecutionMode,
}

/// What a container may reach besides the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Egress {
    /// DNS only.
    None,
    /// TCP 443 to public addresses.
    PublicHttps,
}

/// One container of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Which part it is.
    pub role: Role,
    /// Image slot in the compute's settings.
    pub image_slot: String,
    /// Entry point of the image; empty means the image's own.
    pub command: Vec<String>,
    /// Arguments after it.
    pub args: Vec<String>,
    /// Environment.
    pub env: Vec<EnvVar>,
    /// Ports it listens on.
    pub ports: Vec<Port>,
    /// When it is ready.
    pub readiness: HttpProbe,
    /// Storage that outlives the revision.
    pub state: Vec<StateMount>,
    /// Storage that dies with the instance.
    pub scratch: Vec<ScratchMount>,
    /// Files rendered at admission.
    pub files: Vec<File>,
    /// From SIGTERM to SIGKILL, in seconds.
    pub grace_seconds: u32,
    /// What it may reach.
    pub egress: Egress,
}

/// What a harness wants to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Who made it.
    pub harness: HarnessIdentity,
    /// What runs.
    pub containers: Vec<Container>,
    /// Worth a look, no obstacle.
    pub warnings: Vec<Reason>,
}

/// A tenant as a compute sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Namespace id, `ns_…`.
    pub namespace_id: String,
    /// Name of the Namespace.
    pub name: String,
    /// A namespace that the operator made and wants adopted.
    pub existing_namespace: Option<String>,
}

/// An Agent as a compute sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Whose it is.
    pub tenant: Tenant,
    /// Agent id, `agt_…`.
    pub agent_id: String,
    /// The Agent's own principal, `spn_…`.
    pub service_principal_id: String,
}

/// Names a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionRef {
    /// Revision id, `rev_…`.
    pub revision_id: String,
    /// 1, 2, 3 … within the Agent.
    pub number: u64,
}

/// Where the platform finds a secret value; never the value.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretLocation {
    /// Id of a Secret, or `generated:NAME`.
    pub secret_id: String,
    /// In the store's own terms.
    pub location: Value,
}

/// The Configuration behind a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationRef {
    /// Its id.
    pub id: String,
    /// Always `agent` so far.
    pub kind: String,
    /// Its generation when it was frozen.
    pub generation: u64,
}

/// A frozen revision as a compute sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// Whose it is.
    pub agent: Agent,
    /// Which it is.
    pub reference: RevisionRef,
    /// What it was made from.
    pub configuration: ConfigurationRef,
    /// Who made the plan.
    pub harness: HarnessIdentity,
    /// What to run.
    pub plan: Plan,
    /// Where its secret values are.
    pub secrets: Vec<SecretLocation>,
}

/// Where the life of a revision's workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing runs.
    Absent,
    /// On its way to ready.
    Starting,
    /// Serves.
    Ready,
    /// Was ready, is not now.
    Degraded,
    /// On its way to absent.
    Stopping,
}

/// One running part of a revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Which part.
    pub role: Role,
    /// For `attach`, `exec` and `logs`, in the driver's own terms.
    pub coordinates: Value,
    /// It serves.
    pub ready: bool,
    /// Restarts so far.
    pub restarts: u32,
    /// Milliseconds since 1970.
    pub started_at_ms: Option<u64>,
    /// Why it is not ready.
    pub reason: Option<Reason>,
}

/// What a driver saw of a revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Where its life is.
    pub phase: Phase,
    /// What runs.
    pub instances: Vec<Instance>,
    /// What stands differently from the plan.
    pub drift: Vec<Reason>,
    /// The runtime has given up and nothing will restart it.
    pub held_failure: Option<Reason>,
}

/// Which lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRequest {
    /// Of which part.
    pub role: Role,
    /// Of the instance before this one.
    pub previous: bool,
    /// Most lines, counted from the newest.
    pub tail_lines: u32,
    /// Not older than this, in seconds.
    pub since_seconds: Option<u32>,
}

/// On which addresses a platform lets a gateway listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bind {
    /// This machine only.
    Loopback,
    /// The Pod's own address.
    Lan,
}

/// What a compute decides for every agent; handed to the harness and frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlatformFacts {
    /// Where the gateway listens.
    pub bind: Bind,
    /// The port that the configuration names; a plan's `port-number` may give another.
    pub gateway_port: u16,
    /// Addresses whose forwarding headers the gateway believes.
    pub trusted_proxies: Vec<String>,
}

/// How an Agent authenticates to its model.
#[derive(Debug, Clone, PartialEq)]
pub struct HarnessAuth {
    /// `runtime` or `api_key`.
    pub method: String,
    /// The Secret, for every method but `runtime`.
    pub secret_id: Option<String>,
    /// Where the credential comes from, when it is no Secret.
    pub source: Option<Value>,
}

/// What a harness resolves.
#[derive(Debug, Clone, PartialEq)]
pub struct HarnessRequest {
    /// The native configuration.
    pub configuration: Value,
    /// Arrangement that the Agent asks for.
    pub mode: ExecutionMode,
    /// How the Agent authenticates to its model.
    pub auth: Option<HarnessAuth>,
    /// Environment name and Secret id, as the Configuration binds them.
    pub secret_bindings: Vec<(String, String)>,
    /// What the compute decided.
    pub platform: PlatformFacts,
}

/// Why a harness makes no plan. Paths point into the request: `/configuration/…`, `/mode`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration is at fault.
    Invalid(Vec<SettingProblem>),
    /// Valid, but no approved harness serves it.
    Unsupported(Vec<SettingProblem>),
}

/// Names a loaded plugin, as a revision records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginIdentity {
    /// Plugin id, such as `compute-local`.
    pub id: String,
    /// Version of its manifest.
    pub version: semver::Version,
    /// `sha256:` and 64 hexadecimal digits of the component.
    pub digest: String,
    /// Versions of this plugin whose revisions this one takes over.
    pub accepts: semver::VersionReq,
}

impl PluginIdentity {
    /// Does this plugin take over revisions that `version` of `id` made? Its own version
    /// always; a version that cannot be read never.
    #[must_use]
    pub fn takes_over(&self, id: &str, version: &str) -> bool {
        let Ok(version) = semver::Version::parse(version) else {
            return false;
        };
        id == self.id && (version == self.version || self.accepts.matches(&version))
    }
}
