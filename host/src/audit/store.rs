//! Statements about audit events.

use occ_api::ids::AuditId;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::Event;
use crate::error::Result;

/// Appends an event.
pub(super) async fn event_insert(
    tx: &mut PgConnection,
    id: &AuditId,
    at: OffsetDateTime,
    event: &Event,
) -> Result<()> {
    sqlx::query!(
        r#"insert into occ.audit_events
             (id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id, outcome, request_id,
              actor, decision, reason_code, work_key, details)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"#,
        id.as_str(),
        at,
        event.kind.as_str(),
        event.actor_id,
        event.action,
        event.resource.namespace.as_ref().map(|namespace| namespace.as_str()),
        event.resource.kind,
        event.resource.id,
        event.outcome.as_str(),
        event.request_id,
        event.actor,
        event.decision,
        event.reason_code,
        event.work_key,
        event.details,
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A stored event.
#[derive(Debug)]
pub(super) struct EventRow {
    pub(super) id: String,
    pub(super) occurred_at: OffsetDateTime,
    pub(super) kind: String,
    pub(super) actor_id: String,
    pub(super) action: String,
    pub(super) namespace_id: Option<String>,
    pub(super) resource_kind: String,
    pub(super) resource_id: String,
    pub(super) outcome: String,
    pub(super) request_id: Option<String>,
    pub(super) actor: Value,
    pub(super) decision: Option<Value>,
    pub(super) reason_code: Option<String>,
    pub(super) work_key: Option<String>,
    pub(super) details: Option<Value>,
}

/// What a list of events is confined to.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    pub(super) namespace_id: Option<&'a str>,
    pub(super) actor_id: Option<&'a str>,
    pub(super) action: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    pub(super) outcome: Option<&'a str>,
    pub(super) resource_kind: Option<&'a str>,
    pub(super) resource_id: Option<&'a str>,
    pub(super) from: Option<OffsetDateTime>,
    pub(super) to: Option<OffsetDateTime>,
}

/// Events, newest first, after a position.
pub(super) async fn events_list(
    conn: &mut PgConnection,
    filter: &Filter<'_>,
    after: Option<(OffsetDateTime, &str)>,
    fetch: i64,
) -> Result<Vec<EventRow>> {
    let (after_time, after_id) = after.unzip();
    Ok(sqlx::query_as!(
        EventRow,
        r#"select id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id, outcome, request_id,
                  actor, decision, reason_code, work_key, details
             from occ.audit_events
            where ($1::text is null or namespace_id = $1) and ($2::text is null or actor_id = $2)
              and ($3::text is null or action = $3) and ($4::text is null or kind = $4)
              and ($5::text is null or outcome = $5) and ($6::text is null or resource_kind = $6)
              and ($7::text is null or resource_id = $7)
              and ($8::timestamptz is null or occurred_at >= $8) and ($9::timestamptz is null or occurred_at < $9)
              and ($10::timestamptz is null or (occurred_at, id) < ($10, $11::text collate "C"))
            order by occurred_at desc, id desc limit $12"#,
        filter.namespace_id,
        filter.actor_id,
        filter.action,
        filter.kind,
        filter.outcome,
        filter.resource_kind,
        filter.resource_id,
        filter.from,
        filter.to,
        after_time,
        after_id,
        fetch,
    )
    .fetch_all(conn)
    .await?)
}

/// One event.
pub(super) async fn event_get(conn: &mut PgConnection, id: &AuditId) -> Result<Option<EventRow>> {
    Ok(sqlx::query_as!(
        EventRow,
        r#"select id, occurred_at, kind, actor_id, action, namespace_id, resource_kind, resource_id, outcome, request_id,
                  actor, decision, reason_code, work_key, details
             from occ.audit_events where id = $1"#,
        id.as_str(),
    )
    .fetch_optional(conn)
    .await?)
}
