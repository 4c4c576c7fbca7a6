//! What a Secret is beside its value.

use occ_api::ids::{NamespaceId, SecretId};
use occ_api::types::{self, SecretConsumers, SecretDetails, SecretRef};
use time::OffsetDateTime;

/// Metadata of a Secret that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its id.
    pub id: SecretId,
    /// Its Namespace.
    pub namespace: NamespaceId,
    /// Unique in the Namespace.
    pub name: String,
    /// Which store holds the value.
    pub store: String,
    /// Grows with each value; the entity tag.
    pub version: u64,
    /// Identity in the store, where the store has one.
    pub backend_uid: Option<String>,
    /// When it was asked for.
    pub created_at: OffsetDateTime,
}

/// A Secret to be inserted as `writing`.
#[derive(Debug, Clone)]
pub(super) struct NewSecret {
    pub(super) id: SecretId,
    pub(super) name: String,
    pub(super) store: &'static str,
    pub(super) created_at: OffsetDateTime,
}

impl Secret {
    /// The resource as lists show it: no value anywhere.
    #[must_use]
    pub fn to_wire(&self) -> types::Secret {
        types::Secret {
            id: self.id.clone(),
            namespace_id: self.namespace.clone(),
            name: self.name.clone(),
            r#ref: reference(&self.namespace, &self.id),
        }
    }

    /// The resource with who uses it.
    #[must_use]
    pub fn to_wire_with(&self, consumers: SecretConsumers) -> SecretDetails {
        SecretDetails { secret: self.to_wire(), consumers }
    }
}

/// How other resources name a Secret.
#[must_use]
pub fn reference(namespace: &NamespaceId, id: &SecretId) -> SecretRef {
    SecretRef { kind: types::SecretKind::Secret, namespace_id: namespace.clone(), id: id.clone() }
}
