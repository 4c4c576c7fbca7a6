//! What leaves the server.

use axum::body::to_bytes;
use occ_api::error::FieldCode;
use serde_json::{Value, json};

use super::*;

fn id() -> RequestId {
    "req_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904".parse().unwrap()
}

async fn body(response: Response) -> Value {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn success_is_data_and_meta() {
    let response = success(&Reply::created(&json!({"id": "cfg_1"})).unwrap().etag(7), &id());
    assert_eq!(response.status(), 201);
    assert_eq!(header(&response, "etag"), Some("\"v7\""));
    assert_eq!(header(&response, "cache-control"), Some("no-store"));
    assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
    assert_eq!(header(&response, "content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(header(&response, "x-request-id"), Some(id().as_str()));
    assert_eq!(body(response).await, json!({"data": {"id": "cfg_1"}, "meta": {"requestId": id()}}));
}

#[tokio::test]
async fn a_page_says_where_the_next_one_is_only_when_asked_to_page() {
    let meta =
        |next| async move { body(success(&Reply::page(&[1], next).unwrap(), &id())).await["meta"].clone() };
    assert_eq!(meta(None).await, json!({"requestId": id()}));
    assert_eq!(meta(Some(None)).await, json!({"requestId": id(), "nextCursor": null}));
    assert_eq!(meta(Some(Some("c".to_owned()))).await, json!({"requestId": id(), "nextCursor": "c"}));
}

#[tokio::test]
async fn failure_is_error_and_meta() {
    let error = Error::invalid(vec![FieldError::new("/name", FieldCode::Required)]);
    let response = failure(&error.caused_by(Error::internal("a cause that stays inside")), &id());
    assert_eq!(response.status(), 400);
    assert_eq!(
        body(response).await,
        json!({
            "error": {
                "code": "INVALID_REQUEST",
                "message": "The request is invalid: name is required.",
                "details": [{"path": "/name", "code": "REQUIRED"}],
            },
            "meta": {"requestId": id()},
        })
    );
}

#[tokio::test]
async fn messages_and_details_are_bounded() {
    let details = (0..40).map(|index| FieldError::new(format!("/{index}"), FieldCode::InvalidType)).collect();
    let error = Error::new(ErrorCode::InvalidRequest, "ü".repeat(300)).with_details(details);
    let body = body(failure(&error, &id())).await;
    assert_eq!(body["error"]["message"].as_str().unwrap().chars().count(), 256);
    assert_eq!(body["error"]["details"].as_array().unwrap().len(), 32);
}

#[test]
fn headers_follow_the_error() {
    let precondition = Error::new(ErrorCode::PreconditionFailed, "x").with_version(4);
    assert_eq!(header(&failure(&precondition, &id()), "etag"), Some("\"v4\""));
    let running = Error::new(ErrorCode::IdempotencyInProgress, "x").with_retry_after(1);
    assert_eq!(header(&failure(&running, &id()), "retry-after"), Some("1"));
    let large = Error::new(ErrorCode::PayloadTooLarge, "x");
    assert_eq!(header(&failure(&large, &id()), "connection"), Some("close"));
    let refused = method_not_allowed(&[&Method::GET, &Method::HEAD], &id());
    assert_eq!((refused.status().as_u16(), header(&refused, "allow")), (405, Some("GET, HEAD")));
}

#[test]
fn every_code_has_the_status_of_the_contract() {
    let table: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let response = failure(&Error::new(*code, "x"), &id());
            format!("{} {}", response.status().as_u16(), code.as_str())
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"), @"
    400 INVALID_REQUEST
    401 UNAUTHENTICATED
    403 FORBIDDEN
    404 NOT_FOUND
    405 METHOD_NOT_ALLOWED
    409 INSTALLATION_EXISTS
    409 RESOURCE_CONFLICT
    409 AGENT_DELETING
    409 NAMESPACE_NOT_READY
    409 NAMESPACE_NOT_EMPTY
    409 LAST_ADMINISTRATOR
    409 AGENT_GATEWAY_UNAVAILABLE
    409 AMBIGUOUS_RUNTIME
    409 IDEMPOTENCY_IN_PROGRESS
    412 PRECONDITION_FAILED
    413 PAYLOAD_TOO_LARGE
    415 UNSUPPORTED_MEDIA_TYPE
    422 IDEMPOTENCY_KEY_REUSED
    429 RATE_LIMITED
    500 INTERNAL_ERROR
    501 NOT_IMPLEMENTED
    503 DEPENDENCY_UNAVAILABLE
    400 RUNTIME_LOGS_CURSOR_INVALID
    400 RUNTIME_LOGS_POD_INVALID
    400 RUNTIME_LOGS_SOURCE_UNAVAILABLE
    429 RUNTIME_LOGS_RATE_LIMITED
    503 RUNTIME_LOGS_UNAVAILABLE
    503 RUNTIME_LOGS_AUDIT_UNAVAILABLE
    504 RUNTIME_LOGS_TIMEOUT
    ");
}
