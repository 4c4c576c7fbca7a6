//! What a process reads of the database before it serves.

use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::error::Result;

/// The Installation of this database.
pub(super) async fn installation(conn: &mut PgConnection) -> Result<Option<(String, OffsetDateTime)>> {
    let row = sqlx::query!("select id, created_at from occ.installation").fetch_optional(conn).await?;
    Ok(row.map(|row| (row.id, row.created_at)))
}
