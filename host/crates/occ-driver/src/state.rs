//! What one call holds on the host's side, and what it has used so far.
//!
//! **Made for one call and dropped with it.** Nothing in here outlives the call but the
//! [`Gauge`], which carries numbers only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreContextMut, UpdateDeadline};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};

use crate::call::CallContext;
use crate::capability::{Capability, Granted};
use crate::engine::TICK;
use crate::error::{DriverError, Limit};
use crate::limits::CallLimits;

/// The error of a call that took longer than it was given.
pub(crate) fn late(given: Duration, max: Duration) -> DriverError {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    DriverError::Deadline { after_ms: ms(given), max_ms: ms(max) }
}

/// Numbers of one call that are read while it runs and after it was dropped.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Ran longer than a tick.
    pub(crate) preempted: AtomicBool,
    /// Calls into the host.
    pub(crate) host_calls: AtomicU64,
    /// The same by [`Capability::ALL`]: all of them, and how many were refused.
    pub(crate) by_capability: [(AtomicU64, AtomicU64); Capability::ALL.len()],
    /// Most linear memory at a time, in bytes.
    pub(crate) memory_peak: AtomicU64,
}

impl Gauge {
    fn count(&self, capability: Capability) -> u64 {
        let of = Capability::ALL.iter().position(|one| *one == capability);
        if let Some((all, _)) = of.and_then(|at| self.by_capability.get(at)) {
            all.fetch_add(1, Ordering::Relaxed);
        }
        self.host_calls.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// All and refused calls by [`Capability::ALL`].
    pub(crate) fn read(&self) -> [(u64, u64); Capability::ALL.len()] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.by_capability.each_ref().map(|(all, refused)| (read(all), read(refused)))
    }

    fn refused(&self, capability: Capability) {
        let of = Capability::ALL.iter().position(|one| *one == capability);
        if let Some((_, refused)) = of.and_then(|at| self.by_capability.get(at)) {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) cx: CallContext,
    pub(crate) granted: Arc<Granted>,
    pub(crate) gauge: Arc<Gauge>,
    limits: CallLimits,
    /// How long the call may take, counted from its start.
    given: Duration,
    /// What ended the call, when the host ended it.
    verdict: Option<DriverError>,
    memory_bytes: u64,
    table_elements: u64,
    ticks: u64,
    host_since_tick: Duration,
    log_bytes: u64,
    log_lines: u64,
    seed: Seed,
    started: Duration,
    wasi: Option<Wasi>,
}

/// What bounds a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) limits: CallLimits,
    /// How long it may take: its limit, or less when the caller has less.
    pub(crate) given: Duration,
}

/// Where the random numbers of a call come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seed {
    /// Pure calls: the same numbers each time.
    Zero,
    /// Other calls.
    Fresh([u8; 32]),
}

struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    output: MemoryOutputPipe,
}

impl CallState {
    pub(crate) fn new(
        cx: CallContext,
        granted: Arc<Granted>,
        gauge: Arc<Gauge>,
        Bounds { limits, given }: Bounds,
        seed: Seed,
        started: Duration,
    ) -> Self {
        Self {
            cx,
            granted,
            gauge,
            limits,
            given,
            verdict: None,
            memory_bytes: 0,
            table_elements: 0,
            ticks: 0,
            host_since_tick: Duration::ZERO,
            log_bytes: 0,
            log_lines: 0,
            seed,
            started,
            wasi: None,
        }
    }

    pub(crate) fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// What the host ended the call with.
    pub(crate) fn take_verdict(&mut self) -> Option<DriverError> {
        self.verdict.take()
    }

    /// Ends the call at a limit.
    pub(crate) fn exceed(&mut self, limit: Limit, used: u64) -> wasmtime::Error {
        let max = self.limits.max(limit);
        self.end(DriverError::LimitExceeded { limit, used, max })
    }

    /// Ends the call; the error is only the vehicle that carries the end through the guest.
    pub(crate) fn end(&mut self, verdict: DriverError) -> wasmtime::Error {
        let error = wasmtime::Error::msg(verdict.to_string());
        self.verdict.get_or_insert(verdict);
        error
    }

    /// Counts a call into the host.
    pub(crate) fn enter_host(&mut self, capability: Capability) -> wasmtime::Result<()> {
        let calls = self.gauge.count(capability);
        if calls > self.limits.host_calls { Err(self.exceed(Limit::HostCalls, calls)) } else { Ok(()) }
    }

    /// Notes that a call into the host was refused because it is not granted.
    pub(crate) fn refuse(&self, capability: Capability) {
        self.gauge.refused(capability);
        self.granted.refuse(capability, self.cx.operation);
    }

    /// Leaves the time that the host took out of the component's CPU time.
    pub(crate) fn leave_host(&mut self, entered: std::time::Instant) {
        self.host_since_tick = self.host_since_tick.saturating_add(entered.elapsed());
    }

    /// Bounds one answer of the host.
    pub(crate) fn answer(&mut self, bytes: usize) -> wasmtime::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > self.limits.host_answer_bytes {
            Err(self.exceed(Limit::HostAnswerBytes, bytes))
        } else {
            Ok(())
        }
    }

    /// Counts log output.
    pub(crate) fn log(&mut self, bytes: usize, lines: u64) -> wasmtime::Result<()> {
        self.log_bytes = self.log_bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.log_lines = self.log_lines.saturating_add(lines);
        if self.log_bytes > self.limits.log_bytes {
            return Err(self.exceed(Limit::LogBytes, self.log_bytes));
        }
        if self.log_lines > self.limits.log_lines {
            return Err(self.exceed(Limit::LogLines, self.log_lines));
        }
        Ok(())
    }

    /// What the component wrote to standard output and error.
    pub(crate) fn output(&self) -> Option<String> {
        let bytes = self.wasi.as_ref()?.output.contents();
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// At each tick that finds the component running: charge it, then let others run.
    pub(crate) fn on_tick(mut cx: StoreContextMut<'_, Self>) -> wasmtime::Result<UpdateDeadline> {
        let state = cx.data_mut();
        state.gauge.preempted.store(true, Ordering::Relaxed);
        // Time in the host since the last tick was not the component's own.
        if std::mem::take(&mut state.host_since_tick) < TICK {
            state.ticks = state.ticks.saturating_add(1);
        }
        let tick_ms = u64::try_from(TICK.as_millis()).unwrap_or(1);
        let used_ms = state.ticks.saturating_mul(tick_ms);
        if used_ms > state.limits.max(Limit::CpuMs) {
            return Err(state.exceed(Limit::CpuMs, used_ms));
        }
        let calls = state.gauge.host_calls.load(Ordering::Relaxed);
        if calls > state.limits.host_calls {
            return Err(state.exceed(Limit::HostCalls, calls));
        }
        if Instant::now() >= state.cx.deadline {
            let verdict = late(state.given, state.limits.wall_of(state.cx.operation));
            return Err(state.end(verdict));
        }
        Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
    }

    fn wasi(&mut self) -> &mut Wasi {
        let (seed, started, capacity) = (self.seed, self.started, self.limits.log_bytes);
        let gauge = &self.gauge;
        self.wasi.get_or_insert_with(|| {
            let output = MemoryOutputPipe::new(usize::try_from(capacity).unwrap_or(usize::MAX));
            let random = || match seed {
                Seed::Zero => StdRng::from_seed([0; 32]),
                Seed::Fresh(seed) => StdRng::from_seed(seed),
            };
            let ctx = WasiCtx::builder()
                .stdout(output.clone())
                .stderr(output.clone())
                .secure_random(random())
                .insecure_random(random())
                .insecure_random_seed(match seed {
                    Seed::Zero => 0,
                    Seed::Fresh(seed) => {
                        seed.iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
                    }
                })
                .max_random_size(RANDOM_BYTES_MAX)
                .wall_clock(StartOfCall(started))
                .monotonic_clock(HostCalls(Arc::clone(gauge)))
                .allow_tcp(false)
                .allow_udp(false)
                .allow_ip_name_lookup(false)
                .build();
            Wasi { ctx, table: ResourceTable::new(), output }
        })
    }
}

/// Random bytes of one request; more would only be a way to make the host work.
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// WASI is made at its first use: most calls use none of it.
impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        // Every WASI function passes here at least once. It cannot fail here; too many
        // calls end the component at its next tick or its next call of a capability.
        self.gauge.count(Capability::Wasi);
        let Wasi { ctx, table, .. } = self.wasi();
        WasiCtxView { ctx, table }
    }
}

/// The wall clock stands still within a call.
struct StartOfCall(Duration);

impl HostWallClock for StartOfCall {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// The monotonic clock counts the call's own host calls, so that it tells nothing of the
/// machine.
struct HostCalls(Arc<Gauge>);

impl HostMonotonicClock for HostCalls {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.host_calls.load(Ordering::Relaxed)
    }
}

impl ResourceLimiter for CallState {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        let total = self.memory_bytes.saturating_add(growth);
        if total > self.limits.memory_bytes {
            return Err(self.exceed(Limit::MemoryBytes, total));
        }
        self.memory_bytes = total;
        self.gauge.memory_peak.fetch_max(total, Ordering::Relaxed);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        let total = self.table_elements.saturating_add(growth);
        if total > self.limits.table_elements {
            return Err(self.exceed(Limit::TableElements, total));
        }
        self.table_elements = total;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> CallState {
        let cx = CallContext::pure(Instant::now() + Duration::from_secs(1));
        let granted = Granted::new("test".to_owned(), "{}".to_owned(), None);
        let limits = Bounds { limits: CallLimits::default(), given: Duration::from_secs(1) };
        CallState::new(cx, Arc::new(granted), Arc::default(), limits, Seed::Zero, Duration::ZERO)
    }

    fn limit_of(mut state: CallState) -> (Limit, u64, u64) {
        match state.take_verdict() {
            Some(DriverError::LimitExceeded { limit, used, max }) => (limit, used, max),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memories_and_tables_are_summed() {
        let mut state = state();
        let page = 64 * 1024;
        assert!(state.memory_growing(0, 600 * page, None).is_ok_and(|grows| grows));
        assert!(state.memory_growing(0, 400 * page, None).is_ok_and(|grows| grows));
        assert!(state.memory_growing(600 * page, 625 * page, None).is_err());
        assert_eq!(limit_of(state), (Limit::MemoryBytes, 1025 * 65_536, 64 << 20));
        let mut state = self::state();
        assert!(state.table_growing(0, 60_000, None).is_ok_and(|grows| grows));
        assert!(state.table_growing(0, 60_000, None).is_err());
        assert_eq!(limit_of(state), (Limit::TableElements, 120_000, 100_000));
    }

    #[test]
    fn an_answer_of_the_host_is_bounded() {
        let mut state = state();
        assert!(state.answer(8 << 20).is_ok());
        assert!(state.answer((8 << 20) + 1).is_err());
        assert_eq!(limit_of(state), (Limit::HostAnswerBytes, (8 << 20) + 1, 8 << 20));
    }

    #[test]
    fn a_pure_call_sees_the_same_world_each_time() {
        let bytes = || {
            let mut state = state();
            let mut random = [0; 16];
            wasmtime_wasi::p2::bindings::random::random::Host::get_random_bytes(state.ctx().ctx.random(), 16)
                .map(|drawn| random.copy_from_slice(&drawn))
                .unwrap();
            random
        };
        assert_eq!(bytes(), bytes());
    }

    #[test]
    fn the_first_verdict_stays() {
        let mut state = state();
        state.exceed(Limit::LogBytes, 1);
        state.exceed(Limit::HostCalls, 2);
        assert_eq!(limit_of(state).0, Limit::LogBytes);
    }
}
