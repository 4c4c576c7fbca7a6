//! What a handler gets: a request that passed rows 1 to 8 of the order of checks.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use occ_api::error::FieldCode;
use occ_api::ids::{AgentId, NamespaceId, RequestId};
use serde_json::Value;

use super::etag::IfMatch;
use super::idempotency::{self, Held, Once};
use super::operation::Operation;
use super::page::PageRequest;
use crate::app::{App, AuthKey};
use crate::error::{Error, Result};
use crate::iam::Caller;

/// One admitted request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Minted here; never taken from the client.
    pub id: RequestId,
    /// The row of the table.
    pub operation: &'static Operation,
    /// Who calls.
    pub caller: Caller,
    pub(super) path: Vec<(String, String)>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Arc<Value>>,
    pub(super) if_match: Option<IfMatch>,
    pub(super) idempotency_key: Option<String>,
    pub(super) auth_key: AuthKey,
    pub(super) held: Held,
}

impl Request {
    /// The Namespace of the path.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the path has none.
    pub fn namespace(&self) -> Result<NamespaceId> {
        self.path("namespaceId")
    }

    /// The Agent of the path.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the path has none.
    pub fn agent(&self) -> Result<AgentId> {
        self.path("agentId")
    }

    /// A parameter of the path; its form was checked already.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the path has no such parameter, `INVALID_REQUEST` when an opaque id has another form.
    pub fn path<T: FromStr>(&self, name: &str) -> Result<T> {
        let (_, value) = self
            .path
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| Error::internal(format!("the path has no parameter {name}")))?;
        value.parse().map_err(|_| Error::invalid_field(&format!("/{name}"), FieldCode::InvalidFormat))
    }

    /// The body as its type; every field at fault is reported together.
    ///
    /// # Errors
    /// `INVALID_REQUEST` with details.
    pub fn body<T: occ_api::json::FromBody>(&self) -> Result<T> {
        let value = self.json().ok_or_else(|| Error::internal("the operation declares no body"))?;
        occ_api::json::decode(value).map_err(Error::invalid)
    }

    /// The body as it came.
    #[must_use]
    pub fn json(&self) -> Option<&Value> {
        self.body.as_deref()
    }

    /// A query parameter; its form was checked already.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Is the flag given as `true`?
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.query(name) == Some("true")
    }

    /// How long the client wants to wait.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.query("wait").and_then(|secs| secs.parse().ok()).map(Duration::from_secs)
    }

    /// The part of the list that is wanted.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for a cursor of another list.
    pub fn page(&self) -> Result<PageRequest> {
        PageRequest::read(self, false)
    }

    /// The same for a list that is never returned whole: 50 items, at most 100.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for a cursor of another list.
    pub fn always_page(&self) -> Result<PageRequest> {
        PageRequest::read(self, true)
    }

    /// The condition of the write.
    #[must_use]
    pub fn if_match(&self) -> Option<&IfMatch> {
        self.if_match.as_ref()
    }

    /// Compares the condition, if there is one, with the version of the locked row.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED` with the current version.
    pub fn check_version(&self, current: u64) -> Result<()> {
        self.if_match.as_ref().map_or(Ok(()), |condition| condition.check(current))
    }

    /// Call after the permissions: the stored answer of an equal request, or the token that stores this one's.
    ///
    /// # Errors
    /// `IDEMPOTENCY_KEY_REUSED`, `IDEMPOTENCY_IN_PROGRESS`, `DEPENDENCY_UNAVAILABLE`.
    pub async fn once(&self, app: &App) -> Result<Once> {
        idempotency::once(app, self, None).await
    }

    /// The same for an operation that makes something outside of its transaction: the id is kept with the
    /// key, so that a repeat adopts what an earlier try left half-made ([`idempotency::Token::resource_id`]).
    ///
    /// # Errors
    /// As [`Request::once`].
    pub async fn once_for(&self, app: &App, proposed_id: &str) -> Result<Once> {
        idempotency::once(app, self, Some(proposed_id.to_owned())).await
    }

    pub(super) fn path_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.path.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn query_values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(name, value)| (*name, value.as_str()))
    }
}
