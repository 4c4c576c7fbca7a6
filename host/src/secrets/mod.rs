//! Secrets: names for values that nobody reads back.
//!
//! ```text
//! writing ─► ready ─► gone
//! ```
//!
//! - **Only a ready Secret is visible and bindable**: row and value become visible together.
//! - **A Secret in use is not deleted**: bindings, drafts, the active revision and pending
//!   deployments hold it; old revisions do not.

mod model;
pub(crate) mod routes;
mod store;

use std::collections::BTreeSet;

use occ_api::ids::SecretId;

pub use model::{Secret, reference};

use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::iam::Scope;

/// Those of `ids` that are ready, in the order of their ids.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn get_ready(
    conn: &mut PgConnection,
    scope: &Scope,
    ids: &BTreeSet<SecretId>,
) -> Result<Vec<Secret>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    store::secrets_get(conn, scope, &texts(ids)).await
}

/// Keeps Secrets from being deleted until the transaction ends; answers those that are ready.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn lock_shared(
    tx: &mut PgConnection,
    scope: &Scope,
    ids: &BTreeSet<SecretId>,
) -> Result<Vec<Secret>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    store::secrets_lock_shared(tx, scope, &texts(ids)).await
}

/// The same, and demands that all of them are there.
///
/// # Errors
/// `NOT_FOUND` when one of them is not ready in this Namespace.
pub async fn demand_shared(tx: &mut PgConnection, scope: &Scope, ids: &BTreeSet<SecretId>) -> Result<()> {
    let found = lock_shared(tx, scope, ids).await?;
    if found.len() == ids.len() { Ok(()) } else { Err(Error::not_found()) }
}

fn texts(ids: &BTreeSet<SecretId>) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}
