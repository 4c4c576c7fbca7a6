//! Statements about service keys.

use occ_api::ids::{IdentityId, KeyId};
use occ_api::types::ServiceKey;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::db;
use crate::error::Result;

/// A key to be stored.
pub(super) struct NewRow<'a> {
    pub(super) key: &'a ServiceKey,
    pub(super) hash: &'a [u8; 32],
    pub(super) created_by: &'a IdentityId,
    pub(super) created_at: OffsetDateTime,
    pub(super) expires_at: OffsetDateTime,
}

struct Raw {
    id: String,
    service_principal_id: String,
    namespace_id: Option<String>,
    name: String,
    prefix: String,
    created_at: OffsetDateTime,
    expires_at: OffsetDateTime,
    last_used_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
}

impl Raw {
    fn typed(self) -> Result<ServiceKey> {
        Ok(ServiceKey {
            id: db::id(&self.id)?,
            service_principal_id: db::id(&self.service_principal_id)?,
            namespace_id: db::id_opt(self.namespace_id.as_deref())?,
            name: self.name,
            prefix: self.prefix,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.into(),
            last_used_at: self.last_used_at.map(Into::into),
            revoked_at: self.revoked_at.map(Into::into),
        })
    }
}

/// Stores a key by its hash.
pub(super) async fn key_insert(tx: &mut PgConnection, new: &NewRow<'_>) -> Result<()> {
    sqlx::query!(
        "insert into occ.service_keys
           (id, service_principal_id, namespace_id, name, prefix, key_hash, created_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        new.key.id.as_str(),
        new.key.service_principal_id.as_str(),
        new.key.namespace_id.as_ref().map(|namespace| namespace.as_str()),
        new.key.name,
        new.key.prefix,
        new.hash.as_slice(),
        new.created_by.as_str(),
        new.created_at,
        new.expires_at,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A key by id.
pub(super) async fn key_find(conn: &mut PgConnection, id: &KeyId) -> Result<Option<ServiceKey>> {
    let row = sqlx::query_as!(
        Raw,
        "select id, service_principal_id, namespace_id, name, prefix, created_at, expires_at, last_used_at, revoked_at
           from occ.service_keys where id = $1",
        id.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Raw::typed).transpose()
}

/// Keys with their creation time, oldest first.
pub(super) async fn key_page(
    conn: &mut PgConnection,
    owner: Option<&str>,
    namespace: Option<&str>,
    after: (Option<OffsetDateTime>, Option<&str>),
    fetch: i64,
) -> Result<Vec<(OffsetDateTime, ServiceKey)>> {
    let rows = sqlx::query_as!(
        Raw,
        r#"select id, service_principal_id, namespace_id, name, prefix, created_at, expires_at, last_used_at, revoked_at
             from occ.service_keys
            where ($1::text is null or service_principal_id = $1) and ($2::text is null or namespace_id = $2)
              and ($3::timestamptz is null or (created_at, id) > ($3, $4::text collate "C"))
            order by created_at, id limit $5"#,
        owner,
        namespace,
        after.0,
        after.1,
        fetch,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((row.created_at, row.typed()?))).collect()
}

/// Revokes a key; a second revocation changes nothing.
pub(super) async fn key_revoke(tx: &mut PgConnection, id: &KeyId, at: OffsetDateTime) -> Result<bool> {
    let done = sqlx::query!(
        "update occ.service_keys set revoked_at = $2 where id = $1 and revoked_at is null",
        id.as_str(),
        at
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}
