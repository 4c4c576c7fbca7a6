//! Statements about Configurations and their Secret bindings.

use std::collections::BTreeMap;

use occ_api::ids::{AgentId, ConfigurationId, IdentityId, SecretId};
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{Configuration, Summary};
use crate::db;
use crate::error::Result;
use crate::iam::{Scope, Visible};

struct Row {
    id: String,
    namespace_id: String,
    generation: i64,
    document: Value,
    created_at: OffsetDateTime,
}

impl Row {
    fn with_bindings(self, secret_bindings: BTreeMap<String, SecretId>) -> Result<Configuration> {
        Ok(Configuration {
            id: db::id(&self.id)?,
            namespace: db::id(&self.namespace_id)?,
            generation: db::count(self.generation)?,
            document: self.document,
            secret_bindings,
            created_at: self.created_at,
        })
    }
}

/// Inserts a Configuration at generation 1; its bindings follow by [`bindings_insert`].
pub(super) async fn configuration_insert(
    tx: &mut PgConnection,
    scope: &Scope,
    new: &Configuration,
    created_by: &IdentityId,
) -> Result<()> {
    sqlx::query!(
        "insert into occ.configurations (id, namespace_id, kind, generation, document, created_by, created_at, updated_at)
         values ($1, $2, 'agent', $3, $4, $5, $6, $6)",
        new.id.as_str(),
        scope.namespace()?.as_str(),
        db::bigint(new.generation)?,
        new.document,
        created_by.as_str(),
        new.created_at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Inserts bindings.
pub(super) async fn bindings_insert(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
    bindings: &BTreeMap<String, SecretId>,
) -> Result<()> {
    let names: Vec<String> = bindings.keys().cloned().collect();
    let secrets: Vec<String> = bindings.values().map(|secret| secret.as_str().to_owned()).collect();
    sqlx::query!(
        "insert into occ.configuration_secret_bindings (namespace_id, configuration_id, env_name, secret_id)
         select $1, $2, bound.env_name, bound.secret_id from unnest($3::text[], $4::text[]) as bound (env_name, secret_id)",
        scope.namespace()?.as_str(),
        id.as_str(),
        &names,
        &secrets
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Removes every binding of a Configuration.
pub(super) async fn bindings_delete(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<()> {
    sqlx::query!(
        "delete from occ.configuration_secret_bindings where namespace_id = $1 and configuration_id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// One Configuration with its bindings.
pub(super) async fn configuration_get(
    conn: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<Option<Configuration>> {
    let row = sqlx::query_as!(
        Row,
        "select id, namespace_id, generation, document, created_at from occ.configurations
          where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(&mut *conn)
    .await?;
    match row {
        Some(row) => row.with_bindings(bindings_get(conn, scope, id).await?).map(Some),
        None => Ok(None),
    }
}

/// As [`configuration_get`], locked against other writers.
pub(super) async fn configuration_lock(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<Option<Configuration>> {
    let row = sqlx::query_as!(
        Row,
        "select id, namespace_id, generation, document, created_at from occ.configurations
          where namespace_id = $1 and id = $2 for update",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    match row {
        Some(row) => row.with_bindings(bindings_get(tx, scope, id).await?).map(Some),
        None => Ok(None),
    }
}

/// Locks a Configuration so that it can be neither edited nor deleted, and answers its generation.
pub(super) async fn generation_lock_shared(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<Option<u64>> {
    let generation = sqlx::query_scalar!(
        "select generation from occ.configurations where namespace_id = $1 and id = $2 for share",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(tx)
    .await?;
    generation.map(db::count).transpose()
}

async fn bindings_get(
    conn: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<BTreeMap<String, SecretId>> {
    let rows = sqlx::query!(
        "select env_name, secret_id from occ.configuration_secret_bindings
          where namespace_id = $1 and configuration_id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((row.env_name, db::id(&row.secret_id)?))).collect()
}

/// Configurations that the caller may read, oldest first, without their documents.
pub(super) async fn configuration_page(
    conn: &mut PgConnection,
    scope: &Scope,
    visible: &Visible,
    after: (Option<OffsetDateTime>, Option<&str>),
    limit: i64,
) -> Result<Vec<Summary>> {
    let rows = sqlx::query!(
        "select id, namespace_id, generation, created_at from occ.configurations
          where namespace_id = $1 and ($2 or id = any($3)) and not (id = any($4))
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
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Summary {
                id: db::id(&row.id)?,
                namespace: db::id(&row.namespace_id)?,
                generation: db::count(row.generation)?,
                created_at: row.created_at,
            })
        })
        .collect()
}

/// Replaces the document of a locked Configuration; the generation grows by one.
pub(super) async fn document_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
    document: &Value,
    at: OffsetDateTime,
) -> Result<u64> {
    let generation = sqlx::query_scalar!(
        "update occ.configurations set document = $3, generation = generation + 1, updated_at = $4
          where namespace_id = $1 and id = $2 returning generation",
        scope.namespace()?.as_str(),
        id.as_str(),
        document,
        at
    )
    .fetch_one(tx)
    .await?;
    db::count(generation)
}

/// An Agent whose draft names the Configuration.
pub(super) async fn referencing_agent(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<Option<AgentId>> {
    let agent = sqlx::query_scalar!(
        "select id from occ.agents where namespace_id = $1 and configuration_id = $2 order by created_at, id limit 1",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(tx)
    .await?;
    db::id_opt(agent.as_deref())
}

/// Deletes a Configuration; its bindings go with it.
pub(super) async fn configuration_delete(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &ConfigurationId,
) -> Result<()> {
    sqlx::query!(
        "delete from occ.configurations where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .execute(tx)
    .await?;
    Ok(())
}
