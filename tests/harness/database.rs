//! A database of its own for each test: a clone of a template that is migrated once.
//!
//! `OCC_TEST_DATABASE_URL` names a server by the URL of its superuser (roles log in without a password there);
//! without it the process starts a private server.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use occ_host::migrate::{self, MigrateConfig};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use tokio::sync::OnceCell;

use crate::server;

/// Made anew when one of these changes.
const SOURCES: [&str; 2] =
    [include_str!("../../migrations/manifest.json"), include_str!("../../deploy/sql/roles.sql")];
const ROLES: &str = SOURCES[1];
/// Connections of one pool that a test opens.
const CONNECTIONS_MAX: u32 = 16;
/// Longest wait for a connection; generous, because many tests run at once.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

static TEMPLATE: OnceCell<Template> = OnceCell::const_new();

struct Template {
    superuser: PgConnectOptions,
    name: String,
}

/// A database that exists as long as this value.
#[derive(Debug)]
pub struct Database {
    superuser: PgConnectOptions,
    name: String,
}

impl Database {
    /// A database with the newest schema.
    ///
    /// # Errors
    /// The server does not answer, or the template cannot be made.
    pub async fn new() -> Result<Self> {
        let template = template().await?;
        Self::create(&template.superuser, &format!("template {}", template.name)).await
    }

    /// A database without a schema, but with the roles and their rights.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn empty() -> Result<Self> {
        let template = template().await?;
        let database = Self::create(&template.superuser, "template template0 encoding 'UTF8'").await?;
        let mut db = database.connect("postgres").await?;
        roles(&mut db).await?;
        Ok(database)
    }

    /// URL of the database as one of the roles `occ_app` and `occ_migrator`, or as the superuser `postgres`.
    #[must_use]
    pub fn url(&self, role: &str) -> String {
        self.options(role).to_url_lossy().to_string()
    }

    /// A pool of the application role, as the product has it.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn app(&self) -> Result<PgPool> {
        self.pool("occ_app").await
    }

    /// A pool of the owner of every table, for what a test arranges behind the product's back.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn owner(&self) -> Result<PgPool> {
        self.pool("occ_migrator").await
    }

    /// One connection as a role.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn connect(&self, role: &str) -> Result<PgConnection> {
        self.options(role).connect().await.with_context(|| format!("connect to {} as {role}", self.name))
    }

    /// Where the server listens: the path of its socket, else host and port.
    pub(crate) fn address(&self) -> Result<std::path::PathBuf, (String, u16)> {
        let port = self.superuser.get_port();
        let socket = self.superuser.get_socket().map(|folder| folder.join(format!(".s.PGSQL.{port}")));
        socket.ok_or_else(|| (self.superuser.get_host().to_owned(), port))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    async fn create(superuser: &PgConnectOptions, clause: &str) -> Result<Self> {
        let name = format!("occ_test_{}", uuid::Uuid::new_v4().simple());
        let mut db = superuser.connect().await.context("connect to the test server")?;
        statement(&mut db, &format!("create database {name} {clause}")).await?;
        db.close().await?;
        Ok(Self { superuser: superuser.clone(), name })
    }

    async fn pool(&self, role: &str) -> Result<PgPool> {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX).acquire_timeout(ACQUIRE_TIMEOUT);
        pool.connect_with(self.options(role))
            .await
            .with_context(|| format!("connect to {} as {role}", self.name))
    }

    fn options(&self, role: &str) -> PgConnectOptions {
        let options = self.superuser.clone().database(&self.name);
        if role == "postgres" { options } else { options.username(role) }
    }
}

impl Drop for Database {
    /// Drops the database, whoever is still connected. The test's own runtime may be gone, so it takes another.
    fn drop(&mut self) {
        let (superuser, name) = (self.superuser.clone(), self.name.clone());
        let dropped = std::thread::spawn(move || -> Result<()> {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
                let mut db = superuser.connect().await?;
                statement(&mut db, &format!("drop database if exists {name} with (force)")).await
            })
        });
        if !matches!(dropped.join(), Ok(Ok(()))) {
            tracing::warn!(name = self.name, "the test's database was not dropped");
        }
    }
}

/// The template of this schema: made by the first process that needs it, under a lock, and renamed once whole.
async fn template() -> Result<&'static Template> {
    TEMPLATE
        .get_or_try_init(|| async {
            let superuser = match server_url() {
                Some(url) => url,
                None => server::url()?,
            };
            let superuser =
                PgConnectOptions::from_str(&superuser)?.log_statements(tracing::log::LevelFilter::Trace);
            let digest = Sha256::digest(SOURCES.concat().as_bytes());
            let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let name = format!("occ_template_{digest}");
            let mut db = superuser.connect().await.context("connect to the test server")?;
            statement(&mut db, "select pg_advisory_lock(5194563, 1001)").await?;
            let exists: bool =
                sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
                    .bind(&name)
                    .fetch_one(&mut db)
                    .await?;
            if !exists {
                build(&mut db, &superuser, &name).await?;
            }
            db.close().await?;
            Ok(Template { superuser, name })
        })
        .await
}

async fn build(db: &mut PgConnection, superuser: &PgConnectOptions, name: &str) -> Result<()> {
    let draft = format!("{name}_draft");
    statement(db, &format!("drop database if exists {draft} with (force)")).await?;
    statement(db, &format!("create database {draft} template template0 encoding 'UTF8'")).await?;
    let options = superuser.clone().database(&draft);
    let mut inside = options.connect().await?;
    roles(&mut inside).await?;
    inside.close().await?;
    let url = options.username("occ_migrator").to_url_lossy().to_string();
    migrate::run(&MigrateConfig::new(url)).await.context("migrate the template")?;
    statement(db, &format!("alter database {draft} rename to {name}")).await
}

/// Makes the roles. Roles belong to the server, so runs beside this one wait for each other.
async fn roles(db: &mut PgConnection) -> Result<()> {
    let locked = format!("begin; select pg_advisory_xact_lock(5194563, 1002); {ROLES}; commit");
    statement(db, &locked).await.context("deploy/sql/roles.sql")
}

async fn statement(db: &mut PgConnection, text: &str) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(text.to_owned()))
        .execute(db)
        .await
        .with_context(|| text.chars().take(80).collect::<String>())?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the one setting of the test harness")]
fn server_url() -> Option<String> {
    std::env::var("OCC_TEST_DATABASE_URL").ok()
}
