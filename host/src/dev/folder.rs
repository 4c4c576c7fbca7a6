//! The state folder of a development installation: where everything is, and the ports it keeps.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::ids::Ids;

/// Longest path of a UNIX socket, less the name that PostgreSQL appends.
const SOCKET_FOLDER_BYTES_MAX: usize = 80;
/// Ports that are looked at beyond the first of each kind.
const PORT_ATTEMPTS: u16 = 200;

/// Ports of a development installation: the first free one of each kind, then kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ports {
    /// The API.
    pub(super) api: u16,
    /// Metrics of the process that `dev` runs.
    pub(super) metrics: u16,
    /// The echo model.
    pub(super) echo: u16,
    /// Private listener of a worker that is started by hand.
    pub(super) worker: u16,
}

/// What runs: written when the host starts, compared with `/proc` before it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    /// Process id of the host.
    pub(super) pid: i32,
    /// Start time of that process in clock ticks, so that a reused pid is not mistaken for it.
    pub(super) start_ticks: u64,
    /// Length and modification time of the binary that runs.
    pub(super) binary: String,
    /// Was a worker left out?
    pub(super) worker: bool,
}

/// The folder and the names of everything in it.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder that was asked for, or the default of this account.
    pub(super) fn locate(given: Option<PathBuf>, variables: &BTreeMap<String, String>) -> Result<Self> {
        let root = match given {
            Some(folder) => std::path::absolute(folder)?,
            None if nix::unistd::geteuid().is_root() => PathBuf::from("/var/lib/occ/dev"),
            None => match (variables.get("XDG_STATE_HOME"), variables.get("HOME")) {
                (Some(state), _) if !state.is_empty() => Path::new(state).join("occ/dev"),
                (_, Some(home)) => Path::new(home).join(".local/state/occ/dev"),
                _ => bail!("neither XDG_STATE_HOME nor HOME is set: name a folder with --state DIR"),
            },
        };
        let folder = Self { root };
        if folder.postgres().as_os_str().len() > SOCKET_FOLDER_BYTES_MAX {
            bail!(
                "{} is too long for a UNIX socket: name a shorter folder with --state DIR",
                folder.root.display()
            );
        }
        Ok(folder)
    }

    /// Makes what is missing. As root the folder can be traversed, since PostgreSQL runs as
    /// another account; everything private lies in folders of mode 0700.
    pub(super) fn create(&self) -> Result<()> {
        let mode = if nix::unistd::geteuid().is_root() { 0o711 } else { 0o700 };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(&self.root)
            .with_context(|| format!("cannot make {}", self.root.display()))?;
        fs::set_permissions(&self.root, Permissions::from_mode(mode))?;
        for private in [self.logs(), self.processes(), self.aot()] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&private)?;
        }
        Ok(())
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.root.join("postgres")
    }

    pub(super) fn installation(&self) -> PathBuf {
        self.root.join("installation.yaml")
    }

    pub(super) fn secret_key(&self) -> PathBuf {
        self.root.join("secret.key")
    }

    pub(super) fn auth_secret(&self) -> PathBuf {
        self.root.join("auth.secret")
    }

    pub(super) fn admin_key(&self) -> PathBuf {
        self.root.join("admin-key.json")
    }

    /// Where bootstrap writes the key; it asks for a folder of its own.
    pub(super) fn fresh_admin_key(&self) -> PathBuf {
        self.bootstrap().join("admin-key.json")
    }

    /// Takes a key that bootstrap has just written to its place.
    pub(super) fn take_admin_key(&self) -> Result<()> {
        match fs::rename(self.fresh_admin_key(), self.admin_key()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn admin_password(&self) -> PathBuf {
        self.bootstrap().join("admin-password")
    }

    pub(super) fn bootstrap(&self) -> PathBuf {
        self.root.join("bootstrap")
    }

    pub(super) fn host_log(&self) -> PathBuf {
        self.logs().join("host.log")
    }

    /// Makes the folder that bootstrap writes into.
    pub(super) fn create_bootstrap(&self) -> Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.bootstrap())?;
        Ok(())
    }

    /// Bundles that the host was started with, as a search path.
    pub(super) fn bundles(&self) -> Result<Option<String>> {
        let bundles: Option<Vec<PathBuf>> = read_json(&self.root.join("bundles.json"))?;
        let bundles = bundles.filter(|bundles| !bundles.is_empty());
        Ok(bundles
            .and_then(|bundles| std::env::join_paths(bundles).ok())
            .map(|path| path.to_string_lossy().into_owned()))
    }

    /// Remembers them for `dev env`.
    pub(super) fn set_bundles(&self, bundles: &[PathBuf]) -> Result<()> {
        write_private(&self.root.join("bundles.json"), serde_json::to_string(bundles)?.as_bytes())
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(super) fn processes(&self) -> PathBuf {
        self.root.join("processes")
    }

    pub(super) fn aot(&self) -> PathBuf {
        self.root.join("aot")
    }

    pub(super) fn openclaw(&self) -> PathBuf {
        self.root.join("openclaw")
    }

    /// The ports that this folder keeps; drawn at first use.
    pub(super) fn ports(&self) -> Result<Ports> {
        let file = self.root.join("ports.json");
        if let Some(ports) = read_json(&file)? {
            return Ok(ports);
        }
        let api = free_port(7480)?;
        let metrics = free_port(api.max(7480) + 1)?;
        let echo = free_port(metrics + 1)?;
        let ports = Ports { api, metrics, echo, worker: free_port(echo + 1)? };
        write_private(&file, serde_json::to_string(&ports)?.as_bytes())?;
        Ok(ports)
    }

    /// What runs from this folder, when it still does.
    pub(super) fn running(&self) -> Result<Option<Running>> {
        let running: Option<Running> = read_json(&self.running_file())?;
        Ok(running.filter(|running| start_ticks(running.pid) == Some(running.start_ticks)))
    }

    /// Remembers what runs.
    pub(super) fn set_running(&self, running: &Running) -> Result<()> {
        write_private(&self.running_file(), serde_json::to_string(running)?.as_bytes())
    }

    /// Forgets what ran.
    pub(super) fn clear_running(&self) -> Result<()> {
        match fs::remove_file(self.running_file()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// A file of random hexadecimal text, made once with mode 0600.
    pub(super) fn random_file(file: &Path, ids: &Ids) -> Result<String> {
        match fs::read_to_string(file) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let text: String = ids.bytes::<32>().iter().map(|byte| format!("{byte:02x}")).collect();
                write_private(file, format!("{text}\n").as_bytes())?;
                Ok(text)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    fn running_file(&self) -> PathBuf {
        self.root.join("running.json")
    }
}

/// Writes a file of mode 0600 by rename, so that a reader never sees half of it.
pub(super) fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    let staged = file.with_extension("new");
    let mut open = fs::OpenOptions::new();
    let mut out = open.write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    std::io::Write::write_all(&mut out, bytes)?;
    out.sync_all()?;
    fs::rename(&staged, file).with_context(|| format!("cannot write {}", file.display()))
}

/// Start time of a process in clock ticks since boot; `None` when there is no such process.
pub(super) fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18)?.parse().ok())?
}

fn read_json<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<Option<T>> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(
            serde_json::from_slice(&bytes)
                .with_context(|| format!("{} cannot be read: remove it", file.display()))?,
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn free_port(first: u16) -> Result<u16> {
    (first..first.saturating_add(PORT_ATTEMPTS))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("no free port from {first} on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_start_ticks_and_an_absent_one_has_none() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(start_ticks(own).unwrap() > 0);
        assert_eq!(start_ticks(i32::MAX), None);
    }

    #[test]
    fn ports_are_drawn_once_and_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::locate(Some(temporary.path().to_owned()), &BTreeMap::new()).unwrap();
        folder.create().unwrap();
        let ports = folder.ports().unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.api)).unwrap();
        assert_eq!(folder.ports().unwrap(), ports);
        assert!(ports.metrics > ports.api && ports.echo > ports.metrics && ports.worker > ports.echo);
    }
}
