//! Rows about a whole installation: what the platform adds to OpenClaw's own start, how fast a
//! host is there, how much memory it takes.
//!
//! `deploy`: inside one deployment, from the 202 to the spawn of the process, and from the first
//! 200 that an outside poller sees on `/readyz` to the last committed step. What lies between is
//! OpenClaw's own. The agent is stopped before each, so that nobody waits for a predecessor to end.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use occ_tests::dev::Dev;
use occ_tests::environment;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::Options;
use crate::machine;
use crate::report::{Measure, RUNS, median, say};

/// Distance of two looks of the outside poller.
const LOOK: Duration = Duration::from_millis(5);
/// Longest wait for a process, and for OpenClaw in it.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a host is idle before its memory is read.
const IDLE: Duration = Duration::from_secs(10);
/// What the platform may add to a deployment.
const ADDED_MS_MAX: f64 = 1_500.0;
/// How long the whole command may take, PostgreSQL's start included.
const START_MS_MAX: f64 = 2_000.0;
/// Resident memory of an idle host with its plugins loaded.
const MEMORY_MIB_MAX: f64 = 80.0;
const MEMORY_MIB_GOAL: f64 = 55.0;
const START: &str = "dev --detach --no-demo on an initialised folder, to ready";
const DEPLOY: &str = "deployment less OpenClaw's own start: (spawn - 202) + (last step - ready)";

/// Measures the rows that were asked for.
pub(crate) async fn run(options: &Options, measures: &mut Vec<Measure>) -> Result<()> {
    let missing = environment::binaries().err().or_else(|| environment::plugins().err());
    if options.wants("deploy") {
        match &missing {
            Some(why) => measures.push(Measure::not_run("deploy", DEPLOY, why)),
            None if environment::openclaw().is_none() => {
                measures.push(Measure::not_run(
                    "deploy",
                    DEPLOY,
                    "OCC_TEST_OPENCLAW_DIR is missing: npm installs OpenClaw there",
                ));
            }
            None => Box::pin(deploy(options, measures)).await?,
        }
    }
    if options.wants("start") || options.wants("memory") {
        match missing {
            Some(why) => measures.push(Measure::not_run("start", START, why)),
            None => {
                say("rows start and memory: a host on an initialised folder");
                measures.extend(tokio::task::spawn_blocking(start).await??);
            }
        }
    }
    Ok(())
}

/// Milliseconds since 1970, by the clock that the product's processes read too.
fn now_ms() -> f64 {
    ms_of(OffsetDateTime::now_utc())
}

fn ms_of(time: OffsetDateTime) -> f64 {
    (time - OffsetDateTime::UNIX_EPOCH).as_seconds_f64() * 1_000.0
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer} in {value}"))
}

fn json(file: PathBuf) -> Result<Value> {
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// What one deployment took, in milliseconds.
struct Taken {
    to_spawn: f64,
    openclaw: f64,
    to_last_step: f64,
}

/// The demo installation and its agent, deployed again and again.
struct Demo {
    dev: Dev,
    client: reqwest::Client,
    origin: String,
    key: String,
    namespace: String,
    agent: String,
}

impl Demo {
    async fn new() -> Result<Self> {
        let dev = Dev::new()?;
        let dev = tokio::task::spawn_blocking(move || dev.up(&[]).map(|_| dev)).await??;
        let agents = dev.json(&["agent", "list"])?;
        let port = json(dev.state().join("ports.json"))?
            .pointer("/api")
            .and_then(Value::as_u64)
            .context("no port")?;
        let key = json(dev.state().join("admin-key.json"))?;
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build()?;
        Ok(Self {
            client,
            origin: format!("http://127.0.0.1:{port}"),
            key: text(&key, "/data/key")?.to_owned(),
            namespace: text(&agents, "/0/namespaceId")?.to_owned(),
            agent: text(&agents, "/0/id")?.to_owned(),
            dev,
        })
    }

    fn record(&self) -> Result<Value> {
        json(self.dev.state().join("processes").join(&self.agent).join("process.json"))
    }

    async fn deploy(&self) -> Result<Taken> {
        // A predecessor would first have to end, in OpenClaw's own time.
        let stopped = self.dev.occ(&["agent", "stop", self.agent.as_str(), "--wait"])?;
        ensure!(stopped.code == 0, "agent stop ended with {}: {}", stopped.code, stopped.stderr);
        let url = format!("{}/namespaces/{}/agents/{}/deploy", self.origin, self.namespace, self.agent);
        let response = self.client.post(url).header("x-api-key", &self.key).send().await?;
        let accepted = now_ms();
        ensure!(response.status().as_u16() == 202, "deploy answered {}", response.status());
        let answer: Value = response.json().await?;
        let revision = text(&answer, "/data/id")?.to_owned();
        let (spawned, port) = self.spawned(&revision).await?;
        let ready = self.ready(port).await?;
        let last_step = self.settled(&revision).await?;
        Ok(Taken { to_spawn: spawned - accepted, openclaw: ready - spawned, to_last_step: last_step - ready })
    }

    /// When the revision's process was started, and its port.
    async fn spawned(&self, revision: &str) -> Result<(f64, u64)> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let record = self.record()?;
            let of_revision = record.pointer("/revision").and_then(Value::as_str) == Some(revision);
            let process = record.pointer("/launch/process").is_some_and(|process| !process.is_null());
            if of_revision && process && record.pointer("/launch/ended") == Some(&Value::Bool(false)) {
                let at = record
                    .pointer("/launch/startedAtMs")
                    .and_then(Value::as_f64)
                    .context("no startedAtMs")?;
                let port = record.pointer("/ports/0/number").and_then(Value::as_u64).context("no port")?;
                return Ok((at, port));
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("no process of {revision} was started")
    }

    /// When `/readyz` first answered 200.
    async fn ready(&self, port: u64) -> Result<f64> {
        let url = format!("http://127.0.0.1:{port}/readyz");
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.client.get(&url).send().await.is_ok_and(|answer| answer.status().as_u16() == 200) {
                return Ok(now_ms());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("{url} never answered 200")
    }

    /// When the work of the revision was completed.
    async fn settled(&self, revision: &str) -> Result<f64> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let work = self.dev.json(&["work", "list"])?;
            let rows = work.as_array().context("no list of work")?;
            let row = rows.iter().find(|row| {
                row.pointer("/revisionId").and_then(Value::as_str) == Some(revision)
                    && row.pointer("/kind").and_then(Value::as_str) == Some("revision.reconcile")
            });
            if let Some(completed) = row.and_then(|row| row.pointer("/completedAt")).and_then(Value::as_str) {
                let code = row.and_then(|row| row.pointer("/code")).and_then(Value::as_str);
                ensure!(code == Some("REVISION_ACTIVATED"), "the deployment ended with {code:?}");
                return Ok(ms_of(OffsetDateTime::parse(completed, &Rfc3339)?));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        bail!("the deployment of {revision} did not settle")
    }
}

async fn deploy(options: &Options, measures: &mut Vec<Measure>) -> Result<()> {
    say("row deploy: the demo agent, deployed again and again");
    let demo = Demo::new().await?;
    let mut all = Vec::new();
    for _ in 0..options.deployments.max(1) {
        all.push(demo.deploy().await?);
    }
    let of = |part: fn(&Taken) -> f64| all.iter().map(part).collect::<Vec<f64>>();
    let added = of(|taken| taken.to_spawn + taken.to_last_step);
    let middle = median(&added).context("no deployment")?;
    measures.push(
        Measure::absolute("deploy", DEPLOY, "ms", middle, ADDED_MS_MAX).goal(ADDED_MS_MAX / 2.0).runs(added),
    );
    measures.push(Measure::shown("deploy", "of it: 202 to spawn", "ms", of(|taken| taken.to_spawn)));
    measures.push(Measure::shown(
        "deploy",
        "of it: ready to last step",
        "ms",
        of(|taken| taken.to_last_step),
    ));
    measures.push(Measure::shown(
        "deploy",
        "beside it: OpenClaw's own, spawn to ready",
        "ms",
        of(|taken| taken.openclaw),
    ));
    Ok(())
}

fn start() -> Result<Vec<Measure>> {
    let dev = Dev::new()?;
    dev.up(&["--no-demo"])?;
    let mut ready = Vec::new();
    for _ in 0..RUNS {
        ensure!(dev.host(&["--down"]).output()?.status.success(), "dev --down failed");
        let begun = Instant::now();
        dev.up(&["--no-demo"])?;
        ready.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    std::thread::sleep(IDLE);
    let pid =
        json(dev.state().join("running.json"))?.pointer("/pid").and_then(Value::as_i64).context("no pid")?;
    let resident = machine::field(&format!("/proc/{pid}/status"), "VmRSS").context("the host has ended")?;
    let resident: f64 = resident.split(' ').next().context("no number")?.parse()?;
    let middle = median(&ready).context("no start")?;
    Ok(vec![
        Measure::absolute("start", START, "ms", middle, START_MS_MAX).goal(START_MS_MAX / 2.0).runs(ready),
        Measure::absolute(
            "memory",
            "resident memory of that host, idle for 10 s",
            "MiB",
            resident / 1_024.0,
            MEMORY_MIB_MAX,
        )
        .goal(MEMORY_MIB_GOAL),
    ])
}
