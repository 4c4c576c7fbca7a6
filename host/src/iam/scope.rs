//! Permission as a value: whoever holds a [`Scope`] was allowed to, and it says where.
//!
//! **Only `iam` makes one.** Store functions take it and put its Namespace into their `where`.

use occ_api::ids::{IdentityId, NamespaceId};

use super::access::{Access, Action, Kind};
use super::decide::{Decision, Evidence, Reason};
use crate::error::{Error, Result};

/// An allowed request: by whom, where, on what grounds.
#[derive(Debug, Clone)]
pub struct Scope {
    identity: IdentityId,
    access: Access,
    decision: Decision,
}

impl Scope {
    pub(super) fn new(identity: IdentityId, access: Access, decision: Decision) -> Self {
        Self { identity, access, decision }
    }

    /// The scope of the product itself, for work that no caller's right may stop or allow.
    pub(super) fn system(identity: IdentityId, namespace: &NamespaceId) -> Self {
        let decision = Decision { allowed: true, reason: Reason::Allowed, evidence: Evidence::default() };
        Self {
            identity,
            access: Access::item(Action::Operate, Kind::Namespace, namespace, namespace),
            decision,
        }
    }

    /// Whose permission it is.
    #[must_use]
    pub fn identity(&self) -> &IdentityId {
        &self.identity
    }

    /// The Namespace that statements are confined to.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when an Installation-level scope reached a statement about a tenant.
    pub fn namespace(&self) -> Result<&NamespaceId> {
        self.access
            .namespace
            .as_ref()
            .ok_or_else(|| Error::internal("a statement about a tenant was given the Installation's scope"))
    }

    /// What was asked.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The grounds.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
}
