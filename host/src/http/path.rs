//! Path parameters: decoded once, checked by the rule that their name carries.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use occ_api::error::{ErrorCode, FieldCode, FieldError};
use occ_api::ids::{AgentId, AuditId, ConfigurationId, NamespaceId, RevisionId, SecretId};

use crate::error::{Error, Result};

/// Most characters of an opaque id.
const OPAQUE_CHARS_MAX: usize = 200;
/// Most characters of the key of work.
const WORK_KEY_CHARS_MAX: usize = 512;

/// The parameters of the matched path, in its order.
///
/// # Errors
/// `INVALID_REQUEST` naming the parameter.
pub(super) async fn read(parts: &mut Parts) -> Result<Vec<(String, String)>> {
    let raw = RawPathParams::from_request_parts(parts, &()).await.map_err(|_| {
        Error::new(ErrorCode::InvalidRequest, "The request is invalid: the path is not UTF-8.")
    })?;
    let params: Vec<(String, String)> =
        raw.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    match params.iter().find_map(|(name, value)| fault(name, value)) {
        Some(error) => Err(error),
        None => Ok(params),
    }
}

fn fault(name: &str, value: &str) -> Option<Error> {
    let (valid, rule) = match name {
        "namespaceId" => (NamespaceId::parse(value).is_ok(), "ns_ and a lowercase version 4 UUID"),
        "configurationId" => (ConfigurationId::parse(value).is_ok(), "cfg_ and a lowercase version 4 UUID"),
        "secretId" => (SecretId::parse(value).is_ok(), "sec_ and a lowercase version 4 UUID"),
        "agentId" => (AgentId::parse(value).is_ok(), "agt_ and a lowercase version 4 UUID"),
        "revisionId" | "deploymentId" => {
            (RevisionId::parse(value).is_ok(), "rev_ and a lowercase version 4 UUID")
        }
        "auditEventId" => (AuditId::parse(value).is_ok(), "aud_ and a lowercase version 4 UUID"),
        "key" => (is_text(value, WORK_KEY_CHARS_MAX), "1 to 512 characters"),
        _ => (is_text(value, OPAQUE_CHARS_MAX), "1 to 200 characters"),
    };
    if valid {
        return None;
    }
    let message = format!("The request is invalid: {name} must be {rule}.");
    let detail = FieldError::new(format!("/{name}"), FieldCode::InvalidFormat);
    Some(Error::new(ErrorCode::InvalidRequest, message).with_details(vec![detail]))
}

fn is_text(value: &str, chars_max: usize) -> bool {
    !value.is_empty() && value.chars().count() <= chars_max && !value.contains('\0')
}
