//! Statements about the Installation.

use occ_api::types::Installation;
use sqlx::PgConnection;

use crate::db;
use crate::error::Result;

/// The Installation; absent before bootstrap.
pub(super) async fn installation_get(conn: &mut PgConnection) -> Result<Option<Installation>> {
    let row = sqlx::query!("select id, name, created_at from occ.installation").fetch_optional(conn).await?;
    row.map(|row| {
        Ok(Installation { id: db::id(&row.id)?, name: row.name, created_at: row.created_at.into() })
    })
    .transpose()
}
