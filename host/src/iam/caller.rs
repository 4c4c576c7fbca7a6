//! Who sends a request: identity, key scope, and what IAM learned about it during the request.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use occ_api::ids::{IdentityId, KeyId, NamespaceId, RequestId};

use super::decide::PrincipalRows;
use crate::audit;

/// An authenticated caller. Cheap to clone; clones share the rows of the request.
#[derive(Clone)]
pub struct Caller {
    /// The identity that decisions are about.
    pub identity: IdentityId,
    /// The service key that was presented.
    pub key: Option<KeyId>,
    /// The Namespace that the key is confined to.
    pub key_scope: Option<NamespaceId>,
    /// The request.
    pub request_id: RequestId,
    /// Audit action of the operation, without which a denial names the pair it asked for.
    pub(crate) audit_action: Option<&'static str>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    rows: Mutex<Vec<CachedRows>>,
    denials: Mutex<Vec<audit::Event>>,
}

#[derive(Clone)]
struct CachedRows {
    namespace: Option<NamespaceId>,
    rows: Arc<PrincipalRows>,
}

impl Caller {
    /// A caller whose credential was verified.
    #[must_use]
    pub fn new(
        identity: IdentityId,
        key: Option<KeyId>,
        key_scope: Option<NamespaceId>,
        request_id: RequestId,
    ) -> Self {
        Self { identity, key, key_scope, request_id, audit_action: None, state: Arc::default() }
    }

    /// Names the audit action of the operation that is being served.
    #[must_use]
    pub(crate) fn doing(mut self, audit_action: Option<&'static str>) -> Self {
        self.audit_action = audit_action;
        self
    }

    /// Rows of this request that answer questions about `namespace`; rows of all Namespaces answer any.
    pub(super) fn cached(&self, namespace: Option<&NamespaceId>) -> Option<Arc<PrincipalRows>> {
        let cached = self.state.rows.lock().unwrap_or_else(PoisonError::into_inner);
        cached
            .iter()
            .find(|entry| entry.namespace.is_none() || entry.namespace.as_ref() == namespace)
            .map(|entry| Arc::clone(&entry.rows))
    }

    pub(super) fn cache(&self, namespace: Option<NamespaceId>, rows: Arc<PrincipalRows>) {
        let mut cached = self.state.rows.lock().unwrap_or_else(PoisonError::into_inner);
        cached.push(CachedRows { namespace, rows });
    }

    /// Keeps a denial until the request ends: it is appended on its own, after the handler let go
    /// of its transaction.
    pub(super) fn remember_denial(&self, event: audit::Event) {
        self.state.denials.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Takes the denials of the request, for the one place that writes them.
    #[must_use]
    pub(crate) fn take_denials(&self) -> Vec<audit::Event> {
        std::mem::take(&mut *self.state.denials.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("identity", &self.identity)
            .field("key", &self.key)
            .field("key_scope", &self.key_scope)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}
