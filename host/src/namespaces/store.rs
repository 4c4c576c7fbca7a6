//! Statements about Namespaces.

use occ_api::ids::{IdentityId, NamespaceId, RequestId};
use occ_api::types::NamespaceStatus;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{Content, ContentKind, Namespace, NewNamespace};
use crate::db;
use crate::error::{Error, Result};
use crate::iam::{Scope, Visible};

/// Ids that one kind contributes to the message about a Namespace that is not empty.
const CONTENT_IDS_MAX: i32 = 8;

struct Row {
    id: String,
    name: String,
    existing_namespace: Option<String>,
    status: String,
    created_at: OffsetDateTime,
}

impl TryFrom<Row> for Namespace {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: db::id(&row.id)?,
            name: row.name,
            existing_namespace: row.existing_namespace,
            status: db::word(&row.status)?,
            created_at: row.created_at,
        })
    }
}

/// Inserts a Namespace as `provisioning`; false when the name is taken.
pub(super) async fn namespace_insert(tx: &mut PgConnection, new: &NewNamespace) -> Result<bool> {
    let done = sqlx::query!(
        "insert into occ.namespaces (id, name, existing_namespace, created_at, updated_at) values ($1, $2, $3, $4, $4)
         on conflict (name) do nothing",
        new.id.as_str(),
        new.name,
        new.existing_namespace,
        new.created_at
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Is the name held by a Namespace that was deleted?
pub(super) async fn name_is_tombstone(tx: &mut PgConnection, name: &str) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select 1 from occ.namespaces where name = $1 and deleted_at is not null) as "found!""#,
        name
    )
    .fetch_one(tx)
    .await?;
    Ok(found)
}

/// How many Namespaces live.
pub(super) async fn namespace_count(tx: &mut PgConnection) -> Result<u64> {
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from occ.namespaces where deleted_at is null"#)
            .fetch_one(tx)
            .await?;
    db::count(count)
}

/// One live Namespace.
pub(super) async fn namespace_get(conn: &mut PgConnection, id: &NamespaceId) -> Result<Option<Namespace>> {
    sqlx::query_as!(
        Row,
        "select id, name, existing_namespace, status, created_at from occ.namespaces
          where id = $1 and deleted_at is null",
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(Namespace::try_from)
    .transpose()
}

/// Locks a live Namespace against every other writer.
pub(super) async fn namespace_lock(tx: &mut PgConnection, id: &NamespaceId) -> Result<Option<Namespace>> {
    sqlx::query_as!(
        Row,
        "select id, name, existing_namespace, status, created_at from occ.namespaces
          where id = $1 and deleted_at is null for update",
        id.as_str()
    )
    .fetch_optional(tx)
    .await?
    .map(Namespace::try_from)
    .transpose()
}

/// Locks a live Namespace so that its status stays; others may hold it the same way.
pub(super) async fn namespace_lock_shared(
    tx: &mut PgConnection,
    id: &NamespaceId,
) -> Result<Option<Namespace>> {
    sqlx::query_as!(
        Row,
        "select id, name, existing_namespace, status, created_at from occ.namespaces
          where id = $1 and deleted_at is null for share",
        id.as_str()
    )
    .fetch_optional(tx)
    .await?
    .map(Namespace::try_from)
    .transpose()
}

/// Live Namespaces that the caller may read, oldest first.
pub(super) async fn namespace_page(
    conn: &mut PgConnection,
    visible: &Visible,
    after: (Option<OffsetDateTime>, Option<&str>),
    limit: i64,
) -> Result<Vec<Namespace>> {
    sqlx::query_as!(
        Row,
        "select id, name, existing_namespace, status, created_at from occ.namespaces
          where deleted_at is null and ($1 or id = any($2)) and not (id = any($3))
            and ($4::timestamptz is null or (created_at, id) > ($4, $5))
          order by created_at, id limit $6",
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
    .map(Namespace::try_from)
    .collect()
}

/// Moves the status of a Namespace that the transaction has locked.
pub(super) async fn namespace_status_set(
    tx: &mut PgConnection,
    scope: &Scope,
    status: NamespaceStatus,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.namespaces set status = $2, updated_at = $3 where id = $1",
        scope.namespace()?.as_str(),
        db::word_text(&status)?,
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// What keeps a Namespace from being deleted: per kind the count and the first ids.
pub(super) async fn contents(tx: &mut PgConnection, scope: &Scope) -> Result<Vec<Content>> {
    let rows = sqlx::query!(
        r#"with held as (
             select 'agent' as kind, id, created_at from occ.agents where namespace_id = $1
             union all
             select 'configuration', id, created_at from occ.configurations where namespace_id = $1
             union all
             select 'secret', id, created_at from occ.secrets where namespace_id = $1
           )
           select kind as "kind!", count(*) as "count!",
                  (array_agg(id order by created_at, id))[1:$2] as "ids!: Vec<String>"
             from held group by kind order by kind"#,
        scope.namespace()?.as_str(),
        CONTENT_IDS_MAX
    )
    .fetch_all(tx)
    .await?;
    rows.into_iter()
        .map(|row| {
            let kind = match row.kind.as_str() {
                "agent" => ContentKind::Agent,
                "configuration" => ContentKind::Configuration,
                _ => ContentKind::Secret,
            };
            Ok(Content { kind, count: db::count(row.count)?, ids: row.ids })
        })
        .collect()
}

/// Gives a failed deletion to another actor and queues it again; the database writes the event.
pub(super) async fn work_take_over(
    tx: &mut PgConnection,
    key: &str,
    actor: &IdentityId,
    request: &RequestId,
) -> Result<()> {
    sqlx::query_scalar!(
        r#"select occ.work_take_over($1, $2, $3, null) as "taken!""#,
        key,
        actor.as_str(),
        request.as_str()
    )
    .fetch_one(tx)
    .await?;
    Ok(())
}
