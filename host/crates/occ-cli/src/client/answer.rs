//! What a server answered: the envelope, or the failure that it stands for.

use occ_api::error::{FieldCode, FieldError};
use serde_json::{Map, Value};
use ureq::http::HeaderMap;

use super::retry_after;
use crate::failure::{Exit, Failure, Result};
use crate::origin::{Origin, shown};

/// Most field errors that are read from an answer.
const DETAILS_MAX: usize = 32;

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Raw {
    /// HTTP status.
    pub(crate) status: u16,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The whole body.
    pub(crate) body: Vec<u8>,
}

/// A success.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `data`; null for 204.
    pub(crate) data: Value,
    /// Cursor of the next page.
    pub(crate) next_cursor: Option<String>,
    /// Strong entity tag.
    pub(crate) etag: Option<String>,
    /// The envelope as it came.
    pub(crate) envelope: Value,
}

impl Raw {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// `error.code`, if the body has one.
    pub(super) fn error_code(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        body.pointer("/error/code").and_then(Value::as_str).map(str::to_owned)
    }
}

/// Reads a success; everything else is a failure.
pub(super) fn read(raw: Raw, origin: &Origin) -> Result<Answer> {
    refuse(&raw, origin)?;
    let etag = raw.header("etag").map(str::to_owned);
    if raw.status == 204 {
        if !raw.body.is_empty() {
            return Err(Failure::invalid_response("a 204 has a body"));
        }
        return Ok(Answer { data: Value::Null, next_cursor: None, etag, envelope: Value::Null });
    }
    let envelope: Value = serde_json::from_slice(&raw.body)
        .map_err(|error| Failure::invalid_response(format!("it is not JSON: {error}")))?;
    let (Some(data), Some(meta)) = (envelope.get("data"), envelope.get("meta").and_then(Value::as_object))
    else {
        return Err(Failure::invalid_response("it has no data and meta"));
    };
    let next_cursor = meta.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Ok(Answer { data: data.clone(), next_cursor, etag, envelope })
}

/// Turns everything but 2xx into its failure.
pub(super) fn refuse(raw: &Raw, origin: &Origin) -> Result<()> {
    match raw.status {
        200..=299 => Ok(()),
        300..=399 => Err(redirected(raw, origin)),
        400..=599 => Err(refused(raw)),
        status => Err(Failure::invalid_response(format!("its status is {status}"))),
    }
}

fn redirected(raw: &Raw, origin: &Origin) -> Failure {
    let Some(target) = raw.header("location") else {
        return Failure::invalid_response(format!("status {} has no target", raw.status));
    };
    let failure = Failure::local(
        Exit::Failed,
        "REDIRECTED",
        format!(
            "{origin} answered {} and points to {}; redirects are not followed",
            raw.status,
            shown(target)
        ),
    );
    let plain = shown(target);
    let elsewhere = plain.split_once("://").map(|(scheme, rest)| {
        let host = rest.split('/').next().unwrap_or_default();
        format!("{scheme}://{host}")
    });
    match elsewhere.and_then(|target| Origin::parse(&target).ok()) {
        Some(target) if target != *origin => failure.hint(format!("if you trust it, use --url {target}")),
        _ => failure,
    }
}

fn refused(raw: &Raw) -> Failure {
    let body: Option<Value> = serde_json::from_slice(&raw.body).ok();
    let error = body.as_ref().and_then(|body| body.get("error")).and_then(Value::as_object);
    let text =
        |error: &Map<String, Value>, key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some((error, code)) = error.and_then(|error| Some((error, text(error, "code")?))) else {
        // A proxy or another server.
        return Failure::answered(
            raw.status,
            "INVALID_RESPONSE".to_owned(),
            "the answer is not one of the API; is the URL right?".to_owned(),
            Vec::new(),
            None,
        )
        .retry_after(retry_after(raw));
    };
    let request_id = body.as_ref().and_then(|body| body.pointer("/meta/requestId")).and_then(Value::as_str);
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten().take(DETAILS_MAX);
    Failure::answered(
        raw.status,
        code,
        text(error, "message").unwrap_or_default(),
        details.filter_map(detail).collect(),
        request_id.map(str::to_owned),
    )
    .retry_after(retry_after(raw))
}

fn detail(value: &Value) -> Option<FieldError> {
    let code: FieldCode = serde_json::from_value(value.get("code")?.clone()).ok()?;
    Some(FieldError::new(value.get("path")?.as_str()?, code))
}

#[cfg(test)]
mod tests {
    use ureq::http::HeaderValue;

    use super::*;

    fn raw(status: u16, body: &str) -> Raw {
        Raw { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() }
    }

    fn origin() -> Origin {
        Origin::parse("http://127.0.0.1:7480").unwrap()
    }

    #[test]
    fn an_answer_without_its_envelope_is_invalid() {
        for (status, body) in [
            (200, "{\"data\":1}"),
            (200, "{\"meta\":{}}"),
            (200, "{\"data\":1,\"meta\":7}"),
            (200, "{\"data\":{\"id\":\"agt"),
            (200, ""),
            (204, "{}"),
            (101, ""),
        ] {
            let failure = read(raw(status, body), &origin()).unwrap_err();
            assert!(
                failure.message().starts_with("invalid response"),
                "{status} {body}: {}",
                failure.message()
            );
            assert_eq!(failure.exit(), Exit::Failed);
        }
        assert_eq!(read(raw(204, ""), &origin()).unwrap().data, Value::Null);
        let page =
            read(raw(200, "{\"data\":[],\"meta\":{\"requestId\":\"r\",\"nextCursor\":\"c\"}}"), &origin())
                .unwrap();
        assert_eq!(page.next_cursor.as_deref(), Some("c"));
    }

    #[test]
    fn an_error_page_of_a_proxy_keeps_its_status() {
        let failure = read(raw(502, "<html>"), &origin()).unwrap_err();
        assert_eq!((failure.status(), failure.exit()), (Some(502), Exit::Failed));
        assert_eq!(read(raw(401, "<html>"), &origin()).unwrap_err().exit(), Exit::Denied);
    }

    #[test]
    fn a_redirect_names_its_target_without_secrets() {
        let mut found = raw(302, "");
        found
            .headers
            .insert("location", HeaderValue::from_static("https://me:pw@login.example.com/in?token=t#f"));
        let failure = read(found, &origin()).unwrap_err();
        let text = failure.to_text();
        assert!(text.contains("points to https://login.example.com/in;"), "{text}");
        assert!(text.contains("use --url https://login.example.com"), "{text}");
        assert!(!text.contains("pw@") && !text.contains("token"), "{text}");
        let mut found = raw(308, "");
        found.headers.insert("location", HeaderValue::from_static("/elsewhere"));
        assert!(!read(found, &origin()).unwrap_err().to_text().contains("hint"));
    }
}
