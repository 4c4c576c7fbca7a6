//! Lapsed claims go back to the queue: at most once a second per worker.

use std::time::Duration;

use tokio::time::Instant;

use super::run_pass::Context;
use crate::{
    Code, Handler, Outcome, Owner, QueueError, Transition,
    settings::{RECOVERY_HOLD, RECOVERY_ROWS_MAX},
    sweep_lanes,
};

const RECOVERY_INTERVAL: Duration = Duration::from_millis(950);

#[derive(Debug, Default)]
pub(super) struct Recovery {
    last: Option<Instant>,
    sweep: bool,
}

impl Recovery {
    /// Asks for a sweep of the lanes at the next recovery.
    pub(super) fn sweep_soon(&mut self) {
        self.sweep = true;
    }

    pub(super) async fn run_if_due<H: Handler>(&mut self, context: &Context<H>) -> Result<(), QueueError> {
        if self.last.is_some_and(|last| last.elapsed() < RECOVERY_INTERVAL) {
            return Ok(());
        }
        self.last = Some(Instant::now());
        if std::mem::take(&mut self.sweep) {
            let mut conn = context.leases.acquire().await?;
            let repaired = sweep_lanes(&mut conn).await?;
            context.stats.count(|counts| counts.lanes_repaired += repaired);
        }
        context.stats.stated();
        let needed = sqlx::query_scalar!(
            r#"select exists (select from occ.work
                               where state = 'claimed'
                                 and (lease_until <= now() or lease_until > now() + make_interval(secs => $1))) as "needed!""#,
            2.0 * context.settings.lease.as_secs_f64()
        )
        .fetch_one(&context.leases)
        .await?;
        context.stats.observed();
        if needed { recover(context).await } else { Ok(()) }
    }
}

async fn recover<H: Handler>(context: &Context<H>) -> Result<(), QueueError> {
    let mut tx = context.pool.begin().await?;
    let rows = sqlx::query!(
        r#"select key as "key!", kind as "kind!", namespace_id as "namespace_id!", agent_id, revision_id,
                  actor_id as "actor_id!", attempt as "attempt!", attempts_max as "attempts_max!", step, reason_code,
                  worker_id
             from occ.work_recover($1, $2, $3, $4)"#,
        RECOVERY_ROWS_MAX,
        context.settings.lease.as_secs_f64(),
        RECOVERY_HOLD.as_secs_f64(),
        (context.random)(),
    )
    .fetch_all(&mut *tx)
    .await?;
    let recovered = rows.len();
    for row in rows {
        tracing::warn!(
            event = "queue.recovered",
            key = row.key,
            worker = row.worker_id,
            attempt = row.attempt
        );
        let transition = Transition {
            key: row.key,
            kind: row.kind,
            owner: Owner {
                namespace_id: row.namespace_id,
                agent_id: row.agent_id,
                revision_id: row.revision_id,
            },
            actor_id: row.actor_id,
            outcome: Outcome::Retry,
            code: row.reason_code.as_deref().and_then(Code::parse),
            step: row.step,
            attempt: row.attempt,
            attempts_max: row.attempts_max,
            epoch: 0,
            changed: true,
        };
        if context.handler.records() {
            context.handler.record(&mut tx, &transition).await?;
        }
    }
    tx.commit().await?;
    context.stats.count(|counts| counts.recovered += u64::try_from(recovered).unwrap_or(u64::MAX));
    Ok(())
}
