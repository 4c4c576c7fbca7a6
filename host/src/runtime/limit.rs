//! Bounds on log reads: a budget for each principal and Agent, and a number of reads at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reads in a row before the budget is used up.
const BURST: f64 = 10.0;
/// Reads a second that the budget gains.
const REFILL_PER_SEC: f64 = 2.0;
/// Budgets kept; full ones are dropped first.
const BUDGETS_MAX: usize = 10_000;
/// Reads at once in one process.
const READS_MAX: usize = 16;

/// Shared by all log reads of a process.
#[derive(Debug, Clone)]
pub struct LogReads {
    budgets: Arc<Mutex<HashMap<(String, String), Budget>>>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Clone, Copy)]
struct Budget {
    tokens: f64,
    at: OffsetDateTime,
}

impl Default for LogReads {
    fn default() -> Self {
        Self { budgets: Arc::default(), places: Arc::new(Semaphore::new(READS_MAX)) }
    }
}

impl LogReads {
    /// Takes one read out of the budget; the error says how long to wait for the next.
    pub(super) fn spend(&self, principal: &str, agent: &str, now: OffsetDateTime) -> Result<(), Duration> {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        if budgets.len() >= BUDGETS_MAX {
            budgets.retain(|_, budget| budget.at(now).tokens < BURST);
        }
        let key = (principal.to_owned(), agent.to_owned());
        let mut budget = budgets.get(&key).map_or(Budget { tokens: BURST, at: now }, |budget| budget.at(now));
        let spent = if budget.tokens >= 1.0 {
            budget.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - budget.tokens) / REFILL_PER_SEC))
        };
        budgets.insert(key, budget);
        spent
    }

    /// A place among the reads at once; none when all are taken.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }
}

impl Budget {
    fn at(self, now: OffsetDateTime) -> Self {
        let passed = (now - self.at).as_seconds_f64().max(0.0);
        Self { tokens: (self.tokens + passed * REFILL_PER_SEC).min(BURST), at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_comes_back() {
        let reads = LogReads::default();
        let start = OffsetDateTime::UNIX_EPOCH;
        for _ in 0..10 {
            assert_eq!(reads.spend("p", "a", start), Ok(()));
        }
        assert_eq!(reads.spend("p", "a", start), Err(Duration::from_millis(500)));
        assert_eq!(reads.spend("p", "b", start), Ok(()));
        assert_eq!(reads.spend("p", "a", start + Duration::from_millis(500)), Ok(()));
        assert!(reads.spend("p", "a", start + Duration::from_millis(500)).is_err());
    }

    #[test]
    fn places_are_bounded() {
        let reads = LogReads::default();
        let held: Vec<_> = (0..READS_MAX).map(|_| reads.place().unwrap()).collect();
        assert!(reads.place().is_none());
        drop(held);
        assert!(reads.place().is_some());
    }
}
