//! Putting work in, inside the transaction of the change that needs it.

use std::time::Duration;

use sqlx::PgConnection;

use crate::{Enqueued, NewWork, Owner, Phase, QueueError, State, WorkRow};

/// Enqueues work on the caller's transaction; the row exists exactly if the
/// transaction commits. Locks the lane until then. After the commit call
/// [`Hints::hint`](crate::Hints::hint); without it a worker sees the row within one poll.
///
/// # Errors
/// The database refused or did not answer.
pub async fn enqueue(conn: &mut PgConnection, work: &NewWork) -> Result<Enqueued, QueueError> {
    let said = sqlx::query_scalar!(
        r#"select occ.work_enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as "said!""#,
        work.key,
        work.kind,
        work.owner.lane(),
        work.owner.namespace_id,
        work.owner.agent_id,
        work.owner.revision_id,
        work.actor_id,
        work.upkeep,
        work.attempts_max,
        work.deadline.map(|deadline| deadline.as_secs_f64()),
        work.delay.as_secs_f64(),
        work.traceparent,
    )
    .fetch_one(conn)
    .await?;
    match said.as_str() {
        "new" => Ok(Enqueued::New),
        "already" => Ok(Enqueued::Already),
        _ => Ok(Enqueued::Conflict),
    }
}

/// Makes sure that an upkeep row runs within `after`: a new row, a terminal one
/// queued again, a queued one moved forward, a claimed one run once more. False
/// when the key belongs to other work.
///
/// Call it in a short transaction of its own: it may touch a claimed row.
///
/// # Errors
/// The database refused or did not answer.
pub async fn arm_upkeep(
    conn: &mut PgConnection,
    work: &NewWork,
    after: Duration,
) -> Result<bool, QueueError> {
    let armed = sqlx::query_scalar!(
        r#"select occ.work_arm($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as "armed!""#,
        work.key,
        work.kind,
        work.owner.lane(),
        work.owner.namespace_id,
        work.owner.agent_id,
        work.owner.revision_id,
        work.actor_id,
        work.attempts_max,
        work.deadline.map(|deadline| deadline.as_secs_f64()),
        after.as_secs_f64(),
    )
    .fetch_one(conn)
    .await?;
    Ok(armed)
}

/// Reads one row.
///
/// # Errors
/// The database refused or did not answer, or a newer version wrote the row.
pub async fn find(conn: &mut PgConnection, key: &str) -> Result<Option<WorkRow>, QueueError> {
    let row = sqlx::query!(
        "select key, kind, namespace_id, agent_id, revision_id, actor_id, upkeep, state, phase, step, attempt,
                attempts_max, passes, reason_code, cause_code, result
           from occ.work where key = $1",
        key
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let unknown = |column| QueueError::UnknownValue { key: key.to_owned(), column };
    Ok(Some(WorkRow {
        state: State::parse(&row.state).ok_or_else(|| unknown("state"))?,
        phase: Phase::parse(&row.phase).ok_or_else(|| unknown("phase"))?,
        key: row.key,
        kind: row.kind,
        owner: Owner { namespace_id: row.namespace_id, agent_id: row.agent_id, revision_id: row.revision_id },
        actor_id: row.actor_id,
        upkeep: row.upkeep,
        step: row.step,
        attempt: row.attempt,
        attempts_max: row.attempts_max,
        passes: row.passes,
        code: row.reason_code,
        cause: row.cause_code,
        result: row.result,
    }))
}

/// A user's retry: a permanently failed row is queued again with attempt 0 and
/// a fresh deadline, if it has one. Its phase and step stay, its code and result go.
/// False when the row is not there or not permanently failed.
///
/// # Errors
/// The database refused or did not answer.
pub async fn reset(
    conn: &mut PgConnection,
    key: &str,
    deadline: Option<Duration>,
) -> Result<bool, QueueError> {
    let deadline = deadline.map(|deadline| deadline.as_secs_f64());
    let reset = sqlx::query_scalar!(r#"select occ.work_reset($1, $2) as "reset!""#, key, deadline)
        .fetch_one(conn)
        .await?;
    Ok(reset)
}

/// Something outside changed: the rows of the lane that wait for it are due
/// now. Rows in back-off after an error are left alone. Returns how many woke;
/// hint the workers when it is not 0.
///
/// # Errors
/// The database refused or did not answer.
pub async fn wake(conn: &mut PgConnection, lane: &str) -> Result<u64, QueueError> {
    let woken = sqlx::query_scalar!(r#"select occ.work_wake($1) as "woken!""#, lane).fetch_one(conn).await?;
    Ok(u64::try_from(woken).unwrap_or(0))
}

/// Repairs lanes whose columns disagree with their rows and counts them. The
/// count must stay 0: each is a bug, and would have been lost work.
///
/// # Errors
/// The database refused or did not answer.
pub async fn sweep_lanes(conn: &mut PgConnection) -> Result<u64, QueueError> {
    let repaired = sqlx::query_scalar!(
        r#"select occ.work_lanes_sweep($1) as "repaired!""#,
        crate::settings::SWEEP_LANES_MAX
    )
    .fetch_one(conn)
    .await?;
    Ok(u64::try_from(repaired).unwrap_or(0))
}
