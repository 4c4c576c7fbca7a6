//! The private PostgreSQL of a development installation: socket only, no TCP.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::folder::Folder;

/// Oldest server that the schema runs on.
const VERSION_MIN: u32 = 15;
/// Roles as an administrator would make them.
const ROLES: &str = include_str!("../../../deploy/sql/roles.sql");

/// The server's programs and its folder.
#[derive(Debug)]
pub(super) struct Postgres {
    binaries: PathBuf,
    folder: PathBuf,
    log: PathBuf,
}

impl Postgres {
    /// Finds the installed programs.
    ///
    /// # Errors
    /// When they are missing: names the command that installs them.
    pub(super) fn find(folder: &Folder, path: &str) -> Result<Self> {
        let complete =
            |bin: &Path| ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|tool| bin.join(tool).is_file());
        let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .filter(|(version, bin)| *version >= VERSION_MIN && complete(bin))
            .collect();
        versions.sort();
        let on_path = || std::env::split_paths(path).find(|bin| complete(bin));
        let Some(binaries) = versions.pop().map(|(_, bin)| bin).or_else(on_path) else {
            bail!(
                "PostgreSQL {VERSION_MIN} or newer is missing (initdb, pg_ctl, postgres, psql). \
                 On Debian, as root: apt-get install -y postgresql"
            );
        };
        Ok(Self { binaries, folder: folder.postgres(), log: folder.logs().join("postgres.log") })
    }

    /// Makes the cluster at first, then starts the server unless it runs.
    pub(super) fn start(&self) -> Result<()> {
        if self.runs()? {
            return Ok(());
        }
        if !self.data().join("PG_VERSION").is_file() {
            self.initialise()?;
        }
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c max_connections=200",
            self.folder.display()
        );
        // The server inherits the output of `pg_ctl`: a pipe would keep the caller waiting for its end.
        let status = self
            .tool("pg_ctl")
            .args(["start", "--wait", "--timeout=60", "--silent"])
            .arg("--pgdata")
            .arg(self.data())
            .arg("--log")
            .arg(self.folder.join("server.log"))
            .arg("--options")
            .arg(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("PostgreSQL did not start: see {}", self.folder.join("server.log").display());
        }
        self.prepare()
    }

    /// Stops the server, if it runs.
    pub(super) fn stop(&self) -> Result<()> {
        if self.data().is_dir() && self.runs()? {
            self.run(
                self.tool("pg_ctl")
                    .args(["stop", "--mode=fast", "--wait", "--silent", "--pgdata"])
                    .arg(self.data()),
            )?;
        }
        Ok(())
    }

    /// URL of the product's database for one of its two roles.
    pub(super) fn url(&self, role: &str) -> String {
        format!("postgres://{role}@localhost/occ?host={}", self.folder.display())
    }

    fn initialise(&self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        self.give_away(&self.folder)?;
        self.run(
            self.tool("initdb")
                .args([
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--username=postgres",
                    "--no-sync",
                    "--pgdata",
                ])
                .arg(self.data()),
        )
        .with_context(|| format!("cannot make a database cluster; log: {}", self.log.display()))
    }

    /// The database and the two roles; repeatable.
    fn prepare(&self) -> Result<()> {
        let exists = self.psql("postgres", "select 1 from pg_database where datname = 'occ'")?;
        if exists.trim().is_empty() {
            self.psql("postgres", "create database occ encoding 'UTF8' template template0")?;
            self.psql("occ", ROLES)?;
        }
        Ok(())
    }

    fn psql(&self, database: &str, statements: &str) -> Result<String> {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-h"])
            .arg(&self.folder)
            .args([OsStr::new("-c"), OsStr::new(statements)]);
        let output = psql.output().context("cannot start psql")?;
        if !output.status.success() {
            bail!("psql refused: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn runs(&self) -> Result<bool> {
        if !self.data().join("postmaster.pid").is_file() {
            return Ok(false);
        }
        let status = self
            .tool("pg_ctl")
            .args(["status", "--pgdata"])
            .arg(self.data())
            .stdout(Stdio::null())
            .status()?;
        Ok(status.success())
    }

    fn run(&self, command: &mut Command) -> Result<()> {
        let output = command.stdin(Stdio::null()).output().context("cannot start a PostgreSQL program")?;
        fs::write(&self.log, [output.stdout.as_slice(), output.stderr.as_slice()].concat())?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// PostgreSQL refuses to run as root; then it runs as the account that its package made.
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

    fn give_away(&self, folder: &Path) -> Result<()> {
        if nix::unistd::geteuid().is_root() {
            let account =
                nix::unistd::User::from_name("postgres")?.context("the account `postgres` is missing")?;
            nix::unistd::chown(folder, Some(account.uid), Some(account.gid))?;
        }
        Ok(())
    }
}
