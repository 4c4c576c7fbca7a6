//! The SQL of bootstrap: one connection, one lock, one transaction.

use std::str::FromStr;
use std::time::Duration;

use occ_api::ids::{AuditId, IdentityId, KeyId};
use occ_queue::{NewWork, Owner};
use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::{Instant, sleep};

use super::error::{BootstrapError, Fault};
use super::inputs::BootstrapConfig;
use super::model::{self, Names, NewKey, Seed};
use crate::audit::{self, EVIDENCE_IDS_MAX, Event, Resource};
use crate::iam::{Access, Action, Iam};
use crate::migrate::{self, SchemaState};

/// Longest wait for a bootstrap that runs beside this one.
const LOCK_WAIT: Duration = Duration::from_secs(120);
/// Time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(250);
/// How long the first Namespace may take to become ready.
const ENSURE_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Who reissues a key: the operator, by the right to use the application role.
const MAINTENANCE: &str = "maintenance:occ_app";

/// A transaction that did not end well.
pub(super) enum CommitError {
    /// It did not commit.
    Refused(BootstrapError),
    /// COMMIT was sent and its answer was lost.
    Lost(sqlx::Error),
}

impl<E: Into<BootstrapError>> From<E> for CommitError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// The Installation of this database.
#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub(super) id: String,
    pub(super) attempt_id: String,
}

/// Connects, checks the schema and takes the lock; the connection's end releases it.
///
/// # Errors
/// `DATABASE_CONFIGURATION_INVALID`, `PERSISTENCE_UNAVAILABLE`, `SCHEMA_VERSION_MISMATCH`.
pub(super) async fn connect(config: &BootstrapConfig) -> Result<PgConnection, BootstrapError> {
    let options = PgConnectOptions::from_str(config.database_url.expose())
        .map_err(|_| BootstrapError::Inputs {
            code: "DATABASE_CONFIGURATION_INVALID",
            problems: vec![crate::config::Problem {
                at: "OCC_DATABASE_URL".to_owned(),
                rule: "cannot be read as a URL of scheme postgres".to_owned(),
            }],
        })?
        .application_name(&format!("occ-bootstrap/{}", std::process::id()))
        .log_statements(tracing::log::LevelFilter::Trace);
    let mut db = options.connect().await.map_err(BootstrapError::Unavailable)?;
    schema(&mut db).await?;
    let give_up = Instant::now() + LOCK_WAIT;
    while !lock(&mut db).await? {
        if Instant::now() >= give_up {
            return Err(BootstrapError::failed(Fault::Busy));
        }
        sleep(LOCK_PAUSE).await;
    }
    Ok(db)
}

async fn lock(db: &mut PgConnection) -> Result<bool, BootstrapError> {
    let taken = sqlx::query_scalar!(r#"select pg_try_advisory_lock(5194563, 2) as "taken!""#);
    Ok(taken.fetch_one(db).await?)
}

/// The schema suits this binary.
async fn schema(db: &mut PgConnection) -> Result<(), BootstrapError> {
    let expected = migrate::expected_version();
    let text = match SchemaState::read(db).await {
        Ok(Some(state)) if state.serves_this_binary() => return Ok(()),
        Ok(Some(state)) => format!("the schema is {}, this binary needs {expected}", state.version),
        Ok(None) => "no migration has finished".to_owned(),
        // Undefined table or schema, or a schema that this role may not use.
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some("42P01" | "3F000" | "42501")) =>
        {
            "no migration has run".to_owned()
        }
        Err(error) => return Err(error.into()),
    };
    Err(BootstrapError::refused("SCHEMA_VERSION_MISMATCH", format!("{text}; run `occ-host migrate` first")))
}

pub(super) async fn installation(db: &mut PgConnection) -> Result<Option<Installation>, BootstrapError> {
    let row =
        sqlx::query_as!(Installation, "select id, bootstrap_attempt_id as attempt_id from occ.installation");
    Ok(row.fetch_optional(db).await?)
}

/// Has this attempt committed?
pub(super) async fn attempt_exists(db: &mut PgConnection, id: &str) -> Result<bool, BootstrapError> {
    let row = sqlx::query_scalar!(
        r#"select exists (select from occ.bootstrap_attempts where id = $1) as "exists!""#,
        id
    );
    Ok(row.fetch_one(db).await?)
}

/// The attempt of a request for a new key, if it has committed.
pub(super) async fn attempt_of_request(
    db: &mut PgConnection,
    request_id: &str,
) -> Result<Option<String>, BootstrapError> {
    let row = sqlx::query_scalar!("select id from occ.bootstrap_attempts where request_id = $1", request_id);
    Ok(row.fetch_optional(db).await?)
}

/// The first administrator and the first ServicePrincipal are what they should be. Answers the latter's id.
///
/// # Errors
/// `BOOTSTRAP_ACCOUNT_MISSING`, `BOOTSTRAP_IDENTITY_MISMATCH`.
pub(super) async fn verify(
    db: &mut PgConnection,
    email: &str,
    installation: &Installation,
) -> Result<String, BootstrapError> {
    let account = sqlx::query!("select principal_id, disabled_at from occ.users where email = $1", email)
        .fetch_optional(&mut *db)
        .await?;
    let principal = match account {
        Some(account) if account.disabled_at.is_none() => account.principal_id,
        Some(_) => {
            return Err(account_missing(
                "is disabled; enable it or set the e-mail of an enabled administrator",
            ));
        }
        None => {
            return Err(account_missing("does not exist; set the e-mail of the first administrator"));
        }
    };
    let granted = sqlx::query_scalar!(
        r#"select count(distinct p.action) = 2 as "granted!"
             from occ.iam_bindings b join occ.iam_role_permissions p on p.role_id = b.role_id
            where b.identity_id = $1 and b.namespace_id is null and b.resource_kind is null
              and p.resource_kind = 'installation' and p.action in ('administer', 'read')"#,
        principal
    )
    .fetch_one(&mut *db)
    .await?;
    if !granted {
        let text =
            "the first administrator holds no direct binding with administer and read on the Installation";
        return Err(BootstrapError::refused("BOOTSTRAP_IDENTITY_MISMATCH", text));
    }
    let service_principal = sqlx::query_scalar!(
        "select i.id from occ.audit_events a join occ.iam_identities i on i.id = a.details->>'servicePrincipalId'
          where a.kind = 'bootstrap' and a.resource_kind = 'installation' and a.resource_id = $1
            and i.keyable and i.namespace_id is null
          order by a.seq limit 1",
        installation.id
    );
    service_principal.fetch_optional(db).await?.ok_or_else(|| {
        let text = "the ServicePrincipal that bootstrap made is gone; use another administrator's key";
        BootstrapError::refused("BOOTSTRAP_IDENTITY_MISMATCH", text)
    })
}

fn account_missing(what: &str) -> BootstrapError {
    BootstrapError::refused(
        "BOOTSTRAP_ACCOUNT_MISSING",
        format!("the account of OCC_BOOTSTRAP_ADMIN_EMAIL {what}"),
    )
}

/// The transaction that makes the files mean something.
pub(super) async fn seed(db: &mut PgConnection, seed: &Seed, key: &NewKey) -> Result<(), CommitError> {
    let mut tx = db.begin().await?;
    installation_insert(&mut tx, seed).await?;
    identities_insert(&mut tx, seed).await?;
    role_insert(&mut tx, seed).await?;
    key_insert(&mut tx, key, seed.service_principal_id.as_str(), seed.principal_id.as_str()).await?;
    attempt_insert(&mut tx, &seed.attempt_id, "bootstrap", None, key).await?;
    namespace_insert(&mut tx, seed).await?;
    evidence_insert(&mut tx, seed, key).await?;
    tx.commit().await.map_err(lost_or_refused)
}

/// The transaction of a reissued key.
pub(super) async fn reissue(
    db: &mut PgConnection,
    attempt: &Reissued<'_>,
    key: &NewKey,
    keep_old: bool,
) -> Result<(), CommitError> {
    let mut tx = db.begin().await?;
    let mut revoked = Vec::new();
    if !keep_old {
        revoked = sqlx::query_scalar!(
            "update occ.service_keys set revoked_at = now()
              where service_principal_id = $1 and name = $2 and revoked_at is null returning id",
            attempt.service_principal_id,
            Names::KEY
        )
        .fetch_all(&mut *tx)
        .await?;
    }
    key_insert(&mut tx, key, attempt.service_principal_id, MAINTENANCE).await?;
    attempt_insert(&mut tx, attempt.attempt_id, "reissue", Some(attempt.request_id), key).await?;
    let details = ReissueDetails {
        attempt_id: attempt.attempt_id,
        request_id: attempt.request_id,
        key_id: &key.id,
        revoked_key_ids: revoked.iter().take(EVIDENCE_IDS_MAX).map(String::as_str).collect(),
        revoked_count: revoked.len(),
    };
    let resource = Resource::of_installation("service_account", attempt.service_principal_id);
    let event =
        Event::bootstrap(MAINTENANCE, "openclaw.auth.service-keys.reissue", resource).details(&details)?;
    audit::record_at(&mut tx, attempt.audit_id.clone(), key.created_at, event).await?;
    tx.commit().await.map_err(lost_or_refused)
}

/// Details of the audit event of a reissue.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReissueDetails<'a> {
    attempt_id: &'a str,
    request_id: &'a str,
    key_id: &'a KeyId,
    revoked_key_ids: Vec<&'a str>,
    revoked_count: usize,
}

/// What identifies a reissue.
pub(super) struct Reissued<'a> {
    pub(super) attempt_id: &'a str,
    pub(super) request_id: &'a str,
    pub(super) audit_id: &'a AuditId,
    pub(super) service_principal_id: &'a str,
}

fn lost_or_refused(error: sqlx::Error) -> CommitError {
    match error {
        sqlx::Error::Database(_) => CommitError::from(error),
        lost => CommitError::Lost(lost),
    }
}

async fn installation_insert(tx: &mut PgConnection, seed: &Seed) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into occ.installation (id, name, bootstrap_attempt_id, created_at) values ($1, $2, $3, $4)",
        seed.installation_id.as_str(),
        seed.installation_name,
        seed.attempt_id,
        seed.created_at
    )
    .execute(tx)
    .await
    .map(drop)
}

async fn identities_insert(tx: &mut PgConnection, seed: &Seed) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into occ.iam_identities (id, kind, issuer, subject, label, created_at)
         values ($1, 'principal', $2, $3, $4, $6), ($5, 'service_principal', null, null, $4, $6)",
        seed.principal_id.as_str(),
        seed.issuer(),
        seed.user_id.as_str(),
        Names::ADMINISTRATOR,
        seed.service_principal_id.as_str(),
        seed.created_at
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query!(
        "insert into occ.users (id, email, name, password_hash, principal_id, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)",
        seed.user_id.as_str(),
        seed.email,
        Names::ADMINISTRATOR,
        seed.password_hash,
        seed.principal_id.as_str(),
        seed.created_at
    )
    .execute(tx)
    .await
    .map(drop)
}

async fn role_insert(tx: &mut PgConnection, seed: &Seed) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into occ.iam_roles (id, name, created_at) values ($1, $2, $3)",
        seed.role_id,
        Names::ROLE,
        seed.created_at
    )
    .execute(&mut *tx)
    .await?;
    let (actions, kinds): (Vec<String>, Vec<String>) =
        model::permissions().map(|(action, kind)| (action.to_owned(), kind.to_owned())).unzip();
    sqlx::query!(
        "insert into occ.iam_role_permissions (role_id, action, resource_kind)
         select $1, action, kind from unnest($2::text[], $3::text[]) as pair (action, kind)",
        seed.role_id,
        &actions,
        &kinds
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query!(
        "insert into occ.iam_bindings (id, role_id, identity_id, created_by, created_at)
         values ($1, $3, $4, $4, $6), ($2, $3, $5, $4, $6)",
        seed.principal_binding_id,
        seed.service_principal_binding_id,
        seed.role_id,
        seed.principal_id.as_str(),
        seed.service_principal_id.as_str(),
        seed.created_at
    )
    .execute(tx)
    .await
    .map(drop)
}

async fn key_insert(
    tx: &mut PgConnection,
    key: &NewKey,
    service_principal: &str,
    created_by: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into occ.service_keys
           (id, service_principal_id, name, prefix, key_hash, created_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        key.id.as_str(),
        service_principal,
        Names::KEY,
        key.prefix(),
        key.hash(),
        created_by,
        key.created_at,
        key.expires_at
    )
    .execute(tx)
    .await
    .map(drop)
}

async fn attempt_insert(
    tx: &mut PgConnection,
    id: &str,
    kind: &str,
    request_id: Option<&str>,
    key: &NewKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into occ.bootstrap_attempts (id, kind, request_id, service_key_id, created_at)
         values ($1, $2, $3, $4, $5)",
        id,
        kind,
        request_id,
        key.id.as_str(),
        key.created_at
    )
    .execute(tx)
    .await
    .map(drop)
}

/// The first Namespace and the work that makes it ready.
async fn namespace_insert(tx: &mut PgConnection, seed: &Seed) -> Result<(), BootstrapError> {
    let namespace = seed.namespace_id.as_str();
    sqlx::query!(
        "insert into occ.namespaces (id, name, created_at, updated_at) values ($1, $2, $3, $3)",
        namespace,
        Names::NAMESPACE,
        seed.created_at
    )
    .execute(&mut *tx)
    .await?;
    let key = format!("namespace:{namespace}:ensure");
    let work =
        NewWork::user(key, "namespace.ensure", Owner::namespace(namespace), seed.principal_id.as_str())
            .deadline(ENSURE_DEADLINE);
    occ_queue::enqueue(tx, &work).await?;
    Ok(())
}

/// Details of the audit event of a bootstrap; verification finds the first ServicePrincipal by it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BootstrapDetails<'a> {
    attempt_id: &'a str,
    service_principal_id: &'a IdentityId,
    key_id: &'a KeyId,
}

/// Details of the audit event of the first Namespace.
#[derive(Serialize)]
struct NamespaceDetails {
    name: &'static str,
}

/// Audit rows of the Installation and of its first Namespace, and the Namespace's event. The Namespace is
/// authorised as any other: by the grants of the principal that it is made for.
async fn evidence_insert(tx: &mut PgConnection, seed: &Seed, key: &NewKey) -> Result<(), BootstrapError> {
    let [installation_audit, namespace_audit] = seed.audit_ids.clone();
    let installation = Access::installation(Action::Administer, &seed.installation_id);
    let namespace = Access::namespaces(&seed.installation_id);
    let iam = Iam::default();
    let administers = iam.holds(tx, &seed.principal_id, &installation).await?;
    let creates = iam.holds(tx, &seed.principal_id, &namespace).await?;
    if !administers.allowed || !creates.allowed {
        return Err(BootstrapError::internal("the seeded role does not let the first administrator in"));
    }
    let resource = Resource::of_installation("installation", &seed.installation_id);
    let details = BootstrapDetails {
        attempt_id: &seed.attempt_id,
        service_principal_id: &seed.service_principal_id,
        key_id: &key.id,
    };
    let event = Event::bootstrap(&seed.principal_id, "openclaw.installation.bootstrap", resource)
        .decided(&installation, &administers)
        .details(&details)?;
    audit::record_at(tx, installation_audit, seed.created_at, event).await?;
    let resource = Resource::in_namespace("namespace", &seed.namespace_id, &seed.namespace_id);
    let event = Event::bootstrap(&seed.principal_id, "openclaw.namespaces.create", resource)
        .decided(&namespace, &creates)
        .details(&NamespaceDetails { name: Names::NAMESPACE })?;
    audit::record_at(tx, namespace_audit, seed.created_at, event).await?;
    sqlx::query!(
        "insert into occ.events (occurred_at, namespace_id, kind, resource_kind, resource_id)
         values ($1, $2, 'namespace.created', 'namespace', $2)",
        seed.created_at,
        seed.namespace_id.as_str()
    )
    .execute(tx)
    .await?;
    Ok(())
}
