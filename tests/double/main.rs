//! `occ-double`: stands in for an agent's process, and for a host that supervises one.
//!
//! Without arguments it is a small HTTP server on `127.0.0.1:$PORT`:
//!
//! | Variable | Meaning |
//! | --- | --- |
//! | `PORT` | where it listens; without it, it only waits |
//! | `READY_AFTER_MS` | `/readyz` answers 503 until then, 200 after; default 0 |
//! | `NEVER_READY` | set: `/readyz` answers 503 for ever |
//! | `EXIT_AFTER_MS`, `EXIT_CODE` | ends by itself; default never, code 1 |
//! | `IGNORE_TERM` | set: SIGTERM does nothing |
//! | `GRANDCHILD` | set: a helper in a session of its own whose parent is gone |
//! | `FLOOD_MIB` | so many MiB of lines on stdout, then it goes on |
//! | `PIDS_FILE` | pids of itself and its helper, one a line |
//!
//! | Request | Answer |
//! | --- | --- |
//! | `GET /readyz` | see above |
//! | `GET /env/NAME` | the value of that variable, or 404 |
//! | `GET /file/NAME` | what is in the file that the variable NAME names |
//! | `GET /exit/CODE` | none: it ends with that code |
//! | anything else | 200, the path |
//!
//! `occ-double gateway` stands in for OpenClaw: it listens on `OPENCLAW_GATEWAY_PORT`, and the member
//! `double` of its configuration file sets the variables above: `{"EXIT_CODE": 78, "EXIT_AFTER_MS": 50}`.
//!
//! `occ-double supervise FOLDER SPEC.json` opens a `ProcessHost` on the folder, starts
//! the spec and supervises until it is killed. `occ-double wait` only waits.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};
use occ_driver::capability::process::{ProcessHost, ProcessHostConfig, ProcessMode, ProcessSpec};
use occ_tests::process::{FakeAuthority, call, config, grant};
use tokio_util::sync::CancellationToken;

/// A request line is shorter than this.
const REQUEST_BYTES_MAX: usize = 4096;
/// Ports of a host of its own, apart from those of the tests' hosts.
const PORTS: std::ops::RangeInclusive<u16> = 31_000..=31_999;

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => serve(),
        ["wait"] => wait_for_ever(),
        ["gateway"] => gateway(),
        // Its parent ends at once, so that the helper has none.
        ["fork"] => {
            helper()?;
            Ok(ExitCode::SUCCESS)
        }
        ["helper"] => {
            nix::unistd::setsid()?;
            note_pid()?;
            wait_for_ever()
        }
        ["supervise", folder, spec] => supervise(Path::new(folder), Path::new(spec)),
        _ => anyhow::bail!("unknown arguments; see the head of this program"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a program of its own, told by its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str) -> anyhow::Result<Option<u64>> {
    variable(name).map(|text| text.parse().with_context(|| format!("{name} is not a number"))).transpose()
}

fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}

fn note_pid() -> anyhow::Result<()> {
    if let Some(path) = variable("PIDS_FILE") {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        writeln!(file, "{}", std::process::id())?;
    }
    Ok(())
}

fn helper() -> anyhow::Result<()> {
    Command::new(std::env::current_exe()?).arg("helper").stdin(Stdio::null()).spawn()?;
    Ok(())
}

/// Becomes the server with what the configuration says.
fn gateway() -> anyhow::Result<ExitCode> {
    let mut server = Command::new(std::env::current_exe()?);
    if let Some(port) = variable("OPENCLAW_GATEWAY_PORT") {
        server.env("PORT", port);
    }
    if let Some(file) = variable("OPENCLAW_CONFIG_PATH") {
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
        for (name, value) in
            document.get("double").and_then(serde_json::Value::as_object).into_iter().flatten()
        {
            server.env(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    Err(server.exec().into())
}

fn serve() -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    if variable("IGNORE_TERM").is_some() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        // Threads made from here on inherit the mask.
        set.thread_block()?;
    }
    note_pid()?;
    if variable("GRANDCHILD").is_some() {
        Command::new(std::env::current_exe()?).arg("fork").stdin(Stdio::null()).status()?;
    }
    if let Some(after) = number("EXIT_AFTER_MS")? {
        let code = i32::try_from(number("EXIT_CODE")?.unwrap_or(1))?;
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            std::process::exit(code);
        });
    }
    flood(number("FLOOD_MIB")?.unwrap_or(0))?;
    let Some(port) = number("PORT")? else { wait_for_ever() };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, u16::try_from(port)?))?;
    let ready_at = started + Duration::from_millis(number("READY_AFTER_MS")?.unwrap_or(0));
    for stream in listener.incoming() {
        // A probe that hangs up early is nothing to end for.
        drop(answer(stream?, ready_at));
    }
    Ok(ExitCode::SUCCESS)
}

fn flood(mib: u64) -> io::Result<()> {
    let mut block = vec![b'x'; 1023];
    block.push(b'\n');
    let mut out = io::stdout().lock();
    for _ in 0..mib.saturating_mul(1024) {
        out.write_all(&block)?;
    }
    out.flush()
}

fn answer(mut stream: TcpStream, ready_at: Instant) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut request = vec![0; REQUEST_BYTES_MAX];
    let read = stream.read(&mut request)?;
    let text = String::from_utf8_lossy(request.get(..read).unwrap_or_default());
    let path = text.split_ascii_whitespace().nth(1).unwrap_or("/").to_owned();
    let (status, body) = route(&path, ready_at);
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
    stream.flush()
}

fn route(path: &str, ready_at: Instant) -> (u16, String) {
    let found = |value: Option<String>| value.map_or((404, String::new()), |value| (200, value));
    if path == "/readyz" {
        let ready = variable("NEVER_READY").is_none() && Instant::now() >= ready_at;
        return (if ready { 200 } else { 503 }, String::new());
    }
    if let Some(name) = path.strip_prefix("/env/") {
        return found(variable(name));
    }
    if let Some(name) = path.strip_prefix("/file/") {
        return found(variable(name).and_then(|path| std::fs::read_to_string(path).ok()));
    }
    if let Some(code) = path.strip_prefix("/exit/") {
        std::process::exit(code.parse().unwrap_or(1));
    }
    (200, path.to_owned())
}

#[tokio::main]
async fn supervise(folder: &Path, spec: &Path) -> anyhow::Result<ExitCode> {
    let spec: ProcessSpec = serde_json::from_slice(&std::fs::read(spec)?)?;
    let config = ProcessHostConfig { port_range: PORTS, ..config(folder, ProcessMode::Supervise) };
    let host = ProcessHost::open(config, Arc::new(FakeAuthority::default())).await?;
    host.start(&call("tenant-a", 1), &grant(&spec.command), spec).await?;
    host.run(CancellationToken::new()).await;
    Ok(ExitCode::SUCCESS)
}
