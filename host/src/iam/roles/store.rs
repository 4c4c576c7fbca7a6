//! Statements about Roles.

use std::collections::BTreeSet;

use occ_api::ids::{NamespaceId, RoleId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::db;
use crate::error::Result;
use crate::iam::access::Pair;

/// A stored Role.
#[derive(Debug)]
pub(in crate::iam) struct RoleRow {
    pub(in crate::iam) id: RoleId,
    pub(in crate::iam) namespace: Option<NamespaceId>,
    pub(super) name: Option<String>,
    pub(super) created_at: OffsetDateTime,
    pub(in crate::iam) pairs: BTreeSet<Pair>,
}

struct Raw {
    id: String,
    namespace_id: Option<String>,
    name: Option<String>,
    created_at: OffsetDateTime,
    pairs: Vec<String>,
}

impl Raw {
    fn typed(self) -> Result<RoleRow> {
        let pair = |text: &String| {
            let (action, kind) = text.split_once(' ')?;
            Some((action.parse().ok()?, kind.parse().ok()?))
        };
        Ok(RoleRow {
            id: db::id(&self.id)?,
            namespace: db::id_opt(self.namespace_id.as_deref())?,
            name: self.name,
            created_at: self.created_at,
            pairs: self.pairs.iter().filter_map(pair).collect(),
        })
    }
}

/// Stores a Role with its permissions.
pub(super) async fn role_insert(tx: &mut PgConnection, role: &RoleRow) -> Result<()> {
    sqlx::query!(
        "insert into occ.iam_roles (id, namespace_id, name, created_at) values ($1, $2, $3, $4)",
        role.id.as_str(),
        role.namespace.as_ref().map(|namespace| namespace.as_str()),
        role.name,
        role.created_at,
    )
    .execute(&mut *tx)
    .await?;
    let (actions, kinds): (Vec<String>, Vec<String>) =
        role.pairs.iter().map(|(action, kind)| (action.to_string(), kind.to_string())).unzip();
    sqlx::query!(
        "insert into occ.iam_role_permissions (role_id, action, resource_kind)
         select $1, action, kind from unnest($2::text[], $3::text[]) as pair (action, kind)",
        role.id.as_str(),
        &actions,
        &kinds,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A Role by id, whatever its level.
pub(in crate::iam) async fn role_find(conn: &mut PgConnection, id: &RoleId) -> Result<Option<RoleRow>> {
    let row = sqlx::query_as!(
        Raw,
        r#"select r.id, r.namespace_id, r.name, r.created_at,
                  array(select p.action || ' ' || p.resource_kind
                          from occ.iam_role_permissions p where p.role_id = r.id) as "pairs!"
             from occ.iam_roles r where r.id = $1"#,
        id.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Raw::typed).transpose()
}

/// Roles of exactly one level, oldest first.
pub(super) async fn role_page(
    conn: &mut PgConnection,
    namespace: Option<&NamespaceId>,
    after: (Option<OffsetDateTime>, Option<&str>),
    fetch: i64,
) -> Result<Vec<RoleRow>> {
    let rows = sqlx::query_as!(
        Raw,
        r#"select r.id, r.namespace_id, r.name, r.created_at,
                  array(select p.action || ' ' || p.resource_kind
                          from occ.iam_role_permissions p where p.role_id = r.id) as "pairs!"
             from occ.iam_roles r
            where r.namespace_id is not distinct from $1::text
              and ($2::timestamptz is null or (r.created_at, r.id) > ($2, $3::text collate "C"))
            order by r.created_at, r.id limit $4"#,
        namespace.map(|namespace| namespace.as_str()),
        after.0,
        after.1,
        fetch,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Raw::typed).collect()
}

/// Does a binding name the Role?
pub(super) async fn role_is_bound(tx: &mut PgConnection, id: &RoleId) -> Result<bool> {
    let row = sqlx::query!(
        r#"select exists (select from occ.iam_bindings where role_id = $1) as "bound!""#,
        id.as_str()
    )
    .fetch_one(tx)
    .await?;
    Ok(row.bound)
}

/// Removes a Role and its permissions.
pub(super) async fn role_delete(tx: &mut PgConnection, id: &RoleId) -> Result<()> {
    sqlx::query!("delete from occ.iam_roles where id = $1", id.as_str()).execute(tx).await?;
    Ok(())
}
