//! Where the numbers come from: machine, versions, commit, load.

use std::fmt;
use std::process::Command;

use serde::Serialize;

/// The lock file knows what was built.
const LOCK: &str = include_str!("../../Cargo.lock");
/// Packages whose versions matter to the numbers.
const PACKAGES: [&str; 3] = ["wasmtime", "sqlx", "tokio"];

/// What the report says about the machine and the build.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    build: &'static str,
    version: &'static str,
    packages: Vec<String>,
    commit: String,
    /// How the database server is set up; empty when no row asked it.
    pub(crate) database: String,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let processor =
            field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let memory =
            field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            processor,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            version: env!("CARGO_PKG_VERSION"),
            packages: PACKAGES.iter().filter_map(|name| Some(format!("{name} {}", locked(name)?))).collect(),
            commit: commit().unwrap_or_else(|| "unknown".to_owned()),
            database: String::new(),
        }
    }

    /// The three load averages.
    pub(crate) fn load() -> String {
        let all = read("/proc/loadavg").unwrap_or_default();
        all.split(' ').take(3).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} x {}, {} MiB, Linux {}; {} build of {} ({}), {}, {}",
            self.cores,
            self.processor,
            self.memory_mib,
            self.kernel,
            self.build,
            self.version,
            self.commit,
            self.packages.join(", "),
            self.database
        )
    }
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

/// A value of a file of `name : value` lines.
pub(crate) fn field(file: &str, name: &str) -> Option<String> {
    let text = read(file)?;
    let mut values = text.lines().filter_map(|line| line.split_once(':'));
    values.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
}

fn locked(name: &str) -> Option<&'static str> {
    let package = LOCK.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
    package.split('"').next()
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "-uno"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { format!("{commit}, changed") } else { commit })
}
