//! Configurations: native documents of tenants, and the Secrets that they are given.
//!
//! - **A document is stored as it was sent**: references stay unresolved, nothing is filled in.
//! - **Every edit moves the generation by one**; it is the entity tag.
//! - A Configuration that an Agent's draft names cannot be deleted.

mod model;
pub(crate) mod routes;
mod store;

use occ_api::ids::ConfigurationId;

pub use model::{Configuration, bindings_wire};

use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::iam::Scope;

/// One Configuration with its bindings, without a lock.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(conn: &mut PgConnection, scope: &Scope, id: &ConfigurationId) -> Result<Configuration> {
    store::configuration_get(conn, scope, id).await?.ok_or_else(Error::not_found)
}

/// Keeps a Configuration from being edited or deleted until the transaction ends; answers its
/// generation.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn lock_shared(tx: &mut PgConnection, scope: &Scope, id: &ConfigurationId) -> Result<u64> {
    store::generation_lock_shared(tx, scope, id).await?.ok_or_else(Error::not_found)
}
