//! What every handler and step holds. There are no globals: whoever needs time, randomness, the
//! database or a permission was given an [`App`].

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use occ_api::ids::InstallationId;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::config::{Installation, Mode};
use crate::db::PgPool;
use crate::drivers::Drivers;
use crate::http::metrics::Metrics;
use crate::iam::Iam;
use crate::ids::Ids;
use crate::runtime::LogReads;
use crate::secret_store::SecretStore;
use crate::shutdown::Shutdown;

/// A shared handle on everything that a process was started with; cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// The parts of an [`App`].
pub struct Inner {
    /// PostgreSQL.
    pub db: PgPool,
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub ids: Ids,
    /// The Installation of this database.
    pub installation: InstallationId,
    /// The Installation YAML.
    pub config: Installation,
    /// Production or development.
    pub mode: Mode,
    /// Decisions.
    pub iam: Iam,
    /// Keys derived from the authentication secret.
    pub auth_key: AuthKey,
    /// The selected plugins.
    pub drivers: Arc<Drivers>,
    /// Values of Secrets and generated credentials.
    pub secrets: SecretStore,
    /// Tells workers that there is work.
    pub hints: occ_queue::Hints,
    /// Time for a deployment to become ready.
    pub convergence: Duration,
    /// Bounds on log reads.
    pub log_reads: LogReads,
    /// The metrics of this process.
    pub metrics: Metrics,
    /// The end of this process.
    pub shutdown: Shutdown,
}

impl App {
    /// Shares the parts.
    #[must_use]
    pub fn new(parts: Inner) -> Self {
        Self(Arc::new(parts))
    }

    /// Tells workers that a lane has work; call it after the commit. A lost hint costs a poll interval.
    pub fn hint(&self, lane: &str) {
        tracing::trace!(event = "work.hint", lane);
        self.hints.hint();
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("installation", &self.installation).finish_non_exhaustive()
    }
}

/// Keys for what this server signs, each derived from the one authentication secret. Replicas that
/// share the secret understand each other's cursors and keys.
#[derive(Clone)]
pub struct AuthKey(Arc<Keys>);

struct Keys {
    cursor: Zeroizing<[u8; 32]>,
    idempotency: Zeroizing<[u8; 32]>,
    logs: Zeroizing<[u8; 32]>,
}

impl AuthKey {
    /// Derives the keys; the secret has at least 32 bytes.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        let derive = |purpose: &str| Zeroizing::new(sign(secret, &[purpose.as_bytes()]));
        Self(Arc::new(Keys {
            cursor: derive("occ cursor 1"),
            idempotency: derive("occ idempotency 1"),
            logs: derive("occ log cursor 1"),
        }))
    }

    /// Signs the parts of a list cursor.
    #[must_use]
    pub fn cursor(&self, parts: &[&[u8]]) -> [u8; 32] {
        sign(&*self.0.cursor, parts)
    }

    /// Signs the parts of a log cursor.
    #[must_use]
    pub fn log_cursor(&self, parts: &[&[u8]]) -> [u8; 32] {
        sign(&*self.0.logs, parts)
    }

    /// The fingerprint of a repeatable request.
    #[must_use]
    pub fn fingerprint(&self, parts: &[&[u8]]) -> [u8; 32] {
        sign(&*self.0.idempotency, parts)
    }
}

impl fmt::Debug for AuthKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthKey(hidden)")
    }
}

/// HMAC-SHA-256 over length-prefixed parts, so that no two lists of parts look alike.
fn sign(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_purpose_and_secret() {
        let key = AuthKey::new(b"0123456789abcdef0123456789abcdef");
        let other = AuthKey::new(b"0123456789abcdef0123456789abcdeF");
        assert_ne!(key.cursor(&[b"a"]), key.fingerprint(&[b"a"]));
        assert_ne!(key.cursor(&[b"a"]), other.cursor(&[b"a"]));
        assert_eq!(key.cursor(&[b"a"]), key.clone().cursor(&[b"a"]));
        assert_ne!(key.cursor(&[b"ab", b"c"]), key.cursor(&[b"a", b"bc"]));
    }
}
