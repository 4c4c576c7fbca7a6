//! What a process reads of the database before it serves.

use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::error::Result;

/// Version of the schema and the oldest version whose binary works on it.
pub(super) async fn schema_state(conn: &mut PgConnection) -> Result<Option<(i64, i64)>> {
    let row =
        sqlx::query!("select version, compatible_from from occ.schema_state").fetch_optional(conn).await?;
    Ok(row.map(|row| (row.version, row.compatible_from)))
}

/// The Installation of this database.
pub(super) async fn installation(conn: &mut PgConnection) -> Result<Option<(String, OffsetDateTime)>> {
    let row = sqlx::query!("select id, created_at from occ.installation").fetch_optional(conn).await?;
    Ok(row.map(|row| (row.id, row.created_at)))
}
