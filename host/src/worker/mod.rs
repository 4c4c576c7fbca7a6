//! What happens after an answer was sent: the queue's handler of this product.
//!
//! `occ-queue` claims, renews and ends; the slices' `work.rs` hold the steps; here is what is
//! between them: `dispatch` (kind to slice), `guard` (may the actor still), `effect` (one call of
//! the compute under the lease), `evidence` (what the audit log keeps), `injector` (faults of tests).
//!
//! - **A pass never sleeps**: it looks once and defers.
//! - **A plugin cannot decide** to complete, retry or publish: it answers what it saw.
//! - **Every external step may run twice.**

pub mod compute;
mod dispatch;
pub(crate) mod effect;
pub(crate) mod evidence;
pub(crate) mod guard;
pub mod injector;
pub mod metrics;
pub(crate) mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use occ_api::ids::InstallationId;
use occ_queue::{Claim, Database, Hints, Random, Settings, Stats, Worker};
use tokio::time::Instant;

use self::compute::Compute;
use self::dispatch::Jobs;
use self::injector::Injector;
use crate::clock::Clock;
use crate::config::WorkerSettings;
use crate::db::PgPool;
use crate::iam::Iam;
use crate::ids::Ids;
use crate::shutdown::Shutdown;

/// Told of each confirmed renewal, with the instant when everything under the claim must have
/// ended, and with none when the pass is over: how the capabilities know that a lease lives.
pub type LeaseWatch = Arc<dyn Fn(&Claim, Option<Instant>) + Send + Sync>;

/// What a worker needs.
pub struct Context {
    /// Pool of the steps.
    pub db: PgPool,
    /// Time of audit rows and of domain rows.
    pub clock: Clock,
    /// Ids and jitter.
    pub ids: Ids,
    /// The Installation.
    pub installation: InstallationId,
    /// Decides again at each pass.
    pub iam: Iam,
    /// Runs agents.
    pub compute: Arc<dyn Compute>,
    /// Time that a deployment has for each phase.
    pub convergence: Duration,
    /// Told of renewals.
    pub leases: Option<LeaseWatch>,
    /// Faults between steps; tests only.
    pub injector: Option<Arc<dyn Injector>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("installation", &self.installation).finish_non_exhaustive()
    }
}

/// A worker that was started: what health and metrics read.
#[derive(Debug, Clone)]
pub struct Health {
    stats: Arc<Stats>,
    observation_max: Duration,
    progress_max: Duration,
}

/// Readiness holds at least this long after the last answer of the database.
const OBSERVATION_MAX: Duration = Duration::from_secs(15);
/// The loop hangs when it has not come round for this long.
const PROGRESS_MAX: Duration = Duration::from_secs(120);

impl Health {
    /// Did the database answer about the queue lately? False: do not send work, do not restart.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stats.observation_age().is_some_and(|age| age <= self.observation_max)
    }

    /// Does the loop come round? False: restart.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.stats.progress_age() <= self.progress_max
    }

    /// Counters of the queue, for [`metrics::register`].
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.stats)
    }
}

/// Starts a worker on the tracked tasks; it drains at shutdown.
pub fn start(
    context: Context,
    database: Database,
    settings: &WorkerSettings,
    worker_id: String,
    hints: Hints,
    shutdown: &Shutdown,
) -> Health {
    let (worker, health) = build(context, database, settings, worker_id);
    shutdown.spawn(worker.hints(hints).run(shutdown.token().clone()));
    health
}

/// A worker and its health, not started yet: for tests that end it on their own.
pub fn build(
    context: Context,
    database: Database,
    settings: &WorkerSettings,
    worker_id: String,
) -> (Worker<impl occ_queue::Handler>, Health) {
    let queue = queue_settings(settings, worker_id);
    let ids = context.ids.clone();
    let random: Random = Arc::new(move || ids.fraction());
    let observation_max = OBSERVATION_MAX.max(queue.lease * 3);
    let progress_max = PROGRESS_MAX.max(queue.lease * 6).max(queue.database_timeout * 2);
    let worker = Worker::new(database, queue, Jobs::new(context), random);
    let health = Health { stats: worker.stats(), observation_max, progress_max };
    (worker, health)
}

fn queue_settings(settings: &WorkerSettings, worker_id: String) -> Settings {
    Settings {
        worker_id,
        slots: usize::try_from(settings.lanes).unwrap_or(usize::MAX),
        poll: Duration::from_millis(settings.poll_interval_ms),
        lease: Duration::from_millis(settings.lease_ms),
        convergence: Duration::from_millis(settings.convergence_ms),
        drain: Duration::from_secs(settings.drain_secs),
        database_timeout: Duration::from_millis(settings.database_timeout_ms),
    }
}
