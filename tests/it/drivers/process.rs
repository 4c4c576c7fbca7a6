//! The `process` capability with real processes.

#![expect(clippy::disallowed_methods, reason = "a host of a test is a task of that test")]

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use occ_driver::call::{CallContext, SecretRef};
use occ_driver::capability::process::{
    ChangeKind, EnvValue, EnvVar, File, Port, ProcessError, ProcessExit, ProcessHost, ProcessMode,
    ProcessRefusal, ProcessSpec, ProcessStatus, ScratchMount,
};
use occ_tests::process::{FakeAuthority, call, config, double_spec, grant};
use occ_tests::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod adoption;

const DOUBLE: &str = env!("CARGO_BIN_EXE_occ-double");
const TENANT: &str = "tenant-a";

/// One supervising host on a folder of its own; the last on it ends every process.
struct Rig {
    folder: PathBuf,
    authority: Arc<FakeAuthority>,
    host: ProcessHost,
    shutdown: CancellationToken,
    running: Option<JoinHandle<()>>,
    root: Arc<tempfile::TempDir>,
}

impl Rig {
    async fn new() -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        Self::on(root, Arc::new(FakeAuthority::default())).await
    }

    async fn on(root: Arc<tempfile::TempDir>, authority: Arc<FakeAuthority>) -> Self {
        let folder = root.path().join("processes");
        let config = config(&folder, ProcessMode::Supervise);
        let host = ProcessHost::open(config, Arc::clone(&authority) as _).await.unwrap();
        let shutdown = CancellationToken::new();
        let running = {
            let (host, shutdown) = (host.clone(), shutdown.clone());
            tokio::task::spawn(async move { host.run(shutdown).await })
        };
        Self { folder, authority, host, shutdown, running: Some(running), root }
    }

    /// This host ends, the next opens the same folder; `between` is told the folder.
    async fn next_host(mut self, between: impl FnOnce(&Path)) -> Self {
        self.stop_host().await;
        between(&self.folder);
        Self::on(Arc::clone(&self.root), Arc::clone(&self.authority)).await
    }

    async fn stop_host(&mut self) {
        self.shutdown.cancel();
        if let Some(running) = self.running.take() {
            running.await.unwrap();
        }
    }

    async fn start(&self, spec: &ProcessSpec) -> Result<ProcessStatus, ProcessError> {
        self.start_as(&call(TENANT, 1), spec).await
    }

    async fn start_as(&self, cx: &CallContext, spec: &ProcessSpec) -> Result<ProcessStatus, ProcessError> {
        self.host.start(cx, &grant(&spec.command), spec.clone()).await
    }

    async fn status(&self, id: &str) -> ProcessStatus {
        let all = self.host.list(&call(TENANT, 1), &[]).await.unwrap();
        all.into_iter().find(|status| status.id == id).unwrap()
    }

    /// Waits until the status is as `wanted` says.
    async fn until(&self, id: &str, what: &str, wanted: impl Fn(&ProcessStatus) -> bool) -> ProcessStatus {
        eventually(what, || async {
            let status = self.status(id).await;
            if wanted(&status) { Ok(status) } else { Err(format!("{status:?}")) }
        })
        .await
    }

    async fn until_ready(&self, id: &str) -> ProcessStatus {
        self.until(id, "ready", |status| status.ready).await
    }

    /// Starts and waits for ready.
    async fn ready(&self, spec: &ProcessSpec) -> ProcessStatus {
        self.start(spec).await.unwrap();
        self.until_ready(&spec.id).await
    }

    fn record(&self, id: &str) -> serde_json::Value {
        read_record(&self.folder, id)
    }

    fn pid(&self, id: &str) -> i32 {
        let pid = self.record(id)["launch"]["process"]["pid"].as_i64().unwrap();
        i32::try_from(pid).unwrap()
    }

    async fn stop_and_remove(&self, id: &str) {
        self.host.stop(&call(TENANT, 1), id).await.unwrap();
        self.until(id, "stopped", |status| !status.running && !status.stopping).await;
        self.host.remove_state(&call(TENANT, 1), id).await.unwrap();
    }
}

impl Drop for Rig {
    /// A failed test leaves no process behind either.
    fn drop(&mut self) {
        if Arc::strong_count(&self.root) > 1 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path().join("process.json")) else {
                continue;
            };
            let Ok(record) = serde_json::from_str::<serde_json::Value>(&text) else {
                continue;
            };
            let launch = &record["launch"];
            if let (Some(pid), Some(false)) = (launch["process"]["pid"].as_i64(), launch["ended"].as_bool()) {
                let pid = i32::try_from(pid).unwrap_or(0);
                if pid > 1 && is_alive(pid) {
                    // It may just have ended.
                    let _ended = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
        }
    }
}

fn read_record(folder: &Path, id: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join(id).join("process.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn change_record(folder: &Path, id: &str, change: impl FnOnce(&mut serde_json::Value)) {
    let mut record = read_record(folder, id);
    change(&mut record);
    std::fs::write(folder.join(id).join("process.json"), record.to_string()).unwrap();
}

/// Lives and is no zombie.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn double(id: &str, variables: &[(&str, &str)]) -> ProcessSpec {
    double_spec(DOUBLE, id, variables)
}

fn port(status: &ProcessStatus) -> u16 {
    status.ports[0].number
}

/// The body of a GET on the double, or nothing when it hangs up.
async fn get(port: u16, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    drop(stream.read_to_string(&mut answer).await);
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

fn refused(refusal: ProcessRefusal) -> ProcessError {
    ProcessError::Refused(refusal)
}

#[tokio::test]
async fn a_process_becomes_ready_soon_after_it_answers() {
    let rig = Rig::new().await;
    let mut changes = rig.host.changes();
    let begun = Instant::now();
    let status = rig.ready(&double("one", &[("READY_AFTER_MS", "400")])).await;
    assert!(begun.elapsed() >= Duration::from_millis(400));
    assert_eq!((status.restarts, status.held, status.last_exit), (0, false, None));
    let change = changes.recv().await.unwrap();
    assert_eq!((change.kind, change.id.as_str(), change.tenant.as_str()), (ChangeKind::Ready, "one", TENANT));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_second_start_of_the_same_spec_is_the_same_process() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    let first = rig.ready(&spec).await;
    let second = rig.start(&spec).await.unwrap();
    assert_eq!((&second.start_id, second.restarts), (&first.start_id, 0));
    let other = double("one", &[("MORE", "1")]);
    assert_eq!(rig.start(&other).await.unwrap_err(), ProcessError::InUse);
    assert_eq!(rig.host.remove_state(&call(TENANT, 1), "one").await.unwrap_err(), ProcessError::InUse);
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn the_environment_is_the_spec_and_nothing_else() {
    let rig = Rig::new().await;
    rig.authority.set_secret("sec_1", "model-key");
    rig.authority.set_secret("gateway-password", "pass-word");
    let mut spec = double("one", &[("PLAIN", "text")]);
    spec.files.push(File { path: "/etc/app/app.json".to_owned(), contents: "{\"a\":1}".to_owned() });
    spec.scratch.push(ScratchMount { name: "tmp".to_owned(), path: "/tmp".to_owned(), size_mib: 1 });
    let values = [
        ("FILE", EnvValue::FilePath("/etc/app/app.json".to_owned())),
        ("STATE", EnvValue::StatePath("home".to_owned())),
        ("SCRATCH", EnvValue::ScratchPath("tmp".to_owned())),
        ("KEY", EnvValue::Secret("sec_1".to_owned())),
        ("PASSWORD", EnvValue::Generated("gateway-password".to_owned())),
    ];
    spec.env.extend(values.into_iter().map(|(name, value)| EnvVar { name: name.to_owned(), value }));
    let status = rig.ready(&spec).await;
    let port = port(&status);
    assert_eq!(get(port, "/env/PLAIN").await, "text");
    assert_eq!(get(port, "/env/KEY").await, "model-key");
    assert_eq!(get(port, "/env/PASSWORD").await, "pass-word");
    assert_eq!(get(port, "/file/FILE").await, "{\"a\":1}");
    assert_eq!(get(port, "/env/STATE").await, rig.folder.join("one/state/home").display().to_string());
    assert_eq!(get(port, "/env/SCRATCH").await, rig.folder.join("one/scratch/tmp").display().to_string());
    let environ = std::fs::read_to_string(format!("/proc/{}/environ", rig.pid("one"))).unwrap();
    let names: BTreeSet<&str> =
        environ.split_terminator('\0').filter_map(|it| it.split('=').next()).collect();
    let wanted =
        ["FILE", "KEY", "OCC_PROCESS_LAUNCH", "PASSWORD", "PATH", "PLAIN", "PORT", "SCRATCH", "STATE"];
    assert_eq!(names, BTreeSet::from(wanted));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn secret_values_are_in_no_file_and_are_asked_for_again() {
    let rig = Rig::new().await;
    rig.authority.set_secret("sec_1", "first-value");
    let mut spec = double("one", &[]);
    spec.env.push(EnvVar { name: "KEY".to_owned(), value: EnvValue::Secret("sec_1".to_owned()) });
    let status = rig.ready(&spec).await;
    assert_eq!(get(port(&status), "/env/KEY").await, "first-value");
    rig.authority.set_secret("sec_1", "second-value");
    get(port(&status), "/exit/1").await;
    let status = rig.until("one", "restarted", |status| status.ready && status.restarts == 1).await;
    assert_eq!(get(port(&status), "/env/KEY").await, "second-value");
    assert_eq!(rig.authority.asked(), vec![SecretRef::Secret("sec_1".to_owned()); 2]);
    for name in ["process.json", "output.log"] {
        let text = std::fs::read_to_string(rig.folder.join("one").join(name)).unwrap();
        assert!(!text.contains("first-value") && !text.contains("second-value"), "{name}");
    }
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_missing_secret_is_named_by_its_variable_and_starts_nothing() {
    let rig = Rig::new().await;
    let mut spec = double("one", &[]);
    spec.env.push(EnvVar { name: "KEY".to_owned(), value: EnvValue::Secret("sec_gone".to_owned()) });
    let error = rig.start(&spec).await.unwrap_err();
    assert_eq!(error, ProcessError::SecretUnavailable("KEY".to_owned()));
    assert!(!rig.status("one").await.running);
    rig.authority.set_secret("sec_gone", "value");
    rig.ready(&spec).await;
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_killed_process_is_started_again_on_its_port() {
    let rig = Rig::new().await;
    let first = rig.ready(&double("one", &[])).await;
    kill(Pid::from_raw(rig.pid("one")), Signal::SIGKILL).unwrap();
    let second = rig.until("one", "restarted", |status| status.ready && status.restarts == 1).await;
    assert_ne!(second.start_id, first.start_id);
    assert_eq!(port(&second), port(&first));
    let exit = second.last_exit.unwrap();
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn an_invalid_configuration_is_held_until_a_stop_or_another_spec() {
    let rig = Rig::new().await;
    let mut changes = rig.host.changes();
    let spec = double("one", &[("EXIT_AFTER_MS", "10"), ("EXIT_CODE", "78"), ("NEVER_READY", "1")]);
    rig.start(&spec).await.unwrap();
    let held = rig.until("one", "held", |status| status.held).await;
    assert_eq!((held.running, held.restarts, held.exits_since_ready), (false, 0, 1));
    assert_eq!(held.last_exit.unwrap().code, Some(78));
    assert_eq!(changes.recv().await.unwrap().kind, ChangeKind::Held);
    let again = rig.start(&spec).await.unwrap();
    assert_eq!((again.held, &again.start_id), (true, &held.start_id));
    let other = rig.ready(&double("one", &[])).await;
    assert_eq!((other.held, other.exits_since_ready), (false, 0));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn three_exits_without_a_ready_are_held() {
    let rig = Rig::new().await;
    let spec = double("one", &[("EXIT_AFTER_MS", "10"), ("EXIT_CODE", "3"), ("NEVER_READY", "1")]);
    rig.start(&spec).await.unwrap();
    let held = rig.until("one", "held", |status| status.held).await;
    assert_eq!((held.restarts, held.exits_since_ready), (2, 3));
    assert_eq!(held.last_exit.unwrap().code, Some(3));
    rig.host.stop(&call(TENANT, 1), "one").await.unwrap();
    let stopped = rig.status("one").await;
    assert_eq!((stopped.held, stopped.stopped, stopped.exits_since_ready), (false, true, 0));
    rig.host.remove_state(&call(TENANT, 1), "one").await.unwrap();
}

#[tokio::test]
async fn a_process_that_never_answers_stays_unready() {
    let rig = Rig::new().await;
    rig.start(&double("one", &[("NEVER_READY", "1")])).await.unwrap();
    let pid = rig.pid("one");
    eventually("it listens", || async {
        let status = rig.status("one").await;
        let listens = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port(&status))).await.is_ok();
        if listens { Ok(()) } else { Err("refused".to_owned()) }
    })
    .await;
    let status = rig.status("one").await;
    assert_eq!((status.running, status.ready, status.ready_once, status.held), (true, false, false, false));
    assert!(is_alive(pid));
    rig.stop_and_remove("one").await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_stolen_port_is_drawn_again_and_a_fixed_one_is_refused() {
    let rig = Rig::new().await;
    let mut spec = double("one", &[]);
    let first = rig.ready(&spec).await;
    rig.host.stop(&call(TENANT, 1), "one").await.unwrap();
    rig.until("one", "stopped", |status| !status.running && !status.stopping).await;
    let thief = TcpListener::bind((Ipv4Addr::LOCALHOST, port(&first))).unwrap();
    let second = rig.ready(&spec).await;
    assert_ne!(port(&second), port(&first));
    rig.stop_and_remove("one").await;
    spec.ports = vec![Port { name: "http".to_owned(), number: port(&first) }];
    assert_eq!(rig.start(&spec).await.unwrap_err(), ProcessError::PortTaken(port(&first)));
    drop(thief);
    let third = rig.ready(&spec).await;
    assert_eq!(port(&third), port(&first));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_flood_is_bounded_on_disk_and_in_what_is_read() {
    let rig = Rig::new().await;
    rig.ready(&double("one", &[("FLOOD_MIB", "80")])).await;
    let size = |name: &str| std::fs::metadata(rig.folder.join("one").join(name)).map_or(0, |meta| meta.len());
    eventually("cut", || async {
        if size("output.log") < 64 << 20 { Ok(()) } else { Err(size("output.log").to_string()) }
    })
    .await;
    assert!(size("output.previous.log") <= 16 << 20);
    let cx = call(TENANT, 1);
    let lines = rig.host.logs(&cx, "one", true, 1_000_000, None).await.unwrap();
    assert!((1..=1024).contains(&lines.len()), "{}", lines.len());
    assert_eq!(lines[0].text, "x".repeat(1023));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn a_stop_waits_for_the_grace_and_then_kills_the_whole_family() {
    let rig = Rig::new().await;
    let pids = rig.folder.join("pids").display().to_string();
    let variables = [("IGNORE_TERM", "1"), ("GRANDCHILD", "1"), ("PIDS_FILE", pids.as_str())];
    let mut spec = double("one", &variables);
    spec.grace_seconds = 1;
    rig.ready(&spec).await;
    let family = eventually("both have begun", || async {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        let pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if pids.len() == 2 { Ok(pids) } else { Err(text) }
    })
    .await;
    let begun = Instant::now();
    rig.host.stop(&call(TENANT, 1), "one").await.unwrap();
    let stopping = rig.status("one").await;
    assert_eq!((stopping.stopping, stopping.ready, stopping.stopped), (true, false, true));
    assert_eq!(rig.start(&spec).await.unwrap_err(), ProcessError::InUse);
    let stopped = rig.until("one", "stopped", |status| !status.stopping).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!((stopped.running, stopped.last_exit.unwrap().signal), (false, Some(9)));
    assert_eq!(family.iter().filter(|pid| is_alive(**pid)).count(), 0);
    rig.host.remove_state(&call(TENANT, 1), "one").await.unwrap();
}

#[tokio::test]
async fn a_stop_that_a_host_began_is_ended_by_the_next() {
    let rig = Rig::new().await;
    let mut spec = double("one", &[("IGNORE_TERM", "1")]);
    spec.grace_seconds = 1;
    rig.ready(&spec).await;
    let pid = rig.pid("one");
    rig.host.stop(&call(TENANT, 1), "one").await.unwrap();
    let rig = rig.next_host(|_| assert!(is_alive(pid))).await;
    let stopped = rig.until("one", "stopped", |status| !status.running && !status.stopping).await;
    assert!(stopped.stopped && !is_alive(pid));
    rig.host.remove_state(&call(TENANT, 1), "one").await.unwrap();
}

#[tokio::test]
async fn helpers_of_a_crashed_process_are_gone_before_the_next() {
    let rig = Rig::new().await;
    let pids = rig.folder.join("pids").display().to_string();
    let first = rig.ready(&double("one", &[("GRANDCHILD", "1"), ("PIDS_FILE", pids.as_str())])).await;
    let helper = eventually("the helper has begun", || async {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).find(|pid| *pid != rig.pid("one")).ok_or(text)
    })
    .await;
    get(port(&first), "/exit/1").await;
    rig.until("one", "restarted", |status| status.ready && status.restarts == 1).await;
    assert!(!is_alive(helper));
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn an_older_claim_and_a_lost_lease_change_nothing() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    rig.start_as(&call(TENANT, 5), &spec).await.unwrap();
    rig.until_ready("one").await;
    let fenced = refused(ProcessRefusal::Fenced);
    assert_eq!(rig.host.stop(&call(TENANT, 4), "one").await.unwrap_err(), fenced);
    assert_eq!(rig.start_as(&call(TENANT, 4), &spec).await.unwrap_err(), fenced);
    assert_eq!(rig.host.remove_state(&call(TENANT, 4), "one").await.unwrap_err(), fenced);
    rig.authority.lose_lease("work-6");
    let lost = refused(ProcessRefusal::LeaseLost);
    assert_eq!(rig.host.stop(&call(TENANT, 6), "one").await.unwrap_err(), lost);
    let other = double("two", &[]);
    assert_eq!(rig.start_as(&call(TENANT, 6), &other).await.unwrap_err(), lost);
    assert!(!rig.folder.join("two").exists());
    assert_eq!(rig.record("one")["epoch"], 5);
    // A newer claim that finds all in order leaves its fence all the same.
    rig.start_as(&call(TENANT, 7), &spec).await.unwrap();
    assert_eq!(rig.record("one")["epoch"], 7);
    rig.host.stop(&call(TENANT, 7), "one").await.unwrap();
    rig.until("one", "stopped", |status| !status.running && !status.stopping).await;
    rig.host.remove_state(&call(TENANT, 7), "one").await.unwrap();
}

#[tokio::test]
async fn another_tenant_sees_nothing_and_is_reported() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    rig.ready(&spec).await;
    let stranger = call("tenant-b", 9);
    let outside = refused(ProcessRefusal::OutsideTenant);
    assert_eq!(rig.host.list(&stranger, &[]).await.unwrap(), []);
    assert_eq!(rig.host.logs(&stranger, "one", false, 10, None).await.unwrap_err(), outside);
    assert_eq!(rig.host.stop(&stranger, "one").await.unwrap_err(), outside);
    assert_eq!(rig.host.remove_state(&stranger, "one").await.unwrap_err(), outside);
    assert_eq!(rig.start_as(&stranger, &spec).await.unwrap_err(), outside);
    let events = rig.authority.events();
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event.code == "OUTSIDE_TENANT" && event.asked == "one"));
    assert!(rig.status("one").await.ready);
    rig.stop_and_remove("one").await;
}

#[tokio::test]
async fn only_granted_commands_start() {
    let rig = Rig::new().await;
    let spec = double("one", &[]);
    let cx = call(TENANT, 1);
    let other = grant(&["/bin/true".to_owned()]);
    let error = rig.host.start(&cx, &other, spec.clone()).await.unwrap_err();
    assert_eq!(error, refused(ProcessRefusal::CommandNotAllowed));
    let missing = ProcessSpec { command: vec!["/no/such/program".to_owned()], ..spec };
    let error = rig.start(&missing).await.unwrap_err();
    assert_eq!(error, ProcessError::CommandNotFound("/no/such/program".to_owned()));
    assert!(!rig.folder.join("one").exists());
}

#[tokio::test]
async fn twenty_agents_run_side_by_side_and_leave_nothing() {
    let rig = Rig::new().await;
    let ids: Vec<String> = (0..20).map(|number| format!("agent-{number}")).collect();
    for id in &ids {
        rig.start(&double(id, &[])).await.unwrap();
    }
    let mut ports = BTreeSet::new();
    let mut pids = Vec::new();
    for id in &ids {
        ports.insert(port(&rig.until_ready(id).await));
        pids.push(rig.pid(id));
    }
    assert_eq!(ports.len(), 20);
    rig.host.shutdown_all(Duration::from_secs(10)).await.unwrap();
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0);
    for id in &ids {
        let status = rig.status(id).await;
        assert_eq!((status.running, status.stopping, status.stopped), (false, false, false));
        rig.stop_and_remove(id).await;
    }
    assert_eq!(std::fs::read_dir(&rig.folder).unwrap().count(), 0);
    for port in ports {
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}
