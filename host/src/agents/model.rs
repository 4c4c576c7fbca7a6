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
            Self::ApiKey(secret) => Some(HarnessAuth::ApiKey { source: secrets::reference(namespace, secret) }),
            Self::Unset | Self::Unreadable => None,
        }
    }
}
