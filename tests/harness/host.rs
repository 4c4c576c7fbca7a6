//! A host in this process: the real router, plugins, database and, when asked for, worker; agents are
//! doubles (`occ-double gateway`). Clients reach it over a socket.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use occ_host::app::App;
use occ_host::bootstrap::{self, BootstrapConfig};
use occ_host::clock::Clock;
use occ_host::config::{Mode, Secret, WorkerSettings};
use occ_host::db::{PoolConfig, Role};
use occ_host::http::server;
use occ_host::ids::Ids;
use occ_host::serve::{self, Assembly, Parts, Processes};
use occ_host::shutdown::Shutdown;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::database::Database;
use crate::environment;

/// Signs cursors and fingerprints of every test.
const AUTH_SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Connections of one host.
const CONNECTIONS_MAX: u32 = 8;
/// How long the parts of a host may take to end.
const END_MAX: Duration = Duration::from_secs(20);

/// How a host is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Run a worker with these settings.
    pub worker: Option<WorkerSettings>,
    /// Members that replace those of the Installation YAML at the top level.
    pub installation: Value,
    /// The clock of the host.
    pub clock: Clock,
}

/// A running host. Ended by [`Host::end`], or with the test.
pub struct Host {
    /// Where it listens.
    pub origin: String,
    /// The administrator's key.
    pub key: String,
    /// What its handlers hold.
    pub app: App,
    /// What it was made of.
    pub parts: Parts,
    /// Its own database.
    pub database: Database,
    /// Its folder: installation.yaml, processes.
    pub folder: Arc<TempDir>,
    client: reqwest::Client,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, lower-case.
    pub headers: reqwest::header::HeaderMap,
    /// The body; null when there is none.
    pub body: Value,
}

impl Answer {
    /// `data`.
    #[must_use]
    pub fn data(&self) -> &Value {
        self.body.get("data").unwrap_or(&Value::Null)
    }

    /// `error.code`, or nothing.
    #[must_use]
    pub fn code(&self) -> &str {
        self.body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default()
    }

    /// A header, or nothing.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Does a detail name this pointer?
    #[must_use]
    pub fn names(&self, path: &str) -> bool {
        let details = self.body.pointer("/error/details").and_then(Value::as_array);
        details.into_iter().flatten().any(|detail| detail.get("path").and_then(Value::as_str) == Some(path))
    }
}

impl Host {
    /// The API alone.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start() -> Result<Self> {
        Self::with(Options::default()).await
    }

    /// API and worker.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn with_worker() -> Result<Self> {
        Self::with(Options { worker: Some(WorkerSettings::default()), ..Options::default() }).await
    }

    /// As told.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn with(options: Options) -> Result<Self> {
        let database = Database::new().await?;
        let folder = Arc::new(tempfile::Builder::new().prefix("occ-host-").tempdir_in("/tmp")?);
        let key = prepare(&folder, &database, &options).await?;
        let parts = assemble(&folder, &database, &options).await?;
        if let Some(settings) = &options.worker {
            serve::start_api(&parts.app);
            serve::start_worker(&parts, settings).await?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let app = parts.app.clone();
        let serving = app.clone();
        app.shutdown.spawn(async move {
            server::serve(serving, listener, Duration::ZERO).await;
        });
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(90)).build()?;
        Ok(Self { origin, key, app, parts, database, folder, client })
    }

    /// A request with the administrator's key.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Answer> {
        self.send_as(Some(&self.key), method, path, body, &[]).await
    }

    /// A GET with the administrator's key.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, None).await
    }

    /// A POST with the administrator's key.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn post(&self, path: &str, body: Value) -> Result<Answer> {
        self.send("POST", path, Some(body)).await
    }

    /// A request with any key or none, and further headers.
    ///
    /// # Errors
    /// When there is no answer, or it is no JSON.
    pub async fn send_as(
        &self,
        key: Option<&str>,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let mut request = self.client.request(method.parse()?, format!("{}{path}", self.origin));
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.with_context(|| format!("{method} {path}"))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).with_context(|| text.clone())?
        };
        Ok(Answer { status, headers, body })
    }

    /// The Namespace `default`, whether it is ready or not.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn default_namespace(&self) -> Result<String> {
        let list = self.get("/namespaces").await?;
        let id = list.data().pointer("/0/id").and_then(Value::as_str);
        Ok(id.context("there is no Namespace")?.to_owned())
    }

    /// Ends the host and waits; agents are ended too.
    ///
    /// # Errors
    /// When something does not end.
    pub async fn end(self) -> Result<()> {
        self.app.shutdown.begin();
        anyhow::ensure!(self.app.shutdown.drain(END_MAX).await, "the host did not end within {END_MAX:?}");
        if let Some(processes) = &self.parts.processes {
            processes.shutdown_all(Duration::from_millis(500)).await?;
        }
        self.app.db.close().await;
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.app.shutdown.begin();
    }
}

/// Bootstraps the database and writes the Installation YAML; returns the administrator's key.
async fn prepare(folder: &TempDir, database: &Database, options: &Options) -> Result<String> {
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("secret.key"), format!("{}\n", "5a".repeat(32)))?;
    set_mode(&path("secret.key"), 0o600)?;
    let double = environment::binaries()?.join("occ-double");
    let gateway = json!([double]);
    let mut installation = json!({
        "occ": {"cluster": "test"},
        "drivers": {
            "secret": {"id": "database", "settings": {"keyFile": path("secret.key")}},
            "compute": {
                "plugin": "compute-local",
                "settings": {"commands": {"gateway": gateway}},
                "grants": {"process": {"commands": [gateway]}},
            },
            "harnesses": [{"plugin": "harness-openclaw"}],
        },
        "plugins": {"trust": {"unsigned": "allow"}},
    });
    for (name, value) in options.installation.as_object().into_iter().flatten() {
        if let Some(members) = installation.as_object_mut() {
            members.insert(name.clone(), value.clone());
        }
    }
    std::fs::write(path("installation.yaml"), installation.to_string())?;
    std::fs::create_dir(path("bootstrap"))?;
    set_mode(&path("bootstrap"), 0o700)?;
    Box::pin(bootstrap::run(&BootstrapConfig {
        database_url: Secret::new(database.url("occ_app")),
        auth_secret: Secret::new(AUTH_SECRET.to_owned()),
        base_url: "http://127.0.0.1:7480".to_owned(),
        admin_email: "admin@example.com".to_owned(),
        installation_name: "Test".to_owned(),
        password_file: path("bootstrap/password"),
        service_key_file: path("bootstrap/key.json"),
        clock: options.clock.clone(),
        ids: Ids::system(),
        stop_after: None,
    }))
    .await?;
    let key: Value = serde_json::from_slice(&std::fs::read(path("bootstrap/key.json"))?)?;
    Ok(key.pointer("/data/key").and_then(Value::as_str).context("the key file has no key")?.to_owned())
}

async fn assemble(folder: &TempDir, database: &Database, options: &Options) -> Result<Parts> {
    // Compiled once for all tests of this build; the folder is private to this account.
    let cache = cache_folder()?;
    let processes = if options.worker.is_some() { Processes::Supervise } else { Processes::Observe };
    let parts = Box::pin(serve::assemble(Assembly {
        mode: Mode::Development,
        service: "occ-api",
        config_path: folder.path().join("installation.yaml"),
        database: PoolConfig {
            url: database.url("occ_app"),
            connections_max: CONNECTIONS_MAX,
            role: Role::Api,
        },
        auth_secret: Some(Secret::new(AUTH_SECRET.to_owned())),
        plugin_path: vec![environment::plugins()?],
        aot_cache: Some(cache),
        process_folder: Some(folder.path().join("processes")),
        processes,
        ports: ports(),
        convergence: Duration::from_millis(options.worker.unwrap_or_default().convergence_ms),
        clock: options.clock.clone(),
        ids: Ids::system(),
        shutdown: Shutdown::new(),
    }))
    .await?;
    Ok(parts)
}

/// Hosts of one test run do not know of each other, so each draws from ports of its own.
fn ports() -> std::ops::RangeInclusive<u16> {
    const FIRST: u16 = 32_000;
    const EACH: u16 = 20;
    const HOSTS: u16 = 1_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = FIRST + (NEXT.fetch_add(1, Ordering::Relaxed) % HOSTS) * EACH;
    first..=first + EACH - 1
}

fn cache_folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("occ-test-aot-{}", nix::unistd::geteuid()));
    std::fs::create_dir_all(&folder)?;
    set_mode(&folder, 0o700)?;
    Ok(folder)
}

fn set_mode(path: &std::path::Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?)
}
