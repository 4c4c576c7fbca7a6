//! Configuration: the environment of a process and the Installation YAML.
//!
//! Unknown names are refused, every problem of one stage is reported at once, and no
//! message holds a value. Secrets come from a file or the environment, never from YAML.

mod environment;
mod installation;
mod worker;
mod yaml;

pub use environment::{Environment, LogFormat, Mode, Secret, ServeEnvironment, WorkerEnvironment};
pub use installation::{
    DriverSelection, Installation, Limits, PluginLimits, SecretStoreSelection, Trust, Unsigned,
};
pub use worker::WorkerSettings;
pub use yaml::YAML_BYTES_MAX;

use std::fmt;

/// One thing wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Variable name or JSON Pointer.
    pub at: String,
    /// The rule that is broken and the way out; never the value.
    pub rule: String,
}

impl Problem {
    pub(crate) fn new(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { at: at.into(), rule: rule.into() }
    }
}

/// Everything wrong at one stage; the process ends with status 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// Stable code of the stage, e.g. `CONFIGURATION_INVALID`.
    pub code: &'static str,
    /// At least one.
    pub list: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        for problem in &self.list {
            write!(f, "\n  {}: {}", problem.at, problem.rule)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests;
