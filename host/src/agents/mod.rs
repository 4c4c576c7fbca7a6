//! Agents: what a tenant wants to run, and the revision that the worker committed to run.
//!
//! - **An edit changes the draft alone**: what runs is a frozen revision.
//! - **Exactly one ServicePrincipal belongs to each Agent**, made and removed with it.
//! - **Whoever changes an Agent holds its row lock**; deploys, stops and deletes of one Agent
//!   are one order, and each of them leaves one audit event.

mod model;
pub(crate) mod routes;
mod store;
pub(crate) mod work;

use occ_api::error::ErrorCode;
use occ_api::ids::{AgentId, RevisionId};
use time::OffsetDateTime;

pub use model::{Agent, Auth, Draft};

use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::iam::Scope;

/// One Agent, without a lock.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(conn: &mut PgConnection, scope: &Scope, id: &AgentId) -> Result<Agent> {
    store::agent_get(conn, scope, id).await?.ok_or_else(Error::not_found)
}

/// One Agent, locked; the Namespace is locked before it, the lane of its work after it.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn lock(tx: &mut PgConnection, scope: &Scope, id: &AgentId) -> Result<Agent> {
    store::agent_lock(tx, scope, id).await?.ok_or_else(Error::not_found)
}

/// Demands that an Agent is not being deleted.
///
/// # Errors
/// `AGENT_DELETING`.
pub fn demand_active(agent: &Agent) -> Result<()> {
    if agent.is_deleting() {
        return Err(Error::new(ErrorCode::AgentDeleting, "The Agent is being deleted."));
    }
    Ok(())
}

/// A locked Agent shall run; `number` is that of its newest revision.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn running_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    number: u64,
    at: OffsetDateTime,
) -> Result<()> {
    store::running_set(tx, scope, id, number, at).await
}

/// Moves the pointer of an Agent when it still has the value that the caller saw; false when it
/// has moved on. The entity tag stays: the worker is no editor.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn pointer_move(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    from: Option<&RevisionId>,
    to: Option<&RevisionId>,
    at: OffsetDateTime,
) -> Result<bool> {
    store::pointer_move(tx, scope, id, from, to, at).await
}
