//! One machine, real parts: `occ-host dev`, `occ`, and the real OpenClaw as a supervised process.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use occ_tests::dev::{Dev, Ran};
use occ_tests::terminal::Terminal;
use occ_tests::{environment, wait};
use portable_pty::CommandBuilder;
use serde_json::{Value, json};

/// Time for one answer of the terminal interface.
const ANSWER_MAX: Duration = Duration::from_secs(180);
/// A document that OpenClaw refuses to start with: exit 78.
const BROKEN: &str = r#"{"values":{"nonsense":{"x":1},"agents":{"defaults":{"model":"openai/echo",
    "models":{"openai/echo":{"agentRuntime":{"id":"openclaw"}}}}},"models":{"providers":{"openai":
    {"baseUrl":"http://127.0.0.1:1/v1","api":"openai-responses","models":[{"id":"echo","name":"echo"}]}}}}}"#;

/// What the flow made so far.
struct Flow {
    dev: Dev,
    namespace: String,
    secret: String,
    configuration: String,
    agent: Value,
}

fn text(value: &Value, pointer: &str) -> Result<String> {
    Ok(value
        .pointer(pointer)
        .and_then(Value::as_str)
        .with_context(|| format!("no {pointer} in {value}"))?
        .to_owned())
}

fn done(ran: Ran) -> Result<Ran> {
    ensure!(ran.code == 0, "exit {}: {}", ran.code, ran.stderr);
    Ok(ran)
}

impl Flow {
    fn document(&self) -> Result<Value> {
        let ports: Value = serde_json::from_slice(&std::fs::read(self.dev.state().join("ports.json"))?)?;
        let port = ports.pointer("/echo").and_then(Value::as_u64).context("the echo model has no port")?;
        let mut values: Value =
            serde_json::from_str(include_str!("../../../deploy/examples/demo-echo.json"))?;
        *values.pointer_mut("/models/providers/openai/baseUrl").context("no baseUrl")? =
            json!(format!("http://127.0.0.1:{port}/v1"));
        Ok(json!({"kind": "agent", "values": values}))
    }

    fn id(&self) -> Result<String> {
        text(&self.agent, "/id")
    }

    fn agent(&self) -> Result<Value> {
        self.dev.json(&["agent", "get", &self.id()?])
    }

    fn active(&self) -> Result<String> {
        text(&self.agent()?, "/activeRevisionId")
    }

    fn deploy(&self) -> Result<String> {
        let revision = self.dev.json(&["agent", "deploy", &self.id()?, "--wait"])?;
        text(&revision, "/id").or_else(|_| text(&revision, "/deploymentId"))
    }

    fn ready(&self) -> Result<u16> {
        let runtime = self.dev.json(&["agent", "runtime", &self.id()?])?;
        let url = text(&runtime, "/endpoints/0/url")?;
        let answer = std::process::Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &format!("{url}/readyz")])
            .output()?;
        Ok(String::from_utf8_lossy(&answer.stdout).trim().parse()?)
    }
}

/// P1–P3, P5–P11, P13, P16, P18–P20 with a process in the place of a Pod: everything that one agent
/// goes through.
#[test]
fn openclaw_flow_deploy_replace_rollback_stop_delete() -> Result<()> {
    if environment::openclaw().is_none() {
        return Ok(());
    }
    let mut flow = set_up()?;
    first_deployment(&flow)?;
    conversation(&flow)?;
    let first = flow.active()?;
    replacement_and_rollback(&mut flow, &first)?;
    failed_replacement(&flow)?;
    end(&flow)
}

/// P1, P2: the key opens the Installation, and a wrong one does not. P3, P5: the Namespace is ready.
/// P6–P8: Configuration, Secret, Agent, and the grant of its own principal.
fn set_up() -> Result<Flow> {
    let dev = Dev::new()?;
    dev.up(&["--no-demo"])?;
    text(&dev.json(&["installation", "get"])?, "/id")?;
    let wrong =
        dev.file("wrong.json", r#"{"data":{"key":"occ_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}"#)?;
    ensure!(dev.occ(&["installation", "get", "--service-key-file", &wrong])?.code == 3);
    let created = dev.json(&["namespace", "create", "acme", "--wait"])?;
    let namespace = text(&created, "/id")?;
    ensure!(text(&dev.json(&["namespace", "get", &namespace])?, "/status")? == "ready");
    done(dev.occ(&["context", "set", "dev", "--namespace", &namespace])?)?;

    let mut flow =
        Flow { dev, namespace, secret: String::new(), configuration: String::new(), agent: Value::Null };
    let value = flow.dev.file("key.txt", "canary-model-key\n")?;
    flow.secret =
        text(&flow.dev.json(&["secret", "create", "--name", "openai", "--value-file", &value])?, "/id")?;
    let document = flow.dev.file("c.yaml", &flow.document()?.to_string())?;
    flow.configuration = text(&flow.dev.json(&["configuration", "create", "-f", &document])?, "/id")?;
    let agent = json!({
        "name": "concierge",
        "configurationId": flow.configuration,
        "executionMode": "embedded",
        "harnessAuth": {"method": "api_key", "source": {"kind": "secret", "namespaceId": flow.namespace, "id": flow.secret}},
    });
    let file = flow.dev.file("a.yaml", &agent.to_string())?;
    flow.agent = flow.dev.json(&["agent", "create", "-f", &file])?;

    // Without the grant of the Agent's own principal the deployment is refused, and the way out is shown.
    let refused = flow.dev.occ(&["agent", "deploy", &flow.id()?])?;
    ensure!(
        refused.code == 3 && refused.stderr.contains("occ iam access-binding create"),
        "{}",
        refused.stderr
    );
    let role = flow.dev.file("role.yaml", "permissions: [{action: operate, resourceKind: secret}]\n")?;
    let role = text(&flow.dev.json(&["iam", "role", "create", "-f", &role])?, "/id")?;
    let binding = json!({
        "subjectKind": "identity", "subjectId": text(&flow.agent, "/servicePrincipalId")?, "roleId": role,
        "resourceKind": "secret", "resourceId": flow.secret,
    });
    let binding = flow.dev.file("b.yaml", &binding.to_string())?;
    flow.dev.json(&["iam", "access-binding", "create", "-f", &binding])?;
    Ok(flow)
}

/// P9–P11, P13, P16, P20: the revision is frozen, prepared, published and serves.
fn first_deployment(flow: &Flow) -> Result<()> {
    let before = flow.dev.json(&["agent", "deploy", &flow.id()?, "--dry-run"])?;
    ensure!(before.pointer("/dryRun") == Some(&json!(true)), "{before}");
    flow.deploy()?;
    let agent = flow.agent()?;
    ensure!(text(&agent, "/desiredRuntimeState")? == "running");
    let revisions = flow.dev.json(&["agent", "revisions", &flow.id()?])?;
    ensure!(revisions.pointer("/0/id") == agent.pointer("/activeRevisionId"), "{revisions}");
    ensure!(flow.ready()? == 200);
    // P13: exactly the selected credential, and the password, reach the process; neither is on disk.
    let entry = flow.dev.state().join("processes").join(flow.id()?);
    let record = std::fs::read_to_string(entry.join("process.json"))?;
    ensure!(!record.contains("canary-model-key"));
    Ok(())
}

/// T7–T10, T13, T14, T16, T17: the native terminal interface, two prompts, a refused password, Ctrl+D.
fn conversation(flow: &Flow) -> Result<()> {
    let mut terminal =
        Terminal::start(tui(flow, &[], &["--session", "e2e1", "--message", "Reply exactly: N1"])?)?;
    terminal.wait_line("N1", ANSWER_MAX)?;
    terminal.type_keys("Reply exactly: N2")?;
    // The interface takes no prompt while the agent is still busy with the one before.
    let begun = std::time::Instant::now();
    loop {
        terminal.type_keys("\r")?;
        match terminal.wait_line("N2", Duration::from_secs(3)) {
            Ok(()) => break,
            Err(error) => ensure!(begun.elapsed() < ANSWER_MAX, "{error}"),
        }
    }
    terminal.type_keys("\u{4}")?;
    ensure!(terminal.wait_end(Duration::from_secs(20))? == 0);
    ensure!(flow.ready()? == 200);

    let fresh = flow.dev.scratch().join("fresh");
    std::fs::create_dir_all(&fresh)?;
    let state = format!("OPENCLAW_STATE_DIR={}", fresh.display());
    let wrong = ["env", "OPENCLAW_GATEWAY_PASSWORD=wrong", state.as_str()];
    let mut denied =
        Terminal::start(tui(flow, &wrong, &["--session", "e2e2", "--message", "Reply exactly: N9"])?)?;
    denied.wait_text("password mismatch", ANSWER_MAX)?;
    ensure!(!denied.shown().lines().any(|line| line.trim() == "N9"));
    Ok(())
}

/// One builder for every attach: good, denied, by hand (T20).
fn tui(flow: &Flow, prefix: &[&str], options: &[&str]) -> Result<CommandBuilder> {
    let entry = flow.dev.openclaw_entry().context("no OpenClaw")?;
    let host = flow.dev.host(&["exec"]);
    let mut command = CommandBuilder::new(host.get_program());
    command.args(host.get_args());
    command.arg(flow.id()?);
    command.arg("--");
    command.args(prefix);
    command.arg("node");
    command.arg(entry);
    command.arg("tui");
    command.args(options);
    for (name, value) in host.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        }
    }
    command.env("TERM", "xterm-256color");
    command.cwd(flow.dev.scratch());
    Ok(command)
}

/// P15, P16, P18: a replacement serves and the predecessor is gone; the way back is a new revision.
fn replacement_and_rollback(flow: &mut Flow, first: &str) -> Result<()> {
    let mut changed = flow.document()?;
    *changed.pointer_mut("/values/agents/defaults/skipBootstrap").context("no skipBootstrap")? = json!(true);
    changed["values"]["logging"] = json!({"level": "warn"});
    let file = flow.dev.file("c2.yaml", &json!({"values": changed["values"]}).to_string())?;
    flow.dev.json(&["configuration", "update", &flow.configuration, "-f", &file])?;
    flow.deploy()?;
    let second = flow.active()?;
    ensure!(second != first);
    flow.dev.json(&["agent", "rollback", &flow.id()?, "--wait"])?;
    let third = flow.active()?;
    let revision = flow.dev.json(&["agent", "revisions", &flow.id()?])?;
    let restored = revision
        .as_array()
        .context("no list")?
        .iter()
        .find(|item| item["id"] == json!(third))
        .context("no revision")?;
    ensure!(restored["rollbackOf"] == json!(first), "{restored}");
    ensure!(flow.ready()? == 200);
    Ok(())
}

/// P19: a replacement that cannot start ends with its code, and its predecessor serves again.
fn failed_replacement(flow: &Flow) -> Result<()> {
    let before = flow.active()?;
    let broken = flow.dev.file("broken.json", BROKEN)?;
    flow.dev.json(&["configuration", "update", &flow.configuration, "-f", &broken])?;
    let failed = flow.dev.occ(&["agent", "deploy", &flow.id()?, "--wait"])?;
    ensure!(
        failed.code == 1 && failed.stderr.contains("ACTIVATION_ROLLED_BACK"),
        "{}: {}",
        failed.code,
        failed.stderr
    );
    ensure!(flow.active()? == before);
    ensure!(flow.ready()? == 200);
    let logs = done(flow.dev.occ(&["agent", "logs", &flow.id()?, "--source", "gateway", "--tail", "50"])?)?;
    ensure!(!logs.stdout.trim().is_empty());
    Ok(())
}

/// Stop keeps the state, delete removes everything; each left its audit row.
fn end(flow: &Flow) -> Result<()> {
    let id = flow.id()?;
    let entry = flow.dev.state().join("processes").join(&id);
    done(flow.dev.occ(&["agent", "stop", &id, "--wait"])?)?;
    ensure!(flow.agent()?.get("activeRevisionId").is_none());
    ensure!(entry.join("state").is_dir());
    done(flow.dev.occ(&["agent", "delete", &id, "--wait"])?)?;
    ensure!(flow.dev.occ(&["agent", "get", &id])?.code == 4);
    ensure!(!entry.exists(), "{} is still there", entry.display());
    let audit = flow.dev.json(&["audit", "list"])?;
    let actions: Vec<&str> =
        audit.as_array().context("no list")?.iter().filter_map(|event| event["action"].as_str()).collect();
    for action in [
        "openclaw.agents.deploy",
        "openclaw.agents.lifecycle.activate",
        "openclaw.agents.lifecycle.rollback",
        "openclaw.agents.stop",
        "openclaw.agents.delete",
    ] {
        ensure!(actions.contains(&action), "{action} is not among {actions:?}");
    }
    no_canary_below(&flow.dev.state())
}

/// The model's key is in no file of the installation but PostgreSQL's own, where it is sealed.
fn no_canary_below(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            no_canary_below(&path)?;
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes.windows(16).any(|window| window == b"canary-model-key");
            ensure!(!found, "the key is in {}", path.display());
        }
    }
    Ok(())
}

/// A worker that dies in the middle of a deployment: the next one adopts the process and finishes.
#[test]
fn openclaw_flow_worker_killed_in_the_middle() -> Result<()> {
    if environment::openclaw().is_none() {
        return Ok(());
    }
    let mut flow = {
        let dev = Dev::new()?;
        dev.up(&["--no-demo", "--no-worker"])?;
        dev
    };
    let exported = flow.host(&["env"]).output()?;
    ensure!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let variables: Vec<(String, String)> = String::from_utf8(exported.stdout)?
        .lines()
        .filter_map(|line| line.strip_prefix("export ")?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect();
    let worker = |dev: &Dev| {
        let log = std::fs::File::create(dev.scratch().join("worker.log"))?;
        dev.command("occ-host")
            .arg("worker")
            .envs(variables.clone())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    };
    let mut first = worker(&flow)?;
    let agent = deploy_one(&mut flow)?;
    let entry = flow.state().join("processes").join(&agent).join("process.json");
    // The record comes before the spawn: only one that has a pid tells of a process.
    wait_for(|| process_of(&entry).is_some(), Duration::from_secs(30))
        .context("the agent's process never started")?;
    let started = process_of(&entry);
    first.kill()?;
    first.wait()?;
    let mut second = worker(&flow)?;
    let waited = flow.occ(&["wait", &format!("agent/{agent}"), "--for", "deployed", "--timeout", "90s"]);
    let active = flow.json(&["agent", "get", &agent]);
    let adopted = process_of(&entry);
    let starts = std::fs::read_to_string(&entry)?;
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(second.id())?),
        nix::sys::signal::Signal::SIGTERM,
    )?;
    second.wait()?;
    let waited = waited?;
    ensure!(waited.code == 0, "{}", waited.stderr);
    ensure!(active?.get("activeRevisionId").is_some());
    ensure!(
        serde_json::from_str::<Value>(&starts)?["restarts"] == json!(0),
        "the process was started twice: {starts}"
    );
    ensure!(adopted == started, "another process than {started:?} serves: {starts}");
    Ok(())
}

/// Pid and start time of an entry's process, once it has been spawned.
fn process_of(entry: &Path) -> Option<Value> {
    let record: Value = serde_json::from_slice(&std::fs::read(entry).ok()?).ok()?;
    record.pointer("/launch/process").filter(|process| !process.is_null()).cloned()
}

/// Everything for one agent in the Namespace `default`, and its deployment without waiting.
fn deploy_one(dev: &mut Dev) -> Result<String> {
    let namespaces = dev.json(&["namespace", "list"])?;
    let namespace = text(&namespaces, "/0/id")?;
    done(dev.occ(&["wait", &format!("namespace/{namespace}"), "--for", "ready"])?)?;
    let value = dev.file("key.txt", "k")?;
    let secret = text(&dev.json(&["secret", "create", "--name", "openai", "--value-file", &value])?, "/id")?;
    let document = json!({"kind": "agent", "values": serde_json::from_str::<Value>(include_str!("../../../deploy/examples/demo-echo.json"))?});
    let document = dev.file("c.json", &document.to_string())?;
    let configuration = text(&dev.json(&["configuration", "create", "-f", &document])?, "/id")?;
    let source = json!({"kind": "secret", "namespaceId": namespace, "id": secret});
    let agent = json!({"name": "one", "configurationId": configuration, "harnessAuth": {"method": "api_key", "source": source}});
    let file = dev.file("a.json", &agent.to_string())?;
    let agent = dev.json(&["agent", "create", "-f", &file])?;
    let role = dev.file("role.json", r#"{"permissions":[{"action":"operate","resourceKind":"secret"}]}"#)?;
    let role = text(&dev.json(&["iam", "role", "create", "-f", &role])?, "/id")?;
    let binding = json!({"subjectKind": "identity", "subjectId": text(&agent, "/servicePrincipalId")?, "roleId": role,
        "resourceKind": "secret", "resourceId": secret});
    let binding = dev.file("b.json", &binding.to_string())?;
    dev.json(&["iam", "access-binding", "create", "-f", &binding])?;
    let id = text(&agent, "/id")?;
    dev.json(&["agent", "deploy", &id])?;
    Ok(id)
}

fn wait_for(holds: impl Fn() -> bool, limit: Duration) -> Result<()> {
    let begun = std::time::Instant::now();
    while !holds() {
        ensure!(begun.elapsed() < limit.max(wait::patience()), "not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
