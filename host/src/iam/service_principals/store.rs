//! Statements about ServicePrincipals.

use occ_api::ids::{IdentityId, KeyId, NamespaceId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::db;
use crate::error::Result;

/// A stored ServicePrincipal.
#[derive(Debug)]
pub(in crate::iam) struct Stored {
    pub(in crate::iam) id: IdentityId,
    pub(in crate::iam) namespace: Option<NamespaceId>,
    pub(in crate::iam) of_agent: bool,
    pub(super) created_at: OffsetDateTime,
}

struct Raw {
    id: String,
    namespace_id: Option<String>,
    agent_id: Option<String>,
    created_at: OffsetDateTime,
}

impl Raw {
    fn typed(self) -> Result<Stored> {
        Ok(Stored {
            id: db::id(&self.id)?,
            namespace: db::id_opt(self.namespace_id.as_deref())?,
            of_agent: self.agent_id.is_some(),
            created_at: self.created_at,
        })
    }
}

/// Stores a ServicePrincipal.
pub(super) async fn principal_insert(
    tx: &mut PgConnection,
    id: &IdentityId,
    namespace: Option<&NamespaceId>,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "insert into occ.iam_identities (id, kind, namespace_id, created_at) values ($1, 'service_principal', $2, $3)",
        id.as_str(),
        namespace.map(|namespace| namespace.as_str()),
        at,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A ServicePrincipal by id, whatever its level.
pub(in crate::iam) async fn principal_find(conn: &mut PgConnection, id: &str) -> Result<Option<Stored>> {
    let row = sqlx::query_as!(
        Raw,
        "select id, namespace_id, agent_id, created_at from occ.iam_identities
          where id = $1 and kind = 'service_principal'",
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Raw::typed).transpose()
}

/// ServicePrincipals of exactly one level without those of Agents, oldest first.
pub(super) async fn principal_page(
    conn: &mut PgConnection,
    namespace: Option<&NamespaceId>,
    after: (Option<OffsetDateTime>, Option<&str>),
    fetch: i64,
) -> Result<Vec<Stored>> {
    let rows = sqlx::query_as!(
        Raw,
        r#"select id, namespace_id, agent_id, created_at from occ.iam_identities
            where kind = 'service_principal' and agent_id is null and namespace_id is not distinct from $1::text
              and ($2::timestamptz is null or (created_at, id) > ($2, $3::text collate "C"))
            order by created_at, id limit $4"#,
        namespace.map(|namespace| namespace.as_str()),
        after.0,
        after.1,
        fetch,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Raw::typed).collect()
}

/// Removes every key of a ServicePrincipal; their ids.
pub(super) async fn keys_of_delete(tx: &mut PgConnection, id: &IdentityId) -> Result<Vec<KeyId>> {
    let rows = sqlx::query!(
        "delete from occ.service_keys where service_principal_id = $1 returning id",
        id.as_str()
    )
    .fetch_all(tx)
    .await?;
    rows.iter().map(|row| db::id(&row.id)).collect()
}

/// Removes a ServicePrincipal; its Restrictions go with it.
pub(super) async fn principal_delete(tx: &mut PgConnection, id: &IdentityId) -> Result<()> {
    sqlx::query!("delete from occ.iam_identities where id = $1", id.as_str()).execute(tx).await?;
    Ok(())
}
