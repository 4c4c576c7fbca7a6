//! Statements of the HTTP layer: idempotency keys and readiness.

use occ_api::ids::IdentityId;
use serde_json::value::RawValue;
use sqlx::PgConnection;
use sqlx::types::Json;

use super::idempotency::{Found, Reservation, Stored, Wanted};
use super::query::integer;
use crate::error::Result;

/// Takes a free, lapsed or expired key. A lapsed key is taken over by an equal request only and keeps its resource.
pub(super) async fn reservation_insert(conn: &mut PgConnection, wanted: &Wanted<'_>) -> Result<Found> {
    let Reservation { principal, scope, key, id } = wanted.reservation;
    let reserved = sqlx::query!(
        r#"insert into occ.idempotency_keys as k
             (principal_id, scope, key, request_hash, reservation, state, locked_until, resource_id, created_at, expires_at)
           values ($1, $2, $3, $4, $5, 'running', $6, $7, $8, $9)
           on conflict (principal_id, scope, key) do update
              set request_hash = excluded.request_hash, reservation = excluded.reservation, state = 'running',
                  locked_until = excluded.locked_until, status = null, etag = null, data = null,
                  resource_id = case when k.expires_at <= $8 then excluded.resource_id
                                     else coalesce(k.resource_id, excluded.resource_id) end,
                  created_at = excluded.created_at, expires_at = excluded.expires_at
            where k.expires_at <= $8
               or (k.state = 'running' and k.locked_until <= $8 and k.request_hash = excluded.request_hash)
           returning resource_id"#,
        principal.as_str(),
        scope,
        key,
        wanted.request_hash.as_slice(),
        id,
        wanted.locked_until,
        wanted.resource_id,
        wanted.now,
        wanted.expires_at,
    )
    .fetch_optional(&mut *conn)
    .await?;
    match reserved {
        Some(row) => Ok(Found::Reserved { resource_id: row.resource_id }),
        None => Ok(stored(conn, principal, scope, key).await?.map_or(Found::Gone, Found::Taken)),
    }
}

async fn stored(
    conn: &mut PgConnection,
    principal: &IdentityId,
    scope: &str,
    key: &str,
) -> Result<Option<Stored>> {
    let row = sqlx::query!(
        r#"select request_hash, status, etag, data as "data: Json<Box<RawValue>>", resource_id
             from occ.idempotency_keys where principal_id = $1 and scope = $2 and key = $3"#,
        principal.as_str(),
        scope,
        key,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Stored {
        request_hash: row.request_hash,
        status: row.status.and_then(|status| u16::try_from(status).ok()),
        version: row.etag.as_deref().and_then(version),
        data: row.data.map(|Json(data)| data),
        resource_id: row.resource_id,
    }))
}

fn version(tag: &str) -> Option<u64> {
    integer(tag.strip_prefix("\"v")?.strip_suffix('"')?)
}

/// Stores the answer; false when the key is no longer this reservation's.
pub(super) async fn reservation_complete(
    tx: &mut PgConnection,
    reservation: &Reservation,
    status: u16,
    etag: Option<&str>,
    data: Option<&str>,
    resource_id: Option<&str>,
) -> Result<bool> {
    let done = sqlx::query!(
        r#"update occ.idempotency_keys
              set state = 'completed', status = $5, etag = $6, data = $7::text::jsonb, resource_id = coalesce($8, resource_id)
            where principal_id = $1 and scope = $2 and key = $3 and reservation = $4 and state = 'running'"#,
        reservation.principal.as_str(),
        reservation.scope,
        reservation.key,
        reservation.id,
        i16::try_from(status).ok(),
        etag,
        data,
        resource_id,
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Frees a key whose request was refused.
pub(super) async fn reservation_delete(conn: &mut PgConnection, reservation: &Reservation) -> Result<()> {
    sqlx::query!(
        r#"delete from occ.idempotency_keys
            where principal_id = $1 and scope = $2 and key = $3 and reservation = $4 and state = 'running'"#,
        reservation.principal.as_str(),
        reservation.scope,
        reservation.key,
        reservation.id,
    )
    .execute(conn)
    .await?;
    Ok(())
}
