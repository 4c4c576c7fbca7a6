//! One error of the whole host: a stable code, a public sentence, an internal cause.
//!
//! There is no HTTP in here; `http/respond.rs` maps codes to statuses through `occ-api`.

use std::fmt;

use occ_api::error::{ErrorCode, FieldError};

/// Text of a commit whose answer was lost.
const COMMIT_UNKNOWN: &str = "The outcome of the change is unknown. Read the resource before trying again; \
                              with an Idempotency-Key, repeating the request is safe.";

type Cause = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Result of the host's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal or a fault. Clients see `code`, `message` and `details`, never the cause.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
    details: Vec<FieldError>,
    version: Option<u64>,
    retry_after_secs: Option<u32>,
    cause: Option<Cause>,
}

/// Where an error belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Answered by the API with a code of its contract.
    Api(ErrorCode),
    /// Ends a process before it is ready; the code appears in the start-up log line.
    Startup(&'static str),
}

impl Error {
    /// An error of the API's contract with a sentence for people.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::of(Kind::Api(code), message.into())
    }

    /// A fault that ends the process before it is ready.
    #[must_use]
    pub fn startup(code: &'static str, message: impl Into<String>) -> Self {
        Self::of(Kind::Startup(code), message.into())
    }

    /// `INVALID_REQUEST` naming each field at fault; the message names up to three of them.
    #[must_use]
    pub fn invalid(details: Vec<FieldError>) -> Self {
        let mut error = Self::new(ErrorCode::InvalidRequest, occ_api::error::invalid_message(&details));
        error.0.details = details;
        error
    }

    /// `INVALID_REQUEST` about one field.
    #[must_use]
    pub fn invalid_field(path: &str, code: occ_api::error::FieldCode) -> Self {
        Self::invalid(vec![FieldError::new(path, code)])
    }

    /// `NOT_FOUND` with the one text that absence, a foreign Namespace and a wrong parent share.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "The resource was not found.")
    }

    /// `FORBIDDEN` with the generic text.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::new(ErrorCode::Forbidden, "The caller is not allowed to do this.")
    }

    /// `RESOURCE_CONFLICT` with a text that names the blocking state.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ResourceConflict, message)
    }

    /// `DEPENDENCY_UNAVAILABLE`.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::DependencyUnavailable, message)
    }

    /// `INTERNAL_ERROR`; `what` goes to the log only.
    #[must_use]
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(ErrorCode::InternalError, "The server failed. The request id finds the cause in its log.")
            .caused_by(Note(what.into()))
    }

    /// A commit whose answer was lost.
    #[must_use]
    pub fn commit_unknown() -> Self {
        Self::unavailable(COMMIT_UNKNOWN)
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Adds field details.
    #[must_use]
    pub fn with_details(mut self, details: Vec<FieldError>) -> Self {
        self.0.details = details;
        self
    }

    /// Adds the current version of the resource, for a failed precondition.
    #[must_use]
    pub fn with_version(mut self, version: u64) -> Self {
        self.0.version = Some(version);
        self
    }

    /// Adds when to try again, in seconds.
    #[must_use]
    pub fn with_retry_after(mut self, secs: u32) -> Self {
        self.0.retry_after_secs = Some(secs);
        self
    }

    /// The API code; start-up faults read as `INTERNAL_ERROR`.
    #[must_use]
    pub fn api_code(&self) -> ErrorCode {
        match self.0.kind {
            Kind::Api(code) => code,
            Kind::Startup(_) => ErrorCode::InternalError,
        }
    }

    /// The stable code as text.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.0.kind {
            Kind::Api(code) => code.as_str(),
            Kind::Startup(code) => code,
        }
    }

    /// The sentence that clients see.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The fields at fault.
    #[must_use]
    pub fn details(&self) -> &[FieldError] {
        &self.0.details
    }

    /// The current version of the resource, after a failed precondition.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.0.version
    }

    /// When to try again, in seconds.
    #[must_use]
    pub fn retry_after_secs(&self) -> Option<u32> {
        self.0.retry_after_secs
    }

    /// Code, message and causes, for the log.
    #[must_use]
    pub fn internal_text(&self) -> String {
        let mut text = format!("{}: {}", self.code(), self.0.message);
        let mut cause = self.0.cause.as_deref().map(|c| c as &(dyn std::error::Error + 'static));
        while let Some(error) = cause {
            text.push_str(" <- ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    fn of(kind: Kind, message: String) -> Self {
        Self(Box::new(Inner {
            kind,
            message,
            details: Vec::new(),
            version: None,
            retry_after_secs: None,
            cause: None,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

/// A defect (a broken statement, an undecodable row) is `INTERNAL_ERROR`; everything else
/// means that the database cannot be reached or is too busy.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let defect = match &error {
            sqlx::Error::Database(database) => {
                !matches!(database.code().as_deref(), Some(code) if is_transient(code))
            }
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::Encode(_)
            | sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. } => true,
            _ => false,
        };
        if defect {
            Self::internal("a statement failed").caused_by(error)
        } else {
            Self::unavailable("The database is not available now.").caused_by(error)
        }
    }
}

/// A queue that cannot be reached is an unavailable database; a row that it cannot read is a defect.
impl From<occ_queue::QueueError> for Error {
    fn from(error: occ_queue::QueueError) -> Self {
        match error {
            occ_queue::QueueError::Database(error) => Self::from(error),
            error => Self::internal("the queue refused").caused_by(error),
        }
    }
}

/// SQLSTATE classes and codes that a later try may not meet again: connection, resources,
/// operator intervention, serialization, deadlock, lock and statement time-outs.
fn is_transient(code: &str) -> bool {
    ["08", "53", "57"].iter().any(|class| code.starts_with(class))
        || matches!(code, "40001" | "40P01" | "55P03" | "25P03")
}

#[derive(Debug)]
struct Note(String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Note {}
