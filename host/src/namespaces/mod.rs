//! Namespaces: the tenants of an Installation.
//!
//! ```text
//! provisioning ─► ready ─► deleting ─► tombstone
//!      └────────► failed ──┘   (retry: failed ─► provisioning)
//! ```
//!
//! - **A name is never free again**: the row stays as a tombstone.
//! - **A Namespace is deleted only when it is empty**, decided under its lock; whoever puts
//!   something in holds the same lock in shared mode.

mod deletion;
mod model;
pub(crate) mod routes;
mod store;
pub(crate) mod work;

use occ_api::error::ErrorCode;
use occ_api::ids::NamespaceId;
use occ_api::types::NamespaceStatus;
use time::OffsetDateTime;

pub use deletion::repeat_deletion;
pub use model::Namespace;

use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::iam::Scope;

/// One live Namespace, without a lock.
///
/// # Errors
/// `NOT_FOUND` for an absent or deleted one.
pub async fn get(conn: &mut PgConnection, id: &NamespaceId) -> Result<Namespace> {
    store::namespace_get(conn, id).await?.ok_or_else(Error::not_found)
}

/// Locks a Namespace in shared mode, so that its status stays until the transaction ends, and
/// demands that contents may be made in it.
///
/// # Errors
/// `NOT_FOUND`; `RESOURCE_CONFLICT` in a failed or deleting Namespace.
pub async fn lock_for_contents(tx: &mut PgConnection, id: &NamespaceId) -> Result<Namespace> {
    let namespace = store::namespace_lock_shared(tx, id).await?.ok_or_else(Error::not_found)?;
    if namespace.accepts_contents() {
        return Ok(namespace);
    }
    Err(Error::conflict(match namespace.status {
        NamespaceStatus::Deleting => "The Namespace is being deleted.",
        _ => "The Namespace failed to be made ready; retry its work or delete it.",
    }))
}

/// The same, and demands that the Namespace is ready.
///
/// # Errors
/// `NOT_FOUND`; `NAMESPACE_NOT_READY`.
pub async fn lock_ready(tx: &mut PgConnection, id: &NamespaceId) -> Result<Namespace> {
    let namespace = store::namespace_lock_shared(tx, id).await?.ok_or_else(Error::not_found)?;
    demand_ready(&namespace)?;
    Ok(namespace)
}

/// Demands that a Namespace that was read is ready.
///
/// # Errors
/// `NAMESPACE_NOT_READY`.
pub fn demand_ready(namespace: &Namespace) -> Result<()> {
    match namespace.status {
        NamespaceStatus::Ready => Ok(()),
        _ => Err(Error::new(ErrorCode::NamespaceNotReady, "The Namespace is not ready.")),
    }
}

/// Locks a Namespace against every other writer: for the worker's publishing transactions.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn lock(tx: &mut PgConnection, id: &NamespaceId) -> Result<Option<Namespace>> {
    store::namespace_lock(tx, id).await
}

/// Moves the status of a Namespace that the transaction has locked; the schema refuses
/// transitions that the state diagram does not have.
///
/// # Errors
/// `INTERNAL_ERROR` for a transition that does not exist.
pub async fn status_set(
    tx: &mut PgConnection,
    scope: &Scope,
    status: NamespaceStatus,
    at: OffsetDateTime,
) -> Result<()> {
    store::namespace_status_set(tx, scope, status, at).await
}
