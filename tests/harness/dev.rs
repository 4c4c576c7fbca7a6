//! A whole development installation in a folder of its own, driven as a person would: by
//! `occ-host dev` and `occ`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::environment;

/// A running installation; ended and removed when dropped.
pub struct Dev {
    binaries: PathBuf,
    plugins: PathBuf,
    openclaw: Option<PathBuf>,
    home: TempDir,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Dev {
    /// Prepares a folder; nothing runs yet.
    ///
    /// # Errors
    /// When the variables of the test command are missing.
    pub fn new() -> Result<Self> {
        Ok(Self {
            binaries: environment::binaries()?,
            plugins: environment::plugins()?,
            openclaw: environment::openclaw(),
            // Short, because a UNIX socket lies below it.
            home: tempfile::Builder::new().prefix("occ-dev-").tempdir_in("/tmp")?,
        })
    }

    /// `occ-host dev …` with the folder of this installation.
    #[must_use]
    pub fn host(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("occ-host");
        command
            .arg("--plugins")
            .arg(&self.plugins)
            .arg("dev")
            .args(arguments)
            .arg("--state")
            .arg(self.state());
        command
    }

    /// Starts everything and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start.
    pub fn up(&self, options: &[&str]) -> Result<Ran> {
        let mut arguments = vec!["--detach"];
        arguments.extend(options);
        let openclaw = self.openclaw.as_ref().map(|folder| folder.display().to_string());
        if let Some(folder) = &openclaw {
            arguments.extend(["--openclaw", folder.as_str()]);
        }
        // Each installation draws the first free ports; two that start at once would draw the same.
        static STARTING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let ran = ran(self.host(&arguments).output()?);
        if ran.code != 0 {
            bail!("dev --detach ended with {}: {}", ran.code, ran.stderr);
        }
        Ok(ran)
    }

    /// `occ …` with the context of this installation.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn occ<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<Ran> {
        Ok(ran(self.command("occ").args(arguments).output()?))
    }

    /// `occ … -o json`, which must succeed.
    ///
    /// # Errors
    /// When it fails or prints no JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        let ran = self.occ(&all)?;
        if ran.code != 0 {
            bail!("occ {} ended with {}: {}", arguments.join(" "), ran.code, ran.stderr);
        }
        serde_json::from_str(&ran.stdout)
            .with_context(|| format!("occ {}: {}", arguments.join(" "), ran.stdout))
    }

    /// State folder of the installation.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.home.path().join("s")
    }

    /// A folder for the files of a test.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file into [`Dev::scratch`] and returns its path as text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&self, name: &str, contents: &str) -> Result<String> {
        let path = self.scratch().join(name);
        std::fs::write(&path, contents)?;
        Ok(path.display().to_string())
    }

    /// A product binary with the private home of this installation.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .env_remove("OPENAI_API_KEY")
            .current_dir(self.home.path());
        command
    }

    /// The OpenClaw that agents run.
    #[must_use]
    pub fn openclaw_entry(&self) -> Option<PathBuf> {
        self.openclaw.as_ref().map(|folder| folder.join("node_modules/openclaw/openclaw.mjs"))
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next line of the test's output tells.
        drop(self.host(&["--reset"]).output());
    }
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
