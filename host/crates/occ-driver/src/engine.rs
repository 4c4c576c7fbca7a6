//! The one WebAssembly engine of a process: configuration, pool, clock of epochs.
//!
//! **Bounds.** At most [`EngineOptions::calls_max`] instances exist at a time; a call that
//! finds them all busy waits, bounded. Each instance owns a slot of the pool: 4 GiB of
//! address space (so that no load or store needs a bounds check) of which only touched
//! pages cost memory. A limit on virtual memory (`ulimit -v`) therefore breaks the engine.
//!
//! **A component cannot hold a thread.** Epochs tick each 10 ms; at a tick the component
//! yields, and a call that has yielded once goes on in the engine's own spill threads, so
//! that spinning components slow each other down and not the API.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::MEMORY_MIB_MAX;

/// Distance of two epochs: the grain of CPU time.
pub const TICK: Duration = Duration::from_millis(10);
/// Memories that one component may have.
pub const MEMORIES_PER_COMPONENT_MAX: u32 = 4;
const CORE_INSTANCES_PER_COMPONENT_MAX: u32 = 32;
const TABLES_PER_COMPONENT_MAX: u32 = 16;
const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Slots that keep their mapping of a component's initial memory after a call.
const WARM_SLOTS_MAX: u32 = 8;
const SPILL_THREADS_MAX: usize = 4;
/// Of a call: the component's part, and the host functions that run above it.
const STACK_BYTES: usize = 2 * 1024 * 1024;
const WASM_STACK_BYTES: usize = 512 * 1024;

/// Sizes of an engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// Calls that run at a time.
    pub calls_max: u32,
    /// How long a call waits for a free slot.
    pub slot_wait: Duration,
    /// Threads for calls that run longer than a tick.
    pub spill_threads: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { calls_max: 32, slot_wait: Duration::from_secs(10), spill_threads: spill_threads() }
    }
}

/// Half of the processors, so that the others are the host's even while components spin.
fn spill_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| (all.get() / 2).clamp(1, SPILL_THREADS_MAX))
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No code generator for this machine.
    #[error("plugins cannot run on {0}: there is no code generator for it")]
    UnknownHost(String),
    /// Wasmtime refuses the configuration, or the pool's address space is not to be had.
    #[error("the engine cannot be made: {0}; is virtual memory limited (ulimit -v)?")]
    Refused(String),
    /// The operating system gives no thread.
    #[error("the engine's threads cannot be started: {0}")]
    Threads(#[from] std::io::Error),
}

/// Shared by every plugin of the process. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    wasmtime: wasmtime::Engine,
    options: EngineOptions,
    slots: Arc<Semaphore>,
    ticker: Ticker,
    spill: Mutex<Option<tokio::runtime::Runtime>>,
    spill_handle: tokio::runtime::Handle,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Engine {
    /// Reserves the pool and starts the ticking thread.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let config = config(&options)?;
        let wasmtime =
            wasmtime::Engine::new(&config).map_err(|error| EngineError::Refused(format!("{error:#}")))?;
        let ticker = Ticker::start(&wasmtime)?;
        let spill = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.spill_threads.max(1))
            .max_blocking_threads(4)
            .thread_name("plugin-spill")
            .enable_all()
            .build()?;
        let slots = usize::try_from(options.calls_max).unwrap_or(usize::MAX);
        let spill_handle = spill.handle().clone();
        Ok(Self(Arc::new(Inner {
            wasmtime,
            options,
            slots: Arc::new(Semaphore::new(slots)),
            ticker,
            spill: Mutex::new(Some(spill)),
            spill_handle,
        })))
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.0.wasmtime
    }

    /// Sizes that it was made with.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.0.options
    }

    /// Identifies everything that compiled code depends on; 32 hexadecimal digits.
    #[must_use]
    pub fn compatibility(&self) -> String {
        let mut hasher = DigestHasher(Sha256::new());
        std::hash::Hash::hash(&self.0.wasmtime.precompile_compatibility_hash(), &mut hasher);
        crate::digest::hex(hasher.0.finalize().get(..16).unwrap_or_default())
    }

    /// Waits for a slot for a component with this many memories, at most as long as the
    /// caller has; `None` when none became free in time.
    pub(crate) async fn slot(&self, memories: u32, left: Duration) -> Option<OwnedSemaphorePermit> {
        let memories = memories.clamp(1, MEMORIES_PER_COMPONENT_MAX);
        let wait = Arc::clone(&self.0.slots).acquire_many_owned(memories);
        let longest = self.0.options.slot_wait.min(left);
        tokio::time::timeout(longest, wait).await.ok()?.ok()
    }

    /// Runs a call where it is awaited until it is found `preempted`, then in the spill
    /// threads. Dropping the returned future ends the call either way. `None` when the
    /// call panicked or the engine ended.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
        preempted: &AtomicBool,
    ) -> Option<T> {
        let mut call = Box::pin(call);
        let finished = {
            let mut call = pin!(&mut call);
            poll_fn(|cx| match call.as_mut().poll(cx) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending if preempted.load(Ordering::Relaxed) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            })
            .await
        };
        match finished {
            Some(value) => Some(value),
            None => AbortOnDropHandle::new(self.0.spill_handle.spawn(call)).await.ok(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.ticker.stop();
        if let Some(spill) = self.spill.lock().unwrap_or_else(PoisonError::into_inner).take() {
            spill.shutdown_background();
        }
    }
}

/// What every engine of the product is configured with; a bench makes its anchor with it.
///
/// # Errors
/// There is no code generator for this machine.
pub fn config(options: &EngineOptions) -> Result<Config, EngineError> {
    let calls = options.calls_max.max(MEMORIES_PER_COMPONENT_MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_PER_COMPONENT_MAX))
        .total_memories(calls)
        .total_tables(calls.saturating_mul(TABLES_PER_COMPONENT_MAX))
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT_MAX)
        .max_memories_per_component(MEMORIES_PER_COMPONENT_MAX)
        .max_tables_per_component(TABLES_PER_COMPONENT_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_memory_size(usize::try_from(u64::from(MEMORY_MIB_MAX) << 20).unwrap_or(usize::MAX))
        .max_unused_warm_slots(WARM_SLOTS_MAX);
    let triple = host_triple();
    let mut config = Config::new();
    // An explicit target turns off the detection of CPU features: what was compiled on
    // one machine runs on every other of its architecture.
    config.target(&triple).map_err(|_| EngineError::UnknownHost(triple))?;
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .memory_init_cow(true)
        .epoch_interruption(true)
        .concurrency_support(false)
        .wasm_component_model(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(STACK_BYTES);
    Ok(config)
}

fn host_triple() -> String {
    let system = match std::env::consts::OS {
        "linux" => "unknown-linux-gnu",
        "macos" => "apple-darwin",
        other => other,
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// Advances the epoch until it is stopped.
struct Ticker {
    stop: Mutex<Option<(mpsc::Sender<()>, JoinHandle<()>)>>,
}

impl Ticker {
    fn start(engine: &wasmtime::Engine) -> std::io::Result<Self> {
        let engine = engine.weak();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("plugin-epoch".to_owned()).spawn(move || {
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self { stop: Mutex::new(Some((stop, thread))) })
    }

    fn stop(&self) {
        let running = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = running {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Feeds what is hashed into SHA-256.
struct DigestHasher(Sha256);

impl std::hash::Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    }
}
