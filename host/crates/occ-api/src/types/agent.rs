//! Installation, Namespaces, Configurations, Secrets, Agents, revisions, deployments.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words;
use crate::ids::{AgentId, ConfigurationId, IdentityId, InstallationId, NamespaceId, RevisionId, SecretId};
use crate::time::Timestamp;

/// The Installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Installation {
    /// Its id.
    pub id: InstallationId,
    /// Its name.
    pub name: String,
    /// When it was bootstrapped.
    pub created_at: Timestamp,
}

words!(/// Where a Namespace stands.
NamespaceStatus {
    /// Its boundary is being made.
    Provisioning = "provisioning",
    /// Everything may be done in it.
    Ready = "ready",
    /// Its boundary could not be made.
    Failed = "failed",
    /// It is being removed.
    Deleting = "deleting",
});

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// Its id.
    pub id: NamespaceId,
    /// Unique in the Installation.
    pub name: String,
    /// An adopted Kubernetes namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_namespace: Option<String>,
    /// Where it stands.
    pub status: NamespaceStatus,
    /// When it was made.
    pub created_at: Timestamp,
}

words!(/// Kind of a Configuration.
ConfigurationKind {
    /// For an Agent.
    Agent = "agent",
});

words!(/// Kind of a reference to a Secret.
SecretKind {
    /// A Secret of the control plane.
    Secret = "secret",
});

/// How other resources name a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Always `secret`.
    pub kind: SecretKind,
    /// Namespace of the Secret.
    pub namespace_id: NamespaceId,
    /// The Secret.
    pub id: SecretId,
}

/// How a bound value reaches the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Delivery {
    /// As an environment variable.
    Env,
}

/// A value that the runtime gets under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretBinding {
    /// Where the value is.
    pub source: SecretRef,
    /// How it is delivered; `env` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// A native configuration document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Its id.
    pub id: ConfigurationId,
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Always `agent`.
    pub kind: ConfigurationKind,
    /// Grows by one with each edit.
    pub generation: u64,
    /// The document; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Value>,
    /// Environment name to Secret; absent when there are none, and in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_bindings: Option<BTreeMap<String, SecretBinding>>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A Secret without its value, which no operation returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// Its id.
    pub id: SecretId,
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Unique in the Namespace.
    pub name: String,
    /// How to refer to it.
    pub r#ref: SecretRef,
}

/// A Secret and who uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretDetails {
    /// The Secret.
    #[serde(flatten)]
    pub secret: Secret,
    /// Who uses it.
    pub consumers: SecretConsumers,
}

/// Users of a Secret that the caller may read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretConsumers {
    /// Agents that use it for their model.
    pub agents: Vec<AgentId>,
    /// Configurations that bind it.
    pub configurations: Vec<ConfigurationId>,
    /// Always empty at present.
    pub credential_sources: Vec<String>,
    /// Always empty at present.
    pub provisioning_requests: Vec<String>,
    /// How many more the caller may not read.
    pub unreadable: u32,
    /// True when not all were examined.
    pub truncated: bool,
}

/// How an Agent authenticates to its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "snake_case")]
pub enum HarnessAuth {
    /// The runtime has its own way.
    Runtime,
    /// An API key in a Secret.
    ApiKey {
        /// Where the key is.
        source: SecretRef,
    },
    /// Not offered yet.
    CodexPat {
        /// Where the token is.
        source: Value,
    },
    /// Not offered yet.
    Oauth {
        /// Where the login is.
        source: Value,
    },
    /// Not offered yet.
    CredentialSource {
        /// Which source.
        source: Value,
    },
}

words!(/// One process or two.
ExecutionMode {
    /// The gateway is the agent.
    Embedded = "embedded",
    /// Gateway and agent apart.
    Dedicated = "dedicated",
});

words!(/// What happens when a replacement does not activate.
RollbackPolicy {
    /// The predecessor serves again.
    Automatic = "automatic",
    /// An operator decides.
    Manual = "manual",
});

words!(/// Should an Agent run?
DesiredRuntimeState {
    /// Yes.
    Running = "running",
    /// No.
    Stopped = "stopped",
});

words!(/// Life of an Agent.
AgentStatus {
    /// It can be used.
    Active = "active",
    /// It is being removed.
    Deleting = "deleting",
});

/// Settings of an Agent that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationReadError {
    /// `SAVED_CONFIGURATION_UNREADABLE`.
    pub code: String,
    /// The field that was left out.
    pub field: String,
}

/// An Agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Unique in the Namespace; fixed.
    pub name: String,
    /// Its own ServicePrincipal.
    pub service_principal_id: IdentityId,
    /// What the next deployment freezes.
    pub configuration_id: ConfigurationId,
    /// Null: no Backend.
    pub backend_id: Option<String>,
    /// Null: nothing said.
    pub harness_auth: Option<HarnessAuth>,
    /// One process or two.
    pub execution_mode: ExecutionMode,
    /// Present only as `manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_policy: Option<RollbackPolicy>,
    /// Should it run?
    pub desired_runtime_state: DesiredRuntimeState,
    /// The last committed revision; not health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_revision_id: Option<RevisionId>,
    /// Life of the Agent.
    pub status: AgentStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// Present when stored settings cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_read_error: Option<ConfigurationReadError>,
}

/// Which harness a revision runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionHarness {
    /// `openclaw`.
    pub id: String,
    /// Its version.
    pub version: String,
    /// One process or two.
    pub mode: ExecutionMode,
}

/// Which compute a revision runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionCompute {
    /// Plugin id without `compute-`.
    pub id: String,
    /// `<plugin id>@<version>`.
    pub implementation: String,
}

/// Everything of a revision but its id and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionFields {
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Its Agent.
    pub agent_id: AgentId,
    /// Its number, from 1.
    pub revision: u64,
    /// Null: no Backend.
    pub backend_id: Option<String>,
    /// The Configuration that was frozen.
    pub configuration_id: ConfigurationId,
    /// Always `agent`.
    pub configuration_kind: ConfigurationKind,
    /// Its generation at that time.
    pub configuration_generation: u64,
    /// Its document at that time, references unresolved.
    pub configuration: Value,
    /// Which harness.
    pub harness: RevisionHarness,
    /// Which compute.
    pub compute: RevisionCompute,
    /// Where its secrets are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_driver_id: Option<String>,
    /// Environment name to Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_bindings: Option<BTreeMap<String, SecretBinding>>,
    /// Null: nothing said.
    pub harness_auth: Option<HarnessAuth>,
    /// The revision whose snapshot this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<RevisionId>,
}

/// An immutable deployment input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRevision {
    /// Its id; the deployment's id is the same.
    pub id: RevisionId,
    /// The rest.
    #[serde(flatten)]
    pub fields: RevisionFields,
    /// When it was frozen.
    pub created_at: Timestamp,
}

/// Answer of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// Always true.
    pub dry_run: bool,
    /// What would be frozen.
    pub revision: RevisionFields,
    /// What only a deployment shows.
    pub not_checked: Vec<String>,
}

words!(/// Where a deployment stands.
DeploymentStatus {
    /// Waits for a worker.
    Queued = "queued",
    /// A worker has it.
    Running = "running",
    /// Its revision serves.
    Succeeded = "succeeded",
    /// It ended otherwise.
    Failed = "failed",
});

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentAttempt {
    /// When.
    pub at: Timestamp,
    /// Stable code.
    pub code: String,
    /// One sentence.
    pub message: String,
}

/// What a pending deployment waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentProgress {
    /// Null before the first attempt.
    pub last_attempt: Option<DeploymentAttempt>,
    /// Null while an attempt runs.
    pub next_attempt_at: Option<Timestamp>,
}

/// Why a deployment failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentError {
    /// Stable code.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// A closed document that belongs to the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// One deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// The revision's id.
    pub deployment_id: RevisionId,
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Its Agent.
    pub agent_id: AgentId,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// Null when it is settled.
    pub progress: Option<DeploymentProgress>,
    /// Null unless it failed.
    pub error: Option<DeploymentError>,
    /// Empty at present.
    pub warnings: Vec<Value>,
}
