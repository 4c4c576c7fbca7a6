//! What plugins may reach: each capability is a module with native types, enforced
//! here whatever the component does.

mod grants;
mod log;
pub mod process;
mod supervisor;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use process::ProcessGrant;

pub use grants::{GrantProblem, Grants, Requests};
pub(crate) use log::{Level, write as write_log};
pub use supervisor::ProcessSupervisor;

/// Something of the host that a component can call; a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Log lines.
    Log,
    /// Its settings.
    Settings,
    /// A Kubernetes API.
    Kubernetes,
    /// Supervised processes.
    Process,
    /// Clocks, random numbers and standard streams.
    Wasi,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Log, Self::Settings, Self::Kubernetes, Self::Process, Self::Wasi];

    /// Lower-case name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Settings => "settings",
            Self::Kubernetes => "kubernetes",
            Self::Process => "process",
            Self::Wasi => "wasi",
        }
    }
}

/// What one plugin may reach: the settings, and what was both asked for and granted.
pub(crate) struct Granted {
    /// Plugin id.
    pub(crate) plugin: String,
    /// The settings document, as JSON text.
    pub(crate) settings: String,
    /// Processes, when granted.
    pub(crate) process: Option<(Arc<dyn ProcessSupervisor>, ProcessGrant)>,
    refused: Mutex<BTreeSet<Capability>>,
}

impl Granted {
    pub(crate) fn new(
        plugin: String,
        settings: String,
        process: Option<(Arc<dyn ProcessSupervisor>, ProcessGrant)>,
    ) -> Self {
        Self { plugin, settings, process, refused: Mutex::default() }
    }

    /// Names of the capabilities that answer.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names = vec!["log", "settings"];
        names.extend(self.process.is_some().then_some("process"));
        names
    }

    /// Logs, once for each plugin and capability, that something was asked for that was
    /// not granted.
    pub(crate) fn refuse(&self, capability: Capability, operation: &'static str) {
        let first = self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(capability);
        if first {
            tracing::warn!(
                event = "plugin.capability_refused",
                plugin = %self.plugin,
                capability = capability.as_str(),
                operation,
                "a capability that was not granted was asked for"
            );
        }
    }
}

impl std::fmt::Debug for Granted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Granted")
            .field("plugin", &self.plugin)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
