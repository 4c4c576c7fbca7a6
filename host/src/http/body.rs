//! Reading a request body: media type, size, time, then strict JSON.

use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::{HeaderMap, Method};
use http_body_util::BodyExt;
use occ_api::error::{ErrorCode, FieldCode, FieldError, pointer_segment};
use occ_api::json::parse_strict;
use serde_json::Value;

use super::operation::{BODY_DEPTH_MAX, Body, Operation, VALUES_DEPTH_MAX};
use crate::error::{Error, Result};

/// Longest time that a client may take to send a body.
pub(super) const BODY_READ_MAX: Duration = Duration::from_secs(30);

/// `Content-Length` within the operation's limit, before anything is read.
pub(super) fn check_length(headers: &HeaderMap, operation: &Operation) -> Result<()> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let limit = operation.body_bytes_max();
    match declared {
        Some(length) if usize::try_from(length).is_ok_and(|length| length <= limit) => Ok(()),
        Some(_) => Err(too_large(limit)),
        None => Ok(()),
    }
}

/// Reads the body as the operation declares it.
pub(super) async fn read(
    operation: &Operation,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Option<Value>> {
    if !announces_body(headers) {
        return match operation.body {
            Body::None => Ok(None),
            Body::EmptyObject | Body::Json { .. } => {
                Err(Error::new(ErrorCode::InvalidRequest, "The request is invalid: a JSON body is required."))
            }
        };
    }
    if operation.method != Method::GET && !is_json(headers) {
        return Err(Error::new(ErrorCode::UnsupportedMediaType, "The body must be application/json."));
    }
    if matches!(operation.body, Body::None) {
        return Err(Error::new(
            ErrorCode::InvalidRequest,
            "The request is invalid: this operation takes no body.",
        ));
    }
    let limit = operation.body_bytes_max();
    let bytes = tokio::time::timeout(BODY_READ_MAX, collect(body, limit)).await.map_err(|_| {
        Error::new(
            ErrorCode::InvalidRequest,
            format!("The request is invalid: the body did not arrive within {} s.", BODY_READ_MAX.as_secs()),
        )
    })??;
    let value = parse(operation, &bytes)?;
    if matches!(operation.body, Body::EmptyObject) {
        empty_object(&value)?;
    }
    Ok(Some(value))
}

fn announces_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0")
}

/// `application/json`, alone or with `charset=utf-8`.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Ok(text) = value.to_str() else { return false };
    let mut parts = text.split(';').map(str::trim);
    let is_media_type = parts.next().is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    is_media_type
        && parts.all(|parameter| {
            parameter.eq_ignore_ascii_case("charset=utf-8")
                || parameter.eq_ignore_ascii_case("charset=\"utf-8\"")
        })
}

async fn collect(mut body: HttpBody, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Error::new(ErrorCode::InvalidRequest, "The request is invalid: the body broke off.")
                .caused_by(error)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn parse(operation: &Operation, bytes: &[u8]) -> Result<Value> {
    if bytes.is_empty() {
        return Err(Error::new(
            ErrorCode::InvalidRequest,
            "The request is invalid: a JSON body is required.",
        ));
    }
    let open = operation.deep_member.map(|member| (member, VALUES_DEPTH_MAX));
    parse_strict(bytes, BODY_DEPTH_MAX, open).map_err(|fault| Error::invalid(vec![fault]))
}

fn empty_object(value: &Value) -> Result<()> {
    match value.as_object() {
        Some(members) if members.is_empty() => Ok(()),
        Some(members) => {
            let unknown =
                |key: &String| FieldError::new(format!("/{}", pointer_segment(key)), FieldCode::UnknownField);
            Err(Error::invalid(members.keys().map(unknown).collect()))
        }
        None => Err(Error::invalid_field("", FieldCode::InvalidType)),
    }
}

fn too_large(limit: usize) -> Error {
    Error::new(ErrorCode::PayloadTooLarge, format!("The body is larger than {limit} bytes."))
}
