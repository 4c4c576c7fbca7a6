//! AgentRevisions: what was frozen, for ever; deploy and rollback.
//!
//! - **A revision never changes**: there is no update here, none in SQL, and the schema refuses one.
//! - **Numbers only grow**: a rollback is a new revision with the snapshot of an old one.
//! - **What was read outside the transaction is compared inside it**; when it moved, the freeze
//!   starts over.

mod commit;
mod freeze;
pub mod model;
mod plan;
pub(crate) mod routes;
mod store;
pub(crate) mod work;

use occ_api::ids::{AgentId, RevisionId};

pub use model::{Revision, Snapshot};

use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::iam::Scope;

/// One revision of an Agent.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    id: &RevisionId,
) -> Result<Revision> {
    store::revision_get(conn, scope, agent, id).await?.ok_or_else(Error::not_found)
}
