//! Statements about the metadata of Secrets. Values are `secret_store`'s alone.

use occ_api::ids::{AgentId, ConfigurationId, IdentityId, SecretId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{NewSecret, Secret};
use crate::db;
use crate::error::{Error, Result};
use crate::iam::{Scope, Visible};

struct Row {
    id: String,
    namespace_id: String,
    name: String,
    store: String,
    version: i64,
    backend_uid: Option<String>,
    created_at: OffsetDateTime,
}

impl TryFrom<Row> for Secret {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: db::id(&row.id)?,
            namespace: db::id(&row.namespace_id)?,
            name: row.name,
            store: row.store,
            version: db::count(row.version)?,
            backend_uid: row.backend_uid,
            created_at: row.created_at,
        })
    }
}

/// Inserts a Secret as `writing`: nobody sees it until [`secret_ready`]. False when the name is taken.
pub(super) async fn secret_insert(
    tx: &mut PgConnection,
    scope: &Scope,
    new: &NewSecret,
    created_by: &IdentityId,
) -> Result<bool> {
    let done = sqlx::query!(
        "insert into occ.secrets (id, namespace_id, name, store, created_by, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6) on conflict (namespace_id, name) do nothing",
        new.id.as_str(),
        scope.namespace()?.as_str(),
        new.name,
        new.store,
        created_by.as_str(),
        new.created_at
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// One Secret that is ready.
pub(super) async fn secret_get(
    conn: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
) -> Result<Option<Secret>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, store, version, backend_uid, created_at from occ.secrets
          where namespace_id = $1 and id = $2 and state = 'ready'",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(Secret::try_from)
    .transpose()
}

/// One Secret that is ready, locked.
pub(super) async fn secret_lock(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
) -> Result<Option<Secret>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, store, version, backend_uid, created_at from occ.secrets
          where namespace_id = $1 and id = $2 and state = 'ready' for update",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(tx)
    .await?
    .map(Secret::try_from)
    .transpose()
}

/// Those of `ids` that are ready, locked against deletion until the transaction ends.
pub(super) async fn secrets_lock_shared(
    tx: &mut PgConnection,
    scope: &Scope,
    ids: &[String],
) -> Result<Vec<Secret>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, store, version, backend_uid, created_at from occ.secrets
          where namespace_id = $1 and id = any($2) and state = 'ready' order by id for share",
        scope.namespace()?.as_str(),
        ids
    )
    .fetch_all(tx)
    .await?
    .into_iter()
    .map(Secret::try_from)
    .collect()
}

/// Those of `ids` that are ready.
pub(super) async fn secrets_get(
    conn: &mut PgConnection,
    scope: &Scope,
    ids: &[String],
) -> Result<Vec<Secret>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, store, version, backend_uid, created_at from occ.secrets
          where namespace_id = $1 and id = any($2) and state = 'ready' order by id",
        scope.namespace()?.as_str(),
        ids
    )
    .fetch_all(conn)
    .await?
    .into_iter()
    .map(Secret::try_from)
    .collect()
}

/// Ready Secrets that the caller may read, oldest first.
pub(super) async fn secret_page(
    conn: &mut PgConnection,
    scope: &Scope,
    visible: &Visible,
    after: (Option<OffsetDateTime>, Option<&str>),
    limit: i64,
) -> Result<Vec<Secret>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, store, version, backend_uid, created_at from occ.secrets
          where namespace_id = $1 and state = 'ready' and ($2 or id = any($3)) and not (id = any($4))
            and ($5::timestamptz is null or (created_at, id) > ($5, $6))
          order by created_at, id limit $7",
        scope.namespace()?.as_str(),
        visible.all,
        &visible.only,
        &visible.except,
        after.0,
        after.1,
        limit
    )
    .fetch_all(conn)
    .await?
    .into_iter()
    .map(Secret::try_from)
    .collect()
}

/// Makes a Secret visible, its value stored.
pub(super) async fn secret_ready(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
    at: OffsetDateTime,
) -> Result<Secret> {
    sqlx::query_as!(
        Row,
        "update occ.secrets set state = 'ready', updated_at = $3
          where namespace_id = $1 and id = $2 and state = 'writing'
         returning id, namespace_id, name, store, version, backend_uid, created_at",
        scope.namespace()?.as_str(),
        id.as_str(),
        at
    )
    .fetch_one(tx)
    .await?
    .try_into()
}

/// The value of a locked Secret is another one now.
pub(super) async fn version_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
    version: u64,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.secrets set version = $3, updated_at = $4 where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str(),
        db::bigint(version)?,
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Removes a locked Secret; its value goes with it.
pub(super) async fn secret_delete(tx: &mut PgConnection, scope: &Scope, id: &SecretId) -> Result<()> {
    sqlx::query!(
        "delete from occ.secrets where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Configurations that bind the Secret, by id.
pub(super) async fn binding_configurations(
    conn: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
    limit: i64,
) -> Result<Vec<ConfigurationId>> {
    let rows = sqlx::query_scalar!(
        "select distinct configuration_id from occ.configuration_secret_bindings
          where namespace_id = $1 and secret_id = $2 order by configuration_id limit $3",
        scope.namespace()?.as_str(),
        id.as_str(),
        limit
    )
    .fetch_all(conn)
    .await?;
    db::ids(&rows)
}

/// Agents that use the Secret: by their draft, by the active revision, or by a deployment
/// that is not settled. By id.
pub(super) async fn using_agents(
    conn: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
    limit: i64,
) -> Result<Vec<AgentId>> {
    let rows = sqlx::query_scalar!(
        r#"select a.id from occ.agents a
            where a.namespace_id = $1
              and (a.harness_secret_id = $2
                or exists (
                  select 1 from occ.agent_revisions r
                   where r.namespace_id = a.namespace_id and r.agent_id = a.id
                     and (r.id = a.active_revision_id
                       or exists (select 1 from occ.work w
                                   where w.namespace_id = r.namespace_id and w.agent_id = r.agent_id
                                     and w.revision_id = r.id and w.state in ('queued', 'claimed')))
                     and r.snapshot -> 'secrets' @> jsonb_build_array(jsonb_build_object('id', $2::text))))
            order by a.id limit $3"#,
        scope.namespace()?.as_str(),
        id.as_str(),
        limit
    )
    .fetch_all(conn)
    .await?;
    db::ids(&rows)
}
