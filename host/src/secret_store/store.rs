//! Statements about sealed values. Rows are named by their ids; whose they are is told to the
//! caller, which must refuse another Namespace's.

use std::collections::BTreeSet;

use occ_api::ids::{AgentId, NamespaceId, SecretId};
use sqlx::PgConnection;

use super::database::Sealed;
use crate::error::Result;

/// A sealed value of a Secret.
pub(super) struct Value {
    pub(super) namespace_id: String,
    pub(super) version: i64,
    pub(super) sealed: Sealed,
}

/// A sealed generated credential.
pub(super) struct Credential {
    pub(super) namespace_id: String,
    pub(super) sealed: Sealed,
}

/// Writes the value of a Secret in place of an older one.
pub(super) async fn value_upsert(
    tx: &mut PgConnection,
    secret: &SecretId,
    version: i64,
    sealed: &Sealed,
) -> Result<()> {
    sqlx::query!(
        "insert into occ.secret_values (secret_id, version, key_id, wrapped_key, key_nonce, nonce, ciphertext)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (secret_id) do update
            set version = excluded.version, key_id = excluded.key_id, wrapped_key = excluded.wrapped_key,
                key_nonce = excluded.key_nonce, nonce = excluded.nonce, ciphertext = excluded.ciphertext",
        secret.as_str(),
        version,
        sealed.key_id,
        sealed.wrapped_key,
        sealed.key_nonce,
        sealed.nonce,
        sealed.ciphertext
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// The value of a Secret that is ready.
pub(super) async fn value_get(conn: &mut PgConnection, secret: &SecretId) -> Result<Option<Value>> {
    let row = sqlx::query!(
        "select secrets.namespace_id, value.version, value.key_id, value.wrapped_key, value.key_nonce,
                value.nonce, value.ciphertext
           from occ.secret_values value
           join occ.secrets on secrets.id = value.secret_id
          where value.secret_id = $1 and secrets.state = 'ready'",
        secret.as_str()
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Value {
        namespace_id: row.namespace_id,
        version: row.version,
        sealed: Sealed {
            key_id: row.key_id,
            wrapped_key: row.wrapped_key,
            key_nonce: row.key_nonce,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        },
    }))
}

/// Writes a generated credential unless the Agent has one of this name.
pub(super) async fn credential_insert(
    tx: &mut PgConnection,
    namespace: &NamespaceId,
    agent: &AgentId,
    name: &str,
    sealed: &Sealed,
) -> Result<()> {
    sqlx::query!(
        "insert into occ.agent_credentials
                (namespace_id, agent_id, name, store, state, key_id, wrapped_key, key_nonce, nonce, ciphertext)
         values ($1, $2, $3, 'database', 'ready', $4, $5, $6, $7, $8)
         on conflict (agent_id, name) do nothing",
        namespace.as_str(),
        agent.as_str(),
        name,
        sealed.key_id,
        sealed.wrapped_key,
        sealed.key_nonce,
        sealed.nonce,
        sealed.ciphertext
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Names of the Agent's credentials that are ready in this store.
pub(super) async fn credential_names(
    conn: &mut PgConnection,
    namespace: &NamespaceId,
    agent: &AgentId,
) -> Result<BTreeSet<String>> {
    let names = sqlx::query_scalar!(
        "select name from occ.agent_credentials
          where namespace_id = $1 and agent_id = $2 and store = 'database' and state = 'ready'",
        namespace.as_str(),
        agent.as_str()
    )
    .fetch_all(conn)
    .await?;
    Ok(names.into_iter().collect())
}

/// A generated credential that is ready.
pub(super) async fn credential_get(
    conn: &mut PgConnection,
    agent: &AgentId,
    name: &str,
) -> Result<Option<Credential>> {
    let row = sqlx::query!(
        r#"select namespace_id, key_id as "key_id!", wrapped_key as "wrapped_key!", key_nonce as "key_nonce!",
                  nonce as "nonce!", ciphertext as "ciphertext!"
             from occ.agent_credentials
            where agent_id = $1 and name = $2 and store = 'database' and state = 'ready'"#,
        agent.as_str(),
        name
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Credential {
        namespace_id: row.namespace_id,
        sealed: Sealed {
            key_id: row.key_id,
            wrapped_key: row.wrapped_key,
            key_nonce: row.key_nonce,
            nonce: row.nonce,
            ciphertext: row.ciphertext,
        },
    }))
}
