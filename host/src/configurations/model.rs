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

impl Configuration {
    /// The resource as clients see it.
    #[must_use]
    pub fn to_wire(&self) -> types::Configuration {
        types::Configuration {
            id: self.id.clone(),
            namespace_id: self.namespace.clone(),
            kind: types::ConfigurationKind::Agent,
            generation: self.generation,
            values: Some(self.document.clone()),
            secret_bindings: bindings_wire(&self.namespace, &self.secret_bindings),
            created_at: Timestamp::from(self.created_at),
        }
    }
}

impl Summary {
    /// The resource in a list: neither `values` nor `secretBindings`.
    pub(super) fn to_wire(&self) -> types::Configuration {
        types::Configuration {
            id: self.id.clone(),
            namespace_id: self.namespace.clone(),
            kind: types::ConfigurationKind::Agent,
            generation: self.generation,
            values: None,
            secret_bindings: None,
            created_at: Timestamp::from(self.created_at),
        }
    }
}

/// Bindings as clients see them; absent when there are none.
#[must_use]
pub fn bindings_wire(
    namespace: &NamespaceId,
    bindings: &BTreeMap<String, SecretId>,
) -> Option<BTreeMap<String, types::SecretBinding>> {
    let wire = |id: &SecretId| types::SecretBinding {
        source: crate::secrets::reference(namespace, id),
        delivery: Some(types::Delivery::Env),
    };
    (!bindings.is_empty()).then(|| bindings.iter().map(|(name, id)| (name.clone(), wire(id))).collect())
}

/// Reads bindings of a body: every Secret must be of the path's Namespace.
pub(super) fn bindings_of(
    namespace: &NamespaceId,
    bindings: &BTreeMap<String, types::SecretBinding>,
) -> Result<BTreeMap<String, SecretId>, Vec<FieldError>> {
    let foreign: Vec<FieldError> = bindings
        .iter()
        .filter(|(_, binding)| binding.source.namespace_id != *namespace)
        .map(|(name, _)| {
            FieldError::new(format!("/secretBindings/{name}/source/namespaceId"), FieldCode::InvalidValue)
        })
        .collect();
    if !foreign.is_empty() {
        return Err(foreign);
    }
    Ok(bindings.iter().map(|(name, binding)| (name.clone(), binding.source.id.clone())).collect())
}

/// What is wrong with a document beyond its JSON: rules of `occ_api::document`, and its size.
pub(super) fn document_faults(values: &Value) -> Vec<FieldError> {
    let mut faults = occ_api::document::check(values);
    let bytes = serde_json::to_vec(values).map_or(usize::MAX, |text| text.len());
    if bytes > VALUES_BYTES_MAX {
        faults.push(FieldError::new("/values", FieldCode::TooLong));
    }
    faults
}
