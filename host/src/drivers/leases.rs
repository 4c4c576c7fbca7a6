//! Which claims of this worker are alive now.
//!
//! The worker writes a claim's end into the book at each confirmed renewal; capabilities ask it
//! before each effect. No database is asked: what counts is what this process knows, measured by
//! its own monotonic clock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use occ_queue::Claim;
use tokio::time::Instant;

use crate::worker::LeaseWatch;

/// Shared by the worker, which writes, and the call authority, which reads; cheap to clone. It
/// holds one entry per claim in hand, so the worker's slots bound it.
#[derive(Debug, Clone, Default)]
pub struct LeaseBook {
    held: Arc<Mutex<HashMap<String, Lease>>>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    epoch: u64,
    fence_floor: u64,
    until: Instant,
}

impl LeaseBook {
    /// Notes a claim, or one more renewal of it: effects may run until `until`.
    pub fn hold(&self, work_key: &str, epoch: u64, fence_floor: u64, until: Instant) {
        self.held().insert(work_key.to_owned(), Lease { epoch, fence_floor, until });
    }

    /// Writes the worker's claims into this book.
    #[must_use]
    pub fn watch(&self) -> LeaseWatch {
        let book = self.clone();
        Arc::new(move |claim: &Claim, until: Option<Instant>| {
            let [epoch, floor] = [claim.epoch, claim.fence_floor].map(|it| u64::try_from(it).unwrap_or(0));
            match until {
                Some(until) => book.hold(&claim.key, epoch, floor, until),
                None => book.release(&claim.key, epoch),
            }
        })
    }

    /// The pass is over. A newer claim of the same row is left alone.
    pub fn release(&self, work_key: &str, epoch: u64) {
        let mut held = self.held();
        if held.get(work_key).is_some_and(|lease| lease.epoch == epoch) {
            held.remove(work_key);
        }
    }

    /// May this claim still have effects?
    #[must_use]
    pub fn alive(&self, work_key: &str, epoch: u64) -> bool {
        self.lease(work_key, epoch).is_some_and(|lease| lease.until > Instant::now())
    }

    /// The fence below which this claim stamps even what it finds in order; `None` without the
    /// claim.
    #[must_use]
    pub fn fence_floor(&self, work_key: &str, epoch: u64) -> Option<u64> {
        self.lease(work_key, epoch).map(|lease| lease.fence_floor)
    }

    fn lease(&self, work_key: &str, epoch: u64) -> Option<Lease> {
        self.held().get(work_key).copied().filter(|lease| lease.epoch == epoch)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lease_ends_with_its_time_and_a_renewal_moves_the_end() {
        let book = LeaseBook::default();
        let now = Instant::now();
        assert!(!book.alive("k", 1));
        book.hold("k", 1, 0, now);
        assert!(!book.alive("k", 1));
        book.hold("k", 1, 0, now + Duration::from_secs(60));
        assert!(book.alive("k", 1));
    }

    #[test]
    fn an_older_claim_of_the_row_is_dead_and_cannot_release_the_newer() {
        let book = LeaseBook::default();
        let until = Instant::now() + Duration::from_secs(60);
        book.hold("k", 1, 0, until);
        book.hold("k", 2, 1, until);
        assert!(!book.alive("k", 1));
        book.release("k", 1);
        assert!(book.alive("k", 2));
        assert_eq!((book.fence_floor("k", 2), book.fence_floor("k", 1)), (Some(1), None));
        book.release("k", 2);
        assert!(!book.alive("k", 2));
    }
}
