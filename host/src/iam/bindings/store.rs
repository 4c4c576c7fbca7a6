//! Statements about AccessBindings.

use std::collections::BTreeSet;

use occ_api::ids::{BindingId, IdentityId, NamespaceId};
use occ_api::types::{AccessBinding, SubjectKind};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::db;
use crate::error::Result;
use crate::iam::access::{Kind, Pair};
use crate::iam::decide::Target;

/// A stored binding with the permissions of its Role.
#[derive(Debug)]
pub(in crate::iam) struct Stored {
    pub(in crate::iam) binding: AccessBinding,
    pub(super) created_at: OffsetDateTime,
    pub(in crate::iam) pairs: BTreeSet<Pair>,
}

impl Stored {
    /// The resource that it is confined to, when its kind is still known.
    pub(in crate::iam) fn target(&self) -> Option<Target> {
        let (kind, id) = (self.binding.resource_kind.as_ref()?, self.binding.resource_id.as_ref()?);
        Some(Target { kind: kind.parse().ok()?, id: id.clone() })
    }
}

struct Raw {
    id: String,
    namespace_id: Option<String>,
    identity_id: Option<String>,
    group_id: Option<String>,
    role_id: String,
    resource_kind: Option<String>,
    resource_id: Option<String>,
    created_at: OffsetDateTime,
    pairs: Vec<String>,
}

impl Raw {
    fn typed(self) -> Result<Stored> {
        let (subject_kind, subject_id) = match (self.identity_id, self.group_id) {
            (Some(id), _) => (SubjectKind::Identity, id),
            (None, group) => (SubjectKind::Group, group.unwrap_or_default()),
        };
        let pair = |text: &String| {
            let (action, kind) = text.split_once(' ')?;
            Some((action.parse().ok()?, kind.parse().ok()?))
        };
        Ok(Stored {
            binding: AccessBinding {
                id: db::id(&self.id)?,
                namespace_id: db::id_opt(self.namespace_id.as_deref())?,
                subject_kind,
                subject_id,
                role_id: db::id(&self.role_id)?,
                resource_kind: self.resource_kind,
                resource_id: self.resource_id,
            },
            created_at: self.created_at,
            pairs: self.pairs.iter().filter_map(pair).collect(),
        })
    }
}

/// Stores a binding.
pub(super) async fn binding_insert(
    tx: &mut PgConnection,
    binding: &AccessBinding,
    created_by: &IdentityId,
    at: OffsetDateTime,
) -> Result<()> {
    let (identity, group) = match binding.subject_kind {
        SubjectKind::Identity => (Some(binding.subject_id.as_str()), None),
        SubjectKind::Group => (None, Some(binding.subject_id.as_str())),
    };
    sqlx::query!(
        "insert into occ.iam_bindings
           (id, role_id, identity_id, group_id, namespace_id, resource_kind, resource_id, created_by, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        binding.id.as_str(),
        binding.role_id.as_str(),
        identity,
        group,
        binding.namespace_id.as_ref().map(|namespace| namespace.as_str()),
        binding.resource_kind,
        binding.resource_id,
        created_by.as_str(),
        at,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A binding of exactly one level.
pub(super) async fn binding_find(
    conn: &mut PgConnection,
    namespace: Option<&NamespaceId>,
    id: &BindingId,
) -> Result<Option<Stored>> {
    let row = sqlx::query_as!(
        Raw,
        r#"select b.id, b.namespace_id, b.identity_id, b.group_id, b.role_id, b.resource_kind, b.resource_id, b.created_at,
                  array(select p.action || ' ' || p.resource_kind
                          from occ.iam_role_permissions p where p.role_id = b.role_id) as "pairs!"
             from occ.iam_bindings b where b.id = $1 and b.namespace_id is not distinct from $2::text"#,
        id.as_str(),
        namespace.map(|namespace| namespace.as_str()),
    )
    .fetch_optional(conn)
    .await?;
    row.map(Raw::typed).transpose()
}

/// Bindings of exactly one level, oldest first.
pub(super) async fn binding_page(
    conn: &mut PgConnection,
    namespace: Option<&NamespaceId>,
    after: (Option<OffsetDateTime>, Option<&str>),
    fetch: i64,
) -> Result<Vec<Stored>> {
    let rows = sqlx::query_as!(
        Raw,
        r#"select b.id, b.namespace_id, b.identity_id, b.group_id, b.role_id, b.resource_kind, b.resource_id, b.created_at,
                  '{}'::text[] as "pairs!"
             from occ.iam_bindings b
            where b.namespace_id is not distinct from $1::text
              and ($2::timestamptz is null or (b.created_at, b.id) > ($2, $3::text collate "C"))
            order by b.created_at, b.id limit $4"#,
        namespace.map(|namespace| namespace.as_str()),
        after.0,
        after.1,
        fetch,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Raw::typed).collect()
}

/// Removes a binding.
pub(super) async fn binding_delete(tx: &mut PgConnection, id: &BindingId) -> Result<()> {
    sqlx::query!("delete from occ.iam_bindings where id = $1", id.as_str()).execute(tx).await?;
    Ok(())
}

/// Removes every binding of an identity; their ids.
pub(in crate::iam) async fn bindings_of_delete(
    tx: &mut PgConnection,
    identity: &IdentityId,
) -> Result<Vec<BindingId>> {
    let rows =
        sqlx::query!("delete from occ.iam_bindings where identity_id = $1 returning id", identity.as_str())
            .fetch_all(tx)
            .await?;
    rows.iter().map(|row| db::id(&row.id)).collect()
}

/// A possible subject: its level, or nothing when it does not exist.
pub(super) async fn subject_level(
    conn: &mut PgConnection,
    kind: SubjectKind,
    id: &str,
) -> Result<Option<Option<NamespaceId>>> {
    let namespace = match kind {
        SubjectKind::Identity => {
            sqlx::query!("select namespace_id from occ.iam_identities where id = $1", id)
                .fetch_optional(conn)
                .await?
                .map(|row| row.namespace_id)
        }
        SubjectKind::Group => sqlx::query!("select namespace_id from occ.iam_groups where id = $1", id)
            .fetch_optional(conn)
            .await?
            .map(|row| row.namespace_id),
    };
    namespace.map(|namespace| db::id_opt(namespace.as_deref())).transpose()
}

/// Bindings of one subject at one level, for the bound on a principal's rows.
pub(super) async fn subject_bindings_count(
    tx: &mut PgConnection,
    subject: &str,
    namespace: Option<&NamespaceId>,
) -> Result<i64> {
    let row = sqlx::query!(
        r#"select count(*) as "count!" from occ.iam_bindings
            where (identity_id = $1 or group_id = $1) and namespace_id is not distinct from $2::text"#,
        subject,
        namespace.map(|namespace| namespace.as_str()),
    )
    .fetch_one(tx)
    .await?;
    Ok(row.count)
}

/// Does the resource exist in the Namespace? A deleting Agent does not count; kinds without a table do not exist.
pub(super) async fn target_exists(
    conn: &mut PgConnection,
    namespace: &NamespaceId,
    target: &Target,
) -> Result<bool> {
    let kind = match target.kind {
        Kind::Namespace => return Ok(target.id == namespace.as_str()),
        Kind::Installation | Kind::Preset | Kind::ServiceAccount | Kind::CredentialSource => {
            return Ok(false);
        }
        Kind::Configuration | Kind::Secret | Kind::Agent | Kind::AgentRevision => target.kind.as_str(),
    };
    let row = sqlx::query!(
        r#"select case $1
             when 'configuration' then exists (select from occ.configurations where namespace_id = $2 and id = $3)
             when 'secret' then exists (select from occ.secrets where namespace_id = $2 and id = $3 and state = 'ready')
             when 'agent' then exists (select from occ.agents where namespace_id = $2 and id = $3 and status = 'active')
             else exists (select from occ.agent_revisions where namespace_id = $2 and id = $3)
           end as "exists!""#,
        kind,
        namespace.as_str(),
        target.id,
    )
    .fetch_one(conn)
    .await?;
    Ok(row.exists)
}
