//! The one place where time is read, so that tests can move it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use time::{Duration, OffsetDateTime};

/// Answers the wall clock; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Milliseconds added to the machine's clock; moved by tests only.
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// Current time in UTC.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + Duration::milliseconds(self.offset_ms.load(Ordering::Relaxed))
    }

    /// Moves this clock and every clone of it.
    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.whole_milliseconds()).unwrap_or(i64::MAX);
        self.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}
