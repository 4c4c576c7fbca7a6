//! Why an Installation was not bootstrapped, and what the process exits with.

use std::fmt;
use std::io;
use std::path::Path;

use crate::config::Problem;

/// Exit status of a fault that another try may not meet.
const EXIT_FAILED: u8 = 1;
/// Exit status of wrong inputs.
const EXIT_USAGE: u8 = 2;
/// Exit status of a refusal: database or folder are not what this command may change.
const EXIT_REFUSED: u8 = 3;

/// A run that did not end well. No text holds a password, a key or a URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Inputs are wrong; nothing was opened or written.
    #[error("{code}{}", .problems.iter().map(|problem| format!("\n  {}: {}", problem.at, problem.rule)).collect::<String>())]
    Inputs {
        /// Code of the first problem.
        code: &'static str,
        /// Every problem.
        problems: Vec<Problem>,
    },
    /// Folder or database are not what this command may change; nothing was changed.
    #[error("{code}: {text}")]
    Refused {
        /// Stable code.
        code: &'static str,
        /// A sentence that names the object and the way out.
        text: String,
    },
    /// The database does not answer.
    #[error("PERSISTENCE_UNAVAILABLE: the database does not answer: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The answer to COMMIT was lost and the database stayed out of reach; the next run decides.
    #[error(
        "COMMIT_OUTCOME_UNKNOWN: attempt {attempt_id} may have committed; run bootstrap again, it finds out"
    )]
    CommitOutcomeUnknown {
        /// The attempt.
        attempt_id: String,
    },
    /// Something failed; run again.
    #[error("BOOTSTRAP_FAILED: {0}")]
    Failed(#[source] Fault),
    /// A test ended the run as a crash after this step would.
    #[error("stopped after a step, as a crash would")]
    Stopped,
}

/// What failed in a run that may be tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A statement failed.
    #[error("a statement failed: {0}")]
    Database(#[source] sqlx::Error),
    /// The work of the first Namespace was not queued.
    #[error("the first Namespace was not queued: {0}")]
    Queue(#[source] occ_queue::QueueError),
    /// The evidence could not be written.
    #[error("the audit event was not written: {0}")]
    Evidence(#[source] crate::error::Error),
    /// A file could not be read or written.
    #[error("{file}: {source}")]
    File {
        /// Name of the file or folder.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The password could not be hashed, or a record not written as JSON.
    #[error("{0}")]
    Internal(String),
    /// Another bootstrap held the lock all the time.
    #[error("another bootstrap is running")]
    Busy,
}

impl BootstrapError {
    pub(super) fn refused(code: &'static str, text: impl Into<String>) -> Self {
        Self::Refused { code, text: text.into() }
    }

    pub(super) fn output_exists(name: &str) -> Self {
        Self::refused(
            "BOOTSTRAP_OUTPUT_EXISTS",
            format!("`{name}` in the output folder belongs to no attempt of this database; move it away"),
        )
    }

    pub(super) fn failed(fault: Fault) -> Self {
        Self::Failed(fault)
    }

    pub(super) fn file(file: &Path, source: io::Error) -> Self {
        let file = file
            .file_name()
            .map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
        Self::Failed(Fault::File { file, source })
    }

    pub(super) fn internal(what: impl fmt::Display) -> Self {
        Self::Failed(Fault::Internal(what.to_string()))
    }

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Inputs { code, .. } | Self::Refused { code, .. } => code,
            Self::Unavailable(_) => "PERSISTENCE_UNAVAILABLE",
            Self::CommitOutcomeUnknown { .. } => "COMMIT_OUTCOME_UNKNOWN",
            Self::Failed(_) | Self::Stopped => "BOOTSTRAP_FAILED",
        }
    }

    /// Exit status of the process.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Inputs { .. } => EXIT_USAGE,
            Self::Refused { .. } => EXIT_REFUSED,
            _ => EXIT_FAILED,
        }
    }
}

impl From<sqlx::Error> for BootstrapError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => Self::Unavailable(error),
            other => Self::Failed(Fault::Database(other)),
        }
    }
}

impl From<occ_queue::QueueError> for BootstrapError {
    fn from(error: occ_queue::QueueError) -> Self {
        Self::Failed(Fault::Queue(error))
    }
}

impl From<crate::error::Error> for BootstrapError {
    fn from(error: crate::error::Error) -> Self {
        Self::Failed(Fault::Evidence(error))
    }
}
