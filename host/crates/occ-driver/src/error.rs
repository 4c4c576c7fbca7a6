//! How a call of a plugin can end without an answer.

use std::fmt;
use std::time::Duration;

use crate::types::{Failure, Reason};

/// Result of a call.
pub type CallResult<T> = Result<T, DriverError>;

/// A named bound of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// Linear memory summed over all memories, in bytes.
    MemoryBytes,
    /// Table elements summed over all tables.
    TableElements,
    /// Time on a CPU inside the component, in milliseconds. Host time does not count.
    CpuMs,
    /// Calls into the host.
    HostCalls,
    /// Bytes of one answer of the host.
    HostAnswerBytes,
    /// Bytes of the plugin's result.
    ResultBytes,
    /// Bytes of log lines.
    LogBytes,
    /// Log lines.
    LogLines,
}

impl Limit {
    /// Every limit, in the order of the manual.
    pub const ALL: [Self; 8] = [
        Self::MemoryBytes,
        Self::TableElements,
        Self::CpuMs,
        Self::HostCalls,
        Self::HostAnswerBytes,
        Self::ResultBytes,
        Self::LogBytes,
        Self::LogLines,
    ];

    /// Stable name, unit last.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MemoryBytes => "memory_bytes",
            Self::TableElements => "table_elements",
            Self::CpuMs => "cpu_ms",
            Self::HostCalls => "host_calls",
            Self::HostAnswerBytes => "host_answer_bytes",
            Self::ResultBytes => "result_bytes",
            Self::LogBytes => "log_bytes",
            Self::LogLines => "log_lines",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call has no answer. The first four are the plugin's fault: the work behind the
/// call is tried again, and they count for the breaker.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DriverError {
    /// The component stopped itself: unreachable code, a panic, a wild access.
    #[error("the plugin trapped: {0}")]
    Trap(String),
    /// A bound of the call was hit; the component was stopped there.
    #[error("the plugin exceeded {limit}: {used} of {max}")]
    LimitExceeded {
        /// Which bound.
        limit: Limit,
        /// What it used or asked for, in the limit's unit.
        used: u64,
        /// What it may use.
        max: u64,
    },
    /// The call took longer than it may, waiting for the host included.
    #[error("the plugin did not answer within {after_ms} ms of at most {max_ms} ms")]
    Deadline {
        /// How long it was given.
        after_ms: u64,
        /// How long it may at most have.
        max_ms: u64,
    },
    /// An answer that breaks the contract; the text names place and rule, never a value.
    #[error("the plugin's answer breaks the contract: {0}")]
    Contract(String),
    /// The plugin's own verdict.
    #[error("the plugin failed: {}", .0.code())]
    Failure(Failure),
    /// The breaker is open, or every instance stayed busy.
    #[error("the plugin is not available for {} ms: {why}", .retry_after.as_millis())]
    Unavailable {
        /// Ask again after this.
        retry_after: Duration,
        /// Which of the two.
        why: Unavailable,
    },
}

/// Why a call was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Too many failures in a row.
    #[error("its breaker is open")]
    BreakerOpen,
    /// No slot of the pool became free in time.
    #[error("every slot is busy")]
    PoolBusy,
}

impl DriverError {
    /// Stable code of the work log: the plugin's own for a failure.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Trap(_) => "DRIVER_TRAPPED",
            Self::LimitExceeded { .. } | Self::Deadline { .. } => "DRIVER_LIMIT_EXCEEDED",
            Self::Contract(_) => "INVALID_DRIVER_OBSERVATION",
            Self::Failure(failure) => failure.code(),
            Self::Unavailable { .. } => "DRIVER_UNAVAILABLE",
        }
    }

    /// Label of metrics; a closed set.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::LimitExceeded { .. } => "limit",
            Self::Deadline { .. } => "deadline",
            Self::Contract(_) => "contract",
            Self::Failure(_) => "failure",
            Self::Unavailable { .. } => "unavailable",
        }
    }

    /// Does it count against the plugin? A failure that the plugin reports itself does
    /// not, nor does a call that never began.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::Failure(_) | Self::Unavailable { .. })
    }

    /// The plugin's reason, when it gave one.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Failure(Failure::Retry(reason) | Failure::Permanent(reason)) => Some(reason),
            _ => None,
        }
    }
}
