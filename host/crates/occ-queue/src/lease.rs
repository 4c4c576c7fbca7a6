//! One claim's lease: renewing it, and knowing when it is over from here.
//!
//! **Time is the database's.** Our monotonic clock only measures how long ago
//! the last renewal that was confirmed had been *sent*.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{QueueError, settings::ABORT_MARGIN};

#[derive(Debug)]
pub(crate) struct Lease {
    pool: PgPool,
    key: String,
    token: Uuid,
    length: Duration,
    confirmed: Mutex<Instant>,
    interrupt: AtomicBool,
}

impl Lease {
    pub(crate) fn new(pool: PgPool, key: String, token: Uuid, length: Duration, claimed_at: Instant) -> Self {
        Self {
            pool,
            key,
            token,
            length,
            confirmed: Mutex::new(claimed_at),
            interrupt: AtomicBool::new(false),
        }
    }

    /// Extends the lease; on the way marks that an effect begins, or commits a step.
    pub(crate) async fn renew(&self, begins: bool, step: Option<&str>) -> Result<(), QueueError> {
        let sent = Instant::now();
        let interrupt = sqlx::query_scalar!(
            r#"update occ.work w
                  set lease_until = clock_timestamp() + make_interval(secs => $3), begun = w.begun or $4,
                      step = coalesce($5, w.step)
                where w.key = $1 and w.lease_token = $2 and w.state = 'claimed'
                  and w.lease_until > clock_timestamp()
               returning exists (
                 select from occ.work q
                  where q.lane = w.lane and q.state = 'queued' and not q.upkeep
                    and (q.updated_at > w.last_attempt_at or (w.upkeep and q.available_at <= now()))) as "interrupt!""#,
            self.key,
            self.token,
            self.length.as_secs_f64(),
            begins,
            step,
        )
        .fetch_optional(&self.pool)
        .await?
        .ok_or_else(|| QueueError::LostLease { key: self.key.clone() })?;
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        *confirmed = sent.max(*confirmed);
        drop(confirmed);
        self.interrupt.store(interrupt, Ordering::Relaxed);
        Ok(())
    }

    fn confirmed(&self) -> Instant {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When everything under this lease must have stopped.
    pub(crate) fn abort_at(&self) -> Instant {
        self.confirmed() + self.length.saturating_sub(ABORT_MARGIN.min(self.length / 4))
    }

    /// When the next heartbeat is due.
    pub(crate) fn renew_at(&self) -> Instant {
        self.confirmed() + self.length / 3
    }

    /// Upper bound, from here, of how long the lease still runs in the database.
    pub(crate) fn left(&self) -> Duration {
        (self.confirmed() + self.length).saturating_duration_since(Instant::now())
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }
}
