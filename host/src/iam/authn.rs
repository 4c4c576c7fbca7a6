//! Service keys: how they are drawn, and whose a presented one is.
//!
//! Hashes are compared by the index: a key has 256 random bits. **A 401 carries no hint about which part failed.**

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use occ_api::error::ErrorCode;
use occ_api::ids::{IdentityId, KeyId, NamespaceId, RequestId};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use super::decide::{Decision, Reason};
use super::store::{self, KeyRow};
use super::{Access, Action, Caller};
use crate::app::App;
use crate::error::{Error, Result};
use crate::ids::Ids;

/// Start of every service key.
pub const KEY_PREFIX: &str = "occ_";
/// Characters of a key that are shown in lists.
pub const KEY_SHOWN_CHARS: usize = 12;
/// Random bytes of a key.
const KEY_BYTES: usize = 32;
/// Characters of a key: the prefix and 32 bytes in base64url.
const KEY_CHARS: usize = KEY_PREFIX.len() + 43;
/// A key's last use is written at most this often.
const LAST_USED_EVERY: Duration = Duration::minutes(5);

/// A new key: the text that is shown once, and what is stored.
pub struct NewKey {
    /// The whole key.
    pub text: Zeroizing<String>,
    /// Its first characters.
    pub shown: String,
    /// Its SHA-256.
    pub hash: [u8; 32],
}

impl NewKey {
    /// Draws a key.
    #[must_use]
    pub fn draw(ids: &Ids) -> Self {
        let bytes = Zeroizing::new(ids.bytes::<KEY_BYTES>());
        let text = Zeroizing::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes.as_slice())));
        Self { shown: text.chars().take(KEY_SHOWN_CHARS).collect(), hash: hash(&text), text }
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Verifies the service key that a request presented.
///
/// # Errors
/// `UNAUTHENTICATED` without detail; `FORBIDDEN` for a key whose scope is not its owner's;
/// `DEPENDENCY_UNAVAILABLE` when keys cannot be read.
pub async fn verify(app: &App, text: &str, request_id: &RequestId) -> Result<Caller> {
    if !is_key(text) {
        return Err(unauthenticated());
    }
    let now = app.clock.now();
    let mut conn = app.db.acquire().await?;
    let row = store::key_find(&mut conn, &hash(text), now).await?.ok_or_else(unauthenticated)?;
    let key = parse(&row)?;
    if is_stale(row.last_used_at, now) {
        // A missed note of a use must not refuse the request.
        if let Err(error) = store::key_touch(&mut conn, &key.id, now, now - LAST_USED_EVERY).await {
            tracing::debug!(code = error.code(), "iam.key-use-not-noted");
        }
    }
    let caller = Caller::new(key.owner, Some(key.id), key.scope, request_id.clone());
    if row.namespace_id == row.owner_namespace_id {
        return Ok(caller);
    }
    let access = Access::installation(Action::Read, &app.installation);
    let refusal = app.iam.refuse(&caller, &access, Decision::refused(Reason::KeyScope));
    crate::audit::append_denials(app, caller.take_denials()).await?;
    Err(refusal)
}

struct Key {
    id: KeyId,
    owner: IdentityId,
    scope: Option<NamespaceId>,
}

fn parse(row: &KeyRow) -> Result<Key> {
    let broken = |_| Error::internal("a service key row does not parse");
    Ok(Key {
        id: KeyId::parse(&row.id).map_err(broken)?,
        owner: IdentityId::parse(&row.service_principal_id).map_err(broken)?,
        scope: row.namespace_id.as_deref().map(NamespaceId::parse).transpose().map_err(broken)?,
    })
}

fn is_stale(last_used_at: Option<OffsetDateTime>, now: OffsetDateTime) -> bool {
    last_used_at.is_none_or(|last| last < now - LAST_USED_EVERY)
}

fn is_key(text: &str) -> bool {
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() == KEY_CHARS
        && text.strip_prefix(KEY_PREFIX).is_some_and(|rest| rest.bytes().all(is_base64url))
}

/// The answer to a request without a valid credential.
#[must_use]
pub fn unauthenticated() -> Error {
    Error::new(ErrorCode::Unauthenticated, "A valid credential is required.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_key_passes_its_own_check() {
        let ids = Ids::seeded(7);
        let (one, two) = (NewKey::draw(&ids), NewKey::draw(&ids));
        assert!(is_key(&one.text));
        assert!(!is_key(" ") && !is_key("occ_short") && !is_key(&format!("{}A", *one.text)));
        assert!(!is_key(&one.text.replace("occ_", "abc_")));
        assert_ne!(*one.text, *two.text);
        assert!(one.text.starts_with(&one.shown));
        assert_eq!(one.shown.len(), KEY_SHOWN_CHARS);
        assert_eq!(one.hash, hash(&one.text));
    }

    #[test]
    fn a_use_is_noted_each_five_minutes() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(1);
        assert!(is_stale(None, now));
        assert!(!is_stale(Some(now - Duration::minutes(5)), now));
        assert!(is_stale(Some(now - Duration::minutes(5) - Duration::seconds(1)), now));
    }
}
