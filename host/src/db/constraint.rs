//! Reads which rule of the schema a statement broke, so that a slice can answer kindly.

use sqlx::error::ErrorKind;

/// A refused statement, by the constraint that refused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A unique key exists already.
    Unique(String),
    /// A referenced row is absent, or still referenced.
    ForeignKey(String),
    /// A check failed.
    Check(String),
    /// A trigger refused the change (SQLSTATE 55000).
    Lifecycle,
}

/// The violation behind a database error; `None` for every other fault.
#[must_use]
pub fn violation(error: &sqlx::Error) -> Option<Violation> {
    let database = error.as_database_error()?;
    let name = || database.constraint().unwrap_or_default().to_owned();
    match database.kind() {
        ErrorKind::UniqueViolation => Some(Violation::Unique(name())),
        ErrorKind::ForeignKeyViolation => Some(Violation::ForeignKey(name())),
        ErrorKind::CheckViolation => Some(Violation::Check(name())),
        _ => (database.code().as_deref() == Some("55000")).then_some(Violation::Lifecycle),
    }
}
