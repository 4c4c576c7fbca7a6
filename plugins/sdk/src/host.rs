//! Capabilities as traits, so that a plugin's logic does not care where it runs.

use serde::de::DeserializeOwned;

use crate::bindings::process::{ProcessError, Spec, Status};
use crate::bindings::types::Failure;
use crate::bindings::{log, process, settings};
use crate::reason;

/// One line of a process log: milliseconds since the epoch, error stream, text.
pub type LogLine = (Option<u64>, bool, String);

/// What the host offers one call.
pub trait Host {
    /// Writes one structured log line.
    fn log(&self, level: log::Level, message: &str, fields: &[(&str, &str)]);
    /// The settings document as JSON text.
    fn settings(&self) -> String;
    /// Supervised processes of this machine.
    fn process(&self) -> &dyn Process;
}

/// The `process` capability; the contract's `host.wit` says what each function does.
#[expect(missing_docs, reason = "the contract documents these")]
pub trait Process {
    fn check(&self, command: &[String]) -> Result<(), ProcessError>;
    fn start(&self, spec: &Spec) -> Result<Status, ProcessError>;
    fn stop(&self, id: &str) -> Result<(), ProcessError>;
    fn remove_state(&self, id: &str) -> Result<(), ProcessError>;
    fn list(&self, labels: &[(String, String)]) -> Result<Vec<Status>, ProcessError>;
    fn logs(
        &self,
        id: &str,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> Result<Vec<LogLine>, ProcessError>;
}

/// The settings as the plugin's own type.
///
/// # Errors
/// `SETTINGS_UNREADABLE`, permanent: the host checks the document by the plugin's
/// schema, so this tells that schema and type differ.
pub fn settings_of<T: DeserializeOwned>(host: &dyn Host) -> Result<T, Failure> {
    serde_json::from_str(&host.settings())
        .map_err(|_| reason::permanent("SETTINGS_UNREADABLE", "The settings do not have the plugin's shape."))
}

/// The real capabilities: only inside a component.
#[derive(Debug, Clone, Copy)]
pub struct Component;

impl Host for Component {
    fn log(&self, level: log::Level, message: &str, fields: &[(&str, &str)]) {
        let fields: Vec<_> =
            fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        log::write(level, message, &fields);
    }

    fn settings(&self) -> String {
        settings::get()
    }

    fn process(&self) -> &dyn Process {
        self
    }
}

impl Process for Component {
    fn check(&self, command: &[String]) -> Result<(), ProcessError> {
        process::check(command)
    }

    fn start(&self, spec: &Spec) -> Result<Status, ProcessError> {
        process::start(spec)
    }

    fn stop(&self, id: &str) -> Result<(), ProcessError> {
        process::stop(id)
    }

    fn remove_state(&self, id: &str) -> Result<(), ProcessError> {
        process::remove_state(id)
    }

    fn list(&self, labels: &[(String, String)]) -> Result<Vec<Status>, ProcessError> {
        process::list(labels)
    }

    fn logs(
        &self,
        id: &str,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> Result<Vec<LogLine>, ProcessError> {
        process::logs(id, previous, tail_lines, since_seconds)
    }
}
