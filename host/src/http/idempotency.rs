//! `Idempotency-Key`: the same request twice has one effect and one answer.
//!
//! A key is reserved before the work, completed in the transaction of the change and freed by a
//! refusal. A reservation carries its own random id: **completion updates only its own running row,
//! and zero rows roll the change back**.

use std::sync::{Arc, Mutex, PoisonError};

use occ_api::error::ErrorCode;
use occ_api::ids::IdentityId;
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::etag;
use super::request::Request;
use super::respond::Reply;
use super::store;
use crate::app::App;
use crate::db::PgConnection;
use crate::error::{Error, Result};

/// How long a running request holds its key.
pub const RESERVATION_SECS: i64 = 60;
/// How long an answer is kept.
pub const ANSWER_HOURS: i64 = 24;
/// Most characters of a key.
const KEY_CHARS_MAX: usize = 128;
/// When to ask again while the first request runs, in seconds.
const RETRY_AFTER_SECS: u32 = 1;
/// Tries to reserve a key that others free in between.
const RESERVE_TRIES: usize = 3;

/// Reads the header; bare or in double quotes.
pub(super) fn parse_key(text: &str) -> Result<String> {
    let bare = match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').unwrap_or_default(),
        None => text,
    };
    let mut bytes = bare.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if starts && goes_on && bare.len() <= KEY_CHARS_MAX {
        return Ok(bare.to_owned());
    }
    Err(Error::new(
        ErrorCode::InvalidRequest,
        "The request is invalid: Idempotency-Key takes 1 to 128 letters, digits and . _ : - after a letter or digit.",
    ))
}

/// Whether the request has to do its work.
#[derive(Debug)]
pub enum Once {
    /// An equal request was answered already.
    Replay(Reply),
    /// Do the work; complete the token in its transaction.
    New(Token),
}

/// The right to complete a key. Without `Idempotency-Key` it does nothing.
#[derive(Debug)]
pub struct Token {
    reservation: Option<Reservation>,
    resource_id: Option<String>,
}

/// A key that this request holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) principal: IdentityId,
    pub(super) scope: String,
    pub(super) key: String,
    pub(super) id: Uuid,
}

/// What the table answered to a reservation.
#[derive(Debug)]
pub(super) enum Found {
    /// It is ours; the resource id is that of the first try, if there was one.
    Reserved { resource_id: Option<String> },
    /// Another request holds or used it.
    Taken(Stored),
    /// It vanished in between.
    Gone,
}

/// A row that another request wrote.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) request_hash: Vec<u8>,
    pub(super) status: Option<u16>,
    pub(super) version: Option<u64>,
    pub(super) data: Option<Box<serde_json::value::RawValue>>,
    pub(super) resource_id: Option<String>,
}

/// A row to be reserved.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) reservation: &'a Reservation,
    pub(super) request_hash: [u8; 32],
    pub(super) resource_id: Option<&'a str>,
    pub(super) now: OffsetDateTime,
    pub(super) locked_until: OffsetDateTime,
    pub(super) expires_at: OffsetDateTime,
}

/// The reservation of a request, shared with the middleware that frees it after a refusal.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<Mutex<Option<Reservation>>>);

impl Held {
    fn set(&self, reservation: Reservation) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reservation);
    }

    /// Frees the key after a refusal. A completed row stays as it is.
    pub(super) async fn free(&self, app: &App) {
        let Some(reservation) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let freed = match app.db.acquire().await {
            Ok(mut conn) => store::reservation_delete(&mut conn, &reservation).await,
            Err(error) => Err(Error::from(error)),
        };
        if let Err(error) = freed {
            // The key frees itself when its hold ends.
            tracing::warn!(code = error.code(), "http.idempotency-key-kept");
        }
    }
}

impl Token {
    /// The id that the resource must get: that of an earlier, unfinished try, else the one proposed.
    #[must_use]
    pub fn resource_id(&self) -> Option<&str> {
        self.resource_id.as_deref()
    }

    /// Stores the answer inside the transaction of the change.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` when another request took the key over; the change must roll back.
    pub async fn complete(&self, tx: &mut PgConnection, reply: &Reply) -> Result<()> {
        self.finish(tx, reply.status(), reply.version(), reply.data(), self.resource_id()).await
    }

    /// Stores that the change happened, without an answer that holds a credential.
    ///
    /// # Errors
    /// As [`Token::complete`].
    pub async fn complete_without_data(
        &self,
        tx: &mut PgConnection,
        reply: &Reply,
        resource_id: &str,
    ) -> Result<()> {
        self.finish(tx, reply.status(), None, None, Some(resource_id)).await
    }

    async fn finish(
        &self,
        tx: &mut PgConnection,
        status: u16,
        version: Option<u64>,
        data: Option<&str>,
        resource_id: Option<&str>,
    ) -> Result<()> {
        let Some(reservation) = &self.reservation else {
            return Ok(());
        };
        let tag = version.map(etag::tag);
        let completed =
            store::reservation_complete(tx, reservation, status, tag.as_deref(), data, resource_id).await?;
        if completed { Ok(()) } else { Err(in_progress()) }
    }
}

/// Reserves the request's key, or finds the answer of an equal request.
pub(super) async fn once(app: &App, request: &Request, proposed_id: Option<String>) -> Result<Once> {
    let Some(key) = &request.idempotency_key else {
        return Ok(Once::New(Token { reservation: None, resource_id: proposed_id }));
    };
    let request_hash = fingerprint(request);
    let reservation = Reservation {
        principal: request.caller.identity.clone(),
        scope: scope(request),
        key: key.clone(),
        id: app.ids.uuid(),
    };
    let now = app.clock.now();
    let wanted = Wanted {
        reservation: &reservation,
        request_hash,
        resource_id: proposed_id.as_deref(),
        now,
        locked_until: now + Duration::seconds(RESERVATION_SECS),
        expires_at: now + Duration::hours(ANSWER_HOURS),
    };
    for _ in 0..RESERVE_TRIES {
        let mut conn = app.db.acquire().await?;
        match store::reservation_insert(&mut conn, &wanted).await? {
            Found::Reserved { resource_id } => {
                request.held.set(reservation.clone());
                return Ok(Once::New(Token { reservation: Some(reservation), resource_id }));
            }
            Found::Taken(stored) => return replay(stored, &request_hash),
            Found::Gone => {}
        }
    }
    Err(in_progress())
}

fn replay(stored: Stored, request_hash: &[u8; 32]) -> Result<Once> {
    if stored.request_hash != request_hash {
        return Err(Error::new(
            ErrorCode::IdempotencyKeyReused,
            "The Idempotency-Key was used with another request: choose a new key.",
        ));
    }
    let Some(status) = stored.status else {
        return Err(in_progress());
    };
    match (stored.data, stored.resource_id) {
        (None, Some(id)) if status != 204 => Err(Error::conflict(format!(
            "The request was answered already with {id}, and its credential is not kept: revoke it and start again."
        ))),
        (data, _) => Ok(Once::Replay(Reply::replayed(status, data, stored.version))),
    }
}

fn in_progress() -> Error {
    Error::new(ErrorCode::IdempotencyInProgress, "A request with this Idempotency-Key is still running.")
        .with_retry_after(RETRY_AFTER_SECS)
}

fn scope(request: &Request) -> String {
    let mut scope = request.operation.id.to_owned();
    for (_, value) in request.path_values() {
        scope.push('/');
        scope.push_str(value);
    }
    scope
}

/// HMAC over method, path, canonical query, `If-Match` and canonical body.
fn fingerprint(request: &Request) -> [u8; 32] {
    let mut query: Vec<String> =
        request.query_values().map(|(name, value)| format!("{name}={value}")).collect();
    query.sort_unstable();
    let body = request.json().map(canonical).unwrap_or_default();
    let if_match = request.if_match().map(|tag| tag.canonical()).unwrap_or_default();
    request.auth_key.fingerprint(&[
        request.operation.method.as_str().as_bytes(),
        scope(request).as_bytes(),
        query.join("&").as_bytes(),
        if_match.as_bytes(),
        body.as_bytes(),
    ])
}

/// JSON with sorted keys and without spaces.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            let parts: Vec<String> = sorted
                .into_iter()
                .map(|(key, member)| format!("{}:{}", Value::from(key.as_str()), canonical(member)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_bare_or_quoted() {
        for (text, key) in [("a", "a"), ("\"a.b_c:d-1\"", "a.b_c:d-1"), ("0123", "0123")] {
            assert_eq!(parse_key(text).unwrap(), key);
        }
        let long = "a".repeat(128);
        assert_eq!(parse_key(&long).unwrap(), long);
        let longer = "a".repeat(129);
        for text in ["", "\"\"", "\"a", ".a", "-a", "a b", "ä", &longer] {
            assert_eq!(parse_key(text).unwrap_err().api_code(), ErrorCode::InvalidRequest, "{text}");
        }
    }

    #[test]
    fn the_canonical_form_ignores_the_order_of_keys_only() {
        let left = canonical(&json!({"b": [1, {"y": 1, "x": "\u{1}"}], "a": null}));
        let right = canonical(&json!({"a": null, "b": [1, {"x": "\u{1}", "y": 1}]}));
        assert_eq!(left, right);
        assert_eq!(left, r#"{"a":null,"b":[1,{"x":"\u0001","y":1}]}"#);
        assert_ne!(canonical(&json!([1, 2])), canonical(&json!([2, 1])));
    }

    #[test]
    fn a_stored_answer_is_replayed_and_a_credential_is_not() {
        let stored = |status, data: Option<&str>, resource_id: Option<&str>| Stored {
            request_hash: vec![7; 32],
            status,
            version: Some(3),
            data: data.map(|data| serde_json::value::RawValue::from_string(data.to_owned()).unwrap()),
            resource_id: resource_id.map(str::to_owned),
        };
        let Once::Replay(reply) = replay(stored(Some(201), Some("{}"), None), &[7; 32]).unwrap() else {
            panic!("no replay")
        };
        assert_eq!((reply.status(), reply.data(), reply.version()), (201, Some("{}"), Some(3)));
        let code = |stored, hash: u8| replay(stored, &[hash; 32]).unwrap_err().api_code();
        assert_eq!(code(stored(Some(201), Some("{}"), None), 8), ErrorCode::IdempotencyKeyReused);
        assert_eq!(code(stored(None, None, None), 7), ErrorCode::IdempotencyInProgress);
        assert_eq!(code(stored(Some(201), None, Some("key_1")), 7), ErrorCode::ResourceConflict);
    }
}
