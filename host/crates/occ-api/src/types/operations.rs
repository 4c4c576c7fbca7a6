//! Work, audit events and plugins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, NamespaceId, RevisionId};
use crate::time::Timestamp;

/// One row of durable work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkItem {
    /// Its key.
    pub key: String,
    /// What is done, e.g. `revision.reconcile`.
    pub kind: String,
    /// Its Namespace.
    pub namespace_id: NamespaceId,
    /// Its Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Its revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_id: Option<RevisionId>,
    /// `queued`, `claimed`, `succeeded` or `failed_permanent`.
    pub state: String,
    /// `forward` or `rollback`.
    pub phase: String,
    /// Last committed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Attempts spent.
    pub attempt: u32,
    /// Attempts allowed.
    pub attempts_max: u32,
    /// Claims, refunded or not.
    pub passes: u32,
    /// Newest reason code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// When it may be claimed.
    pub available_at: Timestamp,
    /// When waiting ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// Newest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// One audit event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// Always 1.
    pub schema_version: u32,
    /// Its id.
    pub id: String,
    /// The Installation.
    pub installation_id: String,
    /// Namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    /// When.
    pub occurred_at: Timestamp,
    /// Always `occ`.
    pub source: String,
    /// `bootstrap`, `mutation`, `authorization_denial`, `access` or `reconcile`.
    pub kind: String,
    /// Who; `unresolved` when unknown.
    pub actor_id: String,
    /// Who, in detail.
    pub actor: Value,
    /// What was done.
    pub action: String,
    /// To what.
    pub resource: Value,
    /// `success`, `denied` or `failure`.
    pub outcome: String,
    /// The request behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `native`.
    pub iam_driver_id: String,
    /// The decision and its evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Value>,
    /// Why the decision fell as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<String>,
    /// Reason code of a reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    /// The work behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_key: Option<String>,
    /// A closed document that belongs to the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plugin {
    /// Its id.
    pub id: String,
    /// `compute`, `harness`, `backend` or `repo`.
    pub kind: String,
    /// Its version.
    pub version: String,
    /// Contract it was built for, e.g. `occ:plugin@0.1.0`.
    pub contract: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Where it came from.
    pub bundle: String,
    /// `valid`, `absent` or `untrusted`.
    pub signature: String,
    /// What it may do.
    pub capabilities: PluginCapabilities,
    /// `loaded`, `failed` or `retired`.
    pub state: String,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// Null when no call failed.
    pub last_error_code: Option<String>,
    /// Its calls of the last minutes.
    pub calls: PluginCalls,
}

/// What a plugin asked for and got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginCapabilities {
    /// By its manifest.
    pub requested: Vec<String>,
    /// By the Installation.
    pub granted: Vec<String>,
}

/// Calls of a plugin in a window of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCalls {
    /// Length of the window.
    pub window_seconds: u32,
    /// Calls.
    pub count: u64,
    /// Of these failed.
    pub failures: u64,
    /// Median; null without calls.
    pub p50_ms: Option<f64>,
    /// 99th percentile; null without calls.
    pub p99_ms: Option<f64>,
}
