//! The process that `dev` keeps running: API, worker and echo model; how it is started and ended.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::echo;
use super::folder::{Folder, Running, start_ticks};
use super::say;
use crate::clock::Clock;
use crate::config::Environment;
use crate::drivers;
use crate::serve::{self, Ended};
use crate::telemetry;

/// Time for the host to end by itself.
const STOP_MAX: Duration = Duration::from_secs(60);
/// Time for agents to end by themselves.
const AGENTS_GRACE: Duration = Duration::from_secs(10);
/// Pause between two looks.
const STEP: Duration = Duration::from_millis(50);
/// Bytes of the log that are looked at for last words.
const LAST_WORDS_BYTES: usize = 4096;

/// How the host is started.
pub(super) struct Options {
    pub(super) program: PathBuf,
    pub(super) folder: Folder,
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) bundles: Vec<PathBuf>,
    pub(super) echo_port: u16,
    pub(super) worker: bool,
}

/// Starts the host unless this very binary runs already with the same parts; restarts it when the
/// binary or the parts changed. Agents are not touched. Says which of these it was.
pub(super) fn start(options: Options) -> Result<&'static str> {
    let binary = fingerprint(&options)?;
    let before = options.folder.running()?;
    if before.as_ref().is_some_and(|running| running.binary == binary && running.worker == options.worker) {
        return Ok("was running");
    }
    if let Some(running) = &before {
        end(running.pid, running.start_ticks)?;
    }
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(options.folder.host_log())?;
    let mut host = Command::new(&options.program);
    host.args(["dev", "host", "--echo-port", &options.echo_port.to_string()]);
    if !options.worker {
        host.arg("--no-worker");
    }
    for name in super::variables().keys().filter(|name| name.starts_with("OCC_")) {
        host.env_remove(name);
    }
    host.envs(options.environment.iter().map(|(name, value)| (*name, value)))
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .current_dir("/");
    let child = host.spawn().context("cannot start the host")?;
    let pid = i32::try_from(child.id()).context("the host's process id is out of range")?;
    let start_ticks = start_ticks(pid).context("the host has ended at once")?;
    options.folder.set_running(&Running { pid, start_ticks, binary, worker: options.worker })?;
    options.folder.set_bundles(&options.bundles)?;
    Ok(if before.is_some() { "restarted" } else { "started" })
}

/// Runs API, echo model and, unless left out, the worker, until a signal.
pub(super) async fn run(echo_port: u16, worker: bool) -> Result<ExitCode> {
    let mut environment = Environment::of_process();
    telemetry::start("occ-dev", environment.log_format(), "info", Clock::system());
    let settings = environment.serve()?;
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, echo_port)))
        .await
        .with_context(|| format!("the echo model cannot listen on port {echo_port}"))?;
    let started = serve::development(settings, worker, |shutdown| {
        let token = shutdown.token().clone();
        shutdown.spawn(async move {
            let served =
                axum::serve(listener, echo::router()).with_graceful_shutdown(token.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::warn!(cause = %error, "echo.ended");
            }
        });
    });
    match Box::pin(started).await {
        Ok(Ended::Cleanly) => Ok(ExitCode::SUCCESS),
        Ok(Ended::Cut) => Ok(ExitCode::from(1)),
        Err(error) => {
            tracing::error!(code = error.code(), cause = error.internal_text(), "startup-error");
            Ok(ExitCode::from(1))
        }
    }
}

/// Stops the host and waits for its end.
pub(super) async fn stop(folder: &Folder) -> Result<()> {
    if let Some(running) = folder.running()? {
        tokio::task::spawn_blocking(move || end(running.pid, running.start_ticks)).await??;
    }
    folder.clear_running()
}

/// Ends every agent of this folder.
pub(super) async fn stop_agents(folder: &Folder) -> Result<()> {
    if folder.processes().is_dir() {
        drivers::processes_end(&folder.processes(), AGENTS_GRACE).await?;
    }
    Ok(())
}

/// The end of the host's log, for a person who wonders why it is gone.
pub(super) fn last_words(folder: &Folder) -> String {
    let log = std::fs::read(folder.host_log()).unwrap_or_default();
    let tail = log.get(log.len().saturating_sub(LAST_WORDS_BYTES)..).unwrap_or_default();
    let text = String::from_utf8_lossy(tail).into_owned();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("its log is empty");
    format!("{last}\n  log: {}", folder.host_log().display())
}

/// SIGTERM, patience, SIGKILL; the process is compared by its start time each time.
fn end(pid: i32, ticks: u64) -> Result<()> {
    let lives = || start_ticks(pid) == Some(ticks);
    if lives() {
        kill(Pid::from_raw(pid), Signal::SIGTERM)?;
    }
    let begun = Instant::now();
    while lives() && begun.elapsed() < STOP_MAX {
        std::thread::sleep(STEP);
    }
    if lives() {
        say(&format!("host         process {pid} did not end within {} s and is killed", STOP_MAX.as_secs()));
        kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    }
    Ok(())
}

/// Changes when the program, a bundle or what the process is told changes.
fn fingerprint(options: &Options) -> Result<String> {
    let mut text = String::new();
    let mut files = vec![options.program.clone(), options.folder.installation()];
    files.extend(options.bundles.iter().map(|bundle| bundle.join("bundle.json")));
    for file in files {
        if let Ok(metadata) = std::fs::metadata(&file) {
            let modified = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            text.push_str(&format!("{} {} {};", file.display(), metadata.len(), modified.as_nanos()));
        }
    }
    for (name, value) in &options.environment {
        text.push_str(&format!("{name}={value};"));
    }
    Ok(text)
}
