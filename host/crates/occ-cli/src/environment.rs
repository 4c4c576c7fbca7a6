//! What `occ` takes from its environment, read once, in one place.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variables that matter, and the folders that follow from them. A variable that is set to
/// nothing counts as not set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// `OCC_URL`
    pub(crate) url: Option<String>,
    /// `OCC_SERVICE_KEY_FILE`
    pub(crate) service_key_file: Option<PathBuf>,
    /// `OCC_NAMESPACE`
    pub(crate) namespace: Option<String>,
    /// `OCC_CA_BUNDLE`
    pub(crate) ca_bundle: Option<PathBuf>,
    /// `OCC_TIMEOUT_SECONDS`
    pub(crate) timeout_seconds: Option<String>,
    /// `OCC_CONTEXT`
    pub(crate) context: Option<String>,
    /// `OCC_CONFIG`
    pub(crate) config: Option<PathBuf>,
    /// `VISUAL`, else `EDITOR`
    pub(crate) editor: Option<OsString>,
    /// `PATH`
    pub(crate) path: Option<OsString>,
    /// Folder that holds `occ/config.yaml` by default.
    pub(crate) config_dir: Option<PathBuf>,
}

impl Environment {
    /// Reads the process's environment.
    pub(crate) fn of_process() -> Self {
        Self::of(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// Reads variables by a function.
    pub(crate) fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let path = |name: &str| variable(name).map(PathBuf::from);
        let home = path("HOME");
        let native = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
        Self {
            url: text("OCC_URL"),
            service_key_file: path("OCC_SERVICE_KEY_FILE"),
            namespace: text("OCC_NAMESPACE"),
            ca_bundle: path("OCC_CA_BUNDLE"),
            timeout_seconds: text("OCC_TIMEOUT_SECONDS"),
            context: text("OCC_CONTEXT"),
            config: path("OCC_CONFIG"),
            editor: variable("VISUAL").or_else(|| variable("EDITOR")),
            path: variable("PATH"),
            config_dir: path("XDG_CONFIG_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| home.map(|home| home.join(native))),
        }
    }
}
