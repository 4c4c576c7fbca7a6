//! The worker's settings and the bounds that are not settings.

use std::time::Duration;

/// A lease ends locally this long before it ends in the database.
pub(crate) const ABORT_MARGIN: Duration = Duration::from_millis(500);
/// A lane whose claim lapsed is held this long past the lease.
pub(crate) const RECOVERY_HOLD: Duration = Duration::from_secs(1);
/// Lapsed claims that one recovery takes.
pub(crate) const RECOVERY_ROWS_MAX: i32 = 100;
/// A lane whose head is of an unknown kind is left alone this long.
pub(crate) const SKIP_UNKNOWN: Duration = Duration::from_secs(5);
/// Lanes that are left alone at once; past it the oldest is looked at again.
pub(crate) const SKIP_LANES_MAX: usize = 1_000;
/// Completions wait this long for others to share their commit.
pub(crate) const FINISH_WAIT_MAX: Duration = Duration::from_millis(2);
/// Completions that share one commit.
pub(crate) const FINISH_ROWS_MAX: usize = 64;
/// At most one NOTIFY per process in this time.
pub(crate) const HINT_INTERVAL: Duration = Duration::from_millis(50);
/// Longest deadline of one external request under a lease.
pub(crate) const EFFECT_MAX: Duration = Duration::from_secs(10);
/// Lanes that one sweep repairs.
pub(crate) const SWEEP_LANES_MAX: i32 = 1_000;

/// What an operator may choose. Every bound is checked where it is read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of this worker in claimed rows: host or Pod name and process id.
    pub worker_id: String,
    /// Passes that run at once (16). Upkeep holds at most half of them.
    pub slots: usize,
    /// Longest time between two looks at the queue (1 s), ± 10 %.
    pub poll: Duration,
    /// Length of a lease (15 s); renewed each third of it.
    pub lease: Duration,
    /// Time a row with a deadline has per phase (15 min). Used for cadence;
    /// the deadline itself is set at enqueue.
    pub convergence: Duration,
    /// Time from the stop signal until running calls are dropped (50 s).
    pub drain: Duration,
    /// Bound on each statement of the loop, seen from here (60 s).
    pub database_timeout: Duration,
}

/// Attempts of a row before it settles, unless its enqueuer says otherwise.
pub const ATTEMPTS_MAX_DEFAULT: i32 = 5;

impl Default for Settings {
    fn default() -> Self {
        Self {
            worker_id: format!("worker-{}", std::process::id()),
            slots: 16,
            poll: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            convergence: Duration::from_mins(15),
            drain: Duration::from_secs(50),
            database_timeout: Duration::from_mins(1),
        }
    }
}
