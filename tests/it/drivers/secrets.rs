//! The database store of secret values, and the call authority over it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use occ_api::ids::{AgentId, ConfigurationId, IdentityId, NamespaceId, SecretId};
use occ_host::drivers::authority::{Denials, HostAuthority};
use occ_host::drivers::leases::LeaseBook;
use occ_host::drivers::{AuthorityError, CallAuthority, CallContext, SecretRef, SecretValue, SecurityEvent};
use occ_host::ids::Ids;
use occ_host::secret_store::{Found, SecretStore};
use occ_tests::database::Database;
use occ_tests::process::call;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

struct Rig {
    pool: PgPool,
    store: SecretStore,
    _folder: tempfile::TempDir,
    _database: Database,
}

impl Rig {
    async fn new() -> Self {
        let database = Database::new().await.unwrap();
        let pool = database.app().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("secret.key");
        std::fs::write(&key_file, KEY).unwrap();
        std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let store = SecretStore::open(pool.clone(), Ids::system(), &key_file).unwrap();
        Self { pool, store, _folder: folder, _database: database }
    }

    async fn namespace(&self) -> NamespaceId {
        let id = NamespaceId::from_uuid(Uuid::new_v4());
        sqlx::query!("insert into occ.namespaces (id, name) values ($1, $1)", id.as_str())
            .execute(&self.pool)
            .await
            .unwrap();
        id
    }

    /// A ready Secret without a value.
    async fn secret(&self, namespace: &NamespaceId) -> SecretId {
        let id = SecretId::from_uuid(Uuid::new_v4());
        sqlx::query!(
            "insert into occ.secrets (id, namespace_id, name, store, state, created_by)
             values ($1, $2, $1, 'database', 'ready', 'test')",
            id.as_str(),
            namespace.as_str()
        )
        .execute(&self.pool)
        .await
        .unwrap();
        id
    }

    async fn agent(&self, namespace: &NamespaceId) -> AgentId {
        let agent = AgentId::from_uuid(Uuid::new_v4());
        let configuration = ConfigurationId::from_uuid(Uuid::new_v4());
        let principal = IdentityId::from_uuid(Uuid::new_v4());
        let mut tx = self.pool.begin().await.unwrap();
        sqlx::query!(
            "insert into occ.configurations (id, namespace_id, document, created_by) values ($1, $2, '{}', 'test')",
            configuration.as_str(),
            namespace.as_str()
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.agents (id, namespace_id, name, configuration_id, service_principal_id, created_by)
             values ($1, $2, $1, $3, $4, 'test')",
            agent.as_str(),
            namespace.as_str(),
            configuration.as_str(),
            principal.as_str()
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.iam_identities (id, kind, namespace_id, agent_id) values ($1, 'service_principal', $2, $3)",
            principal.as_str(),
            namespace.as_str(),
            agent.as_str()
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        tx.commit().await.unwrap();
        agent
    }

    async fn put(&self, namespace: &NamespaceId, secret: &SecretId, version: u64, value: &str) {
        let mut conn = self.pool.acquire().await.unwrap();
        let value = SecretValue::new(value.to_owned());
        self.store.put_secret(&mut conn, namespace, secret, version, &value).await.unwrap();
    }

    fn authority(&self) -> (HostAuthority, LeaseBook, Denials) {
        let leases = LeaseBook::default();
        let (authority, denials) = HostAuthority::new(leases.clone(), self.store.clone());
        (authority, leases, denials)
    }
}

fn text(found: Found) -> String {
    match found {
        Found::Value(value) => value.expose().to_owned(),
        other => format!("{other:?}"),
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn call_of(namespace: &NamespaceId, agent: Option<&AgentId>, epoch: u64) -> CallContext {
    CallContext { agent: agent.map(ToString::to_string), ..call(namespace.as_str(), epoch) }
}

#[tokio::test]
async fn a_secret_comes_back_and_a_newer_version_replaces_it() {
    let rig = Rig::new().await;
    let namespace = rig.namespace().await;
    let secret = rig.secret(&namespace).await;
    assert_eq!(text(rig.store.secret_value(&namespace, &secret).await.unwrap()), "Missing");
    rig.put(&namespace, &secret, 1, "first").await;
    assert_eq!(text(rig.store.secret_value(&namespace, &secret).await.unwrap()), "first");
    rig.put(&namespace, &secret, 2, "second").await;
    assert_eq!(text(rig.store.secret_value(&namespace, &secret).await.unwrap()), "second");
    let rows =
        sqlx::query!("select version, ciphertext from occ.secret_values").fetch_all(&rig.pool).await.unwrap();
    assert_eq!((rows.len(), rows[0].version), (1, 2));
    assert!(!rows[0].ciphertext.windows(6).any(|window| window == b"second"));
}

#[tokio::test]
async fn another_namespace_and_an_unready_secret_give_nothing() {
    let rig = Rig::new().await;
    let (namespace, other) = (rig.namespace().await, rig.namespace().await);
    let secret = rig.secret(&namespace).await;
    rig.put(&namespace, &secret, 1, "value").await;
    assert_eq!(text(rig.store.secret_value(&other, &secret).await.unwrap()), "Foreign");
    sqlx::query!("update occ.secrets set state = 'deleting' where id = $1", secret.as_str())
        .execute(&rig.pool)
        .await
        .unwrap();
    assert_eq!(text(rig.store.secret_value(&namespace, &secret).await.unwrap()), "Missing");
}

#[tokio::test]
async fn a_value_copied_to_another_secret_does_not_open() {
    let rig = Rig::new().await;
    let namespace = rig.namespace().await;
    let (one, two) = (rig.secret(&namespace).await, rig.secret(&namespace).await);
    rig.put(&namespace, &one, 1, "value").await;
    sqlx::query!(
        "insert into occ.secret_values (secret_id, version, key_id, wrapped_key, key_nonce, nonce, ciphertext)
         select $2, version, key_id, wrapped_key, key_nonce, nonce, ciphertext from occ.secret_values where secret_id = $1",
        one.as_str(),
        two.as_str()
    )
    .execute(&rig.pool)
    .await
    .unwrap();
    let error = rig.store.secret_value(&namespace, &two).await.unwrap_err();
    assert_eq!(error.code(), "INTERNAL_ERROR");
    assert!(!format!("{error:?}").contains("value\""));
}

#[tokio::test]
async fn a_credential_is_generated_once_also_by_two_callers() {
    let rig = Rig::new().await;
    let namespace = rig.namespace().await;
    let agent = rig.agent(&namespace).await;
    let wanted = names(&["gateway-password", "transport-token"]);
    assert_eq!(rig.store.generated_missing(&namespace, &agent, &wanted).await.unwrap(), wanted);
    let (one, two) = tokio::join!(
        rig.store.ensure_generated(&namespace, &agent, &wanted),
        rig.store.ensure_generated(&namespace, &agent, &wanted)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(rig.store.generated_missing(&namespace, &agent, &wanted).await.unwrap(), names(&[]));
    let first = text(rig.store.generated_value(&namespace, &agent, "gateway-password").await.unwrap());
    assert_eq!(first.len(), 43);
    rig.store.ensure_generated(&namespace, &agent, &wanted).await.unwrap();
    let again = text(rig.store.generated_value(&namespace, &agent, "gateway-password").await.unwrap());
    let other = text(rig.store.generated_value(&namespace, &agent, "transport-token").await.unwrap());
    assert_eq!(again, first);
    assert_ne!(other, first);
    assert_eq!(text(rig.store.generated_value(&namespace, &agent, "unknown").await.unwrap()), "Missing");
}

#[tokio::test]
async fn the_authority_gives_values_to_their_tenant_alone() {
    let rig = Rig::new().await;
    let (namespace, other) = (rig.namespace().await, rig.namespace().await);
    let (secret, agent) = (rig.secret(&namespace).await, rig.agent(&namespace).await);
    rig.put(&namespace, &secret, 1, "value").await;
    rig.store.ensure_generated(&namespace, &agent, &names(&["gateway-password"])).await.unwrap();
    let (authority, _leases, _denials) = rig.authority();
    let own = call_of(&namespace, Some(&agent), 1);
    let (by_id, generated) =
        (SecretRef::Secret(secret.to_string()), SecretRef::Generated("gateway-password".to_owned()));
    assert_eq!(authority.secret_value(&own, &by_id).await.unwrap().expose(), "value");
    assert_eq!(authority.secret_value(&own, &generated).await.unwrap().expose().len(), 43);
    let foreign = call_of(&other, Some(&agent), 1);
    assert_eq!(authority.secret_value(&foreign, &by_id).await.unwrap_err(), AuthorityError::OutsideTenant);
    assert_eq!(
        authority.secret_value(&foreign, &generated).await.unwrap_err(),
        AuthorityError::OutsideTenant
    );
    let agentless = call_of(&namespace, None, 1);
    assert_eq!(authority.secret_value(&agentless, &generated).await.unwrap_err(), AuthorityError::Missing);
    let unreadable = SecretRef::Secret("../etc".to_owned());
    assert_eq!(authority.secret_value(&own, &unreadable).await.unwrap_err(), AuthorityError::Missing);
}

#[tokio::test]
async fn the_authority_knows_leases_by_key_and_epoch() {
    let rig = Rig::new().await;
    let namespace = rig.namespace().await;
    let (authority, leases, _denials) = rig.authority();
    let cx = call_of(&namespace, None, 3);
    assert!(!authority.lease_alive(&cx).await);
    leases.hold("work-3", 3, 2, Instant::now() + Duration::from_secs(60));
    assert!(authority.lease_alive(&cx).await);
    assert_eq!((authority.fence(&cx), authority.fence_floor(&cx).await), (3, Ok(2)));
    let older = CallContext { epoch: 2, ..cx.clone() };
    assert!(!authority.lease_alive(&older).await);
    let read = CallContext { work_key: None, epoch: 0, ..cx };
    assert!(!authority.lease_alive(&read).await);
}

#[tokio::test]
async fn refusals_come_out_in_order_and_a_flood_of_them_blocks_nobody() {
    let rig = Rig::new().await;
    let namespace = rig.namespace().await;
    let (authority, _leases, mut denials) = rig.authority();
    let cx = call_of(&namespace, None, 1);
    for number in 0..1000 {
        let event =
            SecurityEvent { code: "OUTSIDE_TENANT", capability: "process", asked: format!("id-{number}") };
        authority.security_event(&cx, event).await;
    }
    drop(authority);
    let mut asked = Vec::new();
    while let Some(denial) = denials.recv().await {
        asked.push(denial.event.asked);
    }
    assert_eq!((asked.len(), asked[0].as_str(), asked[255].as_str()), (256, "id-0", "id-255"));
}
