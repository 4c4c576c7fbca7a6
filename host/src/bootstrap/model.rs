//! What is drawn for a new Installation, without I/O: ids, password, key, role.

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use occ_api::ids::{AuditId, IdentityId, InstallationId, KeyId, NamespaceId, UserId};
use serde_json::json;
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

use super::error::BootstrapError;
use crate::config::Secret;
use crate::ids::Ids;

/// Random bytes of the password and of a key.
const SECRET_BYTES: usize = 32;
/// Random bytes of the password's salt.
const SALT_BYTES: usize = 16;
/// Argon2id: memory in KiB, passes, lanes.
const ARGON2: (u32, u32, u32) = (19 * 1024, 2, 1);
/// How long the first key lives.
const KEY_LIFETIME: Duration = Duration::days(30);
/// Characters of a key that are stored in the clear.
const KEY_PREFIX_CHARS: usize = 12;

/// Fixed names of what bootstrap makes.
#[derive(Debug, Clone, Copy)]
pub struct Names;

impl Names {
    /// The first service key, and every reissued one.
    pub const KEY: &'static str = "bootstrap-admin";
    /// The first Namespace.
    pub const NAMESPACE: &'static str = "default";
    /// The seeded role.
    pub const ROLE: &'static str = "Installation administrator";
    /// The first human, and the label of the first ServicePrincipal.
    pub const ADMINISTRATOR: &'static str = "Administrator";
}

/// What the seeded role permits: kind, then actions. `read_logs` is covered by `administer`.
const PERMISSIONS: [(&str, &[&str]); 9] = [
    ("installation", &["administer", "read"]),
    ("namespace", &["create", "read", "delete"]),
    ("configuration", &["create", "read", "update", "delete"]),
    ("preset", &["create", "read", "update", "delete"]),
    ("service_account", &["create", "read", "update", "delete"]),
    ("secret", &["create", "read", "update", "delete", "operate"]),
    ("credential_source", &["create", "read", "update", "delete", "operate"]),
    ("agent", &["create", "read", "update", "delete", "deploy", "operate", "administer"]),
    ("agent_revision", &["read"]),
];

/// The pairs (action, kind) of the seeded role.
pub(super) fn permissions() -> impl Iterator<Item = (&'static str, &'static str)> {
    PERMISSIONS.into_iter().flat_map(|(kind, actions)| actions.iter().map(move |action| (*action, kind)))
}

/// The sources of one draw.
pub(super) struct Draw<'a> {
    pub(super) ids: &'a Ids,
    pub(super) now: OffsetDateTime,
}

impl Draw<'_> {
    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.ids.uuid())
    }

    pub(super) fn audit_id(&self) -> AuditId {
        AuditId::from_uuid(self.ids.uuid())
    }

    fn secret(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.ids.bytes::<SECRET_BYTES>())
    }
}

/// A new Installation.
pub(super) struct Seed {
    pub(super) attempt_id: String,
    pub(super) installation_id: InstallationId,
    pub(super) installation_name: String,
    pub(super) user_id: UserId,
    pub(super) principal_id: IdentityId,
    pub(super) service_principal_id: IdentityId,
    pub(super) role_id: String,
    pub(super) principal_binding_id: String,
    pub(super) service_principal_binding_id: String,
    pub(super) namespace_id: NamespaceId,
    pub(super) audit_ids: [AuditId; 2],
    pub(super) email: String,
    pub(super) password_hash: String,
    pub(super) created_at: OffsetDateTime,
    password: Secret,
}

impl Seed {
    /// Draws everything and hashes the password, which takes some ten milliseconds.
    pub(super) fn draw(draw: &Draw<'_>, name: &str, email: &str) -> Result<Self, BootstrapError> {
        let password = draw.secret();
        let identity = |prefix: &str| IdentityId::parse(&draw.id(prefix)).map_err(BootstrapError::internal);
        Ok(Self {
            attempt_id: draw.id("bat_"),
            installation_id: InstallationId::from_uuid(draw.ids.uuid()),
            installation_name: name.to_owned(),
            user_id: UserId::parse(&draw.id("usr_")).map_err(BootstrapError::internal)?,
            principal_id: identity("prn_")?,
            service_principal_id: identity("spn_")?,
            role_id: draw.id("role_admin_"),
            principal_binding_id: draw.id("binding_admin_"),
            service_principal_binding_id: draw.id("binding_admin_"),
            namespace_id: NamespaceId::from_uuid(draw.ids.uuid()),
            audit_ids: [draw.audit_id(), draw.audit_id()],
            email: email.to_owned(),
            password_hash: hash(&password, &draw.ids.bytes::<SALT_BYTES>())?,
            created_at: milliseconds(draw.now),
            password: Secret::new(password),
        })
    }

    /// Who vouches for the principals of this Installation's own accounts.
    pub(super) fn issuer(&self) -> String {
        format!("occ:{}", self.installation_id)
    }

    /// Content of the password file; readers strip exactly one newline.
    pub(super) fn password_file(&self) -> String {
        format!("{}\n", self.password.expose())
    }
}

/// A key of the bootstrap ServicePrincipal.
pub(super) struct NewKey {
    pub(super) id: KeyId,
    pub(super) created_at: OffsetDateTime,
    pub(super) expires_at: OffsetDateTime,
    key: Secret,
}

impl NewKey {
    pub(super) fn draw(draw: &Draw<'_>) -> Self {
        let created_at = milliseconds(draw.now);
        Self {
            id: KeyId::from_uuid(draw.ids.uuid()),
            created_at,
            expires_at: created_at + KEY_LIFETIME,
            key: Secret::new(format!("occ_{}", draw.secret())),
        }
    }

    /// First characters of the key.
    pub(super) fn prefix(&self) -> &str {
        let key = self.key.expose();
        key.get(..KEY_PREFIX_CHARS).unwrap_or(key)
    }

    /// SHA-256 of the key: the only form that is stored.
    pub(super) fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.key.expose().as_bytes()).to_vec()
    }

    /// Content of the key file, in the shape of the API's answer to a key's creation.
    pub(super) fn file(&self, service_principal: &IdentityId, installation: &InstallationId) -> String {
        let body = json!({
            "data": {
                "id": self.id.as_str(),
                "servicePrincipalId": service_principal.as_str(),
                "name": Names::KEY,
                "expiresAt": timestamp(self.expires_at),
                "key": self.key.expose(),
            },
            "meta": {"installationId": installation.as_str()},
        });
        format!("{body}\n")
    }
}

/// Time as the API writes it: UTC, three digits.
pub(super) fn timestamp(at: OffsetDateTime) -> String {
    occ_api::time::Timestamp::from(at).to_string()
}

/// Cuts to milliseconds, so that file and row say the same.
fn milliseconds(at: OffsetDateTime) -> OffsetDateTime {
    at.replace_millisecond(at.millisecond()).unwrap_or(at)
}

fn hash(password: &str, salt: &[u8]) -> Result<String, BootstrapError> {
    let (memory_kib, passes, lanes) = ARGON2;
    let params = Params::new(memory_kib, passes, lanes, None).map_err(BootstrapError::internal)?;
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_with_salt(password.as_bytes(), salt)
        .map(|hash| hash.to_string())
        .map_err(BootstrapError::internal)
}
