//! Calls and loads of plugins against bare wasmtime on the same components.
//!
//! The anchor has the same pool and no epochs, no limits, no counts, no checks of answers.
//! **The product keeps no instance between two calls**, so a warm call through the host does not exist. Row 1
//! adds to a bare call in a kept instance what the host adds to a call: its own time less that of a bare fresh
//! instance (row 2).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use occ_driver::bundle::{Library, SearchFolder, TrustPolicy};
use occ_driver::cache::Cache;
use occ_driver::engine::{Engine, EngineOptions};
use occ_driver::limits::LimitRequest;
use occ_driver::load::{self, Selection, Services};
use occ_driver::types::{Bind, ExecutionMode, HarnessRequest, PlatformFacts};
use occ_driver::{Harness, Kind};
use serde_json::{Value, json};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::Options;
use crate::report::{Measure, say};

mod bare {
    wasmtime::component::bindgen!({
        path: "../wit/occ-plugin/v0.1",
        inline: "
            package occ:bench;

            world bench {
                export occ:plugin/harness@0.1.0;
            }
        ",
        world: "occ:bench/bench",
        exports: { default: async },
    });
}

use bare::exports::occ::plugin::harness;

/// Calls of one piece of a run.
const CALLS: u32 = 100;
/// Pieces of a run.
const PIECES: usize = 15;
const HARNESS: &str = "harness-openclaw";

/// Measures rows 1 to 4.
pub(crate) async fn run(options: &Options, measures: &mut Vec<Measure>) -> Result<()> {
    if ![1, 2, 3, 4].into_iter().any(|row| options.wants(row)) {
        return Ok(());
    }
    let folder = occ_tests::environment::plugins()?;
    let scratch = tempfile::tempdir()?;
    let cache = Cache::open(&scratch.path().join("compiled"))?;
    let services = services(Some(cache.clone()))?;
    let harness = load_harness(&services, &folder).await?;
    let bare = Bare::new(&folder).await?;
    let (small, whole) = (padded()?, standard());
    if options.wants(1) || options.wants(2) {
        say("rows 1 and 2: a call of 1 KiB");
        let rows = small_calls(&harness, &bare, &small).await?;
        measures.extend(rows.into_iter().filter(|(row, _)| options.wants(row)).map(|(_, measure)| measure));
    }
    if options.wants(3) {
        say("row 3: resolve");
        let name = "fresh resolve of a configuration / warm instance";
        let rate = |us: f64| 1e6 / us;
        let mine = async || ours(&harness, &whole).await.map(rate);
        let anchor = async || bare.warm(&whole).await.map(rate);
        let row =
            Measure::against_in_pieces(PIECES, 3, name, "1/s", (0.4, true), mine, anchor).await?.goal(0.5);
        let mine = async || ours(&harness, &small).await.map(rate);
        let anchor = async || bare.warm(&small).await.map(rate);
        let beside = Measure::against_in_pieces(PIECES, 3, name, "1/s", (0.0, true), mine, anchor).await?;
        let (mine, kept) = beside.sides();
        measures.push(row.beside("beside it: the call of 1 KiB", mine.to_vec(), kept.to_vec()));
        measures.push(row);
    }
    if options.wants(4) {
        let name = "load without cache / with it, digest included";
        let ours = || timed_load(None, &folder);
        let anchor = || timed_load(Some(cache.clone()), &folder);
        say("row 4: loads");
        measures.push(Measure::against(4, name, "ms", (50.0, true), ours, anchor).await?.goal(100.0));
    }
    Ok(())
}

/// Rows 1 and 2.
async fn small_calls(harness: &Harness, bare: &Bare, small: &HarnessRequest) -> Result<[(u32, Measure); 2]> {
    let name = "fresh call of 1 KiB / bare InstancePre + pool";
    let (mine, anchor) = (|| ours(harness, small), || bare.fresh(small));
    let second =
        Measure::against_in_pieces(PIECES, 2, name, "us", (1.5, false), mine, anchor).await?.goal(1.2);
    let name = "warm call of 1 KiB and what the host adds / bare warm call";
    let charged = async || {
        let (host, fresh) = (ours(harness, small).await?, bare.fresh(small).await?);
        anyhow::Ok(bare.warm(small).await? + (host - fresh).max(0.0))
    };
    let anchor = || bare.warm(small);
    let first =
        Measure::against_in_pieces(PIECES, 1, name, "us", (3.0, false), charged, anchor).await?.goal(1.5);
    Ok([(1, first), (2, second)])
}

fn services(cache: Option<Cache>) -> Result<Services> {
    Ok(Services {
        engine: Engine::new(EngineOptions::default())?,
        cache,
        processes: None,
        now: Arc::new(|| Duration::from_secs(1_700_000_000)),
        development: true,
    })
}

async fn load_harness(services: &Services, folder: &Path) -> Result<Harness> {
    let search = SearchFolder { path: folder.to_owned(), of_image: true, required: true };
    let library = Library::search(&[search], &TrustPolicy::default())?;
    let selection = Selection {
        kind: Kind::Harness,
        version: None,
        digest: None,
        settings: json!({}),
        grants: json!({}),
        cap: LimitRequest::default(),
    };
    let found = library.find(HARNESS).context("the bundle has no harness-openclaw")?;
    Ok(Harness::new(load::load(services, found, &selection).await?)?)
}

/// Milliseconds from the bundle's folder to a plugin that was called; the engine is there.
async fn timed_load(cache: Option<Cache>, folder: &Path) -> Result<f64> {
    let services = services(cache)?;
    let started = Instant::now();
    load_harness(&services, folder).await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Microseconds of one call through the host.
async fn ours(harness: &Harness, request: &HarnessRequest) -> Result<f64> {
    let started = Instant::now();
    for _ in 0..CALLS {
        // A refusal is an answer: the small request is refused, the whole one planned.
        let _ = harness.resolve(request).await?;
    }
    Ok(each(started))
}

fn each(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// A request of 1 KiB that is refused with about as much.
fn padded() -> Result<HarnessRequest> {
    let filler = "x".repeat(900);
    let configuration = serde_json::from_str(&format!("{{\"agents\": {{\"{filler}\": 1}}}}"))?;
    Ok(request(configuration))
}

/// A configuration as people write it: policy, provider, gateway, tools.
fn standard() -> HarnessRequest {
    let password = json!({"source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD"});
    request(json!({
        "agents": {"defaults": {
            "skipBootstrap": true,
            "model": "openai/test-model",
            "models": {"openai/test-model": {"agentRuntime": {"id": "openclaw"}}}
        }},
        "models": {"providers": {"openai": {
            "baseUrl": "http://127.0.0.1:18080/v1",
            "api": "openai-responses",
            "models": [{"id": "test-model", "name": "test-model"}]
        }}},
        "gateway": {
            "mode": "local", "bind": "lan", "controlUi": {"enabled": true}, "auth": {"password": password}
        },
        "browser": {"enabled": false},
        "tools": {
            "elevated": {"enabled": false},
            "web": {"search": {"enabled": true}, "fetch": {"enabled": false}}
        }
    }))
}

fn request(configuration: Value) -> HarnessRequest {
    HarnessRequest {
        configuration,
        mode: ExecutionMode::Embedded,
        auth: None,
        secret_bindings: Vec::new(),
        platform: PlatformFacts { bind: Bind::Lan, gateway_port: 18_789, trusted_proxies: Vec::new() },
    }
}

/// Wasmtime alone.
struct Bare {
    engine: wasmtime::Engine,
    pre: InstancePre<()>,
    indices: harness::GuestIndices,
}

impl Bare {
    async fn new(folder: &Path) -> Result<Self> {
        let bytes = std::fs::read(folder.join("harness_openclaw.wasm"))?;
        let compiled = tokio::task::spawn_blocking(move || Self::compile(&bytes));
        compiled.await?.map_err(|error| anyhow!("{error:#}"))
    }

    fn compile(bytes: &[u8]) -> wasmtime::Result<Self> {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_memories(32).total_component_instances(32).max_memory_size(512 << 20);
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool)).concurrency_support(false);
        let engine = wasmtime::Engine::new(&config)?;
        let component = Component::from_binary(&engine, bytes)?;
        let mut linker = Linker::<()>::new(&engine);
        linker.define_unknown_imports_as_traps(&component)?;
        let pre = linker.instantiate_pre(&component)?;
        let indices = harness::GuestIndices::new(&pre)?;
        Ok(Self { engine, pre, indices })
    }

    /// Microseconds of one call in a fresh instance.
    async fn fresh(&self, request: &HarnessRequest) -> Result<f64> {
        let started = Instant::now();
        for _ in 0..CALLS {
            let mut store = Store::new(&self.engine, ());
            let instance = self.pre.instantiate_async(&mut store).await.map_err(bare_error)?;
            let guest = self.indices.load(&mut store, &instance).map_err(bare_error)?;
            let _ = guest.call_resolve(&mut store, &wire(request)).await.map_err(bare_error)?;
        }
        Ok(each(started))
    }

    /// Microseconds of one call in an instance that is kept.
    async fn warm(&self, request: &HarnessRequest) -> Result<f64> {
        let mut store = Store::new(&self.engine, ());
        let instance = self.pre.instantiate_async(&mut store).await.map_err(bare_error)?;
        let guest = self.indices.load(&mut store, &instance).map_err(bare_error)?;
        let started = Instant::now();
        for _ in 0..CALLS {
            let _ = guest.call_resolve(&mut store, &wire(request)).await.map_err(bare_error)?;
        }
        Ok(each(started))
    }
}

fn bare_error(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}

/// The anchor renders its documents too: the host must, for each call.
fn wire(request: &HarnessRequest) -> harness::Request {
    harness::Request {
        configuration: request.configuration.to_string(),
        mode: bare::occ::plugin::workload::ExecutionMode::Embedded,
        auth: None,
        secret_bindings: Vec::new(),
        platform: json!({"bind": "lan", "gatewayPort": 18789, "trustedProxies": []}).to_string(),
    }
}
