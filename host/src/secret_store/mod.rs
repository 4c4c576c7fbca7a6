//! Where secret values live; nothing else of the host reads them.
//!
//! The one store today is `database`: values sealed in PostgreSQL with a key that is not in
//! PostgreSQL. Two kinds of value are kept: those of Secrets, which people write, and the
//! credentials that the host generates once per Agent.
//!
//! - **No value is printed, logged or put into an error.** [`SecretValue`] wipes itself.
//! - **A row moved elsewhere does not open**: owner, id and version are sealed in with it.
//! - **Only the worker's spawning of a process asks for a value**; the API writes and forgets.
//!
//! `database` is the cryptography, `key_file` the keys, `store` the statements.

mod database;
mod key_file;
mod store;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use occ_api::ids::{AgentId, NamespaceId, SecretId};
use serde_json::{Value, json};

use self::database::{Owner, open, seal};
use self::key_file::Keys;
use crate::db::{self, PgConnection, PgPool};
use crate::drivers::SecretValue;
use crate::error::{Error, Result};
use crate::ids::Ids;

pub use database::VALUE_BYTES_MAX;

/// The kind of this store, as rows and `secretDriverId` spell it.
const KIND: &str = "database";
/// Random bytes of a generated credential; it is handed out as base64url text.
const GENERATED_BYTES: usize = 32;
/// Generated credentials never change, so they have one version.
const GENERATED_VERSION: u64 = 1;

/// A look for a value.
#[derive(Debug)]
pub enum Found {
    /// The value.
    Value(SecretValue),
    /// There is none, or it is not ready.
    Missing,
    /// It is another Namespace's.
    Foreign,
}

/// The store of this Installation; cheap to clone.
#[derive(Clone)]
pub struct SecretStore {
    pool: PgPool,
    ids: Ids,
    keys: Arc<Keys>,
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStore").field("kind", &KIND).finish_non_exhaustive()
    }
}

/// Checks the key file without keeping the keys: for `config check`.
///
/// # Errors
/// `SECRET_KEY_FILE_INVALID` with the rule that it breaks.
pub fn check_key_file(path: &Path) -> Result<()> {
    Keys::read(path).map(drop)
}

impl SecretStore {
    /// Opens the store with the keys of this file. The format stands in `key_file`.
    ///
    /// # Errors
    /// `SECRET_KEY_FILE_INVALID` with the rule that the file breaks.
    pub fn open(pool: PgPool, ids: Ids, key_file: &Path) -> Result<Self> {
        Ok(Self { pool, ids, keys: Arc::new(Keys::read(key_file)?) })
    }

    /// The store's kind, for rows, snapshots and the wire.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        KIND
    }

    /// Where a compute driver finds a value: with this store nowhere, the host gives it to the
    /// process itself.
    #[must_use]
    pub fn location(&self) -> Value {
        json!({ "store": KIND })
    }

    /// Writes the value of a Secret in the caller's transaction; an older version is replaced.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for a value that is empty or longer than [`VALUE_BYTES_MAX`], which the
    /// caller has checked; else what the database says.
    pub async fn put_secret(
        &self,
        tx: &mut PgConnection,
        namespace: &NamespaceId,
        secret: &SecretId,
        version: u64,
        value: &SecretValue,
    ) -> Result<()> {
        let owner = Owner::Secret { namespace, secret, version };
        let sealed = seal(&self.keys, &self.ids, &owner, value)?;
        store::value_upsert(tx, secret, db::bigint(version)?, &sealed).await
    }

    /// The value of a ready Secret.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when a stored value does not open; else what the database says.
    pub async fn secret_value(&self, namespace: &NamespaceId, secret: &SecretId) -> Result<Found> {
        let mut conn = self.pool.acquire().await?;
        let Some(row) = store::value_get(&mut conn, secret).await? else {
            return Ok(Found::Missing);
        };
        if row.namespace_id != namespace.as_str() {
            return Ok(Found::Foreign);
        }
        let owner = Owner::Secret { namespace, secret, version: db::count(row.version)? };
        open(&self.keys, &owner, &row.sealed).map(Found::Value)
    }

    /// Those of `names` that the Agent has no generated credential for.
    ///
    /// # Errors
    /// What the database says.
    pub async fn generated_missing(
        &self,
        namespace: &NamespaceId,
        agent: &AgentId,
        names: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>> {
        let mut conn = self.pool.acquire().await?;
        let present = store::credential_names(&mut conn, namespace, agent).await?;
        Ok(names.iter().filter(|name| !present.contains(*name)).cloned().collect())
    }

    /// Generates a credential for each of `names` that has none; one that is there is kept, also
    /// when two callers do this at once. All in one transaction.
    ///
    /// # Errors
    /// What the database says; a name outside `[a-z0-9-]` is refused by it.
    pub async fn ensure_generated(
        &self,
        namespace: &NamespaceId,
        agent: &AgentId,
        names: &BTreeSet<String>,
    ) -> Result<()> {
        let mut tx = db::begin(&self.pool).await?;
        for name in names {
            let random = zeroize::Zeroizing::new(self.ids.bytes::<GENERATED_BYTES>());
            let value = SecretValue::new(URL_SAFE_NO_PAD.encode(random.as_slice()));
            let owner = Owner::Generated { namespace, agent, name, version: GENERATED_VERSION };
            let sealed = seal(&self.keys, &self.ids, &owner, &value)?;
            store::credential_insert(&mut tx, namespace, agent, name, &sealed).await?;
        }
        tx.commit().await
    }

    /// A generated credential of the Agent.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when a stored value does not open; else what the database says.
    pub async fn generated_value(
        &self,
        namespace: &NamespaceId,
        agent: &AgentId,
        name: &str,
    ) -> Result<Found> {
        let mut conn = self.pool.acquire().await?;
        let Some(row) = store::credential_get(&mut conn, agent, name).await? else {
            return Ok(Found::Missing);
        };
        if row.namespace_id != namespace.as_str() {
            return Ok(Found::Foreign);
        }
        let owner = Owner::Generated { namespace, agent, name, version: GENERATED_VERSION };
        open(&self.keys, &owner, &row.sealed).map(Found::Value)
    }
}

/// What cannot be sealed or opened is a defect or a wrong key file; the text tells which without
/// any part of the value.
fn defect(what: &'static str) -> Error {
    Error::internal(what)
}
