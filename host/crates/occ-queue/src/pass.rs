//! What a handler sees of its claim, and what it answers.

use std::time::Duration;

use crate::Code;

/// When a deferred row is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// By age: a fortieth of it, between 0.25 s and 5 s; without a deadline
    /// every 30 s after 15 min. ± 10 %.
    Readiness,
    /// After this long, ± 10 %.
    After(Duration),
    /// As soon as the lane is free.
    Now,
}

/// What a pass decided.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Target reached, or superseded.
    Complete {
        /// Reason code of success.
        code: Code,
        /// Closed document for clients.
        result: Option<serde_json::Value>,
        /// Upkeep only: queue the row again after this long.
        again_in: Option<Duration>,
    },
    /// Not ready yet, or a dependency is down: the attempt is refunded.
    Defer {
        /// Reason code of waiting.
        code: Code,
        /// When to look again.
        cadence: Cadence,
        /// True when a dependency did not answer: its code survives the deadline.
        outage: bool,
    },
    /// An error that may go away: the attempt is spent, back-off.
    Retry {
        /// Reason code of the error.
        code: Code,
    },
    /// No later pass can succeed.
    Fail {
        /// Reason code of the failure.
        code: Code,
        /// Closed document for clients.
        result: Option<serde_json::Value>,
    },
}
