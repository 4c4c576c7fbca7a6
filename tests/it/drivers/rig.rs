//! Loads the bundled plugins as a host does, with an engine of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use occ_driver::bundle::{Library, SearchFolder, TrustPolicy};
use occ_driver::cache::Cache;
use occ_driver::call::CallContext;
use occ_driver::engine::{Engine, EngineOptions};
use occ_driver::limits::LimitRequest;
use occ_driver::load::{self, LoadError, Selection, Services};
use occ_driver::plugin::Plugin;
use occ_driver::types::Tenant;
use occ_driver::{Compute, Kind};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) const TENANT: &str = "ns_00000000-0000-4000-8000-00000000000a";

/// The bundle that the test command built.
pub(super) fn bundled() -> PathBuf {
    occ_tests::environment::plugins().unwrap()
}

/// The bytes of a bundled component.
pub(super) fn component(id: &str) -> Vec<u8> {
    std::fs::read(bundled().join(format!("{}.wasm", id.replace('-', "_")))).unwrap()
}

/// A host's services; compiled code is kept beside the bundle from one test to the next.
pub(super) fn services() -> Services {
    let cache = bundled().with_file_name("plugins-compiled");
    services_with(Some(Cache::open(&cache).unwrap()))
}

pub(super) fn services_with(cache: Option<Cache>) -> Services {
    Services {
        engine: Engine::new(EngineOptions { calls_max: 8, ..EngineOptions::default() }).unwrap(),
        cache,
        processes: None,
        now: Arc::new(|| Duration::from_secs(1_700_000_000)),
        development: true,
    }
}

pub(super) fn library(folder: &Path) -> Library {
    let search = SearchFolder { path: folder.to_owned(), of_image: true, required: true };
    Library::search(&[search], &TrustPolicy::default()).unwrap()
}

pub(super) fn selection(kind: Kind, settings: Value) -> Selection {
    Selection { kind, version: None, digest: None, settings, grants: json!({}), cap: LimitRequest::default() }
}

/// Loads a bundled plugin.
pub(super) async fn load(
    services: &Services,
    id: &str,
    selection: &Selection,
) -> Result<Arc<Plugin>, LoadError> {
    load_from(services, &library(&bundled()), id, selection).await
}

pub(super) async fn load_from(
    services: &Services,
    library: &Library,
    id: &str,
    selection: &Selection,
) -> Result<Arc<Plugin>, LoadError> {
    load::load(services, library.find(id).unwrap(), selection).await
}

/// The driver that misbehaves on instruction, and does so quickly.
pub(super) async fn faulty(services: &Services) -> Compute {
    let cap = LimitRequest { cpu_ms: Some(300), wall_ms: Some(1_000), ..LimitRequest::default() };
    let selection = Selection { cap, ..selection(Kind::Compute, json!({"fault": "none"})) };
    Compute::new(load(services, "faulty", &selection).await.unwrap()).await.unwrap()
}

/// A tenant whose name orders a fault.
pub(super) fn tenant(fault: &str) -> Tenant {
    Tenant { namespace_id: TENANT.to_owned(), name: format!("fault-{fault}"), existing_namespace: None }
}

pub(super) fn cx() -> CallContext {
    CallContext::work(TENANT, "test", 1, Instant::now() + Duration::from_secs(60))
}
