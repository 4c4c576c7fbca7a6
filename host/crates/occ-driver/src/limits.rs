//! What one call of a plugin may use.
//!
//! A manifest may ask for other numbers than the defaults; the Installation caps them.
//! Hitting a limit stops the component and drops its store; the error names the limit
//! and both numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Limit;

const MIB: u64 = 1024 * 1024;

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Linear memory, summed over all memories of the instance.
    pub memory_bytes: u64,
    /// Table elements, summed over all tables of the instance.
    pub table_elements: u64,
    /// Time inside the component; measured in ticks of 10 ms, time in the host excluded.
    pub cpu: Duration,
    /// From the start of the call to its end, host time included.
    pub wall: Duration,
    /// The same for `prepare` and `activate`.
    pub wall_reconcile: Duration,
    /// Calls into the host, WASI included.
    pub host_calls: u64,
    /// Bytes of one answer of a capability.
    pub host_answer_bytes: u64,
    /// Bytes of the plugin's result.
    pub result_bytes: u64,
    /// Bytes of log lines, standard output and error included.
    pub log_bytes: u64,
    /// Log lines.
    pub log_lines: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 * MIB,
            table_elements: 100_000,
            cpu: Duration::from_secs(2),
            wall: Duration::from_secs(30),
            wall_reconcile: Duration::from_secs(60),
            host_calls: 2_000,
            host_answer_bytes: 8 * MIB,
            result_bytes: 4 * MIB,
            log_bytes: 64 * 1024,
            log_lines: 200,
        }
    }
}

/// What a manifest asks for, and what an Installation caps; absent means the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitRequest {
    /// Memory in MiB over all memories.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// CPU time of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// Wall time of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u32>,
    /// Host calls of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<u32>,
}

/// No request and no cap goes above this; the pool reserves address space for it.
pub const MEMORY_MIB_MAX: u32 = 512;
/// No request and no cap goes above this.
pub const CPU_MS_MAX: u32 = 30_000;
/// No request and no cap goes above this.
pub const WALL_MS_MAX: u32 = 120_000;
/// No request and no cap goes above this.
pub const HOST_CALLS_MAX: u32 = 20_000;

impl CallLimits {
    /// The defaults, changed by what the manifest asks for, where the Installation gives
    /// a cap at most that. An Installation's cap above the default allows more only if
    /// the manifest asks for it.
    #[must_use]
    pub fn effective(request: LimitRequest, cap: LimitRequest) -> Self {
        let base = Self::default();
        let memory_mib = pick(request.memory_mib, cap.memory_mib, 64, MEMORY_MIB_MAX);
        let cpu_ms = pick(request.cpu_ms, cap.cpu_ms, 2_000, CPU_MS_MAX);
        let host_calls = pick(request.host_calls, cap.host_calls, 2_000, HOST_CALLS_MAX);
        let wall_ms = pick(request.wall_ms, cap.wall_ms, 30_000, WALL_MS_MAX);
        let reconcile_ms = pick(request.wall_ms, cap.wall_ms, 60_000, WALL_MS_MAX);
        Self {
            memory_bytes: u64::from(memory_mib) * MIB,
            cpu: Duration::from_millis(cpu_ms.into()),
            wall: Duration::from_millis(wall_ms.into()),
            wall_reconcile: Duration::from_millis(reconcile_ms.into()),
            host_calls: host_calls.into(),
            ..base
        }
    }

    /// The wall time of an operation of the contract.
    #[must_use]
    pub fn wall_of(&self, operation: &str) -> Duration {
        match operation {
            "prepare" | "activate" => self.wall_reconcile,
            _ => self.wall,
        }
    }

    /// The bound behind a name, in the limit's unit.
    #[must_use]
    pub fn max(&self, limit: Limit) -> u64 {
        match limit {
            Limit::MemoryBytes => self.memory_bytes,
            Limit::TableElements => self.table_elements,
            Limit::CpuMs => u64::try_from(self.cpu.as_millis()).unwrap_or(u64::MAX),
            Limit::HostCalls => self.host_calls,
            Limit::HostAnswerBytes => self.host_answer_bytes,
            Limit::ResultBytes => self.result_bytes,
            Limit::LogBytes => self.log_bytes,
            Limit::LogLines => self.log_lines,
        }
    }
}

fn pick(request: Option<u32>, cap: Option<u32>, default: u32, most: u32) -> u32 {
    let wanted = request.unwrap_or(default);
    wanted.min(cap.unwrap_or(default.max(most))).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_lowers_and_never_raises() {
        let request = |memory_mib, cpu_ms| LimitRequest { memory_mib, cpu_ms, ..LimitRequest::default() };
        let limits = CallLimits::effective(request(None, None), request(Some(128), Some(500)));
        assert_eq!(limits.memory_bytes, 64 * MIB);
        assert_eq!(limits.cpu, Duration::from_millis(500));
        let limits = CallLimits::effective(request(Some(200), Some(9_000)), request(Some(128), None));
        assert_eq!(limits.memory_bytes, 128 * MIB);
        assert_eq!(limits.cpu, Duration::from_secs(9));
        let limits = CallLimits::effective(request(Some(4_096), None), request(None, None));
        assert_eq!(limits.memory_bytes, u64::from(MEMORY_MIB_MAX) * MIB);
        assert_eq!(limits.wall_of("activate"), Duration::from_secs(60));
        assert_eq!(limits.wall_of("observe"), Duration::from_secs(30));
    }
}
