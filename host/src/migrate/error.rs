//! Why a database was not migrated, and what the process exits with.

use std::fmt;

/// Exit status of a fault that another try may not meet.
const EXIT_FAILED: u8 = 1;
/// Exit status of wrong settings.
const EXIT_USAGE: u8 = 2;
/// Exit status of a refusal: the database is not one that this binary may change.
const EXIT_REFUSED: u8 = 3;

/// A run that did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The database is not one that this binary may change. Nothing was written, except after a failed recheck.
    #[error("MIGRATION_HISTORY_UNSUPPORTED ({reason}): {text}")]
    Refused {
        /// Which rule was broken.
        reason: Reason,
        /// A sentence that names the object and the way out.
        text: String,
    },
    /// Another migrator held the lock all the time.
    #[error(
        "MIGRATION_LOCK_TIMEOUT: another migrator holds the lock since more than {wait_secs} s; try again later"
    )]
    LockTimeout {
        /// Seconds waited.
        wait_secs: u64,
    },
    /// A file failed; it left nothing behind, and the files before it stay applied.
    #[error("MIGRATION_FAILED: migration {version} failed with SQLSTATE {}: {source}", .sqlstate.as_deref().unwrap_or("unknown"))]
    Failed {
        /// Version of the file.
        version: i64,
        /// What the server said.
        sqlstate: Option<String>,
        /// The server's error.
        source: sqlx::Error,
    },
    /// The URL cannot be read.
    #[error(
        "DATABASE_CONFIGURATION_INVALID: the database URL cannot be read; expected postgres://occ_migrator@HOST/DATABASE"
    )]
    Configuration,
    /// The server cannot be reached or does not let the migrator in.
    #[error("PERSISTENCE_UNAVAILABLE: the database does not answer: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The connection broke; the run starts over a few times before this is returned.
    #[error("PERSISTENCE_UNAVAILABLE: the connection to the database was lost: {0}")]
    ConnectionLost(#[source] sqlx::Error),
    /// A statement of the verifier failed.
    #[error("MIGRATION_FAILED: a statement of the verifier failed: {0}")]
    Statement(#[source] sqlx::Error),
}

impl MigrateError {
    pub(super) fn refused(reason: Reason, text: impl Into<String>) -> Self {
        Self::Refused { reason, text: text.into() }
    }

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "MIGRATION_HISTORY_UNSUPPORTED",
            Self::LockTimeout { .. } => "MIGRATION_LOCK_TIMEOUT",
            Self::Failed { .. } | Self::Statement(_) => "MIGRATION_FAILED",
            Self::Configuration => "DATABASE_CONFIGURATION_INVALID",
            Self::Unavailable(_) | Self::ConnectionLost(_) => "PERSISTENCE_UNAVAILABLE",
        }
    }

    /// The broken rule of a refusal.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// Exit status of the process.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Refused { .. } => EXIT_REFUSED,
            Self::Configuration => EXIT_USAGE,
            _ => EXIT_FAILED,
        }
    }
}

/// A fault of the connection is told apart, because it may hide a COMMIT that succeeded.
impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        let lost = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => true,
            // 08: connection exception; 57P01..57P03: the server is shut down or the process was ended.
            sqlx::Error::Database(error) => {
                error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P0"))
            }
            _ => false,
        };
        if lost { Self::ConnectionLost(error) } else { Self::Statement(error) }
    }
}

/// Rule that a refused database breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Embedded files and manifest name different migrations.
    SourceSetDiffers,
    /// An embedded file differs from what the manifest recorded.
    SourceBytesDiffer,
    /// The server is too old or its encoding is not UTF8.
    ServerUnsupported,
    /// The server accepts no writes.
    ServerReadOnly,
    /// The connection is served by changing server processes.
    ConnectionPooled,
    /// The ledger does not look as this product makes it.
    LedgerChanged,
    /// A receipt names another file or other bytes.
    ReceiptsDiffer,
    /// A migration is missing before one that has run, or an unknown one has run.
    ReceiptsNotAPrefix,
    /// A receipt says that its file did not finish.
    ReceiptUnfinished,
    /// The database was migrated by a newer binary.
    HistoryNewerThanBinary,
    /// The schema holds objects that no migration made.
    InitialSchemaNotEmpty,
}

impl Reason {
    /// The stable text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SourceSetDiffers => "source-set-differs",
            Self::SourceBytesDiffer => "source-bytes-differ",
            Self::ServerUnsupported => "server-unsupported",
            Self::ServerReadOnly => "server-read-only",
            Self::ConnectionPooled => "connection-pooled",
            Self::LedgerChanged => "ledger-changed",
            Self::ReceiptsDiffer => "receipts-differ",
            Self::ReceiptsNotAPrefix => "receipts-not-a-prefix",
            Self::ReceiptUnfinished => "receipt-unfinished",
            Self::HistoryNewerThanBinary => "history-newer-than-binary",
            Self::InitialSchemaNotEmpty => "initial-schema-not-empty",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
