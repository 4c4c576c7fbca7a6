//! Saved contexts: which server, Namespace and key file a name stands for. The file holds no secret.
//!
//! `<config dir>/occ/config.yaml`, mode 0600 in a folder of mode 0700. Writes go to a temporary file in the
//! same folder, are flushed to disk, and replace the file by renaming.

use std::fs::{DirBuilder, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// Most contexts in one file.
const CONTEXTS_MAX: usize = 256;
/// Largest file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Longest name of a context, in characters.
const NAME_CHARS_MAX: usize = 100;

/// Why contexts cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ContextsError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not what `occ` writes.
    #[error("{} is not a file of contexts: {why}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The first fault.
        why: String,
    },
    /// The folder or file could be changed or read by others.
    #[error("{} is open to others; make it private: chmod {mode} {}", path.display(), path.display())]
    Loose {
        /// The file or folder.
        path: PathBuf,
        /// The mode that it must have.
        mode: &'static str,
    },
    /// Nothing says where the file is.
    #[error("cannot tell where contexts are kept: set HOME, XDG_CONFIG_HOME or OCC_CONFIG, or give --config")]
    NoFolder,
    /// A name that cannot be one.
    #[error("a context's name has 1 to 100 characters, none of them white space or a control character")]
    Name,
    /// No context has this name.
    #[error("there is no context `{0}`; see: occ context list")]
    Unknown(String),
}

/// One saved context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Context {
    /// How it is called.
    pub name: String,
    /// Origin of the server.
    pub url: String,
    /// Id of the Namespace that commands are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// File with the service key, at `data.key`; absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_key_file: Option<PathBuf>,
    /// PEM roots added to the system's; absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<PathBuf>,
    /// Output form, unless a flag says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contexts {
    /// The one that is used unless another is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// All of them, in the order in which they were made.
    #[serde(default)]
    pub contexts: Vec<Context>,
}

impl Contexts {
    /// Reads the file; one that does not exist has no contexts.
    ///
    /// # Errors
    /// Unreadable, open to others, or not a file of contexts.
    pub fn load(path: &Path) -> Result<Self, ContextsError> {
        let io = |source| ContextsError::Io { path: path.to_owned(), source };
        let found = match std::fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(io(error)),
        };
        let invalid = |why: String| ContextsError::Invalid { path: path.to_owned(), why };
        if !found.is_file() {
            return Err(invalid("it is not a regular file".to_owned()));
        }
        if found.mode() & 0o077 != 0 {
            return Err(ContextsError::Loose { path: path.to_owned(), mode: "600" });
        }
        if found.len() > FILE_BYTES_MAX {
            return Err(invalid(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(io)?;
        let budget = serde_saphyr::budget! { max_depth: 8, max_documents: 1, max_anchors: 0, max_aliases: 0 };
        let options = serde_saphyr::options! { budget: budget, with_snippet: false };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let contexts: Self = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| invalid(error.to_string().lines().next().unwrap_or_default().to_owned()))?;
        if contexts.contexts.len() > CONTEXTS_MAX {
            return Err(invalid(format!("it has more than {CONTEXTS_MAX} contexts")));
        }
        Ok(contexts)
    }

    /// Writes the file by renaming; makes its folder if it is missing.
    ///
    /// # Errors
    /// Unwritable, or a folder of the default place that is open to others.
    pub fn save(&self, path: &Path) -> Result<(), ContextsError> {
        let io = |source| ContextsError::Io { path: path.to_owned(), source };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        }
        let text = serde_saphyr::to_string(self)
            .map_err(|error| ContextsError::Invalid { path: path.to_owned(), why: error.to_string() })?;
        let mut file = tempfile::Builder::new()
            .prefix(".config.")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder)
            .map_err(io)?;
        file.write_all(text.as_bytes()).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }

    /// A context by its name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name == name)
    }

    /// The current one.
    #[must_use]
    pub fn current(&self) -> Option<&Context> {
        self.current_context.as_deref().and_then(|name| self.find(name))
    }

    /// Adds a context or replaces the one of the same name.
    ///
    /// # Errors
    /// A name that cannot be one.
    pub fn put(&mut self, context: Context) -> Result<(), ContextsError> {
        let length = context.name.chars().count();
        let strange =
            context.name.chars().any(|character| character.is_whitespace() || character.is_control());
        if strange || !(1..=NAME_CHARS_MAX).contains(&length) {
            return Err(ContextsError::Name);
        }
        match self.contexts.iter_mut().find(|known| known.name == context.name) {
            Some(known) => *known = context,
            None => self.contexts.push(context),
        }
        Ok(())
    }

    /// Removes a context; the current one leaves none current.
    ///
    /// # Errors
    /// No context has this name.
    pub fn remove(&mut self, name: &str) -> Result<(), ContextsError> {
        let before = self.contexts.len();
        self.contexts.retain(|context| context.name != name);
        if self.contexts.len() == before {
            return Err(ContextsError::Unknown(name.to_owned()));
        }
        if self.current_context.as_deref() == Some(name) {
            self.current_context = None;
        }
        Ok(())
    }
}

/// Where contexts are kept unless a flag or variable says otherwise.
///
/// # Errors
/// Nothing says where, or the folder is open to others.
pub(crate) fn default_path(environment: &Environment) -> Result<PathBuf, ContextsError> {
    let folder = environment.config_dir.as_ref().ok_or(ContextsError::NoFolder)?.join("occ");
    if let Ok(found) = std::fs::metadata(&folder)
        && found.mode() & 0o077 != 0
    {
        return Err(ContextsError::Loose { path: folder, mode: "700" });
    }
    Ok(folder.join("config.yaml"))
}

/// Saves a context in `config_path`, by default the user's file. It becomes the current one if there is none
/// and `make_current_if_none` says so. `occ-host dev` calls this.
///
/// # Errors
/// Unreadable or unwritable file, a name that cannot be one.
pub fn write_context(
    config_path: Option<&Path>,
    context: Context,
    make_current_if_none: bool,
) -> Result<(), ContextsError> {
    let path = match config_path {
        Some(path) => path.to_owned(),
        None => {
            let environment = Environment::of_process();
            match environment.config.clone() {
                Some(path) => path,
                None => default_path(&environment)?,
            }
        }
    };
    let mut contexts = Contexts::load(&path)?;
    let name = context.name.clone();
    contexts.put(context)?;
    if make_current_if_none && contexts.current().is_none() {
        contexts.current_context = Some(name);
    }
    contexts.save(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str) -> Context {
        Context { name: name.to_owned(), url: "http://127.0.0.1:7480".to_owned(), ..Context::default() }
    }

    #[test]
    fn a_written_context_is_read_back_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("occ/config.yaml");
        let dev = Context {
            namespace: Some("ns_1".to_owned()),
            service_key_file: Some(PathBuf::from("/state/admin-key.json")),
            ..context("dev")
        };
        write_context(Some(&path), dev.clone(), true).unwrap();
        write_context(Some(&path), context("other"), true).unwrap();
        let read = Contexts::load(&path).unwrap();
        assert_eq!(read.current(), Some(&dev));
        assert_eq!(read.contexts, [dev, context("other")]);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_loose_or_foreign_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        Contexts::default().save(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Contexts::load(&path), Err(ContextsError::Loose { mode: "600", .. })));
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for foreign in ["contexts: 7", "contexts: []\nkey: secret", "[", "contexts: []\ncontexts: []"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(matches!(Contexts::load(&path), Err(ContextsError::Invalid { .. })), "{foreign}");
        }
        let link = folder.path().join("link.yaml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Contexts::load(&link), Err(ContextsError::Invalid { .. })));
    }

    #[test]
    fn removing_the_current_context_leaves_none() {
        let mut contexts =
            Contexts { current_context: Some("a".to_owned()), contexts: vec![context("a"), context("b")] };
        contexts.remove("a").unwrap();
        assert_eq!(contexts, Contexts { current_context: None, contexts: vec![context("b")] });
        assert!(matches!(contexts.remove("a"), Err(ContextsError::Unknown(name)) if name == "a"));
        assert!(matches!(contexts.put(context("a b")), Err(ContextsError::Name)));
    }
}
