//! What a worker counts. The host turns it into metrics and health; nothing here has a tenant in it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlx::PgConnection;
use tokio::time::Instant;

use crate::{Outcome, QueueError};

/// Upper bounds of the histograms' buckets, in seconds.
pub const BUCKETS: [f64; 10] = [0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0];

/// Counts of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Values at most as long as the bucket's bound, longer than the one before.
    pub counts: [u64; BUCKETS.len()],
    /// All values.
    pub count: u64,
    /// Sum of all values, in seconds.
    pub sum: f64,
}

impl Histogram {
    fn add(&mut self, value: Duration) {
        let secs = value.as_secs_f64();
        if let Some(bucket) =
            BUCKETS.iter().zip(&mut self.counts).find_map(|(bound, n)| (secs <= *bound).then_some(n))
        {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += secs;
    }
}

/// Counters of one worker since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Passes by kind and outcome.
    pub attempts: BTreeMap<(String, Outcome), u64>,
    /// Length of passes by kind.
    pub durations: BTreeMap<String, Histogram>,
    /// Time between due and claimed.
    pub claim_latency: Histogram,
    /// Lapsed claims that were queued again.
    pub recovered: u64,
    /// Passes that found a newer claim's fence or lost their lease.
    pub fenced: u64,
    /// Lanes whose columns were wrong; must stay 0.
    pub lanes_repaired: u64,
    /// Claims that met a lane with a live one; must stay 0.
    pub lanes_busy: u64,
}

/// A worker's counters and clocks, shared with whoever shows them.
#[derive(Debug)]
pub struct Stats {
    counts: Mutex<Counts>,
    progress: Mutex<Instant>,
    observed: Mutex<Option<Instant>>,
    user: AtomicUsize,
    upkeep: AtomicUsize,
    slots: usize,
    statements: AtomicU64,
}

impl Stats {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            counts: Mutex::default(),
            progress: Mutex::new(Instant::now()),
            observed: Mutex::new(None),
            user: AtomicUsize::new(0),
            upkeep: AtomicUsize::new(0),
            slots,
            statements: AtomicU64::new(0),
        }
    }

    /// A copy of the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a write that found a newer fence.
    pub fn fenced(&self) {
        self.count(|counts| counts.fenced += 1);
    }

    /// Time since the loop last came round: what liveness asks.
    #[must_use]
    pub fn progress_age(&self) -> Duration {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Time since the database last answered about the queue, a heartbeat
    /// included: what readiness asks. None before the first answer.
    #[must_use]
    pub fn observation_age(&self) -> Option<Duration> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// Slots: all, running user passes, running upkeep passes.
    #[must_use]
    pub fn slots(&self) -> (usize, usize, usize) {
        (self.slots, self.user.load(Ordering::Relaxed), self.upkeep.load(Ordering::Relaxed))
    }

    /// Statements that the idle loop sent so far.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn progressed(&self) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn observed(&self) {
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(crate) fn stated(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn running(&self, user: usize, upkeep: usize) {
        self.user.store(user, Ordering::Relaxed);
        self.upkeep.store(upkeep, Ordering::Relaxed);
    }

    pub(crate) fn claimed(&self, latency: Duration) {
        self.count(|counts| counts.claim_latency.add(latency));
    }

    pub(crate) fn passed(&self, kind: &str, outcome: Outcome, took: Duration) {
        self.count(|counts| {
            *counts.attempts.entry((kind.to_owned(), outcome)).or_default() += 1;
            counts.durations.entry(kind.to_owned()).or_default().add(took);
            if outcome == Outcome::ClaimLost {
                counts.fenced += 1;
            }
        });
    }
}

/// What waits in the queue, over all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    /// Queued user rows.
    pub user: i64,
    /// Queued upkeep rows.
    pub upkeep: i64,
    /// Seconds that the oldest due user row has been due.
    pub user_oldest_secs: f64,
    /// Seconds that the oldest due upkeep row has been due.
    pub upkeep_oldest_secs: f64,
    /// Rows that failed for good.
    pub failed: i64,
}

/// Reads the gauges in one statement.
///
/// # Errors
/// The database refused or did not answer.
pub async fn pending(conn: &mut PgConnection) -> Result<Pending, QueueError> {
    let row = sqlx::query!(
        r#"select count(*) filter (where state = 'queued' and not upkeep) as "user!",
                  count(*) filter (where state = 'queued' and upkeep) as "upkeep!",
                  count(*) filter (where state = 'failed_permanent') as "failed!",
                  coalesce(extract(epoch from now() - min(available_at)
                    filter (where state = 'queued' and not upkeep and available_at <= now())), 0)::float8 as "user_oldest!",
                  coalesce(extract(epoch from now() - min(available_at)
                    filter (where state = 'queued' and upkeep and available_at <= now())), 0)::float8 as "upkeep_oldest!"
             from occ.work where state in ('queued', 'failed_permanent')"#
    )
    .fetch_one(conn)
    .await?;
    Ok(Pending {
        user: row.user,
        upkeep: row.upkeep,
        user_oldest_secs: row.user_oldest,
        upkeep_oldest_secs: row.upkeep_oldest,
        failed: row.failed,
    })
}
