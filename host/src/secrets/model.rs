//! What a Secret is beside its value.

use occ_api::ids::{NamespaceId, SecretId};
use occ_api::types::{self, SecretConsumers, SecretDetails, SecretRef};
use time::OffsetDateTime;

use crate::error::{Error, Result};

/// Where a Secret stands between its row and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The row is there, the value perhaps: visible to nobody.
    Writing,
    /// Row and value are there.
    Ready,
    /// The value is being removed: visible to nobody, deletable again.
    Deleting,
}

impl State {
    pub(super) fn parse(text: &str) -> Result<Self> {
        match text {
            "writing" => Ok(Self::Writing),
            "ready" => Ok(Self::Ready),
            "deleting" => Ok(Self::Deleting),
            _ => Err(Error::internal("a Secret is in an unknown state")),
        }
    }
}

/// Metadata of a Secret.
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
    /// Where it stands.
    pub state: State,
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
