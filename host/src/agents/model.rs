//! What an Agent is: the draft that callers edit, and what the platform says about it.
//!
//! ```text
//! status   active ─► deleting ─► gone
//! desired  stopped ─deploy, rollback─► running ─stop, delete─► stopped
//! ```

use occ_api::ids::{AgentId, ConfigurationId, IdentityId, NamespaceId, RevisionId, SecretId};
use occ_api::time::Timestamp;
use occ_api::types::{self, AgentStatus, DesiredRuntimeState, ExecutionMode, HarnessAuth, RollbackPolicy};
use time::OffsetDateTime;

use crate::secrets;

/// One Agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its Namespace.
    pub namespace: NamespaceId,
    /// Unique in the Namespace; fixed.
    pub name: String,
    /// What the next deployment freezes.
    pub draft: Draft,
    /// Its own ServicePrincipal.
    pub principal: IdentityId,
    /// Should it run?
    pub desired: DesiredRuntimeState,
    /// Is it being deleted?
    pub status: AgentStatus,
    /// The revision that the worker last committed to; not health.
    pub active_revision: Option<RevisionId>,
    /// Number of the newest revision; 0 before the first.
    pub last_revision_number: u64,
    /// Edits by callers; the entity tag.
    pub version: u64,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// What a caller may edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The Configuration to freeze.
    pub configuration: ConfigurationId,
    /// One process or two.
    pub execution_mode: ExecutionMode,
    /// How the model is reached.
    pub auth: Auth,
    /// What happens when a replacement does not activate.
    pub rollback_policy: RollbackPolicy,
}

/// `harnessAuth` as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Nothing said.
    Unset,
    /// The runtime has its own way.
    Runtime,
    /// An API key in a Secret.
    ApiKey(SecretId),
    /// Stored by a newer version: shown as unreadable, refused at deploy.
    Unreadable,
}

/// An Agent to be inserted.
#[derive(Debug, Clone)]
pub(super) struct NewAgent {
    pub(super) id: AgentId,
    pub(super) name: String,
    pub(super) draft: Draft,
    pub(super) principal: IdentityId,
    pub(super) created_at: OffsetDateTime,
}

impl Auth {
    pub(super) fn from_columns(method: Option<&str>, secret: Option<SecretId>) -> Self {
        match (method, secret) {
            (None, None) => Self::Unset,
            (Some("runtime"), None) => Self::Runtime,
            (Some("api_key"), Some(secret)) => Self::ApiKey(secret),
            _ => Self::Unreadable,
        }
    }

    pub(super) fn to_columns(&self) -> (Option<&'static str>, Option<&SecretId>) {
        match self {
            Self::Unset | Self::Unreadable => (None, None),
            Self::Runtime => (Some("runtime"), None),
            Self::ApiKey(secret) => (Some("api_key"), Some(secret)),
        }
    }

    /// The Secret that it uses.
    #[must_use]
    pub fn secret(&self) -> Option<&SecretId> {
        match self {
            Self::ApiKey(secret) => Some(secret),
            Self::Unset | Self::Runtime | Self::Unreadable => None,
        }
    }

    fn to_wire(&self, namespace: &NamespaceId) -> Option<HarnessAuth> {
        match self {
            Self::Runtime => Some(HarnessAuth::Runtime),
            Self::ApiKey(secret) => {
                Some(HarnessAuth::ApiKey { source: secrets::reference(namespace, secret) })
            }
            Self::Unset | Self::Unreadable => None,
        }
    }
}

impl Agent {
    /// The resource as clients see it. Settings that this version cannot read are left out and named.
    #[must_use]
    pub fn to_wire(&self) -> types::Agent {
        let unreadable = self.draft.auth == Auth::Unreadable;
        types::Agent {
            id: self.id.clone(),
            namespace_id: self.namespace.clone(),
            name: self.name.clone(),
            service_principal_id: self.principal.clone(),
            configuration_id: self.draft.configuration.clone(),
            backend_id: None,
            harness_auth: self.draft.auth.to_wire(&self.namespace),
            execution_mode: self.draft.execution_mode,
            rollback_policy: (self.draft.rollback_policy == RollbackPolicy::Manual)
                .then_some(RollbackPolicy::Manual),
            desired_runtime_state: self.desired,
            active_revision_id: self.active_revision.clone(),
            status: self.status,
            created_at: Timestamp::from(self.created_at),
            configuration_read_error: unreadable.then(|| types::ConfigurationReadError {
                code: "SAVED_CONFIGURATION_UNREADABLE".to_owned(),
                field: "harnessAuth".to_owned(),
            }),
        }
    }

    /// Is it being deleted?
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.status == AgentStatus::Deleting
    }
}
