//! The three forms of a bundle: folder, `.tar.gz`, and one that is not offered.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::BundleError;

pub(super) const MANIFEST: &str = "bundle.json";
/// Longest `bundle.json`.
pub(super) const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// Files of one archive.
const ARCHIVE_FILES_MAX: usize = 128;
/// Bytes of one archive, unpacked.
const ARCHIVE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bundles of one folder.
const BUNDLES_MAX: usize = 64;

/// Where a bundle's files are.
#[derive(Debug)]
pub(super) enum Source {
    Folder(PathBuf),
    Archive { path: PathBuf, files: BTreeMap<String, Vec<u8>> },
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, BundleError> {
        if path.to_string_lossy().starts_with("oci:") {
            return Err(BundleError::Oci(path.display().to_string()));
        }
        if path.is_dir() { Ok(Self::Folder(path.to_owned())) } else { archive(path) }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Folder(path) | Self::Archive { path, .. } => path.display().to_string(),
        }
    }

    /// Reads a file of the bundle, once.
    pub(super) fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, BundleError> {
        let at = format!("{}/{name}", self.name());
        match self {
            Self::Folder(folder) => read_file(&folder.join(name), bytes_max),
            Self::Archive { files, .. } => match files.get(name) {
                Some(bytes) if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= bytes_max) => {
                    Ok(bytes.clone())
                }
                Some(bytes) => Err(too_large(at, bytes.len(), bytes_max)),
                None => Err(BundleError::Unreadable { at, why: "no such file in the archive".to_owned() }),
            },
        }
    }
}

/// Reads a regular file of bounded size.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, BundleError> {
    let at = || path.display().to_string();
    let failed = |error: std::io::Error| BundleError::Unreadable { at: at(), why: error.to_string() };
    let file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(BundleError::Unreadable { at: at(), why: "not a regular file".to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= bytes_max) {
        return Ok(bytes);
    }
    let found = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    Err(too_large(at(), found, bytes_max))
}

fn too_large(at: String, bytes: usize, max: u64) -> BundleError {
    BundleError::Unreadable { at, why: format!("too large: {bytes} bytes of at most {max}") }
}

/// Unpacks an archive into memory: regular files at its top level only.
fn archive(path: &Path) -> Result<Source, BundleError> {
    let at = || path.display().to_string();
    let broken = |rule: String| BundleError::Archive { at: at(), rule };
    let file = std::fs::File::open(path)
        .map_err(|error| BundleError::Unreadable { at: at(), why: error.to_string() })?;
    let unpacked = flate2::read::GzDecoder::new(file).take(ARCHIVE_BYTES_MAX);
    let mut archive = tar::Archive::new(unpacked);
    let mut files = BTreeMap::new();
    for entry in archive.entries().map_err(|error| broken(error.to_string()))? {
        let mut entry = entry.map_err(|error| broken(error.to_string()))?;
        let name = entry.path().map_err(|error| broken(error.to_string()))?.to_string_lossy().into_owned();
        let name = name.trim_start_matches("./").trim_end_matches('/').to_owned();
        match entry.header().entry_type() {
            tar::EntryType::Directory if name.is_empty() => continue,
            tar::EntryType::Regular if !name.is_empty() && !name.contains('/') => {}
            _ => return Err(broken(format!("{name:?} is not a regular file at its top level"))),
        }
        if files.len() >= ARCHIVE_FILES_MAX {
            return Err(broken(format!("it has more than {ARCHIVE_FILES_MAX} files")));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
        if u64::try_from(bytes.len()).ok() != Some(entry.size()) {
            return Err(broken(format!("it is cut short, or larger than {ARCHIVE_BYTES_MAX} bytes")));
        }
        files.insert(name, bytes);
    }
    Ok(Source::Archive { path: path.to_owned(), files })
}

/// Bundles at or in a folder, by name. `path` may itself be a bundle.
pub(super) fn bundles_in(path: &Path, required: bool) -> Result<Vec<PathBuf>, BundleError> {
    let at = path.display().to_string();
    if at.starts_with("oci:") {
        return Err(BundleError::Oci(at));
    }
    if path.is_file() || path.join(MANIFEST).exists() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => return Ok(Vec::new()),
        Err(error) => {
            return Err(BundleError::Unreadable { at, why: error.to_string() });
        }
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join(MANIFEST).is_file() || path.to_string_lossy().ends_with(".tar.gz"))
        .collect();
    found.sort();
    found.truncate(BUNDLES_MAX);
    if found.is_empty() && required {
        return Err(BundleError::Unreadable {
            at,
            why: "no bundle.json in it, and no bundle below it".to_owned(),
        });
    }
    Ok(found)
}
