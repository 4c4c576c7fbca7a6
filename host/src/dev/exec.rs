//! `dev exec`: runs a command with the environment that an agent's own process has.
//!
//! The values come from the running process itself (`/proc/PID/environ`), which only its own
//! account can read: nothing is decrypted again, and what is not `OPENCLAW_*` or `HOME` (the
//! model's key above all) stays there.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::demo::Demo;
use super::folder::{Folder, start_ticks};

/// Names of variables that are never handed on from the caller either.
const WITHHELD: [&str; 2] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

/// Replaces this process by the command.
pub(super) async fn exec(folder: &Folder, agent: &str, command: &[String], path: &str) -> Result<ExitCode> {
    let agent = if agent.starts_with("agt_") { agent.to_owned() } else { by_name(folder, agent).await? };
    let pid = process_of(folder, &agent)?;
    let environ = std::fs::read(format!("/proc/{pid}/environ"))
        .with_context(|| format!("cannot read the environment of process {pid}"))?;
    let program = command.first().context("no command was given")?;
    let mut run = Command::new(program);
    run.args(command.get(1..).unwrap_or_default());
    for name in super::variables().keys().filter(|name| name.starts_with("OCC_")) {
        run.env_remove(name);
    }
    for name in WITHHELD {
        run.env_remove(name);
    }
    for (name, value) in pairs(&environ) {
        run.env(std::ffi::OsStr::from_bytes(name), std::ffi::OsStr::from_bytes(value));
    }
    // `node` on the path may be older than OpenClaw needs; the agent's own one comes first.
    if let Some(bin) = node_of(pid) {
        run.env("PATH", format!("{}:{path}", bin.display()));
    }
    Err(run.exec()).with_context(|| format!("cannot start {program}"))
}

/// The agent's variables that a command may have.
fn pairs(environ: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    environ.split(|byte| *byte == 0).filter_map(|entry| {
        let at = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
        (name.starts_with(b"OPENCLAW_") || name == b"HOME").then_some((name, value))
    })
}

/// Folder of the program that a process runs.
fn node_of(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()?.parent().map(Path::to_owned)
}

/// The agent's running process.
fn process_of(folder: &Folder, agent: &str) -> Result<i32> {
    let file = folder.processes().join(agent).join("process.json");
    let Ok(text) = std::fs::read(&file) else {
        bail!(
            "{agent} has no process here: occ agent list shows the agents, occ agent deploy {agent} --wait starts one"
        );
    };
    let record: Value =
        serde_json::from_slice(&text).with_context(|| format!("{} cannot be read", file.display()))?;
    let process = record.pointer("/launch/process");
    let number = |name: &str| process.and_then(|process| process.get(name)).and_then(Value::as_u64);
    let pid = number("pid").and_then(|pid| i32::try_from(pid).ok());
    match (pid, number("startTicks")) {
        (Some(pid), Some(ticks)) if start_ticks(pid) == Some(ticks) => Ok(pid),
        _ => bail!("{agent} does not run: occ agent runtime {agent} says why"),
    }
}

async fn by_name(folder: &Folder, name: &str) -> Result<String> {
    let origin = format!("http://127.0.0.1:{}", folder.ports()?.api);
    Demo::connect(&origin, &folder.admin_key()).await?.agent_named(name).await
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn only_the_runtimes_own_variables_are_handed_on() {
        let environ = b"OPENAI_API_KEY=canary\0HOME=/h\0OPENCLAW_GATEWAY_PASSWORD=p=q\0PATH=/bin\0";
        let found: Vec<(&[u8], &[u8])> = pairs(environ).collect();
        assert_eq!(found, [(&b"HOME"[..], &b"/h"[..]), (&b"OPENCLAW_GATEWAY_PASSWORD"[..], &b"p=q"[..])]);
    }
}
