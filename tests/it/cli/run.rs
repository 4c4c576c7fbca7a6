//! Runs `occ` in a home of its own, without the variables of the test process.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use occ_tests::environment;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::KEY;

/// A person with a home.
pub(super) struct Person {
    home: TempDir,
}

/// What was printed, and the exit code.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    pub(super) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless the exit code is this one.
    pub(super) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl Person {
    /// With a key file and nothing else.
    pub(super) fn new() -> Self {
        let person = Self { home: tempfile::tempdir().unwrap() };
        person.write("key.json", &json!({"data": {"key": KEY}, "meta": {}}).to_string());
        person
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `occ` with these words and no settings.
    pub(super) fn command(&self, line: &str) -> Command {
        self.prepared(Command::new(program()), line)
    }

    /// `occ` started by a shell that first runs `before`.
    pub(super) fn command_after(&self, before: &str, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(program());
        self.prepared(shell, line)
    }

    fn prepared(&self, mut command: Command, line: &str) -> Command {
        command.args(line.split_whitespace());
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.home.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a line as it is.
    pub(super) fn bare(&self, line: &str) -> Ran {
        Ran::of(&self.command(line).output().unwrap())
    }

    /// Runs a line with URL and key file.
    pub(super) fn at(&self, url: &str, line: &str) -> Ran {
        self.bare(&format!("{line} --url {url} --service-key-file {}", self.path("key.json").display()))
    }

    /// Runs a line with text on standard input.
    pub(super) fn fed(&self, url: &str, line: &str, input: &str) -> Ran {
        let line = format!("{line} --url {url} --service-key-file {}", self.path("key.json").display());
        let mut command = self.command(&line);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }
}

fn program() -> PathBuf {
    let program = environment::binaries().unwrap().join("occ");
    assert!(Path::new(&program).is_file(), "{} is not built", program.display());
    program
}
