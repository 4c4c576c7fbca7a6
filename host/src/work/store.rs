//! Statements about work, as callers see it. The queue's own stand in `occ-queue`.

use occ_api::ids::{AgentId, IdentityId, NamespaceId, RevisionId};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{Row, Sight};
use crate::db;
use crate::error::{Error, Result};

/// What a list is confined to.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    pub(super) state: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    pub(super) namespace_id: Option<&'a str>,
    pub(super) agent_id: Option<&'a str>,
}

struct Raw {
    key: String,
    kind: String,
    namespace_id: String,
    agent_id: Option<String>,
    revision_id: Option<String>,
    actor_id: String,
    upkeep: bool,
    state: String,
    phase: String,
    step: Option<String>,
    attempt: i32,
    attempts_max: i32,
    passes: i32,
    reason_code: Option<String>,
    available_at: OffsetDateTime,
    deadline_at: Option<OffsetDateTime>,
    last_attempt_at: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    completed_at: Option<OffsetDateTime>,
}

impl Raw {
    fn typed(self) -> Result<Row> {
        let number =
            |count: i32| u32::try_from(count).map_err(|_| Error::internal("a count of work is negative"));
        Ok(Row {
            namespace: db::id::<NamespaceId>(&self.namespace_id)?,
            agent: db::id_opt::<AgentId>(self.agent_id.as_deref())?,
            revision: db::id_opt::<RevisionId>(self.revision_id.as_deref())?,
            // Upkeep belongs to the product, which is no identity.
            actor: IdentityId::parse(&self.actor_id).ok(),
            upkeep: self.upkeep,
            attempt: number(self.attempt)?,
            attempts_max: number(self.attempts_max)?,
            passes: number(self.passes)?,
            key: self.key,
            kind: self.kind,
            state: self.state,
            phase: self.phase,
            step: self.step,
            code: self.reason_code,
            available_at: self.available_at,
            deadline_at: self.deadline_at,
            last_attempt_at: self.last_attempt_at,
            created_at: self.created_at,
            completed_at: self.completed_at,
        })
    }
}

/// Work by key.
pub(super) async fn work_find(conn: &mut PgConnection, key: &str) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Raw,
        "select key, kind, namespace_id, agent_id, revision_id, actor_id, upkeep, state, phase, step, attempt,
                attempts_max, passes, reason_code, available_at, deadline_at, last_attempt_at, created_at, completed_at
           from occ.work where key = $1",
        key,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Raw::typed).transpose()
}

/// Visible work, newest first.
pub(super) async fn work_page(
    conn: &mut PgConnection,
    filter: &Filter<'_>,
    sight: &Sight,
    after: (Option<OffsetDateTime>, Option<&str>),
    fetch: i64,
) -> Result<Vec<Row>> {
    let Sight { namespaces, agents, revisions } = sight;
    let rows = sqlx::query_as!(
        Raw,
        r#"select key, kind, namespace_id, agent_id, revision_id, actor_id, upkeep, state, phase, step, attempt,
                  attempts_max, passes, reason_code, available_at, deadline_at, last_attempt_at, created_at, completed_at
             from occ.work w
            where ($1::text is null or state = $1) and ($2::text is null or kind = $2)
              and ($3::text is null or namespace_id = $3) and ($4::text is null or agent_id = $4)
              and ($5::timestamptz is null or (created_at, key collate "C") < ($5, $6::text collate "C"))
              and case
                    when revision_id is not null then
                      ($7 or namespace_id = any($8::text[]) or revision_id = any($9::text[]))
                      and not (revision_id = any($10::text[]) or namespace_id = any($11::text[]))
                    when agent_id is not null then
                      ($12 or namespace_id = any($13::text[]) or agent_id = any($14::text[]))
                      and not (agent_id = any($15::text[]) or namespace_id = any($16::text[]))
                    else ($17 or namespace_id = any($18::text[])) and not (namespace_id = any($19::text[]))
                  end
            order by created_at desc, key collate "C" desc limit $20"#,
        filter.state,
        filter.kind,
        filter.namespace_id,
        filter.agent_id,
        after.0,
        after.1,
        revisions.all,
        &revisions.within,
        &revisions.only,
        &revisions.except,
        &revisions.except_within,
        agents.all,
        &agents.within,
        &agents.only,
        &agents.except,
        &agents.except_within,
        namespaces.all,
        &namespaces.only,
        &namespaces.except,
        fetch,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Raw::typed).collect()
}

/// Gives a failed deletion to another actor and queues it again; audited by the function. False when it moved on.
pub(super) async fn work_take_over(
    tx: &mut PgConnection,
    key: &str,
    actor: &IdentityId,
    request_id: &str,
) -> Result<bool> {
    let row = sqlx::query!(
        r#"select occ.work_take_over($1, $2, $3, null) as "taken!""#,
        key,
        actor.as_str(),
        request_id
    )
    .fetch_one(tx)
    .await?;
    Ok(row.taken)
}
