//! Statements about principals: the one query of a decision, keys, locks, the last administrator.

use occ_api::ids::{AgentId, IdentityId, KeyId, NamespaceId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::rows::RawRow;
use crate::error::Result;

/// Rows of one principal, for one Namespace or for all. Two statements, so that each keeps its index.
pub(super) async fn principal_rows(
    conn: &mut PgConnection,
    identity: &IdentityId,
    namespace: Option<&NamespaceId>,
) -> Result<Vec<RawRow>> {
    match namespace {
        Some(namespace) => rows_of_namespace(conn, identity, namespace).await,
        None => rows_of_all(conn, identity).await,
    }
}

async fn rows_of_namespace(
    conn: &mut PgConnection,
    identity: &IdentityId,
    namespace: &NamespaceId,
) -> Result<Vec<RawRow>> {
    Ok(sqlx::query_as!(
        RawRow,
        r#"with grants as (
             select b.* from occ.iam_bindings b where b.identity_id = $1
             union all
             select b.* from occ.iam_group_members m
               join occ.iam_bindings b on b.group_id = m.group_id where m.principal_id = $1
           )
           select 'binding' as "record!", g.id as "id!", g.namespace_id, g.group_id, g.resource_kind, g.resource_id,
                  r.id as role_id, r.namespace_id as role_namespace_id,
                  array(select p.action || ' ' || p.resource_kind
                          from occ.iam_role_permissions p where p.role_id = r.id) as "pairs!"
             from grants g join occ.iam_roles r on r.id = g.role_id
            where g.namespace_id is null or g.namespace_id = $2
           union all
           select 'restriction', x.id, x.namespace_id, null, x.resource_kind, x.resource_id, null, null,
                  array[x.action || ' ' || x.resource_kind]
             from occ.iam_restrictions x
            where (x.identity_id is null or x.identity_id = $1) and (x.namespace_id is null or x.namespace_id = $2)
           union all
           select 'identity', i.id, i.namespace_id, i.agent_id, i.kind, u.disabled_at::text, null, null, '{}'
             from occ.iam_identities i left join occ.users u on u.principal_id = i.id where i.id = $1"#,
        identity.as_str(),
        namespace.as_str(),
    )
    .fetch_all(conn)
    .await?)
}

async fn rows_of_all(conn: &mut PgConnection, identity: &IdentityId) -> Result<Vec<RawRow>> {
    Ok(sqlx::query_as!(
        RawRow,
        r#"with grants as (
             select b.* from occ.iam_bindings b where b.identity_id = $1
             union all
             select b.* from occ.iam_group_members m
               join occ.iam_bindings b on b.group_id = m.group_id where m.principal_id = $1
           )
           select 'binding' as "record!", g.id as "id!", g.namespace_id, g.group_id, g.resource_kind, g.resource_id,
                  r.id as role_id, r.namespace_id as role_namespace_id,
                  array(select p.action || ' ' || p.resource_kind
                          from occ.iam_role_permissions p where p.role_id = r.id) as "pairs!"
             from grants g join occ.iam_roles r on r.id = g.role_id
           union all
           select 'restriction', x.id, x.namespace_id, null, x.resource_kind, x.resource_id, null, null,
                  array[x.action || ' ' || x.resource_kind]
             from occ.iam_restrictions x where x.identity_id is null or x.identity_id = $1
           union all
           select 'identity', i.id, i.namespace_id, i.agent_id, i.kind, u.disabled_at::text, null, null, '{}'
             from occ.iam_identities i left join occ.users u on u.principal_id = i.id where i.id = $1"#,
        identity.as_str(),
    )
    .fetch_all(conn)
    .await?)
}

/// A key that was found by its hash.
#[derive(Debug)]
pub(super) struct KeyRow {
    pub(super) id: String,
    pub(super) service_principal_id: String,
    pub(super) namespace_id: Option<String>,
    pub(super) owner_namespace_id: Option<String>,
    pub(super) last_used_at: Option<OffsetDateTime>,
}

/// The live key with this hash. Keys of Agents' principals do not exist; asking again costs nothing.
pub(super) async fn key_find(
    conn: &mut PgConnection,
    hash: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<KeyRow>> {
    Ok(sqlx::query_as!(
        KeyRow,
        r#"select k.id, k.service_principal_id, k.namespace_id, i.namespace_id as owner_namespace_id, k.last_used_at
             from occ.service_keys k join occ.iam_identities i on i.id = k.service_principal_id
            where k.key_hash = $1 and k.revoked_at is null and k.expires_at > $2 and i.keyable"#,
        hash.as_slice(),
        now,
    )
    .fetch_optional(conn)
    .await?)
}

/// Notes the use of a key, unless that was done after `before`.
pub(super) async fn key_touch(
    conn: &mut PgConnection,
    id: &KeyId,
    now: OffsetDateTime,
    before: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.service_keys set last_used_at = $2
          where id = $1 and revoked_at is null and (last_used_at is null or last_used_at < $3)",
        id.as_str(),
        now,
        before,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks the Installation for a change of its policy.
pub(super) async fn installation_lock(tx: &mut PgConnection) -> Result<()> {
    sqlx::query!("select id from occ.installation for update").fetch_optional(tx).await?;
    Ok(())
}

/// Locks the Installation against changes of its policy while one of a Namespace is made.
pub(super) async fn installation_share(tx: &mut PgConnection) -> Result<()> {
    sqlx::query!("select id from occ.installation for share").fetch_optional(tx).await?;
    Ok(())
}

/// Locks a Namespace; its status, or nothing when it is absent or a tombstone.
pub(super) async fn namespace_lock(tx: &mut PgConnection, id: &NamespaceId) -> Result<Option<String>> {
    let row = sqlx::query!(
        "select status from occ.namespaces where id = $1 and deleted_at is null for update",
        id.as_str()
    )
    .fetch_optional(tx)
    .await?;
    Ok(row.map(|row| row.status))
}

/// Does a Namespace exist?
pub(super) async fn namespace_exists(conn: &mut PgConnection, id: &NamespaceId) -> Result<bool> {
    let row = sqlx::query!(
        r#"select exists (select from occ.namespaces where id = $1 and deleted_at is null) as "exists!""#,
        id.as_str()
    )
    .fetch_one(conn)
    .await?;
    Ok(row.exists)
}

/// Does anybody enabled keep (administer, installation) at Installation scope?
pub(super) async fn administrator_remains(tx: &mut PgConnection) -> Result<bool> {
    let row = sqlx::query!(
        r#"select exists (
             select from occ.iam_bindings b
               join occ.iam_roles r on r.id = b.role_id and r.namespace_id is null
               join occ.iam_role_permissions p
                 on p.role_id = r.id and p.action = 'administer' and p.resource_kind = 'installation'
               left join occ.iam_group_members m on m.group_id = b.group_id
               join occ.iam_identities i
                 on i.id = coalesce(b.identity_id, m.principal_id) and i.agent_id is null and i.namespace_id is null
               left join occ.users u on u.principal_id = i.id
              where b.namespace_id is null and b.resource_kind is null and u.disabled_at is null
           ) as "remains!""#
    )
    .fetch_one(tx)
    .await?;
    Ok(row.remains)
}

/// Makes the principal of an Agent.
pub(super) async fn agent_principal_insert(
    tx: &mut PgConnection,
    id: &IdentityId,
    namespace: &NamespaceId,
    agent: &AgentId,
) -> Result<()> {
    sqlx::query!(
        "insert into occ.iam_identities (id, kind, namespace_id, agent_id) values ($1, 'service_principal', $2, $3)",
        id.as_str(),
        namespace.as_str(),
        agent.as_str(),
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Removes the bindings that name exactly this resource; their ids.
pub(super) async fn exact_bindings_delete(
    tx: &mut PgConnection,
    kind: &str,
    id: &str,
) -> Result<Vec<String>> {
    let rows = sqlx::query!(
        "delete from occ.iam_bindings where resource_kind = $1 and resource_id = $2 returning id",
        kind,
        id
    )
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Removes the Restrictions that name exactly this resource; their ids.
pub(super) async fn exact_restrictions_delete(
    tx: &mut PgConnection,
    kind: &str,
    id: &str,
) -> Result<Vec<String>> {
    let rows = sqlx::query!(
        "delete from occ.iam_restrictions where resource_kind = $1 and resource_id = $2 returning id",
        kind,
        id
    )
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}
