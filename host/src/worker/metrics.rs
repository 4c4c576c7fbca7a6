//! Metrics of a worker: its own counters at each scrape, and the queue's gauges of the last look.
//!
//! **No label names a tenant**: kinds, classes, outcomes and states are closed sets.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use occ_queue::{BUCKETS, Histogram, Pending, Stats};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::store::{self, Fleet};
use crate::db::PgPool;
use crate::error::{Error, Result};
use crate::shutdown::Shutdown;

/// Distance of two looks at the gauges.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Longest statement of a look.
const LOOK_MAX: Duration = Duration::from_millis(1_500);

/// Registers a worker's counters and starts the look at the gauges.
pub fn register(registry: &mut Registry, stats: Arc<Stats>, db: PgPool, shutdown: &Shutdown) {
    let gauges = Gauges::default();
    registry.register_collector(Box::new(Counters { stats }));
    registry.register_collector(Box::new(gauges.clone()));
    let stop = shutdown.token().clone();
    shutdown.spawn(async move {
        loop {
            let seen = tokio::time::timeout(LOOK_MAX, look(&db)).await;
            // What cannot be seen is not shown: a stale gauge lies.
            let seen = match seen {
                Ok(Ok(seen)) => Some(seen),
                Ok(Err(error)) => {
                    tracing::warn!(event = "worker.gauges-failed", error = error.internal_text());
                    None
                }
                Err(_elapsed) => None,
            };
            gauges.set(seen);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    });
}

async fn look(db: &PgPool) -> Result<(Pending, Fleet)> {
    let mut conn = db.acquire().await?;
    let pending = occ_queue::pending(&mut conn)
        .await
        .map_err(|error| Error::unavailable("The queue's database did not answer.").caused_by(error))?;
    Ok((pending, store::fleet(&mut conn).await?))
}

#[derive(Debug)]
struct Counters {
    stats: Arc<Stats>,
}

#[derive(Debug, Clone, Default)]
struct Gauges {
    seen: Arc<Mutex<Option<(Pending, Fleet)>>>,
}

impl Gauges {
    fn set(&self, seen: Option<(Pending, Fleet)>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcomes {
    work_kind: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kinds {
    work_kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Classes {
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct States {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LifecycleStates {
    lifecycle_state: &'static str,
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.stats.counts();
        let help = "Passes of work, by kind and how they ended";
        let mut family =
            encoder.encode_descriptor("occ_reconciliation_attempts", help, None, MetricType::Counter)?;
        for ((kind, outcome), count) in &counts.attempts {
            let labels = Outcomes { work_kind: kind.clone(), outcome: outcome.as_str() };
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let (name, help) =
            ("occ_reconciliation_attempt_duration_seconds", "Time from claim to committed end");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (kind, histogram) in &counts.durations {
            let labels = Kinds { work_kind: kind.clone() };
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram::<NoLabelSet>(
                histogram.sum,
                histogram.count,
                &buckets(histogram),
                None,
            )?;
        }
        let (name, help) = ("occ_work_claim_latency_seconds", "Time from due to claimed");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let latency = &counts.claim_latency;
        metric.encode_histogram::<NoLabelSet>(latency.sum, latency.count, &buckets(latency), None)?;
        for (name, help, count) in [
            ("occ_work_recovered", "Lapsed claims that were queued again", counts.recovered),
            ("occ_work_fenced", "Passes that lost their lease or met a newer fence", counts.fenced),
            ("occ_lanes_repaired", "Lanes whose columns were wrong; must stay 0", counts.lanes_repaired),
            ("occ_lanes_busy", "Second claims that the database refused; must stay 0", counts.lanes_busy),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let (all, user, upkeep) = self.stats.slots();
        let free = all.saturating_sub(user + upkeep);
        let help = "Slots of this worker";
        let mut family = encoder.encode_descriptor("occ_worker_slots", help, None, MetricType::Gauge)?;
        for (state, count) in [("free", free), ("user", user), ("upkeep", upkeep)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            family.encode_family(&States { state })?.encode_gauge(&count)?;
        }
        Ok(())
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((pending, fleet)) = seen else {
            return Ok(());
        };
        let mut family =
            encoder.encode_descriptor("occ_work_pending", "Queued work", None, MetricType::Gauge)?;
        for (class, count) in [("user", pending.user), ("upkeep", pending.upkeep)] {
            family.encode_family(&Classes { class })?.encode_gauge(&count)?;
        }
        let (name, help) =
            ("occ_work_oldest_pending_age_seconds", "How long the oldest due work has been due");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (class, secs) in [("user", pending.user_oldest_secs), ("upkeep", pending.upkeep_oldest_secs)] {
            family.encode_family(&Classes { class })?.encode_gauge(&secs)?;
        }
        let help = "Agents, by what they shall do and whether they are being deleted";
        let mut family = encoder.encode_descriptor("occ_agents", help, None, MetricType::Gauge)?;
        for (lifecycle_state, count) in
            [("running", fleet.running), ("stopped", fleet.stopped), ("deleting", fleet.deleting)]
        {
            family.encode_family(&LifecycleStates { lifecycle_state })?.encode_gauge(&count)?;
        }
        for (name, help, count) in [
            ("occ_work_failed_permanent", "Work that failed for good", pending.failed),
            ("occ_agents_degraded", "Running Agents that were not ready at the last look", fleet.degraded),
        ] {
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&count)?;
        }
        Ok(())
    }
}

/// The buckets as the encoder wants them, with the one above all bounds.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let below: u64 = histogram.counts.iter().sum();
    let above = (f64::INFINITY, histogram.count.saturating_sub(below));
    BUCKETS.into_iter().zip(histogram.counts).chain([above]).collect()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_scrape_shows_what_was_seen_and_nothing_else() {
        let gauges = Gauges::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(gauges.clone()));
        let scrape = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        assert_eq!(scrape(), "# EOF\n");
        let pending = Pending { user: 3, user_oldest_secs: 1.5, failed: 2, ..Pending::default() };
        gauges.set(Some((pending, Fleet { running: 7, degraded: 1, ..Fleet::default() })));
        let text = scrape();
        for line in [
            "occ_work_pending{class=\"user\"} 3",
            "occ_work_oldest_pending_age_seconds{class=\"user\"} 1.5",
            "occ_agents{lifecycle_state=\"running\"} 7",
            "occ_work_failed_permanent 2",
            "occ_agents_degraded 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn the_last_bucket_holds_what_is_longer_than_every_bound() {
        let mut histogram = Histogram { count: 3, sum: 400.0, ..Histogram::default() };
        histogram.counts[0] = 2;
        let buckets = buckets(&histogram);
        assert_eq!(buckets.first(), Some(&(0.005, 2)));
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, 1)));
    }
}
