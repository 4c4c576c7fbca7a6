//! An Installation with one Namespace, an actor who may do everything, and a worker with a compute double.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use occ_host::clock::Clock;
use occ_host::config::WorkerSettings;
use occ_host::drivers::types::{ExecutionMode, HarnessIdentity, Plan};
use occ_host::iam::Iam;
use occ_host::ids::Ids;
use occ_host::revisions::model::{self, FrozenConfiguration, PluginIdentity, Snapshot};
use occ_host::worker::injector::Injector;
use occ_host::worker::{self, Context};
use occ_queue::{Hints, NewWork, Owner};
use occ_tests::database::Database;
use occ_tests::wait::eventually;
use sqlx::PgPool;
use sqlx::types::Json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::compute::FakeCompute;

/// Time of a deployment for each phase, when a test wants it to pass.
pub(crate) const SHORT: Duration = Duration::from_millis(1_200);

pub(crate) struct World {
    pub(crate) pool: PgPool,
    pub(crate) compute: Arc<FakeCompute>,
    pub(crate) namespace: String,
    pub(crate) actor: String,
    pub(crate) convergence: Duration,
    pub(crate) attempts_max: i32,
    pub(crate) injector: Option<Arc<dyn Injector>>,
    hints: Hints,
    database: Database,
}

/// One Agent with its principal.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) principal: String,
}

/// A worker beside the test.
pub(crate) struct Running {
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// What a row of work holds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) state: String,
    pub(crate) phase: String,
    pub(crate) step: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) cause: Option<String>,
    pub(crate) attempt: i32,
    pub(crate) result: Option<serde_json::Value>,
}

impl Row {
    pub(crate) fn ended(&self) -> (&str, &str) {
        (&self.state, self.code.as_deref().unwrap_or("-"))
    }
}

fn id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::new_v4())
}

impl World {
    /// An Installation whose one Namespace is ready.
    pub(crate) async fn new() -> Self {
        let database = Database::new().await.unwrap();
        let pool = database.app().await.unwrap();
        let actor = id("spn");
        let world = Self {
            compute: Arc::default(),
            namespace: id("ns"),
            actor,
            convergence: Duration::from_secs(60),
            attempts_max: 5,
            injector: None,
            hints: Hints::default(),
            pool,
            database,
        };
        world.namespace_insert(&world.namespace, "ready").await;
        world.actor_insert().await;
        world
    }

    pub(crate) async fn namespace_insert(&self, namespace: &str, status: &str) {
        sqlx::query!("insert into occ.namespaces (id, name) values ($1, $1)", namespace)
            .execute(&self.pool)
            .await
            .unwrap();
        if status != "provisioning" {
            sqlx::query!("update occ.namespaces set status = $2 where id = $1", namespace, status)
                .execute(&self.pool)
                .await
                .unwrap();
        }
    }

    async fn actor_insert(&self) {
        let (role, binding) = (id("role"), id("binding"));
        let mut tx = self.pool.begin().await.unwrap();
        sqlx::query!(
            "insert into occ.iam_identities (id, kind, label) values ($1, 'service_principal', 'actor')",
            self.actor
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!("insert into occ.iam_roles (id, name) values ($1, 'all')", role)
            .execute(&mut *tx)
            .await
            .unwrap();
        sqlx::query!(
            "insert into occ.iam_role_permissions (role_id, action, resource_kind)
             values ($1, 'deploy', 'agent'), ($1, 'operate', 'agent'), ($1, 'delete', 'agent'),
                    ($1, 'read', 'configuration'), ($1, 'create', 'namespace'), ($1, 'delete', 'namespace')",
            role
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.iam_bindings (id, role_id, identity_id, created_by) values ($1, $2, $3, $3)",
            binding,
            role,
            self.actor
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }

    /// Takes every right from the actor.
    pub(crate) async fn revoke(&self) {
        sqlx::query!("delete from occ.iam_bindings where identity_id = $1", self.actor)
            .execute(&self.pool)
            .await
            .unwrap();
    }

    pub(crate) async fn agent(&self, policy: &str) -> Agent {
        let agent = Agent { id: id("agt"), principal: id("spn") };
        let configuration = id("cfg");
        let mut tx = self.pool.begin().await.unwrap();
        sqlx::query!(
            "insert into occ.configurations (id, namespace_id, document, created_by) values ($1, $2, '{}', $3)",
            configuration,
            self.namespace,
            self.actor
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.iam_identities (id, kind, namespace_id, agent_id) values ($1, 'service_principal', $2, $3)",
            agent.principal,
            self.namespace,
            agent.id
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.agents (id, namespace_id, name, configuration_id, service_principal_id, rollback_policy,
                                     created_by)
             values ($1, $2, $1, $3, $4, $5, $6)",
            agent.id,
            self.namespace,
            configuration,
            agent.principal,
            policy,
            self.actor
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        tx.commit().await.unwrap();
        agent
    }

    /// Admits a revision as the API does: revision, desired running, work; answers its id.
    pub(crate) async fn deploy(&self, agent: &Agent) -> String {
        self.deploy_as(agent, |_, _| {}).await
    }

    /// The same, with what the compute will answer about the revision arranged before it is admitted.
    pub(crate) async fn deploy_with(
        &self,
        agent: &Agent,
        arrange: impl FnOnce(&FakeCompute, &str),
    ) -> String {
        self.deploy_as(agent, |revision, _| arrange(&self.compute, revision)).await
    }

    pub(crate) async fn deploy_as(&self, agent: &Agent, change: impl FnOnce(&str, &mut Snapshot)) -> String {
        let revision = id("rev");
        let mut snapshot = snapshot(agent);
        change(&revision, &mut snapshot);
        let mut tx = self.pool.begin().await.unwrap();
        let number = sqlx::query_scalar!(
            "update occ.agents set desired_runtime_state = 'running', last_revision_number = last_revision_number + 1
              where id = $1 returning last_revision_number",
            agent.id
        )
        .fetch_one(&mut *tx)
        .await
        .unwrap();
        sqlx::query!(
            "insert into occ.agent_revisions (id, namespace_id, agent_id, revision_number, configuration_id,
                    configuration_generation, compute_plugin, compute_version, compute_digest, harness_id,
                    harness_version, harness_mode, secret_store, snapshot, created_by)
             values ($1, $2, $3, $4, $5, 1, $6, $7, $8, 'fake', '1', 'embedded', 'database', $9, $10)",
            revision,
            self.namespace,
            agent.id,
            number,
            snapshot.configuration.id.as_str(),
            snapshot.compute.id,
            snapshot.compute.version,
            snapshot.compute.digest,
            Json(&snapshot) as _,
            self.actor
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        let owner = Owner::revision(&self.namespace, &agent.id, &revision);
        let work = NewWork::user(deploy_key(&revision), "revision.reconcile", owner, &self.actor);
        occ_queue::enqueue(&mut tx, &work.attempts_max(self.attempts_max).deadline(self.convergence))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.hints.hint();
        revision
    }

    /// Asks for a stop as the API does; answers the work's key.
    pub(crate) async fn stop(&self, agent: &Agent) -> String {
        let key = format!("agent:{}:stop:{}", agent.id, Uuid::new_v4());
        let mut tx = self.pool.begin().await.unwrap();
        sqlx::query!("update occ.agents set desired_runtime_state = 'stopped' where id = $1", agent.id)
            .execute(&mut *tx)
            .await
            .unwrap();
        self.commit_agent_work(tx, agent, &key, "agent.stop").await;
        key
    }

    /// Asks for a deletion as the API does; answers the work's key.
    pub(crate) async fn delete(&self, agent: &Agent) -> String {
        let key = format!("agent:{}:delete", agent.id);
        let mut tx = self.pool.begin().await.unwrap();
        sqlx::query!(
            "update occ.agents set status = 'deleting', desired_runtime_state = 'stopped' where id = $1",
            agent.id
        )
        .execute(&mut *tx)
        .await
        .unwrap();
        self.commit_agent_work(tx, agent, &key, "agent.delete").await;
        key
    }

    async fn commit_agent_work(
        &self,
        mut tx: sqlx::Transaction<'static, sqlx::Postgres>,
        agent: &Agent,
        key: &str,
        kind: &'static str,
    ) {
        let owner = Owner::agent(&self.namespace, &agent.id);
        occ_queue::enqueue(
            &mut tx,
            &NewWork::user(key, kind, owner, &self.actor).attempts_max(self.attempts_max),
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        self.hints.hint();
    }

    /// Enqueues work of a Namespace; answers its key.
    pub(crate) async fn namespace_work(&self, namespace: &str, verb: &str, kind: &'static str) -> String {
        let key = format!("namespace:{namespace}:{verb}");
        let mut tx = self.pool.begin().await.unwrap();
        let work = NewWork::user(&key, kind, Owner::namespace(namespace), &self.actor);
        occ_queue::enqueue(&mut tx, &work.attempts_max(2).deadline(self.convergence)).await.unwrap();
        tx.commit().await.unwrap();
        self.hints.hint();
        key
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn worker(&self) -> Running {
        self.worker_on(self.pool.clone())
    }

    /// A worker whose steps and transitions use this pool; its leases have their own.
    pub(crate) fn worker_on(&self, pool: PgPool) -> Running {
        let context = Context {
            db: pool.clone(),
            clock: Clock::system(),
            ids: Ids::system(),
            installation: occ_api::ids::InstallationId::from_uuid(Uuid::new_v4()),
            iam: Iam::default(),
            compute: Arc::new(Arc::clone(&self.compute)),
            convergence: self.convergence,
            leases: None,
            injector: self.injector.clone(),
        };
        let convergence_ms = u64::try_from(self.convergence.as_millis()).unwrap();
        let settings = WorkerSettings {
            poll_interval_ms: 100,
            lease_ms: 20_000,
            convergence_ms,
            drain_secs: 5,
            ..Default::default()
        };
        let (worker, _) = worker::build(
            context,
            occ_queue::Database { pool, ..occ_queue::Database::from(self.pool.clone()) },
            &settings,
            "worker".to_owned(),
        );
        let running = Running { shutdown: CancellationToken::new(), tasks: TaskTracker::new() };
        running.tasks.spawn(worker.hints(self.hints.clone()).run(running.shutdown.clone()));
        running.tasks.close();
        running
    }

    pub(crate) async fn row(&self, key: &str) -> Option<Row> {
        sqlx::query_as!(
            Row,
            "select state, phase, step, reason_code as code, cause_code as cause, attempt, result
               from occ.work where key = $1",
            key
        )
        .fetch_optional(&self.pool)
        .await
        .unwrap()
    }

    /// Waits until the work has ended, and answers how.
    pub(crate) async fn ended(&self, key: &str) -> Row {
        eventually(key, || async {
            let row = self.row(key).await.ok_or_else(|| "the row is gone".to_owned())?;
            if matches!(row.state.as_str(), "succeeded" | "failed_permanent") {
                Ok(row)
            } else {
                Err(format!("{row:?}"))
            }
        })
        .await
    }

    /// Waits until the work waits with this code.
    pub(crate) async fn waits(&self, key: &str, code: &str) -> Row {
        eventually(key, || async {
            let row = self.row(key).await.ok_or_else(|| "the row is gone".to_owned())?;
            if row.state == "queued" && row.code.as_deref() == Some(code) {
                Ok(row)
            } else {
                Err(format!("{row:?}"))
            }
        })
        .await
    }

    /// Deploys and waits until it serves.
    pub(crate) async fn deployed(&self, agent: &Agent) -> String {
        let revision = self.deploy(agent).await;
        let row = self.ended(&deploy_key(&revision)).await;
        assert_eq!(row.ended(), ("succeeded", "REVISION_ACTIVATED"), "{row:?}");
        revision
    }

    pub(crate) async fn pointer(&self, agent: &Agent) -> Option<String> {
        sqlx::query_scalar!("select active_revision_id from occ.agents where id = $1", agent.id)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// Audit events about an Agent, oldest first: action and code.
    pub(crate) async fn audit(&self, resource: &str) -> Vec<(String, String)> {
        sqlx::query!(
            r#"select action, coalesce(reason_code, '-') as "code!" from occ.audit_events
                where resource_id = $1 order by seq"#,
            resource
        )
        .fetch_all(&self.pool)
        .await
        .unwrap()
        .into_iter()
        .map(|row| (row.action, row.code))
        .collect()
    }

    /// How often an action was audited about a resource.
    pub(crate) async fn audited(&self, resource: &str, action: &str) -> usize {
        self.audit(resource).await.iter().filter(|(found, _)| found == action).count()
    }

    /// User work that has not ended: key, state, code.
    pub(crate) async fn open_work(&self) -> Vec<(String, String, Option<String>)> {
        sqlx::query!("select key, state, reason_code from occ.work where completed_at is null and not upkeep")
            .fetch_all(&self.pool)
            .await
            .unwrap()
            .into_iter()
            .map(|row| (row.key, row.state, row.reason_code))
            .collect()
    }

    /// Every live lease lapses, as if its worker had died a while ago.
    pub(crate) async fn lapse(&self, key: &str) {
        sqlx::query!(
            "update occ.work set lease_until = now() - interval '5 s' where key = $1 and state = 'claimed'",
            key
        )
        .execute(&self.pool)
        .await
        .unwrap();
    }
}

pub(crate) fn deploy_key(revision: &str) -> String {
    format!("agent_revision:{revision}:reconcile")
}

fn snapshot(agent: &Agent) -> Snapshot {
    let plan = Plan {
        harness: HarnessIdentity {
            id: "fake".to_owned(),
            version: "1".to_owned(),
            mode: ExecutionMode::Embedded,
        },
        containers: Vec::new(),
        warnings: Vec::new(),
    };
    let document = serde_json::json!({});
    let identity = |id: &str| PluginIdentity {
        id: id.to_owned(),
        version: "1.2.0".to_owned(),
        digest: format!("sha256:{}", "0".repeat(64)),
    };
    Snapshot {
        schema: model::SNAPSHOT_SCHEMA,
        principal_id: agent.principal.parse().unwrap(),
        configuration: FrozenConfiguration {
            id: id("cfg").parse().unwrap(),
            kind: "agent".to_owned(),
            generation: 1,
            document: document.clone(),
        },
        secret_bindings: BTreeMap::new(),
        harness_auth: None,
        platform: serde_json::from_value(serde_json::json!({
            "bind": "loopback", "gatewayPort": 18789, "trustedProxies": []
        }))
        .unwrap(),
        harness_plugin: identity("harness-fake"),
        compute: identity("compute-fake"),
        secret_store: "database".to_owned(),
        secrets: Vec::new(),
        plan_digest: model::digest(&plan).unwrap(),
        plan,
        configuration_digest: model::digest(&document).unwrap(),
    }
}
