//! Every request passes here, in the order of checks: the first failing row answers.
//!
//! 1 path and method · 2 length · 4 query and headers · 5 path ids · 6 network · 7 credential ·
//! 8 body · then the handler: 9 schema · 10 key scope · 11 permissions · 12 existence · 13 rules ·
//! 14 drivers. Row 3 belongs to routes that are not served yet.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::body::Body as HttpBody;
use axum::http::header::{HeaderName, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use futures_util::FutureExt;
use occ_api::error::ErrorCode;
use occ_api::ids::{IdentityId, RequestId};
use uuid::Uuid;

use super::etag::IfMatch;
use super::idempotency::{self, Held};
use super::operation::{Admission, HANDLER_SECS_MAX, Operation};
use super::request::Request;
use super::respond::{self, Reply};
use super::{body, credential, network, path, query};
use crate::app::App;
use crate::audit;
use crate::error::{Error, Result};
use crate::iam::{Caller, authn};

/// Most bytes of path and query.
const TARGET_BYTES_MAX: usize = 8 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The address that a connection came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// The operations of one path.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) path: &'static str,
    pub(super) operations: Vec<&'static Operation>,
}

impl Resource {
    fn find(&self, method: &Method) -> Option<&'static Operation> {
        let exact = self.operations.iter().find(|operation| operation.method == *method);
        let head = || {
            let of_get = self.operations.iter().find(|operation| operation.method == Method::GET);
            of_get.filter(|operation| *method == Method::HEAD && operation.admission == Admission::Open)
        };
        exact.or_else(head).copied()
    }

    /// The methods for `Allow`; `HEAD` where it is served.
    fn methods(&self) -> Vec<&Method> {
        let mut methods: Vec<&Method> = self.operations.iter().map(|operation| &operation.method).collect();
        if self.find(&Method::HEAD).is_some() {
            methods.push(&Method::HEAD);
        }
        methods
    }
}

/// Answers a request to a known path.
pub(super) async fn answer(
    app: App,
    resource: &'static Resource,
    request: axum::extract::Request,
) -> Response {
    let started = Instant::now();
    let id = RequestId::from_uuid(app.ids.uuid());
    let (parts, body) = request.into_parts();
    let method = parts.method.clone();
    let response = match resource.find(&method) {
        Some(operation) => serve(&app, operation, parts, body, &id).await,
        // Sign-in routes do not tell which methods they know.
        None if resource.path.starts_with("/api/auth/") => not_found(&id),
        None => respond::method_not_allowed(&resource.methods(), &id),
    };
    completed(&app, &method, resource.path, &id, &response, started.elapsed());
    response
}

/// Answers a request to an unknown path.
pub(super) fn unknown_path(app: &App, method: &Method) -> Response {
    let id = RequestId::from_uuid(app.ids.uuid());
    let response = not_found(&id);
    completed(app, method, "unknown", &id, &response, Duration::ZERO);
    response
}

fn not_found(id: &RequestId) -> Response {
    respond::failure(&Error::new(ErrorCode::NotFound, "The path is not known."), id)
}

async fn serve(
    app: &App,
    operation: &'static Operation,
    parts: Parts,
    body: HttpBody,
    id: &RequestId,
) -> Response {
    let held = Held::default();
    let mut caller = None;
    let outcome = run(app, operation, parts, body, id, &held, &mut caller).await;
    let error = match outcome {
        Ok(reply) => return respond::success(&reply, id),
        Err(error) => error,
    };
    held.free(app).await;
    let error = append_denials(app, caller, error).await;
    if error.api_code().status() >= 500 {
        let cause = error.internal_text();
        let unexpected = error.api_code() == ErrorCode::InternalError;
        if unexpected {
            tracing::error!(requestId = %id, route = operation.path, cause, "http.unexpected_error");
        } else {
            tracing::warn!(requestId = %id, route = operation.path, cause, "http.dependency_error");
        }
    }
    respond::failure(&error, id)
}

/// Writes the denials of a refused request; when that fails the refusal becomes 503.
async fn append_denials(app: &App, caller: Option<Caller>, error: Error) -> Error {
    if error.api_code() != ErrorCode::Forbidden {
        return error;
    }
    let denials = caller.map(|caller| caller.take_denials()).unwrap_or_default();
    match audit::append_denials(app, denials).await {
        Ok(()) => error,
        Err(failure) => {
            Error::unavailable("The refusal could not be recorded; try again.").caused_by(failure)
        }
    }
}

async fn run(
    app: &App,
    operation: &'static Operation,
    mut parts: Parts,
    body: HttpBody,
    id: &RequestId,
    held: &Held,
    known: &mut Option<Caller>,
) -> Result<Reply> {
    if parts.uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Err(Error::new(
            ErrorCode::InvalidRequest,
            "The request is invalid: path and query are too long.",
        ));
    }
    body::check_length(&parts.headers, operation)?;
    let query = query::parse(parts.uri.query(), &operation.query)?;
    let conditions = Conditions::read(operation, &parts.headers)?;
    let path = path::read(&mut parts).await?;
    let caller = match operation.admission {
        Admission::Open => nobody(id),
        Admission::Authenticated => {
            let peer = parts
                .extensions
                .get::<Peer>()
                .ok_or_else(|| Error::internal("a connection without a peer"))?;
            network::admit(app.mode, peer.0, &parts.headers)?;
            authn::verify(app, credential::service_key(&parts.headers)?, id).await?.doing(operation.audit)
        }
    };
    *known = Some(caller.clone());
    let body = body::read(operation, &parts.headers, body).await?;
    let request = Request {
        id: id.clone(),
        operation,
        caller,
        path,
        query,
        body: body.map(std::sync::Arc::new),
        if_match: conditions.if_match,
        idempotency_key: conditions.idempotency_key,
        auth_key: app.auth_key.clone(),
        held: held.clone(),
    };
    handle(app, request).await
}

/// Runs the handler: bounded in time, and a panic in it is one failed request.
async fn handle(app: &App, request: Request) -> Result<Reply> {
    let limit = Duration::from_secs(HANDLER_SECS_MAX) + request.wait().unwrap_or_default();
    let handler = (request.operation.handler)(app.clone(), request);
    match tokio::time::timeout(limit, AssertUnwindSafe(handler).catch_unwind()).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(_)) => Err(Error::internal("a handler panicked")),
        Err(_) => Err(Error::commit_unknown().caused_by(Error::internal("a handler took too long"))),
    }
}

/// Open operations look at no credential; their handlers never ask who calls.
fn nobody(id: &RequestId) -> Caller {
    Caller::new(IdentityId::from_uuid(Uuid::nil()), None, None, id.clone())
}

/// Headers that an operation declares.
struct Conditions {
    if_match: Option<IfMatch>,
    idempotency_key: Option<String>,
}

impl Conditions {
    fn read(operation: &Operation, headers: &HeaderMap) -> Result<Self> {
        let if_match = match single(headers, &IF_MATCH)? {
            Some(_) if !operation.if_match => {
                return Err(Error::new(
                    ErrorCode::InvalidRequest,
                    "The request is invalid: this operation does not take If-Match.",
                ));
            }
            Some(text) => Some(IfMatch::parse(text)?),
            None => None,
        };
        let idempotency_key = match operation.idempotent {
            true => single(headers, &IDEMPOTENCY_KEY)?.map(idempotency::parse_key).transpose()?,
            false => None,
        };
        Ok(Self { if_match, idempotency_key })
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    match (first.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(Error::new(
            ErrorCode::InvalidRequest,
            format!("The request is invalid: the header {name} is repeated or malformed."),
        )),
    }
}

fn completed(app: &App, method: &Method, route: &str, id: &RequestId, response: &Response, took: Duration) {
    let status = response.status();
    app.metrics.http.observe(method, route, status, took);
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        requestId = %id,
        method = method.as_str(),
        route,
        status = status.as_u16(),
        durationMs = millis,
        "http.completed"
    );
}
