//! What a Configuration is.

use std::collections::BTreeMap;

use occ_api::error::{FieldCode, FieldError};
use occ_api::ids::{ConfigurationId, NamespaceId, SecretId};
use occ_api::time::Timestamp;
use occ_api::types;
use serde_json::Value;
use time::OffsetDateTime;

/// Longest compact form of `values`, in bytes: it must fit one ConfigMap.
pub(super) const VALUES_BYTES_MAX: usize = 1_000_000;

/// A native configuration document and the Secrets that it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// Its id.
    pub id: ConfigurationId,
    /// Its Namespace.
    pub namespace: NamespaceId,
    /// 1, then one more with each edit; the entity tag.
    pub generation: u64,
    /// The document, references unresolved.
    pub document: Value,
    /// Environment name -> Secret.
    pub secret_bindings: BTreeMap<String, SecretId>,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// A Configuration in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) id: ConfigurationId,
    pub(super) namespace: NamespaceId,
    pub(super) generation: u64,
    pub(super) created_at: OffsetDateTime,
}
