//! Who calls and what they may do.
//!
//! A handler asks [`Iam::require`] before it looks anything up, and [`Iam::decide_again`] inside its
//! transaction after locking, so that a revocation committed first wins. The decision itself is
//! [`decide::decide`], pure, over the rows of one query; nothing outlives the request.
//!
//! - **Only this module makes a [`Scope`].**
//! - **An authority out of reach is 503, never a denial.**
//! - **A denial is appended to the audit log on its own; when that fails the answer is 503.** The denial
//!   is kept in the [`Caller`] and written by `http` once the handler has let go of its transaction.

pub mod access;
pub mod agent;
pub mod authn;
pub mod bindings;
mod caller;
pub mod check;
pub mod coverage;
pub mod decide;
pub mod keys;
mod lock;
mod policy;
pub mod roles;
mod rows;
#[cfg(test)]
mod sample;
mod scope;
pub mod service_principals;
mod store;
pub mod visible;

use std::sync::Arc;

use occ_api::ids::{IdentityId, NamespaceId};

pub use access::{Access, Action, Kind};
pub use agent::{agent_principal_create, exact_bindings_delete};
pub use caller::Caller;
pub use decide::{Decision, PrincipalRows, Reason};
pub use scope::Scope;
pub use visible::Visible;

use crate::app::App;
use crate::audit;
use crate::db::{PgConnection, Tx};
use crate::error::{Error, Result};
use crate::http::metrics::IamMetrics;

/// The door to every decision; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Iam {
    metrics: IamMetrics,
}

impl Iam {
    /// Counts invalid rows into `metrics`.
    #[must_use]
    pub fn new(metrics: IamMetrics) -> Self {
        Self { metrics }
    }

    /// Demands one permission of the caller.
    ///
    /// # Errors
    /// `FORBIDDEN`, audited; `DEPENDENCY_UNAVAILABLE` when the rows cannot be read.
    pub async fn require(&self, app: &App, caller: &Caller, access: &Access) -> Result<Scope> {
        self.require_all(app, caller, std::slice::from_ref(access)).await
    }

    /// Demands several permissions; the [`Scope`] carries the evidence of the first.
    ///
    /// # Errors
    /// As [`Iam::require`], about the first that is missing.
    pub async fn require_all(&self, app: &App, caller: &Caller, accesses: &[Access]) -> Result<Scope> {
        self.admit(caller, accesses)?;
        let rows = self.rows(app, caller, rows_namespace(accesses)).await?;
        self.judge(caller, &rows, accesses)
    }

    /// Decides again inside a transaction, after its locks, over rows loaded anew.
    ///
    /// # Errors
    /// As [`Iam::require`]; the denial is written after the transaction ended.
    pub async fn decide_again(&self, tx: &mut Tx, caller: &Caller, accesses: &[Access]) -> Result<Scope> {
        let rows = self.load(tx, &caller.identity, rows_namespace(accesses)).await?;
        self.judge(caller, &rows, accesses)
    }

    /// What an identity that is not the caller may do: an Agent's principal, the actor of work. Not audited.
    ///
    /// # Errors
    /// `DEPENDENCY_UNAVAILABLE` when the rows cannot be read.
    pub async fn holds(
        &self,
        conn: &mut PgConnection,
        identity: &IdentityId,
        access: &Access,
    ) -> Result<Decision> {
        let rows = self.load(conn, identity, access.namespace.as_ref()).await?;
        Ok(decide::decide(&rows, access))
    }

    /// The part of a list that the caller may see: in one Namespace, or across all.
    ///
    /// # Errors
    /// `FORBIDDEN`, audited, for a key that is confined to another Namespace;
    /// `DEPENDENCY_UNAVAILABLE` when the rows cannot be read.
    pub async fn visible(
        &self,
        app: &App,
        caller: &Caller,
        action: Action,
        kind: Kind,
        namespace: Option<&NamespaceId>,
    ) -> Result<Visible> {
        if caller.key_scope.is_some() && caller.key_scope.as_ref() != namespace {
            let access = namespace.map_or_else(
                || Access::installation(Action::Read, &app.installation),
                |namespace| Access::namespace(Action::Read, namespace),
            );
            return Err(self.refuse(caller, &access, Decision::refused(Reason::KeyScope)));
        }
        let rows = self.rows(app, caller, namespace).await?;
        Ok(visible::visible(&rows, action, kind, namespace))
    }

    /// Row 10 for lists and lookups that name no single permission: the identity must be known.
    ///
    /// # Errors
    /// `FORBIDDEN`, audited; `DEPENDENCY_UNAVAILABLE` when the rows cannot be read.
    pub async fn rows(
        &self,
        app: &App,
        caller: &Caller,
        namespace: Option<&NamespaceId>,
    ) -> Result<Arc<PrincipalRows>> {
        if let Some(rows) = caller.cached(namespace) {
            return Ok(rows);
        }
        let mut conn = app.db.acquire().await?;
        let rows = Arc::new(self.load(&mut conn, &caller.identity, namespace).await?);
        caller.cache(namespace.cloned(), Arc::clone(&rows));
        Ok(rows)
    }

    /// Notes an audited denial and makes its error, with the generic text.
    #[must_use]
    pub fn refuse(&self, caller: &Caller, access: &Access, decision: Decision) -> Error {
        caller.remember_denial(audit::Event::denial(caller, access, &decision));
        Error::forbidden()
    }

    /// The same with a text that names the cause: only for a missing grant of an Agent's principal,
    /// another actor's deletion, and grants that the caller's do not cover.
    #[must_use]
    pub fn refuse_naming(
        &self,
        caller: &Caller,
        access: &Access,
        decision: Decision,
        message: &str,
    ) -> Error {
        caller.remember_denial(audit::Event::denial(caller, access, &decision));
        Error::new(occ_api::error::ErrorCode::Forbidden, message)
    }

    /// The scope of work that the product does for itself in one Namespace.
    #[must_use]
    pub fn system_scope(identity: &IdentityId, namespace: &NamespaceId) -> Scope {
        Scope::system(identity.clone(), namespace)
    }

    /// Rows of one principal, on any connection.
    pub(crate) async fn load(
        &self,
        conn: &mut PgConnection,
        identity: &IdentityId,
        namespace: Option<&NamespaceId>,
    ) -> Result<PrincipalRows> {
        let raw = store::principal_rows(conn, identity, namespace).await?;
        let (rows, invalid) = rows::parse(raw);
        for row in invalid {
            self.metrics.invalid_row(row.record);
            tracing::warn!(record = row.record, id = row.id, "iam.invalid-row");
        }
        Ok(rows)
    }

    /// Row 10: a key that is confined to a Namespace admits requests about that Namespace alone.
    fn admit(&self, caller: &Caller, accesses: &[Access]) -> Result<()> {
        let Some(scope) = &caller.key_scope else {
            return Ok(());
        };
        match accesses.iter().find(|access| access.namespace.as_ref() != Some(scope)) {
            Some(outside) => Err(self.refuse(caller, outside, Decision::refused(Reason::KeyScope))),
            None => Ok(()),
        }
    }

    fn judge(&self, caller: &Caller, rows: &PrincipalRows, accesses: &[Access]) -> Result<Scope> {
        let mut first = None;
        for access in accesses {
            let decision = decide::decide(rows, access);
            if !decision.allowed {
                return Err(self.refuse(caller, access, decision));
            }
            first.get_or_insert_with(|| Scope::new(caller.identity.clone(), access.clone(), decision));
        }
        first.ok_or_else(|| Error::internal("a permission check without a permission"))
    }
}

/// The one Namespace that all questions are about, else none: then rows of every Namespace are read.
fn rows_namespace(accesses: &[Access]) -> Option<&NamespaceId> {
    let mut namespaces = accesses.iter().filter_map(|access| access.namespace.as_ref());
    let first = namespaces.next()?;
    namespaces.all(|namespace| namespace == first).then_some(first)
}
