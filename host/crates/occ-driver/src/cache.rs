//! Compiled components on disk, so that a start compiles nothing.
//!
//! **Only a trusted folder is read**: loading compiled code runs it. Trusted is a folder
//! of this process's user with mode 0700, or one of root's that neither the process nor
//! anybody else may write (the image's). Files are named by the component's SHA-256 and
//! the engine's compatibility, written beside and renamed.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wasmtime::component::Component;

use crate::engine::Engine;

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Others could have put code there.
    #[error(
        "the cache folder {folder} is not private: it is owned by user {owner} with mode {mode:04o}; \
         give it to user {user} with mode 0700, or remove it"
    )]
    Loose {
        /// The folder.
        folder: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
        /// The user of this process.
        user: u32,
    },
    /// It is a link or no folder.
    #[error("the cache folder {0} is a link or no folder; name a real folder")]
    NoFolder(PathBuf),
    /// The system refuses.
    #[error("the cache folder {folder} cannot be used: {source}")]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A trusted folder of compiled components.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    writable: bool,
}

/// What loading took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// The code generator ran.
    pub compiled: bool,
}

impl Cache {
    /// Opens a folder, making it (0700) when it is not there.
    ///
    /// # Errors
    /// When it cannot be trusted.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        let io = |source| CacheError::Io { folder: folder.to_owned(), source };
        match std::fs::symlink_metadata(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
            Ok(_) => {}
        }
        let metadata = std::fs::symlink_metadata(folder).map_err(io)?;
        if !metadata.is_dir() {
            return Err(CacheError::NoFolder(folder.to_owned()));
        }
        let user = nix::unistd::geteuid().as_raw();
        let (owner, mode) = (metadata.uid(), metadata.permissions().mode() & 0o7777);
        let own = owner == user && mode & 0o077 == 0;
        let image = owner == 0 && mode & 0o222 == 0;
        if own || image {
            return Ok(Self { folder: folder.to_owned(), writable: own && mode & 0o200 != 0 });
        }
        Err(CacheError::Loose { folder: folder.to_owned(), owner, mode, user })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, engine: &Engine, sha256: &str) -> PathBuf {
        self.folder.join(format!("{sha256}-{}.cwasm", engine.compatibility()))
    }

    /// Compiled code of a component, when it is there and fits.
    pub(crate) fn load(&self, engine: &Engine, sha256: &str) -> Option<Component> {
        let file = self.file(engine, sha256);
        let metadata = std::fs::symlink_metadata(&file).ok()?;
        if !metadata.is_file() {
            return None;
        }
        match deserialize(engine, &file) {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(event = "plugin.cache_unusable", file = %file.display(), %error, "compiled anew");
                None
            }
        }
    }

    /// Keeps compiled code; failing to is no reason not to start.
    pub(crate) fn store(&self, engine: &Engine, sha256: &str, component: &Component) {
        if !self.writable {
            return;
        }
        let file = self.file(engine, sha256);
        if let Err(error) = self.write(&file, component) {
            tracing::warn!(event = "plugin.cache_unwritten", file = %file.display(), %error, "the next start compiles again");
        }
    }

    fn write(&self, file: &Path, component: &Component) -> Result<(), Box<dyn std::error::Error>> {
        use std::io::Write;
        let bytes = component.serialize()?;
        let mut staged = tempfile::NamedTempFile::new_in(&self.folder)?;
        staged.write_all(&bytes)?;
        staged.as_file().sync_all()?;
        staged.persist(file)?;
        Ok(())
    }
}

/// **The one place where compiled code is taken as it is.**
#[expect(
    unsafe_code,
    reason = "wasmtime cannot verify compiled code. `Cache::open` has proven that only this user or root could \
              write the folder, files appear in it by rename alone and whole, and their names bind them to the \
              component's digest and to this engine's compatibility, which wasmtime checks once more"
)]
fn deserialize(engine: &Engine, file: &Path) -> wasmtime::Result<Component> {
    // SAFETY: see the reason above; nobody changes a file in place, so the mapping is stable.
    unsafe { Component::deserialize_file(engine.wasmtime(), file) }
}

/// Takes a component from the cache, or compiles and keeps it. `bytes` have passed
/// [`crate::inspect`].
pub(crate) fn component(
    engine: &Engine,
    cache: Option<&Cache>,
    sha256: &str,
    bytes: &[u8],
) -> wasmtime::Result<(Component, Loaded)> {
    if let Some(component) = cache.and_then(|cache| cache.load(engine, sha256)) {
        return Ok((component, Loaded { compiled: false }));
    }
    let component = Component::from_binary(engine.wasmtime(), bytes)?;
    let Some(cache) = cache else {
        return Ok((component, Loaded { compiled: true }));
    };
    cache.store(engine, sha256, &component);
    // Code mapped from the file is shared and can be dropped by the system under pressure.
    let component = cache.load(engine, sha256).unwrap_or(component);
    Ok((component, Loaded { compiled: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(folder: &Path, mode: u32) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_is_made_private() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("aot");
        let cache = Cache::open(&folder).unwrap();
        assert!(cache.writable);
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_loose_folder_is_refused_and_named() {
        let parent = tempfile::tempdir().unwrap();
        for loose in [0o755, 0o770, 0o701, 0o777] {
            let folder = parent.path().join(format!("aot-{loose:o}"));
            std::fs::create_dir(&folder).unwrap();
            mode(&folder, loose);
            let error = Cache::open(&folder).unwrap_err();
            assert!(matches!(error, CacheError::Loose { mode, .. } if mode == loose), "{error}");
            assert!(error.to_string().contains(folder.to_str().unwrap()), "{error}");
        }
        let target = parent.path().join("target");
        std::fs::create_dir(&target).unwrap();
        mode(&target, 0o700);
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(Cache::open(&link), Err(CacheError::NoFolder(_))));
    }
}
