//! Finds, trusts and loads the plugins that the Installation selects; nothing runs half loaded.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use occ_driver::bundle::{Library, SearchFolder, TrustPolicy};
use occ_driver::cache::Cache;
use occ_driver::capability::ProcessSupervisor;
use occ_driver::capability::process::{ProcessHost, ProcessHostConfig, ProcessMode};
use occ_driver::engine::{Engine, EngineOptions};
use occ_driver::limits::LimitRequest;
use occ_driver::load::{self, Selection, Services};
use occ_driver::plugin::Plugin;
use occ_driver::{Compute, Harness, Kind};
use tokio_util::sync::CancellationToken;

use super::authority::{Denials, write_denials};
use super::{CallAuthority, Drivers};
use crate::app::App;
use crate::clock::Clock;
use crate::config::{DriverSelection, Installation, Mode, Unsigned};
use crate::error::{Error, Result};

/// Bundles of the image.
const IMAGE_BUNDLES: &str = "/usr/lib/occ/plugins";
/// `PATH` of local processes; nothing else of the host's environment is inherited.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What loading needs to know.
pub struct LoadOptions<'a> {
    /// Which plugins, with which settings and grants.
    pub installation: &'a Installation,
    /// Local processes exist in development only.
    pub mode: Mode,
    /// Folders that were named, searched before the others.
    pub plugin_path: &'a [PathBuf],
    /// Folder of compiled plugins; without it every start compiles.
    pub aot_cache: Option<&'a Path>,
    /// Folder of local processes; without it there is no `process` capability.
    pub process_folder: Option<&'a Path>,
    /// Start and end local processes, or only look at them.
    pub supervise: bool,
    /// Ports that local processes draw from.
    pub ports: RangeInclusive<u16>,
    /// Time of the processes' records and of the plugins' clock.
    pub clock: Clock,
    /// Answers what capabilities ask.
    pub authority: Arc<dyn CallAuthority>,
}

/// What was loaded.
pub struct Loaded {
    /// The plugins.
    pub drivers: Arc<Drivers>,
    /// The supervisor of local processes.
    pub processes: Option<ProcessHost>,
}

/// Loads every selected plugin.
///
/// # Errors
/// `PLUGIN_REFUSED` or `GRANT_MISSING`, naming the plugin and the rule that failed.
pub async fn load(options: LoadOptions<'_>) -> Result<Loaded> {
    let library = search(&options)?;
    let processes = processes(&options).await?;
    let clock = options.clock.clone();
    let services = Services {
        engine: Engine::new(EngineOptions::default())
            .map_err(|error| refused("The engine of plugins does not start", &error))?,
        cache: options
            .aot_cache
            .map(Cache::open)
            .transpose()
            .map_err(|error| refused("The folder of compiled plugins cannot be used", &error))?,
        processes: processes.clone().map(|host| Arc::new(host) as Arc<dyn ProcessSupervisor>),
        now: Arc::new(move || Duration::from_millis(millis(&clock))),
        development: options.mode == Mode::Development,
    };
    let drivers = &options.installation.drivers;
    let plugin = one(&services, &library, &options, &drivers.compute, Kind::Compute).await?;
    let named = |error| of_plugin(&drivers.compute.plugin, &error);
    let compute = Compute::new(plugin).await.map_err(named)?;
    compute.preflight().await.map_err(named)?;
    let mut harnesses = Vec::new();
    for selection in &drivers.harnesses {
        let plugin = one(&services, &library, &options, selection, Kind::Harness).await?;
        let named = |error| of_plugin(&selection.plugin, &error);
        let harness = Harness::new(plugin).map_err(named)?;
        harness.preflight().await.map_err(named)?;
        harnesses.push(Arc::new(harness));
    }
    Ok(Loaded { drivers: Arc::new(Drivers { compute: Arc::new(compute), harnesses }), processes })
}

/// Writes refusals to the audit log until the process is asked to stop.
pub async fn write_denials_until(app: App, denials: Denials, stop: CancellationToken) {
    tokio::select! {
        () = write_denials(app, denials) => {}
        () = stop.cancelled() => {}
    }
}

/// Ends every process of a folder that no host supervises any more.
///
/// # Errors
/// When the folder cannot be read, or something does not end.
pub async fn processes_end(folder: &Path, grace: Duration) -> Result<()> {
    let clock = Clock::system();
    let config = process_config(folder, 0..=0, ProcessMode::Supervise, &clock);
    let host = ProcessHost::open(config, Arc::new(super::authority::NoAuthority)).await;
    let host = host.map_err(|error| refused("The folder of local processes cannot be used", &error))?;
    host.shutdown_all(grace).await.map_err(|error| refused("A local process did not end", &error))
}

fn search(options: &LoadOptions<'_>) -> Result<Library> {
    let trust = &options.installation.plugins.trust;
    let policy = TrustPolicy::new(&trust.digests, &trust.keys, trust.unsigned == Unsigned::Allow).map_err(
        |problems| {
            let rules: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Error::startup("CONFIGURATION_INVALID", format!("/plugins/trust: {}", rules.join("; ")))
        },
    )?;
    let folder = |path: PathBuf, of_image, required| SearchFolder { path, of_image, required };
    let mut folders: Vec<SearchFolder> =
        options.plugin_path.iter().map(|path| folder(path.clone(), false, true)).collect();
    if let Ok(program) = std::env::current_exe()
        && let Some(beside) = program.parent()
    {
        folders.push(folder(beside.join("plugins"), false, false));
        folders.push(folder(beside.join("../plugins"), false, false));
    }
    folders.push(folder(PathBuf::from(IMAGE_BUNDLES), true, false));
    let library =
        Library::search(&folders, &policy).map_err(|error| refused("The plugins cannot be found", &error))?;
    for error in library.refused() {
        tracing::warn!(reason = %error, "plugin.refused");
    }
    Ok(library)
}

async fn one(
    services: &Services,
    library: &Library,
    options: &LoadOptions<'_>,
    selected: &DriverSelection,
    kind: Kind,
) -> Result<Arc<Plugin>> {
    let id = &selected.plugin;
    let Some(found) = library.find(id) else {
        let refusals: Vec<String> = library.refused().iter().map(ToString::to_string).collect();
        let why = if refusals.is_empty() { "no bundle holds it".to_owned() } else { refusals.join("; ") };
        let way = "name the folder of its bundle: --plugins DIR or OCC_PLUGIN_PATH";
        return Err(Error::startup("PLUGIN_REFUSED", format!("{id}: {why}; {way}")));
    };
    let caps = options.installation.plugins.limits.get(id).copied().unwrap_or_default();
    let selection = Selection {
        kind,
        version: selected.version.clone(),
        digest: selected.digest.clone(),
        settings: selected.settings.clone(),
        grants: selected.grants.clone(),
        cap: LimitRequest {
            memory_mib: caps.memory_mib,
            cpu_ms: caps.cpu_ms,
            wall_ms: caps.wall_ms,
            host_calls: caps.host_calls,
        },
    };
    load::load(services, found, &selection).await.map_err(|error| of_plugin(id, &error))
}

async fn processes(options: &LoadOptions<'_>) -> Result<Option<ProcessHost>> {
    let Some(folder) = options.process_folder.filter(|_| options.mode == Mode::Development) else {
        return Ok(None);
    };
    let mode = if options.supervise { ProcessMode::Supervise } else { ProcessMode::Observe };
    let config = process_config(folder, options.ports.clone(), mode, &options.clock);
    let host = ProcessHost::open(config, Arc::clone(&options.authority)).await;
    host.map(Some).map_err(|error| refused("The folder of local processes cannot be used", &error))
}

fn process_config(
    folder: &Path,
    ports: RangeInclusive<u16>,
    mode: ProcessMode,
    clock: &Clock,
) -> ProcessHostConfig {
    let clock = clock.clone();
    ProcessHostConfig {
        folder: folder.to_owned(),
        port_range: ports,
        mode,
        search_path: SEARCH_PATH.to_owned(),
        now_ms: Arc::new(move || millis(&clock)),
    }
}

fn millis(clock: &Clock) -> u64 {
    u64::try_from(clock.now().unix_timestamp_nanos() / 1_000_000).unwrap_or(0)
}

fn of_plugin(id: &str, error: &load::LoadError) -> Error {
    let code = if matches!(error, load::LoadError::Grants(_)) { "GRANT_MISSING" } else { "PLUGIN_REFUSED" };
    Error::startup(code, format!("{id}: {error}"))
}

fn refused(what: &str, error: &dyn std::error::Error) -> Error {
    Error::startup("PLUGIN_REFUSED", format!("{what}: {error}"))
}
