//! Answers: the envelope, its headers, and the one mapping of errors.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use occ_api::error::{ErrorCode, FieldError};
use occ_api::ids::RequestId;
use serde::Serialize;
use serde_json::value::RawValue;

use super::etag;
use crate::error::{Error, Result};

/// Most entries of `error.details`.
const DETAILS_MAX: usize = 32;
/// Most code points of `error.message`.
const MESSAGE_CHARS_MAX: usize = 256;
/// Tells that an answer was stored earlier.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// What a handler answers.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    content: Content,
    version: Option<u64>,
    replayed: bool,
    next: Option<Option<String>>,
}

#[derive(Debug, Clone)]
enum Content {
    Nothing,
    Data(Box<RawValue>),
    Bare(Box<RawValue>),
    Attachment { media_type: &'static str, file_name: String, bytes: Vec<u8> },
}

impl Reply {
    /// 200 with `data`.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when `data` cannot be written as JSON.
    pub fn ok(data: &impl Serialize) -> Result<Self> {
        Self::data_with(200, data)
    }

    /// 201 with `data`.
    ///
    /// # Errors
    /// As [`Reply::ok`].
    pub fn created(data: &impl Serialize) -> Result<Self> {
        Self::data_with(201, data)
    }

    /// 202 with `data`.
    ///
    /// # Errors
    /// As [`Reply::ok`].
    pub fn accepted(data: &impl Serialize) -> Result<Self> {
        Self::data_with(202, data)
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self::new(204, Content::Nothing)
    }

    /// 200 with an array. `next` is absent when the caller did not page, else the cursor or nothing more.
    ///
    /// # Errors
    /// As [`Reply::ok`].
    pub fn page<T: Serialize>(items: &[T], next: Option<Option<String>>) -> Result<Self> {
        Ok(Self { next, ..Self::data_with(200, &items)? })
    }

    /// A document without the envelope.
    ///
    /// # Errors
    /// As [`Reply::ok`].
    pub fn bare(status: u16, document: &impl Serialize) -> Result<Self> {
        Ok(Self::new(status, Content::Bare(raw(document)?)))
    }

    /// A download without the envelope.
    #[must_use]
    pub fn attachment(media_type: &'static str, file_name: String, bytes: Vec<u8>) -> Self {
        Self::new(200, Content::Attachment { media_type, file_name, bytes })
    }

    /// Adds the `ETag` of a version.
    #[must_use]
    pub fn etag(self, version: u64) -> Self {
        Self { version: Some(version), ..self }
    }

    /// An answer that was stored by an earlier request.
    pub(super) fn replayed(status: u16, data: Option<Box<RawValue>>, version: Option<u64>) -> Self {
        let content = data.map_or(Content::Nothing, Content::Data);
        Self { version, replayed: true, ..Self::new(status, content) }
    }

    /// HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// `data` as JSON text.
    #[must_use]
    pub fn data(&self) -> Option<&str> {
        match &self.content {
            Content::Data(data) => Some(data.get()),
            _ => None,
        }
    }

    /// The version behind the `ETag`.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.version
    }

    /// The cursor of the next page, as [`Reply::page`] was given it.
    #[must_use]
    pub fn next_cursor(&self) -> Option<Option<&str>> {
        self.next.as_ref().map(|next| next.as_deref())
    }

    fn data_with(status: u16, data: &impl Serialize) -> Result<Self> {
        Ok(Self::new(status, Content::Data(raw(data)?)))
    }

    fn new(status: u16, content: Content) -> Self {
        Self { status, content, version: None, replayed: false, next: None }
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value)
        .map_err(|error| Error::internal("an answer cannot be written as JSON").caused_by(error))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    request_id: &'a RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a Option<String>>,
}

#[derive(Serialize)]
struct Success<'a> {
    data: &'a RawValue,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: FailureBody<'a>,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct FailureBody<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    details: &'a [FieldError],
}

/// The answer to a handler's reply.
pub(super) fn success(reply: &Reply, id: &RequestId) -> Response {
    let meta = Meta { request_id: id, next_cursor: reply.next.as_ref() };
    let (body, content_type) = match &reply.content {
        Content::Nothing => (Body::empty(), None),
        Content::Bare(document) => (Body::from(document.get().to_owned()), Some(JSON)),
        Content::Data(data) => (json_body(&Success { data, meta }), Some(JSON)),
        Content::Attachment { media_type, bytes, .. } => {
            (Body::from(bytes.clone()), Some(HeaderValue::from_static(media_type)))
        }
    };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(status, body, content_type, id);
    let headers = response.headers_mut();
    if let Some(version) = reply.version {
        insert(headers, ETAG, &etag::tag(version));
    }
    if reply.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if let Content::Attachment { file_name, .. } = &reply.content {
        insert(
            headers,
            axum::http::header::CONTENT_DISPOSITION,
            &format!("attachment; filename=\"{}\"", file_name.replace(['"', '\\', '/'], "_")),
        );
    }
    response
}

/// The answer to an error: exactly `error` and `meta`.
pub(super) fn failure(error: &Error, id: &RequestId) -> Response {
    let code = error.api_code();
    let details = error.details();
    let body = FailureBody {
        code: code.as_str(),
        message: cut(error.message()),
        details: details.get(..DETAILS_MAX).unwrap_or(details),
    };
    let meta = Meta { request_id: id, next_cursor: None };
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = response(status, json_body(&Failure { error: body, meta }), Some(JSON), id);
    let headers = response.headers_mut();
    if let Some(version) = error.version() {
        insert(headers, ETAG, &etag::tag(version));
    }
    if let Some(secs) = error.retry_after_secs() {
        insert(headers, RETRY_AFTER, &secs.to_string());
    }
    if code == ErrorCode::PayloadTooLarge {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// 405 with the methods that the path knows.
pub(super) fn method_not_allowed(allowed: &[&Method], id: &RequestId) -> Response {
    let error = Error::new(ErrorCode::MethodNotAllowed, "The path does not know this method.");
    let mut response = failure(&error, id);
    let list: Vec<&str> = allowed.iter().map(|method| method.as_str()).collect();
    insert(response.headers_mut(), ALLOW, &list.join(", "));
    response
}

fn response(status: StatusCode, body: Body, content_type: Option<HeaderValue>, id: &RequestId) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_TYPE, content_type.unwrap_or(JSON));
    insert(headers, REQUEST_ID, id.as_str());
    response
}

fn json_body(value: &impl Serialize) -> Body {
    // Every part is a string, a number or JSON already, so this cannot fail; an empty body would show if it did.
    Body::from(serde_json::to_vec(value).unwrap_or_default())
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn cut(message: &str) -> &str {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => message.get(..end).unwrap_or(message),
        None => message,
    }
}

#[cfg(test)]
mod tests;
