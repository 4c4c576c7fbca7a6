//! `<state>/processes/<id>/`: layout, ownership, removal.
//!
//! ```text
//! process.json   lock   files/<path>   state/<mount>/   scratch/<mount>/
//! output.log   output.previous.log
//! ```
//!
//! Folders are 0700, files 0600, the spec's files 0400. **Whoever holds the lock is the
//! entry's one supervisor**; the kernel drops the lock when that host dies.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::admit::is_name;
use super::record::{Record, write_atomically};
use super::types::ProcessSpec;

/// Begins the name of a folder on its way out; no id begins so.
const REMOVED_PREFIX: &str = ".removed-";

/// The folder of one entry.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The right to supervise an entry.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Flock<File>,
}

impl Folder {
    /// `id` must have passed [`is_name`].
    pub(super) fn new(root: &Path, id: &str) -> Self {
        Self { path: root.join(id) }
    }

    pub(super) fn output(&self) -> PathBuf {
        self.path.join("output.log")
    }

    pub(super) fn previous_output(&self) -> PathBuf {
        self.path.join("output.previous.log")
    }

    /// Where the spec's file of this path is.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.path.join("files").join(path.trim_start_matches('/'))
    }

    pub(super) fn state(&self, mount: &str) -> PathBuf {
        self.path.join("state").join(mount)
    }

    pub(super) fn scratch(&self, mount: &str) -> PathBuf {
        self.path.join("scratch").join(mount)
    }

    /// Where the process finds itself: its first state mount, else the entry's folder.
    pub(super) fn working(&self, spec: &ProcessSpec) -> PathBuf {
        spec.state.first().map_or_else(|| self.path.clone(), |mount| self.state(&mount.name))
    }

    pub(super) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    pub(super) fn read_record(&self) -> io::Result<Option<Record>> {
        Record::read(&self.path.join("process.json"))
    }

    pub(super) fn write_record(&self, bytes: &[u8]) -> io::Result<()> {
        write_atomically(&self.path.join("process.json"), bytes)
    }

    /// Makes the folder if need be and takes its lock; `None` when another host has it.
    pub(super) fn lock(&self) -> io::Result<Option<Lock>> {
        make_folder(&self.path)?;
        let path = self.path.join("lock");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            // A removal may have taken the folder away between open and lock.
            Ok(lock) if is_at(&lock, &path) => Ok(Some(Lock { _file: lock })),
            Ok(_) | Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Makes everything that a start of `spec` needs: its files anew, its scratch folders
    /// empty, its state folders if they are missing.
    pub(super) fn prepare(&self, spec: &ProcessSpec) -> io::Result<()> {
        let (files, scratch) = (self.path.join("files"), self.path.join("scratch"));
        remove_tree(&files)?;
        remove_tree(&scratch)?;
        make_folder(&files)?;
        for file in &spec.files {
            let path = self.file(&file.path);
            if let Some(parent) = path.parent() {
                make_folder(parent)?;
            }
            let mut target = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?;
            target.write_all(file.contents.as_bytes())?;
        }
        for mount in &spec.scratch {
            make_folder(&self.scratch(&mount.name))?;
        }
        for mount in &spec.state {
            make_folder(&self.state(&mount.name))?;
        }
        Ok(())
    }

    /// Takes the entry out of sight in one step, then deletes it.
    pub(super) fn remove(&self, root: &Path) -> io::Result<()> {
        let aside = root.join(format!("{REMOVED_PREFIX}{}", uuid::Uuid::new_v4()));
        match fs::rename(&self.path, &aside) {
            Ok(()) => remove_tree(&aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Makes the root and deletes what an interrupted removal left.
pub(super) fn open_root(root: &Path) -> io::Result<()> {
    make_folder(root)?;
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(REMOVED_PREFIX) {
            remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

/// The ids of all entries, sorted.
pub(super) fn ids(root: &Path) -> io::Result<Vec<String>> {
    let mut ids = Vec::new();
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ids),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_name(&name) && entry.file_type()?.is_dir() {
            ids.push(name);
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(now)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (now.dev(), now.ino())
}

/// Deletes a folder that may not be there. Folders that the process made read-only are
/// opened first; links are removed, never followed.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) => Err(error),
    }
}

fn open_folders(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::types::File as SpecFile;
    use super::super::types::{HttpProbe, ScratchMount, StateMount};
    use super::*;

    fn spec() -> ProcessSpec {
        ProcessSpec {
            id: "one".to_owned(),
            labels: Vec::new(),
            command: vec!["/bin/true".to_owned()],
            env: Vec::new(),
            state: vec![StateMount { name: "home".to_owned(), path: "/home".to_owned() }],
            scratch: vec![ScratchMount { name: "tmp".to_owned(), path: "/tmp".to_owned(), size_mib: 1 }],
            files: vec![SpecFile { path: "/etc/app/app.json".to_owned(), contents: "{}".to_owned() }],
            ports: Vec::new(),
            readiness: HttpProbe {
                path: "/".to_owned(),
                port: "p".to_owned(),
                period_seconds: 1,
                timeout_seconds: 1,
            },
            grace_seconds: 1,
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_second_lock_is_refused_until_the_first_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path(), "one");
        let first = folder.lock().unwrap();
        assert!(first.is_some());
        assert!(folder.lock().unwrap().is_none());
        drop(first);
        assert!(folder.lock().unwrap().is_some());
    }

    #[test]
    fn a_start_finds_state_kept_scratch_empty_and_files_as_given() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path(), "one");
        folder.prepare(&spec()).unwrap();
        fs::write(folder.state("home").join("kept"), "x").unwrap();
        fs::write(folder.scratch("tmp").join("gone"), "x").unwrap();
        folder.prepare(&spec()).unwrap();
        assert!(folder.state("home").join("kept").exists());
        assert!(!folder.scratch("tmp").join("gone").exists());
        let file = folder.file("/etc/app/app.json");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
        assert_eq!(mode(&file), 0o400);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        assert_eq!(mode(&folder.state("home")), 0o700);
    }

    #[test]
    fn nothing_is_left_after_a_removal() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path(), "one");
        let _lock = folder.lock().unwrap();
        folder.prepare(&spec()).unwrap();
        assert_eq!(ids(root.path()).unwrap(), ["one"]);
        folder.remove(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        folder.remove(root.path()).unwrap();
    }

    #[test]
    fn an_interrupted_removal_is_ended_by_the_next_open() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".removed-1").join("state")).unwrap();
        open_root(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
