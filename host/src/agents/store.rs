//! Statements about Agents.

use occ_api::ids::{AgentId, IdentityId, RevisionId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{Agent, Auth, Draft, NewAgent};
use crate::db;
use crate::error::{Error, Result};
use crate::iam::{Scope, Visible};

struct Row {
    id: String,
    namespace_id: String,
    name: String,
    configuration_id: String,
    execution_mode: String,
    harness_method: Option<String>,
    harness_secret_id: Option<String>,
    rollback_policy: String,
    service_principal_id: String,
    desired_runtime_state: String,
    status: String,
    active_revision_id: Option<String>,
    last_revision_number: i64,
    version: i64,
    created_at: OffsetDateTime,
}

impl TryFrom<Row> for Agent {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: db::id(&row.id)?,
            namespace: db::id(&row.namespace_id)?,
            name: row.name,
            draft: Draft {
                configuration: db::id(&row.configuration_id)?,
                execution_mode: db::word(&row.execution_mode)?,
                auth: Auth::from_columns(
                    row.harness_method.as_deref(),
                    db::id_opt(row.harness_secret_id.as_deref())?,
                ),
                rollback_policy: db::word(&row.rollback_policy)?,
            },
            principal: db::id(&row.service_principal_id)?,
            desired: db::word(&row.desired_runtime_state)?,
            status: db::word(&row.status)?,
            active_revision: db::id_opt(row.active_revision_id.as_deref())?,
            last_revision_number: db::count(row.last_revision_number)?,
            version: db::count(row.version)?,
            created_at: row.created_at,
        })
    }
}

/// Inserts an Agent: active, stopped, without a revision; `None` when the name is taken. Its
/// principal follows in the same transaction: the foreign keys of the two wait for the commit.
pub(super) async fn agent_insert(
    tx: &mut PgConnection,
    scope: &Scope,
    new: &NewAgent,
    created_by: &IdentityId,
) -> Result<Option<Agent>> {
    let (method, secret) = new.draft.auth.to_columns();
    sqlx::query_as!(
        Row,
        "insert into occ.agents (id, namespace_id, name, configuration_id, execution_mode, harness_method,
                harness_secret_id, rollback_policy, service_principal_id, created_by, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
         on conflict (namespace_id, name) do nothing
         returning id, namespace_id, name, configuration_id, execution_mode, harness_method, harness_secret_id,
                rollback_policy, service_principal_id, desired_runtime_state, status, active_revision_id,
                last_revision_number, version, created_at",
        new.id.as_str(),
        scope.namespace()?.as_str(),
        new.name,
        new.draft.configuration.as_str(),
        db::word_text(&new.draft.execution_mode)?,
        method,
        secret.map(|id| id.as_str()),
        db::word_text(&new.draft.rollback_policy)?,
        new.principal.as_str(),
        created_by.as_str(),
        new.created_at
    )
    .fetch_optional(tx)
    .await?
    .map(Agent::try_from)
    .transpose()
}

/// One Agent.
pub(super) async fn agent_get(conn: &mut PgConnection, scope: &Scope, id: &AgentId) -> Result<Option<Agent>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, configuration_id, execution_mode, harness_method, harness_secret_id,
                rollback_policy, service_principal_id, desired_runtime_state, status, active_revision_id,
                last_revision_number, version, created_at
           from occ.agents where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(Agent::try_from)
    .transpose()
}

/// One Agent, locked against every other writer.
pub(super) async fn agent_lock(tx: &mut PgConnection, scope: &Scope, id: &AgentId) -> Result<Option<Agent>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, configuration_id, execution_mode, harness_method, harness_secret_id,
                rollback_policy, service_principal_id, desired_runtime_state, status, active_revision_id,
                last_revision_number, version, created_at
           from occ.agents where namespace_id = $1 and id = $2 for update",
        scope.namespace()?.as_str(),
        id.as_str()
    )
    .fetch_optional(tx)
    .await?
    .map(Agent::try_from)
    .transpose()
}

/// Agents that the caller may read, oldest first.
pub(super) async fn agent_page(
    conn: &mut PgConnection,
    scope: &Scope,
    visible: &Visible,
    after: (Option<OffsetDateTime>, Option<&str>),
    limit: i64,
) -> Result<Vec<Agent>> {
    sqlx::query_as!(
        Row,
        "select id, namespace_id, name, configuration_id, execution_mode, harness_method, harness_secret_id,
                rollback_policy, service_principal_id, desired_runtime_state, status, active_revision_id,
                last_revision_number, version, created_at
           from occ.agents
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
    .await?
    .into_iter()
    .map(Agent::try_from)
    .collect()
}

/// How many Agents a Namespace holds.
pub(super) async fn agent_count(conn: &mut PgConnection, scope: &Scope) -> Result<u64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from occ.agents where namespace_id = $1"#,
        scope.namespace()?.as_str()
    )
    .fetch_one(conn)
    .await?;
    db::count(count)
}

/// Replaces the draft of a locked Agent.
pub(super) async fn draft_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    draft: &Draft,
    at: OffsetDateTime,
) -> Result<()> {
    let (method, secret) = draft.auth.to_columns();
    sqlx::query!(
        "update occ.agents set configuration_id = $3, execution_mode = $4, harness_method = $5,
                harness_secret_id = $6, rollback_policy = $7, version = version + 1, updated_at = $8
          where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str(),
        draft.configuration.as_str(),
        db::word_text(&draft.execution_mode)?,
        method,
        secret.map(|id| id.as_str()),
        db::word_text(&draft.rollback_policy)?,
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A locked Agent shall run, and its newest revision has this number.
pub(super) async fn running_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    number: u64,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.agents set desired_runtime_state = 'running', last_revision_number = $3, updated_at = $4
          where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str(),
        db::bigint(number)?,
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A locked Agent shall not run.
pub(super) async fn stopped_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.agents set desired_runtime_state = 'stopped', updated_at = $3 where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str(),
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A locked Agent is being deleted. The status is something that callers edit: the version moves.
pub(super) async fn deleting_set(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    at: OffsetDateTime,
) -> Result<()> {
    sqlx::query!(
        "update occ.agents set status = 'deleting', desired_runtime_state = 'stopped', version = version + 1,
                updated_at = $3
          where namespace_id = $1 and id = $2",
        scope.namespace()?.as_str(),
        id.as_str(),
        at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Moves the pointer of an Agent when it still has the value that the caller saw; false when
/// it has moved on. The version does not move: the worker is no editor.
pub(super) async fn pointer_move(
    tx: &mut PgConnection,
    scope: &Scope,
    id: &AgentId,
    from: Option<&RevisionId>,
    to: Option<&RevisionId>,
    at: OffsetDateTime,
) -> Result<bool> {
    let done = sqlx::query!(
        "update occ.agents set active_revision_id = $4, updated_at = $5
          where namespace_id = $1 and id = $2 and active_revision_id is not distinct from $3",
        scope.namespace()?.as_str(),
        id.as_str(),
        from.map(|id| id.as_str()),
        to.map(|id| id.as_str()),
        at
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() == 1)
}
