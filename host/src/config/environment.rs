//! Reads `OCC_*` variables: known names only, plain or `_FILE`, all faults together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use zeroize::Zeroizing;

use super::worker::WorkerSettings;
use super::{Problem, Problems};

/// Every variable that some process of the product reads, without its `_FILE` form.
const KNOWN: [&str; 33] = [
    "OCC_MODE",
    "OCC_HOST",
    "OCC_PORT",
    "OCC_CONFIG_PATH",
    "OCC_DATABASE_URL",
    "OCC_DATABASE_POOL_MAX",
    "OCC_DATABASE_POOLING",
    "OCC_DATABASE_DIRECT_URL",
    "OCC_MIGRATION_DATABASE_URL",
    "OCC_AUTH_SECRET",
    "OCC_AUTH_BASE_URL",
    "OCC_AGENT_RUNTIME_LOGS_ENABLED",
    "OCC_WORKER_LANES",
    "OCC_WORKER_POLL_INTERVAL_MS",
    "OCC_WORKER_LEASE_DURATION_MS",
    "OCC_WORKER_MAX_ATTEMPTS",
    "OCC_WORKER_CONVERGENCE_TIMEOUT_MS",
    "OCC_WORKER_DATABASE_TIMEOUT_MS",
    "OCC_WORKER_DRAIN_SECONDS",
    "OCC_CONTROL_PLANE_ID",
    "OCC_PLUGIN_PATH",
    "OCC_AOT_CACHE",
    "OCC_PROCESS_FOLDER",
    "OCC_METRICS_ENABLED",
    "OCC_METRICS_HOST",
    "OCC_METRICS_PORT",
    "OCC_LOG_FORMAT",
    "OCC_BOOTSTRAP_ADMIN_EMAIL",
    "OCC_BOOTSTRAP_INSTALLATION_NAME",
    "OCC_BOOTSTRAP_PASSWORD_FILE",
    "OCC_BOOTSTRAP_SERVICE_KEY_FILE",
    "OCC_OPENCLAW_DIR",
    "OCC_ECHO_MODEL_PORT",
];
/// Variables that may be given as a file.
const FILE_FORM: [&str; 4] =
    ["OCC_DATABASE_URL", "OCC_DATABASE_DIRECT_URL", "OCC_MIGRATION_DATABASE_URL", "OCC_AUTH_SECRET"];
/// Variables of the command line client and of tests; not ours to judge.
const EXEMPT: [&str; 7] = [
    "OCC_URL",
    "OCC_SERVICE_KEY_FILE",
    "OCC_NAMESPACE",
    "OCC_CA_BUNDLE",
    "OCC_TIMEOUT_SECONDS",
    "OCC_CONTEXT",
    "OCC_CONFIG",
];
/// Names of the reference system that would change the meaning of an Installation.
const REFUSED: [&str; 4] =
    ["OCC_INSTALLATION_ID", "OCC_COMPUTE_DRIVER", "OCC_KUBERNETES_CONFIG_PATH", "OCC_NATIVE_IAM_DRIVER_ID"];
/// Shortest authentication secret.
const AUTH_SECRET_BYTES_MIN: usize = 32;
/// Largest file that may hold a secret or a URL.
const SECRET_FILE_BYTES_MAX: u64 = 64 * 1024;
/// Default of `OCC_METRICS_PORT`.
const METRICS_PORT: u16 = 9464;
/// Default of `OCC_DATABASE_POOL_MAX`.
const POOL_MAX: u32 = 10;

/// A value that is never printed.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of a value.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value; not to be logged or stored.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// `OCC_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything strict.
    Production,
    /// One machine, loopback only, local processes allowed.
    Development,
}

/// `OCC_LOG_FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// What `serve` reads from its environment.
#[derive(Debug, Clone)]
pub struct ServeEnvironment {
    /// Production or development.
    pub mode: Mode,
    /// Where the API listens.
    pub listen: SocketAddr,
    /// The private listener; `None` when metrics are off.
    pub metrics: Option<SocketAddr>,
    /// The Installation YAML.
    pub config_path: PathBuf,
    /// Database URL as `occ_app`.
    pub database_url: Secret,
    /// Most connections of the pool.
    pub pool_max: u32,
    /// At least 32 bytes; keys for cursors, fingerprints and cookies come from it.
    pub auth_secret: Secret,
    /// Origin under which clients reach the API.
    pub base_url: String,
    /// Folders that are searched for bundles, in order.
    pub plugin_path: Vec<PathBuf>,
    /// Folder of compiled plugins.
    pub aot_cache: Option<PathBuf>,
    /// Folder of supervised local processes.
    pub process_folder: Option<PathBuf>,
}

/// What `worker` reads from its environment.
#[derive(Debug, Clone)]
pub struct WorkerEnvironment {
    /// Production or development.
    pub mode: Mode,
    /// The private listener; a worker always opens it.
    pub private: SocketAddr,
    /// The Installation YAML.
    pub config_path: PathBuf,
    /// Database URL as `occ_app`.
    pub database_url: Secret,
    /// Folders that are searched for bundles, in order.
    pub plugin_path: Vec<PathBuf>,
    /// Folder of compiled plugins.
    pub aot_cache: Option<PathBuf>,
    /// Folder of supervised local processes.
    pub process_folder: Option<PathBuf>,
    /// Lanes, lease, attempts and time-outs.
    pub settings: WorkerSettings,
}

/// The variables of one process, and what was wrong with those read so far.
#[derive(Debug)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    problems: Vec<Problem>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one reader of the host's environment")]
    pub fn of_process() -> Self {
        Self::new(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// An environment given as pairs, for tests and for `occ-host dev`.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().filter(|(name, _)| name.starts_with("OCC_")).collect();
        let mut environment = Self { variables, problems: Vec::new() };
        environment.refuse_unknown();
        environment
    }

    /// What `serve` needs.
    ///
    /// # Errors
    /// Every variable at fault.
    pub fn serve(mut self) -> Result<ServeEnvironment, Problems> {
        let mode = self.mode();
        let host = self.host(mode);
        let port =
            self.required("OCC_PORT").and_then(|text| self.parsed::<u16>("OCC_PORT", &text, "a port number"));
        let metrics = self.metrics(host, mode);
        let (config_path, database_url) = (self.config_path(), self.database_url());
        let auth_secret = self.auth_secret();
        let base_url = self.required("OCC_AUTH_BASE_URL").and_then(|url| self.origin(url));
        let pool_max = self.number("OCC_DATABASE_POOL_MAX", POOL_MAX, 1, 100);
        let (plugin_path, aot_cache, process_folder) = self.folders();
        let ready = (mode, host, port, config_path, database_url, auth_secret, base_url);
        let (
            Some(mode),
            Some(host),
            Some(port),
            Some(config_path),
            Some(database_url),
            Some(auth_secret),
            Some(base_url),
        ) = ready
        else {
            return Err(self.failed());
        };
        let listen = SocketAddr::new(host, port);
        self.finish(ServeEnvironment {
            mode,
            listen,
            metrics,
            config_path,
            database_url,
            pool_max,
            auth_secret,
            base_url,
            plugin_path,
            aot_cache,
            process_folder,
        })
    }

    /// What `worker` needs.
    ///
    /// # Errors
    /// Every variable at fault.
    pub fn worker(mut self) -> Result<WorkerEnvironment, Problems> {
        let mode = self.mode();
        let host = self.host(mode);
        let private =
            self.metrics(host, mode).or_else(|| host.map(|host| SocketAddr::new(host, METRICS_PORT)));
        let (config_path, database_url) = (self.config_path(), self.database_url());
        let settings = self.worker_settings();
        let (plugin_path, aot_cache, process_folder) = self.folders();
        let (Some(mode), Some(private), Some(config_path), Some(database_url)) =
            (mode, private, config_path, database_url)
        else {
            return Err(self.failed());
        };
        self.finish(WorkerEnvironment {
            mode,
            private,
            config_path,
            database_url,
            plugin_path,
            aot_cache,
            process_folder,
            settings,
        })
    }

    /// One variable, plain or from its `_FILE` form.
    pub fn value(&mut self, name: &str) -> Option<String> {
        let file_name = format!("{name}_FILE");
        let (plain, file) = (self.variables.get(name).cloned(), self.variables.get(&file_name).cloned());
        match (plain, file) {
            (Some(_), Some(_)) => {
                self.problem(name, format!("is given twice: keep {name} or {file_name}"));
                None
            }
            (Some(text), None) => Some(text),
            (None, Some(path)) if FILE_FORM.contains(&name) => match read_secret_file(Path::new(&path)) {
                Ok(text) => Some(text),
                Err(rule) => {
                    self.problem(&file_name, rule);
                    None
                }
            },
            _ => None,
        }
    }

    /// A required variable.
    pub fn required(&mut self, name: &str) -> Option<String> {
        let value = self.value(name);
        if value.is_none() && !self.problems.iter().any(|problem| problem.at.starts_with(name)) {
            self.problem(name, "is required".to_owned());
        }
        value
    }

    /// `OCC_MODE`.
    pub fn mode(&mut self) -> Option<Mode> {
        match self.required("OCC_MODE")?.as_str() {
            "production" => Some(Mode::Production),
            "development" => Some(Mode::Development),
            _ => {
                self.problem("OCC_MODE", "must be production or development".to_owned());
                None
            }
        }
    }

    /// `OCC_LOG_FORMAT`; JSON when absent.
    pub fn log_format(&mut self) -> LogFormat {
        match self.value("OCC_LOG_FORMAT").as_deref() {
            Some("text") => LogFormat::Text,
            Some("json") | None => LogFormat::Json,
            Some(_) => {
                self.problem("OCC_LOG_FORMAT", "must be json or text".to_owned());
                LogFormat::Json
            }
        }
    }

    /// The database URL of `occ_app`.
    pub fn database_url(&mut self) -> Option<Secret> {
        self.postgres_url("OCC_DATABASE_URL")
    }

    /// A PostgreSQL URL from a named variable.
    pub fn postgres_url(&mut self, name: &str) -> Option<Secret> {
        let url = self.required(name)?;
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Some(Secret::new(url));
        }
        self.problem(name, "must be a URL of scheme postgres".to_owned());
        None
    }

    /// `OCC_AUTH_SECRET`.
    pub fn auth_secret(&mut self) -> Option<Secret> {
        let secret = self.required("OCC_AUTH_SECRET")?;
        if secret.len() < AUTH_SECRET_BYTES_MIN {
            self.problem("OCC_AUTH_SECRET", format!("must have at least {AUTH_SECRET_BYTES_MIN} bytes"));
            return None;
        }
        Some(Secret::new(secret))
    }

    /// The value when nothing was wrong.
    ///
    /// # Errors
    /// Every variable at fault.
    pub fn finish<T>(self, value: T) -> Result<T, Problems> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.failed()) }
    }

    fn failed(self) -> Problems {
        Problems { code: "CONFIGURATION_INVALID", list: self.problems }
    }

    fn problem(&mut self, at: &str, rule: String) {
        self.problems.push(Problem::new(at, rule));
    }

    fn host(&mut self, mode: Option<Mode>) -> Option<IpAddr> {
        let text = self.value("OCC_HOST");
        let host = match text {
            None if mode == Some(Mode::Development) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            None => {
                self.problem("OCC_HOST", "is required".to_owned());
                return None;
            }
            Some(text) => self.parsed::<IpAddr>("OCC_HOST", &text, "an IP address")?,
        };
        let rule = match mode {
            Some(Mode::Production) if host.is_unspecified() || host.is_loopback() => {
                "must be the Pod's own address in production"
            }
            Some(Mode::Development) if !host.is_loopback() => "must be a loopback address in development",
            _ => return Some(host),
        };
        self.problem("OCC_HOST", rule.to_owned());
        None
    }

    fn metrics(&mut self, host: Option<IpAddr>, mode: Option<Mode>) -> Option<SocketAddr> {
        let enabled = match self.value("OCC_METRICS_ENABLED").as_deref() {
            None | Some("true") => true,
            Some("false") => false,
            Some(_) => {
                self.problem("OCC_METRICS_ENABLED", "must be true or false".to_owned());
                true
            }
        };
        let (given_host, given_port) = (self.value("OCC_METRICS_HOST"), self.value("OCC_METRICS_PORT"));
        if !enabled {
            if given_host.is_some() || given_port.is_some() {
                self.problem(
                    "OCC_METRICS_ENABLED",
                    "is false: remove OCC_METRICS_HOST and OCC_METRICS_PORT".to_owned(),
                );
            }
            return None;
        }
        let address = match given_host {
            Some(text) => self.parsed::<IpAddr>("OCC_METRICS_HOST", &text, "an IP address")?,
            None => host?,
        };
        if mode == Some(Mode::Development) && !address.is_loopback() {
            self.problem("OCC_METRICS_HOST", "must be a loopback address in development".to_owned());
        }
        let port = match given_port {
            Some(text) => self.parsed::<u16>("OCC_METRICS_PORT", &text, "a port number")?,
            None => METRICS_PORT,
        };
        Some(SocketAddr::new(address, port))
    }

    fn config_path(&mut self) -> Option<PathBuf> {
        let text = self.required("OCC_CONFIG_PATH")?;
        self.absolute("OCC_CONFIG_PATH", &text)
    }

    fn folders(&mut self) -> (Vec<PathBuf>, Option<PathBuf>, Option<PathBuf>) {
        let plugin_path = self
            .value("OCC_PLUGIN_PATH")
            .map(|text| std::env::split_paths(&text).collect())
            .unwrap_or_default();
        let cache = self.value("OCC_AOT_CACHE").and_then(|text| self.absolute("OCC_AOT_CACHE", &text));
        let processes =
            self.value("OCC_PROCESS_FOLDER").and_then(|text| self.absolute("OCC_PROCESS_FOLDER", &text));
        (plugin_path, cache, processes)
    }

    fn worker_settings(&mut self) -> WorkerSettings {
        let default = WorkerSettings::default();
        WorkerSettings {
            lanes: self.number("OCC_WORKER_LANES", default.lanes, 1, 256),
            poll_interval_ms: self.number(
                "OCC_WORKER_POLL_INTERVAL_MS",
                default.poll_interval_ms,
                50,
                60_000,
            ),
            lease_ms: self.number("OCC_WORKER_LEASE_DURATION_MS", default.lease_ms, 2_000, 300_000),
            attempts_max: self.number("OCC_WORKER_MAX_ATTEMPTS", default.attempts_max, 1, 50),
            convergence_ms: self.number(
                "OCC_WORKER_CONVERGENCE_TIMEOUT_MS",
                default.convergence_ms,
                1_000,
                86_400_000,
            ),
            database_timeout_ms: self.number(
                "OCC_WORKER_DATABASE_TIMEOUT_MS",
                default.database_timeout_ms,
                1_000,
                600_000,
            ),
            drain_secs: self.number("OCC_WORKER_DRAIN_SECONDS", default.drain_secs, 1, 3_600),
        }
    }

    fn number<T: FromStr + PartialOrd + Copy + fmt::Display>(
        &mut self,
        name: &str,
        default: T,
        least: T,
        most: T,
    ) -> T {
        let Some(text) = self.value(name) else {
            return default;
        };
        match text.parse::<T>() {
            Ok(number) if number >= least && number <= most => number,
            _ => {
                self.problem(name, format!("must be a whole number from {least} to {most}"));
                default
            }
        }
    }

    fn parsed<T: FromStr>(&mut self, name: &str, text: &str, what: &str) -> Option<T> {
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.problem(name, format!("must be {what}"));
        }
        parsed
    }

    fn absolute(&mut self, name: &str, text: &str) -> Option<PathBuf> {
        let path = PathBuf::from(text);
        if path.is_absolute() {
            return Some(path);
        }
        self.problem(name, "must be an absolute path".to_owned());
        None
    }

    fn origin(&mut self, url: String) -> Option<String> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@'])) {
            return Some(url);
        }
        self.problem(
            "OCC_AUTH_BASE_URL",
            "must be an http or https origin without path, query or user".to_owned(),
        );
        None
    }

    fn refuse_unknown(&mut self) {
        let known: BTreeSet<&str> = KNOWN.into_iter().collect();
        let mut problems = Vec::new();
        for name in self.variables.keys() {
            let base = name.strip_suffix("_FILE").filter(|base| FILE_FORM.contains(base)).unwrap_or(name);
            if REFUSED.contains(&name.as_str()) {
                problems.push(Problem::new(name, "is refused: the Installation YAML decides this"));
            } else if !known.contains(base)
                && !EXEMPT.contains(&name.as_str())
                && !name.starts_with("OCC_TEST_")
            {
                let nearest = KNOWN
                    .iter()
                    .min_by_key(|candidate| distance(name, candidate))
                    .copied()
                    .unwrap_or_default();
                problems.push(Problem::new(name, format!("is unknown; the nearest known name is {nearest}")));
            }
        }
        self.problems.append(&mut problems);
    }
}

/// One value from a file, without its last newline.
fn read_secret_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let metadata =
        std::fs::metadata(path).map_err(|error| format!("{shown} cannot be read: {}", error.kind()))?;
    if !metadata.is_file() || metadata.len() > SECRET_FILE_BYTES_MAX {
        return Err(format!("{shown} must be a regular file of at most {SECRET_FILE_BYTES_MAX} bytes"));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {}", error.kind()))?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// Levenshtein distance, for "the nearest known name".
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().enumerate() {
        let mut diagonal = index;
        let mut previous = index + 1;
        let mut next = vec![previous];
        for (to, above) in right.iter().zip(row.iter().skip(1)) {
            let cost = if from == *to { diagonal } else { 1 + diagonal.min(*above).min(previous) };
            diagonal = *above;
            previous = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
