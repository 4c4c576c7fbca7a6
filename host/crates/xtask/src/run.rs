//! Runs programs, finds folders, says what is going on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The one home of output: a line on stderr.
#[expect(clippy::print_stderr, reason = "the one home of this tool's output")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// The one reader of the environment.
#[expect(clippy::disallowed_methods, reason = "the one reader of this tool's environment")]
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Folder of the root manifest.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(3).unwrap_or(manifest).to_owned()
}

/// Where Cargo builds.
pub(crate) fn target() -> PathBuf {
    let folder = env("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    if folder.is_absolute() { folder } else { root().join(folder) }
}

/// A command in the root folder.
pub(crate) fn command<I, S>(program: &str, arguments: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    command
}

/// A Cargo command in the root folder, without what the running Cargo set for this tool.
pub(crate) fn cargo<I, S>(arguments: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut cargo = command("cargo", arguments);
    for name in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"]
    {
        cargo.env_remove(name);
    }
    cargo
}

/// Runs a command with its output shown; an error when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    say(&format!("+ {}", shown(command)));
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns what it printed on stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}: {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Is a program on the path?
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&env("PATH")?).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
