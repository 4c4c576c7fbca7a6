//! The output folder: what may be in it, and how files come and go there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::BootstrapError;

/// The record of an attempt that has not ended.
pub(super) const PENDING: &str = ".bootstrap-attempt.json";
/// The record of the last attempt that has.
pub(super) const FINISHED: &str = "bootstrap-attempt.json";
/// What a file system may put at its root.
const LOST_FOUND: &str = "lost+found";
/// Mode of every file.
const FILE_MODE: u32 = 0o600;
/// Rights of others, none of which the folder may give.
const OTHERS: u32 = 0o007;
/// Largest attempt record.
const RECORD_BYTES_MAX: u64 = 64 * 1024;

/// What an attempt is about to write; holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Record {
    pub(super) attempt_id: String,
    pub(super) installation_id: String,
    pub(super) started_at: String,
    pub(super) files: Vec<RecordedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedFile {
    name: String,
    bytes: u64,
    sha256: String,
}

impl Record {
    pub(super) fn new(
        attempt_id: &str,
        installation_id: &impl ToString,
        started_at: String,
        files: &[(String, String)],
    ) -> Self {
        let files = files
            .iter()
            .map(|(name, text)| RecordedFile {
                name: name.clone(),
                bytes: text.len() as u64,
                sha256: digest(text.as_bytes()),
            })
            .collect();
        Self {
            attempt_id: attempt_id.to_owned(),
            installation_id: installation_id.to_string(),
            started_at,
            files,
        }
    }
}

/// What the folder holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing of interest.
    Nothing,
    /// An attempt that has not ended.
    Attempt(Record),
    /// A record that was cut off while it was written, and nothing else: files follow its fsync.
    UnreadableRecord,
    /// A file that belongs to no attempt.
    Foreign(String),
}

/// The output folder, known to be safe.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// # Errors
    /// `BOOTSTRAP_STORAGE_UNSAFE`.
    pub(super) fn open(path: &Path) -> Result<Self, BootstrapError> {
        let unsafe_ = |text: &str| {
            BootstrapError::refused("BOOTSTRAP_STORAGE_UNSAFE", format!("{}: {text}", path.display()))
        };
        let meta = fs::symlink_metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unsafe_("the output folder does not exist; make it with mode 0700"),
            _ => BootstrapError::file(path, error),
        })?;
        if !meta.is_dir() {
            return Err(unsafe_("the output folder is a link or no folder; name the real one"));
        }
        if meta.mode() & OTHERS != 0 {
            return Err(unsafe_("others may enter the output folder; run chmod o-rwx on it"));
        }
        let own_user = [0, nix::unistd::geteuid().as_raw()].contains(&meta.uid());
        let own_group = || {
            let groups = nix::unistd::getgroups().unwrap_or_default();
            nix::unistd::getegid().as_raw() == meta.gid()
                || groups.iter().any(|group| group.as_raw() == meta.gid())
        };
        if !own_user && !own_group() {
            return Err(unsafe_("the output folder belongs to somebody else; run chown on it"));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The pending record of an existing Installation's folder. A folder that is gone, unreadable or without a
    /// readable record has none: the operator may have moved everything.
    pub(super) fn look(path: &Path) -> Result<Option<Record>, BootstrapError> {
        if fs::symlink_metadata(path.join(PENDING)).is_err() {
            return Ok(None);
        }
        Ok(Self::open(path)?.record())
    }

    /// # Errors
    /// The folder cannot be read.
    pub(super) fn found(&self) -> Result<Found, BootstrapError> {
        let mut others = Vec::new();
        let mut pending = false;
        for entry in fs::read_dir(&self.path).map_err(|error| BootstrapError::file(&self.path, error))? {
            let name = entry.map_err(|error| BootstrapError::file(&self.path, error))?.file_name();
            match name.to_string_lossy().into_owned() {
                name if name == PENDING => pending = true,
                name if name == LOST_FOUND => {}
                name => others.push(name),
            }
        }
        others.sort();
        let record = if pending { self.record() } else { None };
        let foreign = match &record {
            Some(record) => {
                others.into_iter().find(|name| !record.files.iter().any(|file| file.name == *name))
            }
            None => others.into_iter().next(),
        };
        Ok(match (pending, record, foreign) {
            (_, _, Some(name)) => Found::Foreign(name),
            (_, Some(record), None) => Found::Attempt(record),
            (true, None, None) => Found::UnreadableRecord,
            (false, None, None) => Found::Nothing,
        })
    }

    /// Removes exactly the files of an attempt that never committed, then its record. A file that is longer than
    /// recorded, or as long with other content, was made by somebody else.
    ///
    /// # Errors
    /// `BOOTSTRAP_OUTPUT_EXISTS` before anything is removed.
    pub(super) fn discard(&self, record: &Record) -> Result<(), BootstrapError> {
        let mut ours = Vec::new();
        for file in &record.files {
            let path = self.path.join(&file.name);
            let meta = match fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(BootstrapError::file(&path, error)),
            };
            let plain = meta.is_file() && Path::new(&file.name).components().count() == 1;
            let partial = meta.len() < file.bytes;
            let equal = || fs::read(&path).is_ok_and(|bytes| digest(&bytes) == file.sha256);
            if !plain || !(partial || (meta.len() == file.bytes && equal())) {
                return Err(BootstrapError::output_exists(&file.name));
            }
            ours.push(path);
        }
        for path in ours {
            fs::remove_file(&path).map_err(|error| BootstrapError::file(&path, error))?;
        }
        self.discard_record()
    }

    /// Removes the pending record.
    pub(super) fn discard_record(&self) -> Result<(), BootstrapError> {
        let path = self.path.join(PENDING);
        fs::remove_file(&path).map_err(|error| BootstrapError::file(&path, error))?;
        self.sync()
    }

    /// Writes the record, before any file that it names.
    pub(super) fn write_record(&self, record: &Record) -> Result<(), BootstrapError> {
        let text = serde_json::to_string(record).map_err(BootstrapError::internal)?;
        self.write(PENDING, &format!("{text}\n"))
    }

    /// Writes a new file that only its owner may read, and returns once it is on disk.
    ///
    /// # Errors
    /// `BOOTSTRAP_OUTPUT_EXISTS` when the name is taken, by a link too.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), BootstrapError> {
        let path = self.path.join(name);
        let written = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path).and_then(
            |mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            },
        );
        match written {
            Ok(()) => self.sync(),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(BootstrapError::output_exists(name))
            }
            Err(error) => Err(BootstrapError::file(&path, error)),
        }
    }

    /// Does a name exist?
    pub(super) fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok()
    }

    /// Renames the record of a committed attempt.
    pub(super) fn finish(&self) -> Result<(), BootstrapError> {
        let path = self.path.join(PENDING);
        fs::rename(&path, self.path.join(FINISHED)).map_err(|error| BootstrapError::file(&path, error))?;
        self.sync()
    }

    fn record(&self) -> Option<Record> {
        let path = self.path.join(PENDING);
        let meta = fs::symlink_metadata(&path).ok()?;
        let small = meta.is_file() && meta.len() <= RECORD_BYTES_MAX;
        small.then(|| serde_json::from_slice(&fs::read(&path).ok()?).ok())?
    }

    fn sync(&self) -> Result<(), BootstrapError> {
        File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| BootstrapError::file(&self.path, error))
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
