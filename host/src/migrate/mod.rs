//! Brings a database to the schema of this binary, or says why it will not.
//!
//! One connection does all: it takes the migration lock, verifies what it finds and only then writes.
//!
//! | Step | Checked | Where |
//! | --- | --- | --- |
//! | 1 | the embedded files equal the manifest | `source.rs` |
//! | 2 | server version, encoding, writability | `verify.rs` |
//! | 3 | the lock, held by one and the same server process | `lock.rs` |
//! | 6, 7 | the ledger's shape and its receipts | `ledger.rs`, `verify.rs` |
//! | 9 | missing files run, one transaction each with its receipt | here |
//!
//! **Nothing before step 9 writes.** **A file never runs twice**: file and receipt commit together, and an answer
//! lost at COMMIT is resolved by a new connection that locks, verifies and reads the receipt again.
//!
//! Not here yet, and not pretended: the comparison of roles and schema grants (steps 4 and 5) and of the catalog
//! digests (step 8). Of step 8 only this is done: without a receipt, `occ` must be absent or empty.

mod command;
mod error;
mod ledger;
mod lock;
mod source;
#[cfg(test)]
mod tests;
mod verify;

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError as SqlxMigrateError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};

pub use command::Command;
pub use error::{MigrateError, Reason};
pub use source::{Source, SourceFile};

/// Longest wait for another migrator, unless the caller says otherwise.
pub const LOCK_WAIT: Duration = Duration::from_secs(120);
/// How often a run starts over on a new connection after its connection broke.
const RECONNECTS_MAX: u32 = 3;
/// Time between a broken connection and the next.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// What the migrator needs to know.
#[derive(Clone)]
pub struct MigrateConfig {
    /// `postgres://occ_migrator@…`; must lead to the server itself, not to a pooler. Never logged.
    pub url: String,
    /// Longest wait for another migrator.
    pub lock_wait: Duration,
}

impl MigrateConfig {
    /// The default waits for a database at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), lock_wait: LOCK_WAIT }
    }
}

impl std::fmt::Debug for MigrateConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MigrateConfig").field("url", &"hidden").field("lock_wait", &self.lock_wait).finish()
    }
}

/// A finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// Version of the schema now.
    pub version: i64,
    /// Names of the files that this run applied, in order; empty when the schema was current.
    pub applied: Vec<String>,
}

/// How far a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No migration has run.
    Empty,
    /// Every migration of this binary has run.
    Current,
    /// Some have.
    Behind,
}

impl State {
    /// The stable text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Current => "current",
            Self::Behind => "behind",
        }
    }
}

/// What `migrate --check` found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// How far the database is.
    pub state: State,
    /// Version of the newest receipt; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Version that this binary brings a database to.
    pub target: i64,
    /// Names of the files that have not run, in order.
    pub pending: Vec<String>,
    /// Major version of the server.
    pub server_major: i32,
}

/// Version of the schema that this binary needs.
#[must_use]
pub fn expected_version() -> i64 {
    static VERSION: LazyLock<i64> = LazyLock::new(|| Source::embedded().version());
    *VERSION
}

/// What a database says of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// Its version.
    pub version: i64,
    /// Oldest schema version whose binary works on it; never above `version`.
    pub compatible_from: i64,
}

impl SchemaState {
    /// Reads it; none when no migration has finished.
    ///
    /// # Errors
    /// What the database says, also when there is no such table.
    pub async fn read(conn: &mut PgConnection) -> sqlx::Result<Option<Self>> {
        sqlx::query_as!(Self, "select version, compatible_from from occ.schema_state")
            .fetch_optional(conn)
            .await
    }

    /// Does this binary work on it?
    #[must_use]
    pub fn serves_this_binary(&self) -> bool {
        (self.compatible_from..=self.version).contains(&expected_version())
    }
}

/// Migrates to [`expected_version`].
///
/// # Errors
/// See [`MigrateError`].
pub async fn run(config: &MigrateConfig) -> Result<Migrated, MigrateError> {
    run_source(config, &Source::embedded()).await
}

/// Verifies without a write.
///
/// # Errors
/// See [`MigrateError`].
pub async fn check(config: &MigrateConfig) -> Result<Checked, MigrateError> {
    check_source(config, &Source::embedded()).await
}

/// [`check`] against other files than the embedded ones, for tests of refusals.
///
/// # Errors
/// See [`MigrateError`].
pub async fn check_source(config: &MigrateConfig, source: &Source) -> Result<Checked, MigrateError> {
    source.verify()?;
    let mut db = connect(config).await?;
    let (checked, _) = verified(&mut db, config, source).await?;
    db.close().await.ok();
    Ok(checked)
}

/// [`run`] with other files than the embedded ones, for tests of refusals.
///
/// # Errors
/// See [`MigrateError`].
pub async fn run_source(config: &MigrateConfig, source: &Source) -> Result<Migrated, MigrateError> {
    source.verify()?;
    let mut applied = Vec::new();
    let mut reconnects = 0;
    loop {
        match attempt(config, source, &mut applied).await {
            Ok(version) => {
                tracing::info!(version, applied = applied.len(), "migration.completed");
                return Ok(Migrated { version, applied });
            }
            Err(MigrateError::ConnectionLost(error)) if reconnects < RECONNECTS_MAX => {
                reconnects += 1;
                tracing::warn!(reconnects, cause = %error, "migration.connection-lost");
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// One connection's work: verify, then run what is missing. Names that ran are appended to `applied`.
async fn attempt(
    config: &MigrateConfig,
    source: &Source,
    applied: &mut Vec<String>,
) -> Result<i64, MigrateError> {
    let mut db = connect(config).await?;
    let (_, done) = verified(&mut db, config, source).await?;
    ledger::create(&mut db).await?;
    for file in source.files().iter().skip(done) {
        // A file whose COMMIT was sent counts as applied by this run: if it was not, it is next again.
        if applied.last() != Some(&file.name) {
            applied.push(file.name.clone());
        }
        db.apply(ledger::RECEIPTS, &file.migration).await.map_err(|error| failed(file, error))?;
        tracing::info!(version = file.version(), name = file.name, "migration.applied");
    }
    ledger::state_write(&mut db, source.version(), source.compatible_from()).await?;
    db.close().await.ok();
    Ok(source.version())
}

/// Steps 2, 3, 6 and 7; answers what was found and how many files have run.
async fn verified(
    db: &mut PgConnection,
    config: &MigrateConfig,
    source: &Source,
) -> Result<(Checked, usize), MigrateError> {
    let server_major = verify::server(db).await?;
    lock::take(db, config.lock_wait).await?;
    let receipts = ledger::read(db).await?;
    verify::receipts(source, &receipts)?;
    if receipts.is_empty() {
        verify::schema_is_empty(db).await?;
    }
    let done = receipts.len();
    let pending: Vec<String> = source.files().iter().skip(done).map(|file| file.name.clone()).collect();
    let state = match (done, pending.is_empty()) {
        (_, true) => State::Current,
        (0, false) => State::Empty,
        (_, false) => State::Behind,
    };
    let version = receipts.last().map(|receipt| receipt.version);
    Ok((Checked { state, version, target: source.version(), pending, server_major }, done))
}

async fn connect(config: &MigrateConfig) -> Result<PgConnection, MigrateError> {
    let options = PgConnectOptions::from_str(&config.url)
        .map_err(|_| MigrateError::Configuration)?
        .application_name(&format!("occ-migrate/{}", std::process::id()))
        .statement_cache_capacity(0)
        .log_statements(tracing::log::LevelFilter::Trace);
    let mut db = options.connect().await.map_err(MigrateError::Unavailable)?;
    verify::bound_statements(&mut db).await?;
    Ok(db)
}

/// Tells a file that the server refused from a connection that broke under it.
fn failed(file: &SourceFile, error: SqlxMigrateError) -> MigrateError {
    let error = match error {
        SqlxMigrateError::Execute(error) | SqlxMigrateError::ExecuteMigration(error, _) => error,
        other => sqlx::Error::Migrate(Box::new(other)),
    };
    match MigrateError::from(error) {
        MigrateError::Statement(error) => MigrateError::Failed {
            version: file.version(),
            sqlstate: error
                .as_database_error()
                .and_then(|error| error.code())
                .map(std::borrow::Cow::into_owned),
            source: error,
        },
        lost => lost,
    }
}
