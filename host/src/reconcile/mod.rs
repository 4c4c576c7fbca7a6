//! Reconcilers: what no request asks for. Each has no input, a timer, a bounded batch, and leaves its
//! last result in `reconciler_runs` and in the log.
//!
//! | Name | Process | Every | Does |
//! | --- | --- | --- | --- |
//! | `leases` | worker | 1 s | lapsed claims go back to the queue: part of the queue's own loop |
//! | `lanes` | worker | 30 s | repairs lanes whose columns disagree with their rows; must find none |
//! | `drift` | worker | 60 s | arms a look at every running Agent that has none |
//! | `retention` | worker | 1 h | removes ended work, replays, events and keys that outlived their use |
//! | `credentials` | API | 5 s | removes generated credentials of Agents whose runtime is gone |
//!
//! **Every replica runs them**; each batch is safe beside another replica's.

mod changes;

use std::future::Future;
use std::time::Duration;

pub use changes::wake_on_changes;

use occ_queue::Hints;

use crate::agents;
use crate::clock::Clock;
use crate::db::{self, PgPool};
use crate::error::{Error, Result};
use crate::ids::Ids;
use crate::shutdown::Shutdown;
use crate::worker::store;

/// Rows that one run removes or arms.
const BATCH: i64 = 1_000;
/// Share of an interval by which runs of different replicas are spread.
const SPREAD: f64 = 0.1;
const LANES_EVERY: Duration = Duration::from_secs(30);
const DRIFT_EVERY: Duration = Duration::from_secs(60);
const RETENTION_EVERY: Duration = Duration::from_secs(3_600);
const CREDENTIALS_EVERY: Duration = Duration::from_secs(5);

/// What reconcilers need; cheap to clone.
#[derive(Debug, Clone)]
pub struct Needs {
    /// PostgreSQL.
    pub db: PgPool,
    /// Time of the recorded runs.
    pub clock: Clock,
    /// Spread of the timers.
    pub ids: Ids,
    /// Wakes workers.
    pub hints: Hints,
    /// Events older than this are removed.
    pub events_retention_hours: u32,
}

/// Starts those of a worker on the tracked tasks.
pub fn start_worker(needs: &Needs, shutdown: &Shutdown) {
    every("lanes", LANES_EVERY, needs, shutdown, lanes);
    every("drift", DRIFT_EVERY, needs, shutdown, drift);
    every("retention", RETENTION_EVERY, needs, shutdown, retention);
}

/// Starts those of an API process on the tracked tasks.
pub fn start_api(needs: &Needs, shutdown: &Shutdown) {
    every("credentials", CREDENTIALS_EVERY, needs, shutdown, credentials);
}

/// Runs `run` each `interval` until shutdown. An error is recorded; the next run tries again.
fn every<F, Fut>(name: &'static str, interval: Duration, needs: &Needs, shutdown: &Shutdown, run: F)
where
    F: Fn(Needs) -> Fut + Send + 'static,
    Fut: Future<Output = Result<u64>> + Send,
{
    let (needs, stop) = (needs.clone(), shutdown.token().clone());
    shutdown.spawn(async move {
        loop {
            let rest = interval.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * needs.ids.fraction());
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(rest) => {}
            }
            let began = needs.clock.now();
            let ended = run(needs.clone()).await;
            if let Err(error) = record(&needs, name, began, &ended).await {
                tracing::warn!(event = "reconcile.not-recorded", name, error = error.internal_text());
            }
        }
    });
}

async fn record(needs: &Needs, name: &str, began: time::OffsetDateTime, ended: &Result<u64>) -> Result<()> {
    let (code, processed) = match ended {
        Ok(processed) => (None, *processed),
        Err(error) => {
            tracing::warn!(event = "reconcile.failed", name, error = error.internal_text());
            (Some(error.code()), 0)
        }
    };
    if processed > 0 {
        tracing::info!(event = "reconcile.done", name, processed);
    }
    let mut conn = needs.db.acquire().await?;
    store::run_put(&mut conn, name, began, needs.clock.now(), code, processed).await
}

/// `lanes`
async fn lanes(needs: Needs) -> Result<u64> {
    let mut conn = needs.db.acquire().await?;
    let repaired = occ_queue::sweep_lanes(&mut conn).await.map_err(queue)?;
    if repaired > 0 {
        tracing::error!(event = "queue.lanes-repaired", code = "QUEUE_LANE_REPAIRED", repaired);
        needs.hints.hint();
    }
    Ok(repaired)
}

/// `drift`
async fn drift(needs: Needs) -> Result<u64> {
    let mut conn = needs.db.acquire().await?;
    let unobserved = store::unobserved_agents(&mut conn, BATCH).await?;
    drop(conn);
    let mut armed = 0;
    for (namespace, agent) in unobserved {
        // One short transaction each: arming may wait for a claimed row.
        let mut tx = db::begin(&needs.db).await?;
        let work = agents::work::observe_work(&namespace, &agent);
        armed += u64::from(occ_queue::arm_upkeep(&mut tx, &work, Duration::ZERO).await.map_err(queue)?);
        tx.commit().await?;
    }
    if armed > 0 {
        needs.hints.hint();
    }
    Ok(armed)
}

/// `retention`
async fn retention(needs: Needs) -> Result<u64> {
    let hours = i32::try_from(needs.events_retention_hours).unwrap_or(i32::MAX);
    let mut conn = needs.db.acquire().await?;
    let work = store::ended_work_delete(&mut conn, BATCH).await?;
    Ok(work + store::expired_delete(&mut conn, BATCH, hours).await?)
}

/// `credentials`
async fn credentials(needs: Needs) -> Result<u64> {
    let mut conn = needs.db.acquire().await?;
    let lanes = store::orphan_credentials_delete(&mut conn, BATCH).await?;
    for lane in &lanes {
        occ_queue::wake(&mut conn, lane).await.map_err(queue)?;
    }
    if !lanes.is_empty() {
        needs.hints.hint();
    }
    Ok(u64::try_from(lanes.len()).unwrap_or(u64::MAX))
}

fn queue(error: occ_queue::QueueError) -> Error {
    Error::unavailable("The queue's database did not answer.").caused_by(error)
}
