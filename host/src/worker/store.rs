//! Statements that only the worker and the reconcilers make.

use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use occ_queue::Claim;
use serde_json::Value;
use time::OffsetDateTime;

use crate::db::{self, PgConnection};
use crate::drivers::types::RevisionRef;
use crate::error::Result;
use crate::iam::Scope;

/// One revision of an Agent and how its deployment ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deployed {
    /// Which.
    pub(crate) reference: RevisionRef,
    /// It served: the deployment ended activated.
    pub(crate) activated: bool,
    /// It is on its way back, and has not arrived.
    pub(crate) rolling_back: bool,
    /// Where a failure of it goes back to.
    pub(crate) previous: Option<RevisionId>,
}

/// Every revision of an Agent, lowest number first.
pub(crate) async fn history(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
) -> Result<Vec<Deployed>> {
    let rows = sqlx::query!(
        r#"select r.id, r.revision_number, w.previous_revision_id as "previous_revision_id?",
                  coalesce(w.state = 'succeeded'
                    and w.reason_code in ('REVISION_ACTIVATED', 'REVISION_ALREADY_ACTIVE'), false) as "activated!",
                  coalesce(w.phase = 'rollback' and w.state in ('queued', 'claimed'), false) as "rolling_back!"
             from occ.agent_revisions r
             left join occ.work w on w.namespace_id = r.namespace_id and w.agent_id = r.agent_id
                                 and w.revision_id = r.id and w.kind = 'revision.reconcile'
            where r.namespace_id = $1 and r.agent_id = $2 order by r.revision_number"#,
        scope.namespace()?.as_str(),
        agent.as_str()
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Deployed {
                reference: RevisionRef { revision_id: row.id, number: db::count(row.revision_number)? },
                activated: row.activated,
                rolling_back: row.rolling_back,
                previous: db::id_opt(row.previous_revision_id.as_deref())?,
            })
        })
        .collect()
}

/// Generated credentials of an Agent that are not removed yet.
pub(crate) async fn credentials_left(conn: &mut PgConnection, scope: &Scope, agent: &AgentId) -> Result<u64> {
    let left = sqlx::query_scalar!(
        r#"select count(*) as "left!" from occ.agent_credentials where namespace_id = $1 and agent_id = $2"#,
        scope.namespace()?.as_str(),
        agent.as_str()
    )
    .fetch_one(conn)
    .await?;
    db::count(left)
}

/// Removes an Agent and everything that names it, under the live claim of its deletion. False, and
/// nothing is changed, when the claim is not live or the Agent is not ready for it.
pub(crate) async fn agent_finalize(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    claim: &Claim,
) -> Result<bool> {
    let done = sqlx::query_scalar!(
        r#"select occ.finalize_agent_deletion($1, $2, $3, $4, $5, null) as "done!""#,
        scope.namespace()?.as_str(),
        agent.as_str(),
        claim.key,
        claim.token(),
        claim.epoch
    )
    .fetch_one(conn)
    .await?;
    Ok(done)
}

/// Ends a locked, empty Namespace: its policy goes, its row stays as a tombstone.
pub(crate) async fn namespace_bury(conn: &mut PgConnection, scope: &Scope, at: OffsetDateTime) -> Result<()> {
    let id = scope.namespace()?.as_str();
    // A binding outside the Namespace may still name a subject or a Role of it.
    sqlx::query!(
        "delete from occ.iam_bindings b
          where b.namespace_id = $1
             or b.identity_id in (select i.id from occ.iam_identities i where i.namespace_id = $1)
             or b.group_id in (select g.id from occ.iam_groups g where g.namespace_id = $1)
             or b.role_id in (select r.id from occ.iam_roles r where r.namespace_id = $1)",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from occ.iam_restrictions where namespace_id = $1", id).execute(&mut *conn).await?;
    sqlx::query!(
        "delete from occ.service_keys k using occ.iam_identities i
          where k.service_principal_id = i.id and i.namespace_id = $1",
        id
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from occ.iam_groups where namespace_id = $1", id).execute(&mut *conn).await?;
    sqlx::query!("delete from occ.iam_roles where namespace_id = $1", id).execute(&mut *conn).await?;
    sqlx::query!("delete from occ.iam_identities where namespace_id = $1", id).execute(&mut *conn).await?;
    sqlx::query!("update occ.namespaces set deleted_at = $2, updated_at = $2 where id = $1", id, at)
        .execute(conn)
        .await?;
    Ok(())
}

/// What was seen of an Agent at the last look.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) revision: &'a RevisionId,
    pub(crate) ready: bool,
    pub(crate) code: &'a str,
    pub(crate) detail: Option<Value>,
}

/// Keeps the last look at an Agent; answers the code of the one before.
pub(crate) async fn observation_put(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    seen: &Seen<'_>,
    at: OffsetDateTime,
) -> Result<Option<String>> {
    let before = sqlx::query_scalar!(
        r#"with before as (select code from occ.agent_observations where agent_id = $2), put as (
             insert into occ.agent_observations (namespace_id, agent_id, revision_id, ready, code, detail, observed_at)
             values ($1, $2, $3, $4, $5, $6, $7)
             on conflict (agent_id) do update
               set revision_id = excluded.revision_id, ready = excluded.ready, code = excluded.code,
                   detail = excluded.detail, observed_at = excluded.observed_at)
           select code from before"#,
        scope.namespace()?.as_str(),
        agent.as_str(),
        seen.revision.as_str(),
        seen.ready,
        seen.code,
        seen.detail,
        at
    )
    .fetch_optional(conn)
    .await?;
    Ok(before.flatten())
}

/// Running Agents that nobody looks at: no queued or claimed `agent.observe`.
pub(crate) async fn unobserved_agents(
    conn: &mut PgConnection,
    limit: i64,
) -> Result<Vec<(NamespaceId, AgentId)>> {
    let rows = sqlx::query!(
        "select a.namespace_id, a.id from occ.agents a
          where a.active_revision_id is not null and a.desired_runtime_state = 'running' and a.status = 'active'
            and not exists (select from occ.work w
                             where w.lane = a.id and w.kind = 'agent.observe' and w.state in ('queued', 'claimed'))
          order by a.id limit $1",
        limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((db::id(&row.namespace_id)?, db::id(&row.id)?))).collect()
}

/// Removes ended rows of work that are no history: upkeep after a day, stops after 30 days.
pub(crate) async fn ended_work_delete(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "delete from occ.work where key in (
           select key from occ.work
            where state in ('succeeded', 'failed_permanent')
              and ((upkeep and kind = 'agent.observe' and completed_at < now() - interval '24 h')
                or (kind = 'agent.stop' and completed_at < now() - interval '30 d'))
            order by completed_at limit $1 for update skip locked)",
        limit
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

/// Removes what has outlived its use outside the queue; answers how many rows went.
pub(crate) async fn expired_delete(conn: &mut PgConnection, limit: i64, events_hours: i32) -> Result<u64> {
    let keys = sqlx::query!(
        "delete from occ.idempotency_keys where (principal_id, scope, key) in (
           select principal_id, scope, key from occ.idempotency_keys where expires_at < now() limit $1)",
        limit
    )
    .execute(&mut *conn)
    .await?;
    let events = sqlx::query!(
        "delete from occ.events where seq in (
           select seq from occ.events where occurred_at < now() - make_interval(hours => $2) order by seq limit $1)",
        limit,
        events_hours
    )
    .execute(&mut *conn)
    .await?;
    let service_keys = sqlx::query!(
        "delete from occ.service_keys where id in (
           select id from occ.service_keys
            where least(expires_at, coalesce(revoked_at, expires_at)) < now() - interval '90 d' limit $1)",
        limit
    )
    .execute(conn)
    .await?;
    Ok(keys.rows_affected() + events.rows_affected() + service_keys.rows_affected())
}

/// Generated credentials in our own database of Agents whose runtime is gone: their deletion has
/// passed `destroy`. Answers the lanes that waited for it.
pub(crate) async fn orphan_credentials_delete(conn: &mut PgConnection, limit: i64) -> Result<Vec<String>> {
    let lanes = sqlx::query_scalar!(
        "delete from occ.agent_credentials c using (
           select a.namespace_id, a.id from occ.agents a
             join occ.work w on w.lane = a.id and w.kind = 'agent.delete' and w.step = 'destroy'
            where a.status = 'deleting' and w.state <> 'succeeded' limit $1) gone
          where c.namespace_id = gone.namespace_id and c.agent_id = gone.id and c.store = 'database'
          returning c.agent_id",
        limit
    )
    .fetch_all(conn)
    .await?;
    Ok(lanes)
}

/// Keeps the last result of a reconciler.
pub(crate) async fn run_put(
    conn: &mut PgConnection,
    name: &str,
    began: OffsetDateTime,
    ended: OffsetDateTime,
    code: Option<&str>,
    processed: u64,
) -> Result<()> {
    let outcome = if code.is_none() { "ok" } else { "failed" };
    sqlx::query!(
        "insert into occ.reconciler_runs (name, started_at, finished_at, outcome, code, processed)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (name) do update
           set started_at = excluded.started_at, finished_at = excluded.finished_at, outcome = excluded.outcome,
               code = excluded.code, processed = excluded.processed",
        name,
        began,
        ended,
        outcome,
        code,
        db::bigint(processed)?
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Agents by what they shall do, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) running: i64,
    pub(crate) stopped: i64,
    pub(crate) deleting: i64,
    /// Running, and not ready at the last look.
    pub(crate) degraded: i64,
}

/// Counts Agents.
pub(crate) async fn fleet(conn: &mut PgConnection) -> Result<Fleet> {
    let fleet = sqlx::query_as!(
        Fleet,
        r#"select count(*) filter (where a.status = 'active' and a.desired_runtime_state = 'running') as "running!",
                  count(*) filter (where a.status = 'active' and a.desired_runtime_state = 'stopped') as "stopped!",
                  count(*) filter (where a.status = 'deleting') as "deleting!",
                  count(*) filter (where a.status = 'active' and a.desired_runtime_state = 'running'
                    and o.revision_id = a.active_revision_id and not o.ready) as "degraded!"
             from occ.agents a left join occ.agent_observations o on o.agent_id = a.id"#
    )
    .fetch_one(conn)
    .await?;
    Ok(fleet)
}
