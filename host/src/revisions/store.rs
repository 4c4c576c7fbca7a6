//! Statements about AgentRevisions. There is no update: the schema refuses one.

use occ_api::ids::{AgentId, RevisionId};
use sqlx::PgConnection;
use sqlx::types::Json;
use time::OffsetDateTime;

use super::model::{Revision, Snapshot};
use crate::db;
use crate::error::{Error, Result};
use crate::iam::{Scope, Visible};

struct Row {
    id: String,
    namespace_id: String,
    agent_id: String,
    revision_number: i64,
    rollback_of: Option<String>,
    created_by: String,
    created_at: OffsetDateTime,
    snapshot: Json<Snapshot>,
}

impl TryFrom<Row> for Revision {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: db::id(&row.id)?,
            namespace: db::id(&row.namespace_id)?,
            agent: db::id(&row.agent_id)?,
            number: db::count(row.revision_number)?,
            rollback_of: db::id_opt(row.rollback_of.as_deref())?,
            created_by: db::id(&row.created_by)?,
            created_at: row.created_at,
            snapshot: row.snapshot.0,
        })
    }
}

/// Inserts a revision of the locked Agent.
pub(super) async fn revision_insert(tx: &mut PgConnection, scope: &Scope, new: &Revision) -> Result<()> {
    let snapshot = &new.snapshot;
    sqlx::query!(
        "insert into occ.agent_revisions (id, namespace_id, agent_id, revision_number, configuration_id,
                configuration_generation, compute_plugin, compute_version, compute_digest, harness_id,
                harness_version, harness_mode, secret_store, rollback_of, snapshot, created_by, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        new.id.as_str(),
        scope.namespace()?.as_str(),
        new.agent.as_str(),
        db::bigint(new.number)?,
        snapshot.configuration.id.as_str(),
        db::bigint(snapshot.configuration.generation)?,
        snapshot.compute.id,
        snapshot.compute.version,
        snapshot.compute.digest,
        snapshot.harness().id,
        snapshot.harness().version,
        db::word_text(&snapshot.harness().mode)?,
        snapshot.secret_store,
        new.rollback_of.as_ref().map(|id| id.as_str()),
        Json(snapshot) as _,
        new.created_by.as_str(),
        new.created_at
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// One revision of an Agent.
pub(super) async fn revision_get(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    id: &RevisionId,
) -> Result<Option<Revision>> {
    sqlx::query_as!(
        Row,
        r#"select id, namespace_id, agent_id, revision_number, rollback_of, created_by, created_at,
                  snapshot as "snapshot: Json<Snapshot>"
             from occ.agent_revisions where namespace_id = $1 and agent_id = $2 and id = $3"#,
        scope.namespace()?.as_str(),
        agent.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?
    .map(Revision::try_from)
    .transpose()
}

/// Revisions that the caller may read, newest first, below `before` where it is given.
pub(super) async fn revision_page(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    visible: &Visible,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Revision>> {
    sqlx::query_as!(
        Row,
        r#"select id, namespace_id, agent_id, revision_number, rollback_of, created_by, created_at,
                  snapshot as "snapshot: Json<Snapshot>"
             from occ.agent_revisions
            where namespace_id = $1 and agent_id = $2 and ($3 or id = any($4)) and not (id = any($5))
              and ($6::bigint is null or revision_number < $6)
            order by revision_number desc limit $7"#,
        scope.namespace()?.as_str(),
        agent.as_str(),
        visible.all,
        &visible.only,
        &visible.except,
        before,
        limit
    )
    .fetch_all(conn)
    .await?
    .into_iter()
    .map(Revision::try_from)
    .collect()
}

/// The newest revision below `active` that ended activated and whose plan or document differs
/// from it: where a rollback without a target goes.
pub(super) async fn rollback_candidate(
    conn: &mut PgConnection,
    scope: &Scope,
    active: &Revision,
) -> Result<Option<Revision>> {
    sqlx::query_as!(
        Row,
        r#"select r.id, r.namespace_id, r.agent_id, r.revision_number, r.rollback_of, r.created_by, r.created_at,
                  r.snapshot as "snapshot: Json<Snapshot>"
             from occ.agent_revisions r
            where r.namespace_id = $1 and r.agent_id = $2 and r.revision_number < $3
              and (r.snapshot ->> 'planDigest' <> $4 or r.snapshot ->> 'configurationDigest' <> $5)
              and exists (select 1 from occ.work w
                           where w.namespace_id = r.namespace_id and w.agent_id = r.agent_id and w.revision_id = r.id
                             and w.kind = 'revision.reconcile' and w.state = 'succeeded'
                             and w.reason_code in ('REVISION_ACTIVATED', 'REVISION_ALREADY_ACTIVE'))
            order by r.revision_number desc limit 1"#,
        scope.namespace()?.as_str(),
        active.agent.as_str(),
        db::bigint(active.number)?,
        active.snapshot.plan_digest,
        active.snapshot.configuration_digest
    )
    .fetch_optional(conn)
    .await?
    .map(Revision::try_from)
    .transpose()
}

/// How many revisions an Agent has.
pub(super) async fn revision_count(conn: &mut PgConnection, scope: &Scope, agent: &AgentId) -> Result<u64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from occ.agent_revisions where namespace_id = $1 and agent_id = $2"#,
        scope.namespace()?.as_str(),
        agent.as_str()
    )
    .fetch_one(conn)
    .await?;
    db::count(count)
}
