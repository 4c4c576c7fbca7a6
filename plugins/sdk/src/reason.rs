//! Short forms for the contract's reasons, failures and problems.

use serde_json::Value;

use crate::bindings::types::{Failure, Outage, OutageKind, Progress, Reason, SettingProblem};

/// A reason without data. `code` matches `[A-Z][A-Z0-9_]{0,63}`; `message` is one
/// sentence without tenant data.
#[must_use]
pub fn reason(code: &str, message: &str) -> Reason {
    Reason { code: code.to_owned(), message: message.to_owned(), data: None }
}

/// A reason with the small closed document that belongs to its code.
#[must_use]
pub fn reason_with(code: &str, message: &str, data: &Value) -> Reason {
    Reason { data: Some(data.to_string()), ..reason(code, message) }
}

/// Applied, not there yet: the host looks again.
#[must_use]
pub fn waiting(code: &str, message: &str) -> Progress {
    Progress::Waiting(reason(code, message))
}

/// No later attempt can succeed without a new revision or an operator.
#[must_use]
pub fn permanent(code: &str, message: &str) -> Failure {
    Failure::Permanent(reason(code, message))
}

/// Worth another attempt, with back-off.
#[must_use]
pub fn retry(code: &str, message: &str) -> Failure {
    Failure::Retry(reason(code, message))
}

/// A dependency that is down or busy; `dependency` is a lower-case slug.
#[must_use]
pub fn outage(dependency: &str, kind: OutageKind) -> Failure {
    Failure::Outage(Outage { dependency: dependency.to_owned(), kind, retry_after_ms: None })
}

/// One field that cannot be accepted; `path` is a JSON Pointer.
#[must_use]
pub fn problem(path: impl Into<String>, message: impl Into<String>) -> SettingProblem {
    SettingProblem { path: path.into(), message: message.into() }
}
