//! One factory for every pool, so that each process connects the same way.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};

use crate::error::Error;

/// Longest wait for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections are replaced after this time.
const LIFETIME_MAX: Duration = Duration::from_secs(30 * 60);
/// Unused connections are closed after this time.
const IDLE_MAX: Duration = Duration::from_secs(5 * 60);

/// Which process connects; part of `application_name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The HTTP API.
    Api,
    /// The worker.
    Worker,
    /// The reader of gauges.
    Metrics,
    /// Bootstrap and development set-up.
    Bootstrap,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Metrics => "metrics",
            Self::Bootstrap => "bootstrap",
        }
    }
}

/// What a pool needs to know.
#[derive(Clone)]
pub struct PoolConfig {
    /// `postgres://…` URL; may hold a password and is never logged.
    pub url: String,
    /// Most connections at once.
    pub connections_max: u32,
    /// Which process connects.
    pub role: Role,
}

impl std::fmt::Debug for PoolConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolConfig")
            .field("url", &"hidden")
            .field("connections_max", &self.connections_max)
            .field("role", &self.role)
            .finish()
    }
}

/// Opens a pool and proves it with one connection.
///
/// # Errors
/// `DATABASE_CONFIGURATION_INVALID` for a URL that cannot be read,
/// `PERSISTENCE_UNAVAILABLE` when the server does not answer.
pub async fn connect(config: &PoolConfig) -> Result<PgPool, Error> {
    let options = PgConnectOptions::from_str(&config.url)
        .map_err(|_| Error::startup("DATABASE_CONFIGURATION_INVALID", "The database URL cannot be read."))?
        .application_name(&format!("occ-{}/{}", config.role.name(), std::process::id()))
        .log_statements(tracing::log::LevelFilter::Trace);
    PgPoolOptions::new()
        .max_connections(config.connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(LIFETIME_MAX)
        .idle_timeout(IDLE_MAX)
        .test_before_acquire(true)
        .connect_with(options)
        .await
        .map_err(|error| {
            Error::startup("PERSISTENCE_UNAVAILABLE", "The database does not answer.").caused_by(error)
        })
}
