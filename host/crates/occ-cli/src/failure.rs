//! How a command fails: exit code, the error form in text and JSON, and hints.

use std::fmt::Write as _;

use occ_api::error::{FieldError, is_unprintable};
use serde_json::{Map, Value, json};

/// What a command returns when it fails.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Exit codes; 0 is success and 130 an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A deployment or Namespace failed, 5xx, no connection, an answer that is none.
    Failed,
    /// Flags, arguments, input files; a 400.
    Usage,
    /// 401, 403, no credential, can-i denied.
    Denied,
    /// 404, no matching name.
    NotFound,
    /// 409, 412, 422.
    Conflict,
    /// Time is up.
    TimedOut,
}

impl Exit {
    /// The exit code that belongs to an HTTP status.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            400 | 413 | 415 => Self::Usage,
            401 | 403 => Self::Denied,
            404 => Self::NotFound,
            409 | 412 | 422 => Self::Conflict,
            _ => Self::Failed,
        }
    }

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::NotFound => 4,
            Self::Conflict => 5,
            Self::TimedOut => 6,
        }
    }
}

/// A failed command.
#[derive(Debug, Clone)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    exit: Exit,
    status: Option<u16>,
    code: String,
    message: String,
    details: Vec<FieldError>,
    request_id: Option<String>,
    hints: Vec<String>,
    retry_after_secs: Option<u64>,
    shows_code: bool,
}

impl Failure {
    /// A failure on this side of the connection.
    pub(crate) fn local(exit: Exit, code: &str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            exit,
            status: None,
            code: code.to_owned(),
            message: message.into(),
            details: Vec::new(),
            request_id: None,
            hints: Vec::new(),
            retry_after_secs: None,
            shows_code: false,
        }))
    }

    /// Wrong flags or arguments.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::local(Exit::Usage, "USAGE", message)
    }

    /// An answer that breaks the contract of the API.
    pub(crate) fn invalid_response(why: impl std::fmt::Display) -> Self {
        Self::local(Exit::Failed, "INVALID_RESPONSE", format!("invalid response: {why}"))
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::local(Exit::Usage, "FILE", format!("{}: {error}", path.display()))
    }

    /// An error that the server answered.
    pub(crate) fn answered(
        status: u16,
        code: String,
        message: String,
        details: Vec<FieldError>,
        request_id: Option<String>,
    ) -> Self {
        Self(Box::new(Inner {
            exit: Exit::of_status(status),
            status: Some(status),
            code,
            message,
            details,
            request_id,
            hints: Vec::new(),
            retry_after_secs: None,
            shows_code: false,
        }))
    }

    /// Adds a line that says what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Puts the code before the message in the text form.
    pub(crate) fn with_code_shown(mut self) -> Self {
        self.0.shows_code = true;
        self
    }

    /// Keeps what the server asked to wait.
    pub(crate) fn retry_after(mut self, secs: Option<u64>) -> Self {
        self.0.retry_after_secs = secs;
        self
    }

    /// HTTP status, when a server answered.
    pub(crate) fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Stable code.
    pub(crate) fn code(&self) -> &str {
        &self.0.code
    }

    /// The sentence.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Seconds that the server asked to wait.
    pub(crate) fn retry_after_secs(&self) -> Option<u64> {
        self.0.retry_after_secs
    }

    /// How the program ends.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit
    }

    /// Was the server out of reach, so that asking again may help?
    pub(crate) fn is_connection(&self) -> bool {
        matches!(self.code(), "CONNECTION_FAILED" | "TIMED_OUT") && self.status().is_none()
    }

    /// The text form, without the last line break.
    pub(crate) fn to_text(&self) -> String {
        let inner = &self.0;
        let mut text = match inner.status {
            Some(status) => {
                format!("error: {status} {}: {}", printable(&inner.code), printable(&inner.message))
            }
            None if inner.shows_code => {
                format!("error: {}: {}", printable(&inner.code), printable(&inner.message))
            }
            None => format!("error: {}", printable(&inner.message)),
        };
        for detail in &inner.details {
            let _ = write!(text, "\n  {} {}", printable(&detail.path), code_of(detail));
        }
        if let Some(id) = &inner.request_id {
            let _ = write!(text, "\n  request {}", printable(id));
        }
        for hint in &inner.hints {
            let _ = write!(text, "\n  hint: {}", hint.replace('\n', "\n  "));
        }
        text
    }

    /// The machine form.
    pub(crate) fn to_json(&self) -> Value {
        let inner = &self.0;
        let mut error = Map::new();
        if let Some(status) = inner.status {
            error.insert("status".to_owned(), json!(status));
        }
        error.insert("code".to_owned(), json!(inner.code));
        error.insert("message".to_owned(), json!(inner.message));
        if !inner.details.is_empty() {
            error.insert("details".to_owned(), json!(inner.details));
        }
        if let Some(id) = &inner.request_id {
            error.insert("requestId".to_owned(), json!(id));
        }
        json!({ "error": error })
    }
}

fn code_of(detail: &FieldError) -> String {
    serde_json::to_value(detail.code)
        .ok()
        .and_then(|code| code.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Shows what would move the cursor, hide or reorder text.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if is_unprintable(character) { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use occ_api::error::FieldCode;

    use super::*;

    fn answered() -> Failure {
        Failure::answered(
            409,
            "NAMESPACE_NOT_READY".to_owned(),
            "The Namespace\u{1b}[2J is not ready.".to_owned(),
            vec![FieldError::new("/configurationId", FieldCode::InvalidFormat)],
            Some("req_1".to_owned()),
        )
        .hint("occ namespace get ns_1 --wait")
    }

    #[test]
    fn the_text_form_has_details_request_and_hint() {
        assert_eq!(
            answered().to_text(),
            "error: 409 NAMESPACE_NOT_READY: The Namespace?[2J is not ready.\n  /configurationId INVALID_FORMAT\n  \
             request req_1\n  hint: occ namespace get ns_1 --wait"
        );
        assert_eq!(Failure::usage("no URL").to_text(), "error: no URL");
    }

    #[test]
    fn the_machine_form_omits_what_a_local_error_lacks() {
        assert_eq!(
            answered().to_json(),
            json!({"error": {"status": 409, "code": "NAMESPACE_NOT_READY", "message": "The Namespace\u{1b}[2J is not ready.",
                "details": [{"path": "/configurationId", "code": "INVALID_FORMAT"}], "requestId": "req_1"}})
        );
        assert_eq!(
            Failure::usage("no URL").to_json(),
            json!({"error": {"code": "USAGE", "message": "no URL"}})
        );
    }

    #[test]
    fn every_row_of_the_exit_table() {
        for (status, code) in [
            (400, 2),
            (401, 3),
            (403, 3),
            (404, 4),
            (409, 5),
            (412, 5),
            (413, 2),
            (415, 2),
            (422, 5),
            (429, 1),
            (500, 1),
            (501, 1),
            (503, 1),
            (504, 1),
        ] {
            assert_eq!(Exit::of_status(status).code(), code, "{status}");
        }
    }
}
