//! Settings of the worker (`queue-worker` rules: lease, heartbeat, attempts, deadlines).

/// Bounds and times of a worker; the defaults are those of production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Claims held at once.
    pub lanes: u32,
    /// Longest wait for work when no hint arrives.
    pub poll_interval_ms: u64,
    /// Length of a lease; heartbeats come at a third of it.
    pub lease_ms: u64,
    /// Attempts before work fails for good.
    pub attempts_max: u32,
    /// Time for a deployment to become ready, per phase.
    pub convergence_ms: u64,
    /// Client-side bound on a statement.
    pub database_timeout_ms: u64,
    /// Time for running passes to reach a step boundary at shutdown.
    pub drain_secs: u64,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            lanes: 16,
            poll_interval_ms: 1_000,
            lease_ms: 15_000,
            attempts_max: 5,
            convergence_ms: 900_000,
            database_timeout_ms: 60_000,
            drain_secs: 50,
        }
    }
}
