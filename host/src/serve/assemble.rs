//! Makes the parts of a process in the order in which they depend on each other.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use occ_api::ids::InstallationId;
use tokio::time::Instant;

use super::store;
use crate::app::{App, AuthKey, Inner};
use crate::clock::Clock;
use crate::config::{Installation, Mode, Problems, Secret, SecretStoreSelection};
use crate::db::{self, PgPool, PoolConfig};
use crate::drivers::{self, HostAuthority, LeaseBook, ProcessHost};
use crate::error::{Error, Result};
use crate::http::metrics::Metrics;
use crate::iam::Iam;
use crate::ids::Ids;
use crate::migrate::{self, SchemaState};
use crate::runtime::LogReads;
use crate::secret_store::SecretStore;
use crate::shutdown::Shutdown;

/// How long a start waits for a schema that is still being migrated.
const SCHEMA_WAIT: Duration = Duration::from_secs(60);
/// Pause between two looks at it.
const SCHEMA_STEP: Duration = Duration::from_millis(250);

/// What a process may do with local processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// Start, restart and end them.
    Supervise,
    /// Look at them.
    Observe,
}

/// What a process is made of.
#[derive(Debug)]
pub struct Assembly {
    /// Production or development.
    pub mode: Mode,
    /// Label of metrics: `occ-api` or `occ-worker`.
    pub service: &'static str,
    /// The Installation YAML.
    pub config_path: PathBuf,
    /// How PostgreSQL is reached.
    pub database: PoolConfig,
    /// Keys come from it; a worker has none.
    pub auth_secret: Option<Secret>,
    /// Folders that are searched for bundles.
    pub plugin_path: Vec<PathBuf>,
    /// Folder of compiled plugins.
    pub aot_cache: Option<PathBuf>,
    /// Folder of local processes.
    pub process_folder: Option<PathBuf>,
    /// What may be done with them.
    pub processes: Processes,
    /// Ports that local processes draw from.
    pub ports: RangeInclusive<u16>,
    /// Time for a deployment to become ready.
    pub convergence: Duration,
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub ids: Ids,
    /// The end of the process.
    pub shutdown: Shutdown,
}

/// Everything that a process was made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// What handlers and steps hold.
    pub app: App,
    /// Where claims are noted for the capabilities.
    pub leases: LeaseBook,
    /// Supervisor of local processes, where the Installation has one.
    pub processes: Option<ProcessHost>,
    /// How PostgreSQL is reached, for further pools.
    pub database: PoolConfig,
}

/// Makes the parts.
///
/// # Errors
/// The first part that cannot be made, with the code of its stage.
pub async fn assemble(assembly: Assembly) -> Result<Parts> {
    let Assembly { mode, database, clock, ids, shutdown, .. } = &assembly;
    let config = Installation::read(&assembly.config_path, *mode).map_err(|problems| invalid(&problems))?;
    let pool = db::connect(database).await?;
    let installation = Box::pin(installation(&pool)).await?;
    let SecretStoreSelection::Database { key_file } = &config.drivers.secret;
    let secrets = SecretStore::open(pool.clone(), ids.clone(), key_file)?;
    let leases = LeaseBook::default();
    let (authority, denials) = HostAuthority::new(leases.clone(), secrets.clone());
    let loaded = Box::pin(drivers::load(drivers::LoadOptions {
        installation: &config,
        mode: *mode,
        plugin_path: &assembly.plugin_path,
        aot_cache: assembly.aot_cache.as_deref(),
        process_folder: assembly.process_folder.as_deref(),
        supervise: assembly.processes == Processes::Supervise,
        ports: assembly.ports.clone(),
        clock: clock.clone(),
        authority: Arc::new(authority),
    }))
    .await?;
    let metrics = Metrics::new(assembly.service);
    let plugins = drivers::PluginMetrics::new(Arc::clone(&loaded.drivers));
    metrics.register(|registry| registry.register_collector(Box::new(plugins)));
    let auth_secret = assembly.auth_secret.clone().unwrap_or_else(|| unguessable(ids));
    let app = App::new(Inner {
        db: pool,
        clock: clock.clone(),
        ids: ids.clone(),
        installation,
        config,
        mode: *mode,
        iam: Iam::new(metrics.iam.clone()),
        auth_key: AuthKey::new(auth_secret.expose().as_bytes()),
        drivers: loaded.drivers,
        secrets,
        hints: occ_queue::Hints::default(),
        convergence: assembly.convergence,
        log_reads: LogReads::default(),
        metrics,
        shutdown: shutdown.clone(),
    });
    let audited = app.clone();
    shutdown.spawn(drivers::write_denials_until(audited, denials, shutdown.token().clone()));
    Ok(Parts { app, leases, processes: loaded.processes, database: assembly.database })
}

/// Waits for the schema that this binary works on, then reads which Installation this is.
async fn installation(pool: &PgPool) -> Result<InstallationId> {
    let begun = Instant::now();
    let expected = migrate::expected_version();
    loop {
        let mut conn = pool.acquire().await?;
        match SchemaState::read(&mut conn).await {
            Ok(Some(state)) if state.serves_this_binary() => break,
            _ if begun.elapsed() < SCHEMA_WAIT => {
                drop(conn);
                tokio::time::sleep(SCHEMA_STEP).await;
            }
            Ok(found) => {
                let found = found
                    .map_or_else(|| "no version".to_owned(), |state| format!("version {}", state.version));
                let rule =
                    format!("The schema has {found}, this binary needs {expected}: run occ-host migrate.");
                return Err(Error::startup("SCHEMA_VERSION_MISMATCH", rule));
            }
            Err(error) => {
                return Err(Error::startup(
                    "SCHEMA_VERSION_MISMATCH",
                    "The schema cannot be read: run occ-host migrate.",
                )
                .caused_by(error));
            }
        }
    }
    let mut conn = pool.acquire().await?;
    let row = store::installation(&mut conn).await?;
    let (id, _) = row.ok_or_else(|| {
        Error::startup("INSTALLATION_MISSING", "There is no Installation yet: run occ-host bootstrap.")
    })?;
    InstallationId::parse(&id).map_err(|error| {
        Error::startup("INSTALLATION_MISSING", "The Installation's id cannot be read.").caused_by(error)
    })
}

/// A worker signs nothing that another process reads.
fn unguessable(ids: &Ids) -> Secret {
    Secret::new(ids.bytes::<32>().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn invalid(problems: &Problems) -> Error {
    Error::startup(problems.code, problems.to_string())
}
