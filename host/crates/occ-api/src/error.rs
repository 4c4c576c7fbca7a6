//! Error codes of the API, their statuses, and the faults of single fields.

use serde::{Deserialize, Serialize};

/// Longest message, in code points.
pub const MESSAGE_CHARS_MAX: usize = 256;
/// Most field faults in one answer.
pub const DETAILS_MAX: usize = 32;
/// Longest JSON Pointer in a detail, in characters.
pub const PATH_CHARS_MAX: usize = 512;
/// Fields that a message names before "and N more".
const NAMED_MAX: usize = 3;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal;)*) => {
        /// Every code that `error.code` may hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// All of them, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The HTTP status that carries it.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }
        }
    };
}

codes! {
    /// Syntax, schema, or a rule over more than one field.
    InvalidRequest = "INVALID_REQUEST", 400;
    /// No valid credential.
    Unauthenticated = "UNAUTHENTICATED", 401;
    /// Network, key scope, permission or coverage.
    Forbidden = "FORBIDDEN", 403;
    /// Unknown route, or an item that is not there for this caller.
    NotFound = "NOT_FOUND", 404;
    /// Known path, other method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405;
    /// Bootstrap of an existing Installation.
    InstallationExists = "INSTALLATION_EXISTS", 409;
    /// Name taken, still referenced, state forbids it, a count limit reached.
    ResourceConflict = "RESOURCE_CONFLICT", 409;
    /// Write to an Agent that is being deleted.
    AgentDeleting = "AGENT_DELETING", 409;
    /// The operation needs a ready Namespace.
    NamespaceNotReady = "NAMESPACE_NOT_READY", 409;
    /// The Namespace still holds something.
    NamespaceNotEmpty = "NAMESPACE_NOT_EMPTY", 409;
    /// Nobody would be left with Installation `administer`.
    LastAdministrator = "LAST_ADMINISTRATOR", 409;
    /// No gateway Pod serves.
    AgentGatewayUnavailable = "AGENT_GATEWAY_UNAVAILABLE", 409;
    /// More than one gateway Pod serves.
    AmbiguousRuntime = "AMBIGUOUS_RUNTIME", 409;
    /// The first request with this key is still running.
    IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS", 409;
    /// `If-Match` does not match.
    PreconditionFailed = "PRECONDITION_FAILED", 412;
    /// The body is larger than the operation allows.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413;
    /// The body is not JSON.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415;
    /// Same key, other body.
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", 422;
    /// Too many of these.
    RateLimited = "RATE_LIMITED", 429;
    /// A defect.
    InternalError = "INTERNAL_ERROR", 500;
    /// Switched off, not built, or not offered by the selected driver.
    NotImplemented = "NOT_IMPLEMENTED", 501;
    /// Database, IAM store, driver or cluster.
    DependencyUnavailable = "DEPENDENCY_UNAVAILABLE", 503;
    /// The cursor of a log view cannot be continued.
    RuntimeLogsCursorInvalid = "RUNTIME_LOGS_CURSOR_INVALID", 400;
    /// The named instance is not of this revision.
    RuntimeLogsPodInvalid = "RUNTIME_LOGS_POD_INVALID", 400;
    /// This revision has no such source.
    RuntimeLogsSourceUnavailable = "RUNTIME_LOGS_SOURCE_UNAVAILABLE", 400;
    /// Too many log reads.
    RuntimeLogsRateLimited = "RUNTIME_LOGS_RATE_LIMITED", 429;
    /// The runtime does not answer.
    RuntimeLogsUnavailable = "RUNTIME_LOGS_UNAVAILABLE", 503;
    /// The view could not be audited.
    RuntimeLogsAuditUnavailable = "RUNTIME_LOGS_AUDIT_UNAVAILABLE", 503;
    /// The read took too long.
    RuntimeLogsTimeout = "RUNTIME_LOGS_TIMEOUT", 504;
}

/// What is wrong with one field.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FieldCode {
    /// Absent and required.
    Required,
    /// Not a field of this object.
    UnknownField,
    /// Of another JSON type.
    InvalidType,
    /// A text of another form.
    InvalidFormat,
    /// A value that the rules refuse.
    InvalidValue,
    /// More characters, bytes or items than allowed.
    TooLong,
    /// Nested deeper than allowed.
    TooDeep,
}

impl FieldCode {
    /// What a message says after the field's name.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Required => "is required",
            Self::UnknownField => "is not a known field",
            Self::InvalidType => "has the wrong type",
            Self::InvalidFormat => "has the wrong form",
            Self::InvalidValue => "has a value that is not accepted",
            Self::TooLong => "is too long",
            Self::TooDeep => "is nested too deep",
        }
    }
}

/// One fault: where, and which rule. Never the submitted value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FieldError {
    /// JSON Pointer into the request, cut at a whole segment.
    pub path: String,
    /// The rule.
    pub code: FieldCode,
}

impl FieldError {
    /// A fault at a JSON Pointer; long pointers are cut at a whole segment.
    #[must_use]
    pub fn new(path: impl Into<String>, code: FieldCode) -> Self {
        let mut path = path.into();
        while path.chars().count() > PATH_CHARS_MAX {
            match path.rfind('/') {
                Some(at) if at > 0 => path.truncate(at),
                _ => {
                    path = path.chars().take(PATH_CHARS_MAX).collect();
                }
            }
        }
        Self { path, code }
    }
}

/// One segment of a JSON Pointer.
#[must_use]
pub fn pointer_segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The sentence of an `INVALID_REQUEST`: up to three fields by name, then "and N more".
#[must_use]
pub fn invalid_message(details: &[FieldError]) -> String {
    let named: Vec<String> = details.iter().take(NAMED_MAX).map(named).collect();
    if named.is_empty() {
        return "The request is invalid.".to_owned();
    }
    let more = details.len().saturating_sub(NAMED_MAX);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    shortened(&format!("The request is invalid: {}{tail}.", named.join(", ")))
}

/// Cuts a message to the contract's length.
#[must_use]
pub fn shortened(message: &str) -> String {
    if message.chars().count() <= MESSAGE_CHARS_MAX {
        return message.to_owned();
    }
    let mut cut: String = message.chars().take(MESSAGE_CHARS_MAX - 1).collect();
    cut.push('…');
    cut
}

/// A field in a sentence; control and format characters of a submitted key are shown as `?`.
fn named(fault: &FieldError) -> String {
    let path = fault.path.strip_prefix('/').unwrap_or(&fault.path);
    let shown: String =
        path.chars().map(|character| if is_unprintable(character) { '?' } else { character }).collect();
    let shown = if shown.is_empty() { "the body".to_owned() } else { shown };
    format!("{shown} {}", fault.code.phrase())
}

/// Control, bidirectional, zero-width and line-separator characters.
#[must_use]
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `{data, meta}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Success<T> {
    /// The resource or list.
    pub data: T,
    /// About the answer.
    pub meta: Meta,
}

/// `{error, meta}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Failure {
    /// What went wrong.
    pub error: ErrorBody,
    /// About the answer.
    pub meta: Meta,
}

/// `error`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorBody {
    /// Stable code.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// Fields at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldError>,
}

/// `meta`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Id of the request, as in the header `x-request-id`.
    pub request_id: String,
    /// Present when paging was asked for: the next cursor, or null on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "double_option")]
    #[schemars(with = "Option<String>")]
    pub next_cursor: Option<Option<String>>,
}

/// Keeps "absent" and "null" apart.
mod double_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Option<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<String>>, D::Error> {
        Option::<String>::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_three_fields_and_counts_the_rest() {
        let details: Vec<FieldError> = ["/a", "/b\u{202e}", "/c", "/d", "/e"]
            .iter()
            .map(|path| FieldError::new(*path, FieldCode::Required))
            .collect();
        assert_eq!(
            invalid_message(&details),
            "The request is invalid: a is required, b? is required, c is required and 2 more."
        );
    }

    #[test]
    fn long_pointers_are_cut_at_a_segment() {
        let path = format!("/values/{}/end", "k".repeat(600));
        assert_eq!(FieldError::new(path, FieldCode::InvalidValue).path, "/values");
    }
}
