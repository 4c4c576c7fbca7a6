//! A private PostgreSQL for tests and for recording statements: socket only, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::run;

/// What has to be there, and the command that brings it on Debian.
const PACKAGE: &str = "postgresql";
/// Connections that a full test run may open at once.
const CONNECTIONS_MAX: u32 = 400;

/// A running server; stopped and removed when dropped.
pub(crate) struct Server {
    binaries: PathBuf,
    folder: TempDir,
}

impl Server {
    /// Makes a cluster in a new folder and starts it.
    pub(crate) fn start() -> Result<Self> {
        let binaries = binaries()?;
        let folder = tempfile::Builder::new().prefix("occ-pg-").tempdir_in("/tmp")?;
        give_to_postgres(folder.path())?;
        let server = Self { binaries, folder };
        let data = server.data();
        run::output(
            server
                .tool("initdb")
                .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"])
                .arg("--pgdata")
                .arg(&data),
        )?;
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c max_connections={CONNECTIONS_MAX} \
             -c fsync=off -c synchronous_commit=off -c full_page_writes=off",
            server.folder.path().display()
        );
        // `pg_ctl` hands its own output files on to the server, so they must not be pipes.
        let started = server
            .tool("pg_ctl")
            .args(["start", "--wait", "--timeout=60"])
            .arg("--pgdata")
            .arg(&data)
            .arg("--log")
            .arg(server.folder.path().join("server.log"))
            .arg("--options")
            .arg(options)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()?;
        if !started.success() {
            bail!("PostgreSQL did not start; see {}", server.folder.path().join("server.log").display());
        }
        Ok(server)
    }

    /// URL of a database as the superuser.
    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@localhost/{database}?host={}", self.folder.path().display())
    }

    /// Makes a database and brings it to the newest schema, by `psql`.
    pub(crate) fn migrated(&self, database: &str) -> Result<String> {
        self.psql("postgres", "postgres", &["-c", &format!("create database {database}")])?;
        let roles = run::root().join("deploy/sql/roles.sql");
        self.psql("postgres", database, &["-f", &roles.to_string_lossy()])?;
        for file in migration_files()? {
            self.psql("occ_migrator", database, &["-1", "-f", &file.to_string_lossy()])
                .with_context(|| format!("{}", file.display()))?;
        }
        Ok(self.url("occ_app", database))
    }

    fn psql(&self, user: &str, database: &str, arguments: &[&str]) -> Result<()> {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", user, "-d", database, "-h"])
            .arg(self.folder.path())
            .args(arguments);
        run::output(&mut psql).map(drop)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL refuses to run as root; then its tools run as the account that Debian's package made.
    fn tool(&self, name: &str) -> Command {
        let program = self.binaries.join(name);
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--"]).arg(program);
            runuser
        } else {
            Command::new(program)
        };
        command.current_dir("/");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.data();
        let stopped =
            self.tool("pg_ctl").args(["stop", "--mode=immediate", "--wait", "--pgdata"]).arg(data).output();
        if let Err(error) = stopped {
            run::say(&format!("warning: PostgreSQL was not stopped: {error}"));
        }
    }
}

/// The installed server's programs; as root on Debian they are installed when absent.
pub(crate) fn binaries() -> Result<PathBuf> {
    if let Some(folder) = installed() {
        return Ok(folder);
    }
    if nix::unistd::geteuid().is_root() && run::on_path("apt-get").is_some() {
        run::run(run::command("apt-get", ["update", "-qq"]).env("DEBIAN_FRONTEND", "noninteractive"))?;
        run::run(
            run::command("apt-get", ["install", "-y", "-qq", PACKAGE])
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
        if let Some(folder) = installed() {
            return Ok(folder);
        }
    }
    bail!("PostgreSQL 15 or newer is missing (initdb, pg_ctl, psql). On Debian: apt-get install -y {PACKAGE}")
}

fn installed() -> Option<PathBuf> {
    let complete = |folder: &Path| {
        ["initdb", "pg_ctl", "psql", "postgres"].iter().all(|tool| folder.join(tool).is_file())
    };
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(version, folder)| *version >= 15 && complete(folder))
        .collect();
    versions.sort();
    versions.pop().map(|(_, folder)| folder).or_else(|| {
        let folder = run::on_path("postgres")?.parent()?.to_owned();
        complete(&folder).then_some(folder)
    })
}

fn give_to_postgres(folder: &Path) -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        let account =
            nix::unistd::User::from_name("postgres")?.context("the account `postgres` is missing")?;
        nix::unistd::chown(folder, Some(account.uid), Some(account.gid))?;
    }
    Ok(())
}

fn migration_files() -> Result<Vec<PathBuf>> {
    let folder = run::root().join("migrations");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("{}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    Ok(files)
}
