//! Puts a process together and runs it: `serve`, `worker`, and both in one for development.
//!
//! Start-up: settings, Installation YAML, database, schema version, installation row, plugins,
//! listeners. Any failure ends the process with one line that has a code.

mod assemble;
mod health;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub use assemble::{Assembly, Parts, Processes, assemble};
pub use health::{HealthTarget, health};

use crate::app::App;
use crate::clock::Clock;
use crate::config::{Mode, ServeEnvironment, WorkerEnvironment, WorkerSettings};
use crate::db::{self, PoolConfig, Role};
use crate::drivers::ProcessChange;
use crate::error::{Error, Result};
use crate::http;
use crate::ids::Ids;
use crate::shutdown::Shutdown;
use crate::{reconcile, worker};

/// Ports that the gateways of local agents draw from.
const AGENT_PORTS: std::ops::RangeInclusive<u16> = 20_100..=20_999;
/// Connections of a worker's pool.
const WORKER_POOL: u32 = 6;
/// Connections that claims and renewals have for themselves.
const LEASE_POOL: u32 = 2;
/// How long tracked tasks may take to end after the listeners have.
const TASKS_MAX: Duration = Duration::from_secs(60);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything ended by itself.
    Cleanly,
    /// Something had to be cut.
    Cut,
}

/// Runs the API until a signal.
///
/// # Errors
/// A start-up failure, with its code.
pub async fn api(environment: ServeEnvironment) -> Result<Ended> {
    let shutdown = Shutdown::new();
    let parts = Box::pin(assemble(of_serve(&environment, Processes::Observe, shutdown))).await?;
    Box::pin(run_api(parts, &environment)).await
}

/// Runs the worker until a signal.
///
/// # Errors
/// A start-up failure, with its code.
pub async fn worker(environment: WorkerEnvironment) -> Result<Ended> {
    let shutdown = Shutdown::new();
    let database = PoolConfig {
        url: environment.database_url.expose().to_owned(),
        connections_max: WORKER_POOL,
        role: Role::Worker,
    };
    let parts = Box::pin(assemble(Assembly {
        mode: environment.mode,
        service: "occ-worker",
        config_path: environment.config_path.clone(),
        database,
        auth_secret: None,
        plugin_path: environment.plugin_path.clone(),
        aot_cache: environment.aot_cache.clone(),
        process_folder: environment.process_folder.clone(),
        processes: Processes::Supervise,
        ports: AGENT_PORTS,
        convergence: Duration::from_millis(environment.settings.convergence_ms),
        clock: Clock::system(),
        ids: Ids::system(),
        shutdown: shutdown.clone(),
    }))
    .await?;
    let health = start_worker(&parts, &environment.settings).await?;
    let listener = bind(environment.private).await?;
    let app = &parts.app;
    let (alive, ready) = (health.clone(), health);
    let routes = http::metrics::private_of_worker(
        app.metrics.clone(),
        app.db.clone(),
        move || alive.is_alive(),
        move || ready.is_ready(),
    );
    serve_private(app, listener, routes);
    tracing::info!(host = %environment.private.ip(), port = environment.private.port(), "worker.started");
    Box::pin(until_signal(&shutdown)).await?;
    finish(app).await
}

/// Runs API and, unless left out, worker in one process. `more` starts what else belongs to it.
///
/// # Errors
/// A start-up failure, with its code.
pub async fn development(
    environment: ServeEnvironment,
    with_worker: bool,
    more: impl FnOnce(&Shutdown),
) -> Result<Ended> {
    let shutdown = Shutdown::new();
    let processes = if with_worker { Processes::Supervise } else { Processes::Observe };
    let parts = Box::pin(assemble(of_serve(&environment, processes, shutdown.clone()))).await?;
    if with_worker {
        start_worker(&parts, &WorkerSettings::default()).await?;
    }
    more(&shutdown);
    Box::pin(run_api(parts, &environment)).await
}

/// Starts the worker with its reconcilers and the supervision of local processes.
///
/// # Errors
/// `PERSISTENCE_UNAVAILABLE` when its own connections cannot be made.
pub async fn start_worker(parts: &Parts, settings: &WorkerSettings) -> Result<worker::Health> {
    let app = &parts.app;
    let context = worker::Context {
        db: app.db.clone(),
        clock: app.clock.clone(),
        ids: app.ids.clone(),
        installation: app.installation.clone(),
        iam: app.iam.clone(),
        compute: Arc::clone(&app.drivers) as Arc<dyn worker::compute::Compute>,
        convergence: app.convergence,
        leases: Some(parts.leases.watch()),
        injector: None,
    };
    let small =
        |connections_max| PoolConfig { connections_max, role: Role::Worker, ..parts.database.clone() };
    let database = occ_queue::Database {
        pool: app.db.clone(),
        leases: db::connect(&small(LEASE_POOL)).await?,
        listener: Some(db::connect(&small(1)).await?),
    };
    if let Some(processes) = &parts.processes {
        let agent = |change: &ProcessChange| change.agent.clone();
        reconcile::wake_on_changes(
            app.db.clone(),
            app.hints.clone(),
            processes.changes(),
            agent,
            &app.shutdown,
        );
        let (supervisor, stop) = (processes.clone(), app.shutdown.token().clone());
        app.shutdown.spawn(async move { supervisor.run(stop).await });
    }
    reconcile::start_worker(&needs(app), &app.shutdown);
    let worker_id = format!("{}/{}", std::process::id(), app.ids.uuid());
    let health = worker::start(context, database, settings, worker_id, app.hints.clone(), &app.shutdown);
    let stats = health.stats();
    app.metrics
        .register(|registry| worker::metrics::register(registry, stats, app.db.clone(), &app.shutdown));
    Ok(health)
}

fn of_serve(environment: &ServeEnvironment, processes: Processes, shutdown: Shutdown) -> Assembly {
    Assembly {
        mode: environment.mode,
        service: "occ-api",
        config_path: environment.config_path.clone(),
        database: PoolConfig {
            url: environment.database_url.expose().to_owned(),
            connections_max: environment.pool_max,
            role: Role::Api,
        },
        auth_secret: Some(environment.auth_secret.clone()),
        plugin_path: environment.plugin_path.clone(),
        aot_cache: environment.aot_cache.clone(),
        process_folder: environment.process_folder.clone(),
        processes,
        ports: AGENT_PORTS,
        convergence: Duration::from_millis(WorkerSettings::default().convergence_ms),
        clock: Clock::system(),
        ids: Ids::system(),
        shutdown,
    }
}

async fn run_api(parts: Parts, environment: &ServeEnvironment) -> Result<Ended> {
    let app = parts.app;
    start_api(&app);
    let listener = bind(environment.listen).await?;
    if let Some(address) = environment.metrics {
        let private = bind(address).await?;
        serve_private(&app, private, http::metrics::private(app.metrics.clone(), app.db.clone()));
    }
    tracing::info!(host = %environment.listen.ip(), port = environment.listen.port(), "listening");
    let lame_duck =
        if environment.mode == Mode::Production { http::server::LAME_DUCK } else { Duration::ZERO };
    let signal = app.shutdown.clone();
    app.shutdown.spawn(async move {
        if let Err(error) = signal.on_signal().await {
            tracing::error!(cause = %error, "shutdown.failed");
            signal.begin();
        }
    });
    let clean = http::server::serve(app.clone(), listener, lame_duck).await;
    let ended = finish(&app).await?;
    Ok(if clean { ended } else { Ended::Cut })
}

/// Starts what an API process does beside answering: its reconcilers, and the hints to workers.
pub fn start_api(app: &App) {
    reconcile::start_api(&needs(app), &app.shutdown);
    app.shutdown.spawn(app.hints.clone().run(app.db.clone(), app.shutdown.token().clone()));
}

fn needs(app: &App) -> reconcile::Needs {
    reconcile::Needs {
        db: app.db.clone(),
        clock: app.clock.clone(),
        ids: app.ids.clone(),
        hints: app.hints.clone(),
        events_retention_hours: app.config.limits.events_retention_hours,
    }
}

async fn until_signal(shutdown: &Shutdown) -> Result<()> {
    shutdown
        .on_signal()
        .await
        .map_err(|error| Error::startup("STARTUP_FAILED", "Signals cannot be listened for.").caused_by(error))
}

async fn finish(app: &App) -> Result<Ended> {
    tracing::info!("shutdown.started");
    app.shutdown.begin();
    let clean = app.shutdown.drain(TASKS_MAX).await;
    app.db.close().await;
    tracing::info!(clean, "shutdown.completed");
    Ok(if clean { Ended::Cleanly } else { Ended::Cut })
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::startup("LISTENER_INVALID", format!("{address} cannot be listened on: {}", error.kind()))
            .caused_by(error)
    })
}

fn serve_private(app: &App, listener: TcpListener, routes: http::Router) {
    app.shutdown.spawn(http::server::private(listener, routes, app.shutdown.token().clone()));
}
