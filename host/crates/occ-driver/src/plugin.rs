//! A loaded plugin and the one path on which it is called.
//!
//! The path: breaker -> slot of the pool -> fresh store -> instance -> function -> verdict
//! -> rules of the contract -> numbers. **A store serves one call**, whatever its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::RngExt;
use tokio::time::Instant;
use tracing::Instrument;
use wasmtime::Store;

use crate::abi::{Answer, Bound, Call, Fault, Kind};
use crate::breaker::{Admission, Breaker, BreakerState, Change};
use crate::call::CallContext;
use crate::capability::Granted;
use crate::engine::Engine;
use crate::error::{CallResult, DriverError, Limit, Unavailable};
use crate::limits::CallLimits;
use crate::state::{Bounds, CallState, Gauge, Seed, late};
use crate::stats::{Finished, Recent, Stats, Totals};
use crate::types::{Description, PluginIdentity};
use crate::verify::{self, Expected};

/// Where time since 1970 comes from.
pub type Now = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A component that is linked, granted, limited and counted.
pub struct Plugin {
    pub(crate) engine: Engine,
    pub(crate) identity: PluginIdentity,
    pub(crate) origin: Origin,
    pub(crate) bound: Arc<dyn Bound>,
    pub(crate) memories: u32,
    pub(crate) requested: Vec<&'static str>,
    pub(crate) granted: Arc<Granted>,
    pub(crate) limits: CallLimits,
    pub(crate) now: Now,
    pub(crate) description: Option<Description>,
    pub(crate) breaker: Breaker,
    pub(crate) stats: Stats,
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What it is for.
    pub kind: Kind,
    /// Version of the contract that it was built for, such as `0.1.0`.
    pub contract: String,
    /// The bundle.
    pub bundle: String,
    /// Why the bundle may run: `image`, `pinned`, `unsigned`.
    pub standing: &'static str,
    /// The code generator ran when it was loaded.
    pub compiled: bool,
    /// Reason codes that it declares, with what clients read.
    pub codes: Vec<crate::bundle::Code>,
}

/// A plugin as the API shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginInfo {
    /// Id, version and digest.
    pub identity: PluginIdentity,
    /// Where it comes from.
    pub origin: Origin,
    /// Capabilities that answer.
    pub capabilities: Vec<&'static str>,
    /// Capabilities that its manifest asks for.
    pub requested: Vec<&'static str>,
    /// Its breaker.
    pub breaker: BreakerState,
    /// Code of its newest error.
    pub last_error: Option<String>,
    /// The last five minutes.
    pub recent: Recent,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin")
            .field("identity", &self.identity)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// Id, version and digest, as a revision records them.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    /// What it says about itself.
    #[must_use]
    pub fn description(&self) -> Option<&Description> {
        self.description.as_ref()
    }

    /// What one call may use.
    #[must_use]
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Counts since it was loaded.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.stats.totals()
    }

    /// The plugin as the API shows it.
    #[must_use]
    pub fn info(&self) -> PluginInfo {
        PluginInfo {
            identity: self.identity.clone(),
            origin: self.origin.clone(),
            capabilities: self.granted.names(),
            requested: self.requested.clone(),
            breaker: self.breaker.snapshot(Instant::now()),
            last_error: self.stats.totals().last_error,
            recent: self.stats.recent(Instant::now()),
        }
    }

    /// What clients read for a reason code that the plugin declares.
    #[must_use]
    pub fn declared_text(&self, code: &str) -> Option<&str> {
        let declared = self.origin.codes.iter().find(|declared| declared.code == code);
        declared.map(|declared| declared.text.as_str())
    }

    /// A call about no tenant, with the whole of its wall time.
    pub(crate) async fn call_pure(&self, call: Call) -> CallResult<Answer> {
        let deadline = Instant::now() + self.limits.wall_of(call.operation());
        self.call(&CallContext::pure(deadline), call).await
    }

    /// Calls a function of the contract in a fresh instance.
    pub(crate) async fn call(&self, cx: &CallContext, call: Call) -> CallResult<Answer> {
        let operation = call.operation();
        let started = Instant::now();
        let gauge = Arc::new(Gauge::default());
        let span = tracing::debug_span!(
            "plugin.call",
            plugin = %self.identity.id,
            operation,
            namespace_id = cx.tenant.as_deref(),
            host_calls = tracing::field::Empty,
            memory_bytes_peak = tracing::field::Empty,
        );
        let result = match self.breaker.admit(started) {
            Err(retry_after) => Err(DriverError::Unavailable { retry_after, why: Unavailable::BreakerOpen }),
            Ok(admission) => {
                let result = self.attempt(cx, call, &gauge).instrument(span.clone()).await;
                self.tell(admission, &result);
                result
            }
        };
        let host_calls = gauge.host_calls.load(Ordering::Relaxed);
        let memory_bytes = gauge.memory_peak.load(Ordering::Relaxed);
        span.record("host_calls", host_calls);
        span.record("memory_bytes_peak", memory_bytes);
        let error = result.as_ref().err();
        let ended = Instant::now();
        self.stats.record(
            ended,
            Finished {
                operation,
                outcome: error.map_or("ok", DriverError::outcome),
                error: error.map(DriverError::code),
                duration: ended.saturating_duration_since(started),
                host_calls: gauge.read(),
                memory_bytes,
            },
        );
        if let Some(error) = error.filter(|error| error.is_fault()) {
            tracing::warn!(
                event = "plugin.call_failed",
                plugin = %self.identity.id,
                operation,
                namespace_id = cx.tenant.as_deref(),
                agent_id = cx.agent.as_deref(),
                code = error.code(),
                detail = %error,
                "a call of a plugin failed"
            );
        }
        result
    }

    fn tell(&self, admission: Admission<'_>, result: &CallResult<Answer>) {
        let change = match result {
            // The caller had less time than the plugin may take.
            Err(DriverError::Deadline { after_ms, max_ms }) if after_ms < max_ms => return,
            Err(error) if error.is_fault() => admission.failed(Instant::now()),
            // It was not called: this says nothing about it.
            Err(DriverError::Unavailable { .. }) => return,
            _ => admission.answered(),
        };
        let plugin = &self.identity.id;
        match change {
            Change::None => {}
            Change::Opened(time) => {
                let open_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(event = "plugin.breaker_opened", %plugin, open_ms, "a plugin keeps failing and is not called");
            }
            Change::Closed => {
                tracing::info!(event = "plugin.breaker_closed", %plugin, "a plugin answers again")
            }
        }
    }

    async fn attempt(&self, cx: &CallContext, call: Call, gauge: &Arc<Gauge>) -> CallResult<Answer> {
        let operation = call.operation();
        let max = self.limits.wall_of(operation);
        let Some(slot) = self.engine.slot(self.memories, cx.remaining()).await else {
            let retry_after = self.engine.options().slot_wait;
            return Err(DriverError::Unavailable { retry_after, why: Unavailable::PoolBusy });
        };
        let longest = Instant::now() + max;
        let (deadline, given) =
            if cx.deadline < longest { (cx.deadline, cx.remaining()) } else { (longest, max) };
        let cx = CallContext { plugin: self.identity.id.clone(), operation, deadline, ..cx.clone() };
        let expected = Expected::of(&call);
        let mut store = self.store(cx, given, &call, gauge);
        let bound = Arc::clone(&self.bound);
        let result_bytes_max = self.limits.result_bytes;
        let run = async move {
            let result = bound.call(&mut store, call).await;
            let result = end(store.data_mut(), result);
            drop(store);
            drop(slot);
            result.and_then(|answer| expected.check(&answer, result_bytes_max).map(|()| answer))
        };
        match tokio::time::timeout_at(deadline, self.engine.run(run, &gauge.preempted)).await {
            Ok(Some(result)) => result,
            Ok(None) => Err(DriverError::Trap("the call was cut off inside the host".to_owned())),
            Err(_) => Err(late(given, max)),
        }
    }

    fn store(&self, cx: CallContext, given: Duration, call: &Call, gauge: &Arc<Gauge>) -> Store<CallState> {
        let seed = if call.is_pure() { Seed::Zero } else { Seed::Fresh(rand::rng().random()) };
        let state = CallState::new(
            cx,
            Arc::clone(&self.granted),
            Arc::clone(gauge),
            Bounds { limits: self.limits, given },
            seed,
            (self.now)(),
        );
        let mut store = Store::new(self.engine.wasmtime(), state);
        store.limiter(|state| state);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(CallState::on_tick);
        store.set_hostcall_fuel(guest_data_max(&self.limits));
        store
    }
}

/// Bytes that one crossing from the component to the host may copy, shapes included: what
/// is measured exactly afterwards is the text in a result. Without this bound a component
/// could answer the same large string a million times.
fn guest_data_max(limits: &CallLimits) -> usize {
    usize::try_from(limits.result_bytes.saturating_mul(4)).unwrap_or(usize::MAX)
}

/// The host's verdict first, then the contract's, then wasmtime's.
fn end(state: &mut CallState, result: Result<Answer, Fault>) -> CallResult<Answer> {
    if let Some(output) = state.output() {
        let bytes = output.len();
        for line in output.lines().take(usize::try_from(state.limits().log_lines).unwrap_or(usize::MAX)) {
            crate::capability::write_log(&state.cx, crate::capability::Level::Debug, line, &[]);
        }
        // Output counts as log, but it was written before it could be counted.
        let _ = state.log(bytes, 0);
    }
    match (state.take_verdict(), result) {
        (Some(verdict), _) => Err(verdict),
        (None, Ok(answer)) => Ok(answer),
        (None, Err(Fault::Driver(DriverError::Failure(failure)))) => {
            verify::failure(&failure).and(Err(DriverError::Failure(failure)))
        }
        (None, Err(Fault::Driver(error))) => Err(error),
        (None, Err(Fault::Engine(error))) => Err(classify(&error, state.limits())),
    }
}

fn classify(error: &wasmtime::Error, limits: &CallLimits) -> DriverError {
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return DriverError::Unavailable { retry_after: Duration::from_secs(1), why: Unavailable::PoolBusy };
    }
    let cause = error.root_cause().to_string();
    if cause.contains("fuel allocated for hostcalls has been exhausted") {
        let used = u64::try_from(guest_data_max(limits)).unwrap_or(u64::MAX);
        return DriverError::LimitExceeded { limit: Limit::ResultBytes, used, max: limits.result_bytes };
    }
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(trap) => DriverError::Trap(trap.to_string()),
        None => DriverError::Trap(cause),
    }
}
