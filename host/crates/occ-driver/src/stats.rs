//! Numbers of a plugin's calls: for metrics since the start, for the API of the last five
//! minutes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::capability::Capability;

/// Upper bounds of the duration histogram in microseconds; a last bucket has no bound.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    5_000_000, 30_000_000,
];
const BUCKETS: usize = DURATION_BOUNDS_US.len() + 1;
/// The window of the API is made of slices of one minute.
const WINDOW_SLICES: usize = 5;
/// Length of the window in seconds.
pub const WINDOW_SECS: u32 = 300;
const SLICE: Duration = Duration::from_secs(60);

type Histogram = [u64; BUCKETS];

/// Calls of one operation with one outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCount {
    /// How many.
    pub calls: u64,
    /// Calls by duration; see [`DURATION_BOUNDS_US`].
    pub durations: Histogram,
    /// Sum of durations in microseconds.
    pub total_us: u64,
}

/// Everything counted since the plugin was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// By operation and outcome (`ok`, `failure`, `trap`, `limit`, `deadline`, `contract`,
    /// `unavailable`).
    pub calls: BTreeMap<(&'static str, &'static str), CallCount>,
    /// Calls into the host by capability and outcome (`ok`, `refused`).
    pub host_calls: BTreeMap<(&'static str, &'static str), u64>,
    /// Most linear memory of one call, in bytes.
    pub memory_bytes_peak: u64,
    /// Code of the newest error.
    pub last_error: Option<String>,
}

/// The last five minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Recent {
    /// How many calls.
    pub calls: u64,
    /// How many of them had no answer.
    pub failures: u64,
    /// Half of them took at most this, in milliseconds; none when there was no call.
    pub p50_ms: Option<f64>,
    /// 99 of 100 took at most this.
    pub p99_ms: Option<f64>,
}

/// Counts calls.
#[derive(Debug)]
pub(crate) struct Stats {
    born: Instant,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    totals: Totals,
    slices: [Slice; WINDOW_SLICES],
}

/// Calls of one minute.
#[derive(Debug, Clone, Copy, Default)]
struct Slice {
    minute: u64,
    failures: u64,
    durations: Histogram,
}

/// One finished call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished<'a> {
    pub(crate) operation: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<&'a str>,
    pub(crate) duration: Duration,
    /// By [`Capability::ALL`]: all of them, and how many were refused.
    pub(crate) host_calls: [(u64, u64); Capability::ALL.len()],
    pub(crate) memory_bytes: u64,
}

impl Stats {
    pub(crate) fn new(now: Instant) -> Self {
        Self { born: now, counted: Mutex::default() }
    }

    fn minute(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.born).as_secs() / SLICE.as_secs()
    }

    pub(crate) fn record(&self, now: Instant, call: Finished<'_>) {
        let minute = self.minute(now);
        let us = u64::try_from(call.duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATION_BOUNDS_US.iter().position(|bound| us <= *bound).unwrap_or(BUCKETS - 1);
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = &mut counted.totals;
        for (capability, (all, refused)) in Capability::ALL.into_iter().zip(call.host_calls) {
            for (outcome, calls) in [("ok", all.saturating_sub(refused)), ("refused", refused)] {
                if calls > 0 {
                    *totals.host_calls.entry((capability.as_str(), outcome)).or_default() += calls;
                }
            }
        }
        totals.memory_bytes_peak = totals.memory_bytes_peak.max(call.memory_bytes);
        // That a call was not begun says nothing new about the plugin.
        if let Some(error) = call.error.filter(|_| call.outcome != "unavailable") {
            totals.last_error = Some(error.to_owned());
        }
        let count = totals.calls.entry((call.operation, call.outcome)).or_default();
        count.calls += 1;
        count.total_us = count.total_us.saturating_add(us);
        increment(&mut count.durations, bucket);
        let slot = usize::try_from(minute % WINDOW_SLICES as u64).unwrap_or(0);
        if let Some(slice) = counted.slices.get_mut(slot) {
            if slice.minute != minute {
                *slice = Slice { minute, ..Slice::default() };
            }
            slice.failures += u64::from(call.error.is_some());
            increment(&mut slice.durations, bucket);
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).totals.clone()
    }

    pub(crate) fn recent(&self, now: Instant) -> Recent {
        let minute = self.minute(now);
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Histogram::default();
        let mut failures = 0;
        for slice in &counted.slices {
            if minute.saturating_sub(slice.minute) < WINDOW_SLICES as u64 {
                failures += slice.failures;
                sum.iter_mut().zip(slice.durations).for_each(|(sum, count)| *sum += count);
            }
        }
        Recent { calls: sum.iter().sum(), failures, p50_ms: quantile(&sum, 50), p99_ms: quantile(&sum, 99) }
    }
}

fn increment(histogram: &mut Histogram, bucket: usize) {
    if let Some(count) = histogram.get_mut(bucket) {
        *count += 1;
    }
}

/// The upper bound of the bucket in which the quantile lies, in milliseconds.
fn quantile(histogram: &Histogram, percent: u64) -> Option<f64> {
    let total: u64 = histogram.iter().sum();
    if total == 0 {
        return None;
    }
    let rank = (total * percent).div_ceil(100);
    let mut seen = 0;
    let bucket = histogram.iter().position(|count| {
        seen += count;
        seen >= rank
    })?;
    let bound = DURATION_BOUNDS_US.get(bucket).or(DURATION_BOUNDS_US.last())?;
    Some(u32::try_from(*bound).map_or(f64::MAX, f64::from) / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(us: u64) -> Finished<'static> {
        Finished {
            operation: "observe",
            outcome: "ok",
            error: None,
            duration: Duration::from_micros(us),
            host_calls: [(2, 0), (0, 0), (1, 1), (0, 0), (0, 0)],
            memory_bytes: us,
        }
    }

    #[test]
    fn the_window_forgets_and_totals_do_not() {
        let born = Instant::now();
        let stats = Stats::new(born);
        assert_eq!(stats.recent(born), Recent::default());
        for us in 0..100 {
            stats.record(born, call(us));
        }
        stats.record(born, Finished { error: Some("DRIVER_TRAPPED"), ..call(400_000) });
        let recent = stats.recent(born + Duration::from_secs(299));
        assert_eq!((recent.calls, recent.failures), (101, 1));
        assert_eq!((recent.p50_ms, recent.p99_ms), (Some(0.05), Some(0.1)));
        assert_eq!(stats.recent(born + Duration::from_secs(301)).calls, 0);
        let totals = stats.totals();
        let count = totals.calls.get(&("observe", "ok")).unwrap();
        assert_eq!((count.calls, totals.memory_bytes_peak), (101, 400_000));
        assert_eq!(
            totals.host_calls.into_iter().collect::<Vec<_>>(),
            [(("kubernetes", "refused"), 101), (("log", "ok"), 202)]
        );
        assert_eq!(totals.last_error.as_deref(), Some("DRIVER_TRAPPED"));
    }
}
