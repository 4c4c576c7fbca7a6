//! What a deploy freezes, and the pure rules around it: digests, references, pointers.
//!
//! **A snapshot is complete**: the worker needs nothing but it, the metadata of the Secrets
//! it names and the plugin that it records. **A snapshot names Secrets, it never holds one.**

use std::collections::{BTreeMap, BTreeSet};

use occ_api::error::{FieldCode, FieldError};
use occ_api::ids::{AgentId, ConfigurationId, IdentityId, NamespaceId, RevisionId, SecretId};
use occ_api::time::Timestamp;
use occ_api::types::{self, HarnessAuth};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::drivers::types::{self as driver, EnvValue, HarnessIdentity, Plan, PlatformFacts, SettingProblem};
use crate::namespaces::Namespace;
use crate::{configurations, secrets};

/// Shape of the snapshots that this binary writes; it reads this one alone.
pub const SNAPSHOT_SCHEMA: u32 = 1;

/// Everything that one deployment runs from. Stored as `agent_revisions.snapshot`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snapshot {
    /// [`SNAPSHOT_SCHEMA`] at the time of writing.
    pub schema: u32,
    /// The Agent's own principal, whose grants every pass checks again.
    pub principal_id: IdentityId,
    /// The Configuration as it was, references unresolved.
    pub configuration: FrozenConfiguration,
    /// Environment name -> Secret, as the Configuration bound them.
    pub secret_bindings: BTreeMap<String, SecretId>,
    /// How the Agent authenticates to its model; absent when the Agent said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_auth: Option<FrozenAuth>,
    /// What `compute.platform` answered.
    pub platform: PlatformFacts,
    /// Which plugin made the plan.
    pub harness_plugin: PluginIdentity,
    /// Which plugin must run it.
    pub compute: PluginIdentity,
    /// Store of the Secrets: `database` or `kubernetes`.
    pub secret_store: String,
    /// Physical identity of each Secret that the plan may use; see [`FrozenSecret`].
    pub secrets: Vec<FrozenSecret>,
    /// The workload plan.
    pub plan: Plan,
    /// [`digest`] of `plan`.
    pub plan_digest: String,
    /// [`digest`] of `configuration.document`.
    pub configuration_digest: String,
}

/// A Configuration at the moment of the freeze.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FrozenConfiguration {
    /// Its id; the Configuration itself may be gone by now.
    pub id: ConfigurationId,
    /// Always `agent`.
    pub kind: String,
    /// Its generation.
    pub generation: u64,
    /// The whole document.
    pub document: Value,
}

/// `harnessAuth` at the moment of the freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FrozenAuth {
    /// `runtime` or `api_key`.
    pub method: String,
    /// The Secret, for every method but `runtime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_id: Option<SecretId>,
}

/// A plugin as it was loaded at the moment of the freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginIdentity {
    /// Plugin id, such as `compute-local`.
    pub id: String,
    /// Semantic version.
    pub version: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

impl From<&driver::PluginIdentity> for PluginIdentity {
    fn from(loaded: &driver::PluginIdentity) -> Self {
        Self { id: loaded.id.clone(), version: loaded.version.to_string(), digest: loaded.digest.clone() }
    }
}

/// The object behind a Secret when the revision was frozen. A Secret that was deleted and
/// made again under the same name is another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FrozenSecret {
    /// Id of the Secret.
    pub id: SecretId,
    /// UID in the store; absent where the id alone identifies (`database`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// One stored revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// Its id, which is the deployment id too.
    pub id: RevisionId,
    /// Its Namespace.
    pub namespace: NamespaceId,
    /// Its Agent.
    pub agent: AgentId,
    /// 1, 2, 3 … within the Agent.
    pub number: u64,
    /// The revision whose snapshot this one repeats.
    pub rollback_of: Option<RevisionId>,
    /// Who deployed it.
    pub created_by: IdentityId,
    /// When it was frozen.
    pub created_at: OffsetDateTime,
    /// What was frozen.
    pub snapshot: Snapshot,
}

/// What the freeze decides with; the versions are compared again under the lock.
#[derive(Debug, Clone, PartialEq)]
pub struct Frozen {
    /// The snapshot to store.
    pub snapshot: Snapshot,
    /// Source of a manual rollback.
    pub rollback_of: Option<RevisionId>,
}

impl Snapshot {
    /// Every Secret that it names, for permissions and for the check that they still exist.
    #[must_use]
    pub fn secret_ids(&self) -> BTreeSet<SecretId> {
        secret_ids(self.harness_auth.as_ref(), &self.secret_bindings)
    }

    /// Does the plan still match the digest that was frozen with it?
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.schema == SNAPSHOT_SCHEMA && digest(&self.plan).is_ok_and(|digest| digest == self.plan_digest)
    }

    /// What the plan says about the harness.
    #[must_use]
    pub fn harness(&self) -> &HarnessIdentity {
        &self.plan.harness
    }
}

/// Secrets named by an authentication and by bindings.
#[must_use]
pub fn secret_ids(auth: Option<&FrozenAuth>, bindings: &BTreeMap<String, SecretId>) -> BTreeSet<SecretId> {
    bindings.values().cloned().chain(auth.and_then(|auth| auth.secret_id.clone())).collect()
}

/// Names of the generated credentials that the plan uses, such as `gateway-password`.
#[must_use]
pub fn generated_names(plan: &Plan) -> BTreeSet<String> {
    env_values(plan)
        .filter_map(|value| match value {
            EnvValue::Generated(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// A Secret in the plan that nobody bound: a harness may use what it was given, nothing else.
#[must_use]
pub fn foreign_secret(plan: &Plan, allowed: &BTreeSet<SecretId>) -> Option<String> {
    env_values(plan).find_map(|value| match value {
        EnvValue::Secret(id) if !allowed.iter().any(|known| known.as_str() == id) => Some(id.clone()),
        _ => None,
    })
}

fn env_values(plan: &Plan) -> impl Iterator<Item = &EnvValue> {
    plan.containers.iter().flat_map(|container| container.env.iter().map(|var| &var.value))
}

/// `sha256:` over the canonical JSON of a value: keys sorted, no white space.
///
/// # Errors
/// When the value has no JSON form.
pub fn digest(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let canonical = serde_json::to_vec(&sorted(serde_json::to_value(value)?))?;
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(&canonical) {
        text.push(hex_digit(byte >> 4));
        text.push(hex_digit(byte & 0x0f));
    }
    Ok(text)
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Object(members) => {
            let ordered: BTreeMap<String, Value> =
                members.into_iter().map(|(key, item)| (key, sorted(item))).collect();
            Value::Object(ordered.into_iter().collect())
        }
        scalar => scalar,
    }
}

/// Turns a harness's pointers into pointers of the API: `/configuration/…` becomes
/// `/values/…`, `/mode` becomes `/executionMode`. Messages of plugins never reach a client.
#[must_use]
pub fn field_errors(problems: &[SettingProblem]) -> Vec<FieldError> {
    problems
        .iter()
        .map(|problem| FieldError::new(api_pointer(&problem.path), FieldCode::InvalidValue))
        .collect()
}

fn api_pointer(path: &str) -> String {
    for (from, to) in [("/configuration", "/values"), ("/mode", "/executionMode"), ("/auth", "/harnessAuth")]
    {
        match path.strip_prefix(from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => return format!("{to}{rest}"),
            _ => {}
        }
    }
    path.to_owned()
}

impl Revision {
    /// The resource as clients see it.
    #[must_use]
    pub fn to_wire(&self) -> types::AgentRevision {
        types::AgentRevision {
            id: self.id.clone(),
            fields: fields(
                &self.namespace,
                &self.agent,
                self.number,
                &self.snapshot,
                self.rollback_of.as_ref(),
            ),
            created_at: Timestamp::from(self.created_at),
        }
    }
}

impl Revision {
    /// The revision as a compute sees it. `locations` says where each value is that the plan
    /// names; a read needs none.
    #[must_use]
    pub fn to_driver(
        &self,
        namespace: &Namespace,
        locations: Vec<driver::SecretLocation>,
    ) -> driver::Revision {
        let frozen = &self.snapshot.configuration;
        driver::Revision {
            agent: driver::Agent {
                tenant: namespace.to_driver(),
                agent_id: self.agent.to_string(),
                service_principal_id: self.snapshot.principal_id.to_string(),
            },
            reference: self.reference(),
            configuration: driver::ConfigurationRef {
                id: frozen.id.to_string(),
                kind: frozen.kind.clone(),
                generation: frozen.generation,
            },
            harness: self.snapshot.harness().clone(),
            plan: self.snapshot.plan.clone(),
            secrets: locations,
        }
    }

    /// How a compute names it.
    #[must_use]
    pub fn reference(&self) -> driver::RevisionRef {
        driver::RevisionRef { revision_id: self.id.to_string(), number: self.number }
    }
}

/// What a revision shows of its snapshot.
pub(super) fn fields(
    namespace: &NamespaceId,
    agent: &AgentId,
    number: u64,
    snapshot: &Snapshot,
    rollback_of: Option<&RevisionId>,
) -> types::RevisionFields {
    let harness = snapshot.harness();
    types::RevisionFields {
        namespace_id: namespace.clone(),
        agent_id: agent.clone(),
        revision: number,
        backend_id: None,
        configuration_id: snapshot.configuration.id.clone(),
        configuration_kind: types::ConfigurationKind::Agent,
        configuration_generation: snapshot.configuration.generation,
        configuration: snapshot.configuration.document.clone(),
        harness: types::RevisionHarness {
            id: harness.id.clone(),
            version: harness.version.clone(),
            mode: mode_wire(harness.mode),
        },
        compute: types::RevisionCompute {
            id: snapshot.compute.id.strip_prefix("compute-").unwrap_or(&snapshot.compute.id).to_owned(),
            implementation: format!("{}@{}", snapshot.compute.id, snapshot.compute.version),
        },
        secret_driver_id: Some(snapshot.secret_store.clone()),
        secret_bindings: configurations::bindings_wire(namespace, &snapshot.secret_bindings),
        harness_auth: snapshot.harness_auth.as_ref().and_then(|auth| auth.to_wire(namespace)),
        rollback_of: rollback_of.cloned(),
    }
}

/// An Agent's mode as plugins take it.
#[must_use]
pub fn mode_of(mode: types::ExecutionMode) -> driver::ExecutionMode {
    match mode {
        types::ExecutionMode::Embedded => driver::ExecutionMode::Embedded,
        types::ExecutionMode::Dedicated => driver::ExecutionMode::Dedicated,
    }
}

fn mode_wire(mode: driver::ExecutionMode) -> types::ExecutionMode {
    match mode {
        driver::ExecutionMode::Embedded => types::ExecutionMode::Embedded,
        driver::ExecutionMode::Dedicated => types::ExecutionMode::Dedicated,
    }
}

impl FrozenAuth {
    /// As plugins take it.
    #[must_use]
    pub fn to_driver(&self) -> driver::HarnessAuth {
        driver::HarnessAuth {
            method: self.method.clone(),
            secret_id: self.secret_id.as_ref().map(ToString::to_string),
            source: None,
        }
    }

    fn to_wire(&self, namespace: &NamespaceId) -> Option<HarnessAuth> {
        match (self.method.as_str(), &self.secret_id) {
            ("runtime", None) => Some(HarnessAuth::Runtime),
            ("api_key", Some(id)) => Some(HarnessAuth::ApiKey { source: secrets::reference(namespace, id) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
