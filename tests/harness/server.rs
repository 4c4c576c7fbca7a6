//! A private PostgreSQL for a test process that was given none: socket only, in a folder of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Newest first; `nulls not distinct` needs 15.
const MAJORS: [u32; 4] = [18, 17, 16, 15];
/// Waits for the test process to end, then stops the server and removes its folder: `$1` pid, `$2` `pg_ctl`,
/// `$3` folder, then the words that run a program as the server's account.
const GUARD: &str = "pid=$1 ctl=$2 folder=$3; shift 3
while kill -0 \"$pid\" 2>/dev/null; do sleep 1; done
\"$@\" \"$ctl\" stop --mode=immediate --wait --pgdata=\"$folder/data\"
rm -rf \"$folder\"";

/// Starts the server and answers its superuser's URL. It ends soon after this process does.
///
/// # Errors
/// PostgreSQL is not installed or does not start.
pub(crate) fn url() -> Result<String> {
    let binaries = binaries()?;
    let folder = tempfile::Builder::new().prefix("occ-pg-").tempdir_in("/tmp")?.keep();
    let root = nix::unistd::geteuid().is_root();
    let account: &[&str] = if root { &["runuser", "-u", "postgres", "--"] } else { &["env"] };
    if root {
        let user = nix::unistd::User::from_name("postgres")?.context("the account `postgres` is missing")?;
        nix::unistd::chown(&folder, Some(user.uid), Some(user.gid))?;
    }
    let tool = |name: &str| {
        let mut command = Command::new(account.first().copied().unwrap_or("env"));
        command
            .args(account.iter().skip(1))
            .arg(binaries.join(name))
            .arg("--pgdata")
            .arg(folder.join("data"));
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let made = tool("initdb")
        .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres"])
        .status()?;
    ensure!(made.success(), "initdb failed");
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c max_connections=400 -c fsync=off \
         -c synchronous_commit=off -c full_page_writes=off",
        folder.display()
    );
    let log = folder.join("server.log");
    let started = tool("pg_ctl")
        .args(["start", "--wait", "--timeout=60", "--log"])
        .arg(&log)
        .arg("--options")
        .arg(options)
        .status()?;
    ensure!(started.success(), "PostgreSQL did not start; see {}", log.display());
    Command::new("sh")
        .args(["-c", GUARD, "guard", &std::process::id().to_string()])
        .arg(binaries.join("pg_ctl"))
        .arg(&folder)
        .args(account)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(format!("postgres://postgres@localhost/postgres?host={}", folder.display()))
}

fn binaries() -> Result<PathBuf> {
    for major in MAJORS {
        let folder = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
        if folder.join("pg_ctl").is_file() {
            return Ok(folder);
        }
    }
    let path =
        Command::new("pg_config").arg("--bindir").output().ok().filter(|output| output.status.success());
    match path {
        Some(output) => Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())),
        None => bail!("PostgreSQL 15 or newer is missing; on Debian: apt-get install -y postgresql"),
    }
}
