//! Bootstrap on a real database: fresh, again, and cut off at every step.

mod command;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use occ_host::bootstrap::{self, BootstrapConfig, Outcome, Reissue, Reissued, Step};
use occ_host::clock::Clock;
use occ_host::config::Secret;
use occ_host::ids::Ids;
use occ_tests::database::Database;
use occ_tests::proxy::{Manner, Proxy};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, PgConnection};
use tempfile::TempDir;

const STEPS: [Step; 4] = [Step::RecordWritten, Step::PasswordWritten, Step::KeyWritten, Step::Committed];
const PASSWORD: &str = "initial-admin-password";
const KEY: &str = "initial-admin-service-key.json";
const FINISHED: &str = "bootstrap-attempt.json";
const PENDING: &str = ".bootstrap-attempt.json";

/// A migrated database and an output folder.
struct Scene {
    database: Database,
    db: PgConnection,
    folder: TempDir,
    config: BootstrapConfig,
}

impl Scene {
    async fn new() -> Self {
        let database = Database::new().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let config = BootstrapConfig {
            database_url: Secret::new(database.url("occ_app")),
            auth_secret: Secret::new("s".repeat(32)),
            base_url: "http://127.0.0.1:3000".to_owned(),
            admin_email: "admin@example.org".to_owned(),
            installation_name: "Test".to_owned(),
            password_file: folder.path().join(PASSWORD),
            service_key_file: folder.path().join(KEY),
            clock: Clock::system(),
            ids: Ids::system(),
            stop_after: None,
        };
        let db = database.connect("occ_migrator").await.unwrap();
        Self { database, db, folder, config }
    }

    /// Runs and is cut off after a step.
    async fn cut(&mut self, step: Step) {
        self.config.stop_after = Some(step);
        let error = bootstrap::run(&self.config).await.unwrap_err();
        assert!(matches!(error, bootstrap::BootstrapError::Stopped), "{error}");
        self.config.stop_after = None;
    }

    async fn run(&self) -> Outcome {
        bootstrap::run(&self.config).await.unwrap().outcome
    }

    async fn refused(&self) -> &'static str {
        let error = bootstrap::run(&self.config).await.unwrap_err();
        assert_eq!(error.exit_status(), 3, "{error}");
        error.code()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn key(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(KEY)).unwrap()).unwrap()
    }

    async fn count(&mut self, what: &str) -> i64 {
        let statement = format!("select count(*) from occ.{what}");
        sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&mut self.db).await.unwrap()
    }

    async fn execute(&mut self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut self.db).await.unwrap();
    }

    /// The key in the file opens: its hash is stored, it is not revoked, its owner administers.
    async fn key_opens(&mut self) -> bool {
        let key = self.key();
        let hash = Sha256::digest(key["data"]["key"].as_str().unwrap().as_bytes()).to_vec();
        sqlx::query_scalar(
            "select exists (
               select from occ.service_keys k
                 join occ.iam_bindings b on b.identity_id = k.service_principal_id
                 join occ.iam_role_permissions p on p.role_id = b.role_id
                where k.id = $1 and k.key_hash = $2 and k.service_principal_id = $3 and k.revoked_at is null
                  and p.action = 'administer' and p.resource_kind = 'installation')",
        )
        .bind(key["data"]["id"].as_str().unwrap())
        .bind(hash)
        .bind(key["data"]["servicePrincipalId"].as_str().unwrap())
        .fetch_one(&mut self.db)
        .await
        .unwrap()
    }

    /// One of everything, whatever happened before.
    async fn is_whole(&mut self) {
        assert_eq!(self.names(), [FINISHED, PASSWORD, KEY]);
        assert!(self.key_opens().await);
        for (what, expected) in [
            ("installation", 1),
            ("users", 1),
            ("service_keys", 1),
            ("iam_identities", 2),
            ("iam_bindings", 2),
            ("iam_role_permissions", 35),
            ("bootstrap_attempts", 1),
            ("namespaces where name = 'default' and status = 'provisioning'", 1),
            ("work where kind = 'namespace.ensure' and state = 'queued' and deadline_at is not null", 1),
            ("work_lane where due_at is not null", 1),
            ("audit_events where action = 'openclaw.installation.bootstrap' and kind = 'bootstrap'", 1),
            (
                "audit_events where action = 'openclaw.namespaces.create' and decision->>'action' = 'create'",
                1,
            ),
            ("events where kind = 'namespace.created'", 1),
        ] {
            assert_eq!(self.count(what).await, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn a_fresh_database_is_bootstrapped() {
    let mut scene = Scene::new().await;
    assert_eq!(scene.run().await, Outcome::Bootstrapped);
    scene.is_whole().await;
    for name in scene.names() {
        let mode = fs::metadata(scene.path(&name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let password = fs::read_to_string(scene.path(PASSWORD)).unwrap();
    assert_eq!((password.len(), password.ends_with('\n')), (44, true));
    let installation = sqlx::query_scalar::<_, String>("select id from occ.installation")
        .fetch_one(&mut scene.db)
        .await
        .unwrap();
    assert_eq!(scene.key()["meta"]["installationId"], installation);
    let record = fs::read_to_string(scene.path(FINISHED)).unwrap();
    assert!(
        !record.contains(password.trim()) && !record.contains(scene.key()["data"]["key"].as_str().unwrap())
    );
    let work: String =
        sqlx::query_scalar("select actor_id from occ.work").fetch_one(&mut scene.db).await.unwrap();
    assert!(work.starts_with("prn_"), "{work}");
}

#[tokio::test]
async fn a_second_run_verifies_and_looks_at_no_file() {
    let mut scene = Scene::new().await;
    scene.run().await;
    let key = scene.key();
    assert_eq!(scene.run().await, Outcome::AlreadyBootstrapped);
    scene.is_whole().await;
    assert_eq!(scene.key(), key);
    for name in scene.names() {
        fs::remove_file(scene.path(&name)).unwrap();
    }
    assert_eq!(scene.run().await, Outcome::AlreadyBootstrapped);
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_cut_off_after_each_step_is_finished_by_the_next() {
    for step in STEPS {
        let mut scene = Scene::new().await;
        scene.cut(step).await;
        assert!(scene.path(PENDING).exists(), "{step:?}");
        assert_eq!(scene.run().await, Outcome::Bootstrapped, "{step:?}");
        scene.is_whole().await;
    }
}

#[tokio::test]
async fn partial_files_of_a_cut_run_are_replaced() {
    let mut scene = Scene::new().await;
    scene.cut(Step::KeyWritten).await;
    fs::write(scene.path(KEY), "{\"data\"").unwrap();
    fs::remove_file(scene.path(PASSWORD)).unwrap();
    assert_eq!(scene.run().await, Outcome::Bootstrapped);
    scene.is_whole().await;

    let mut scene = Scene::new().await;
    fs::write(scene.path(PENDING), "{\"attemptId\":\"ba").unwrap();
    assert_eq!(scene.run().await, Outcome::Bootstrapped);
    scene.is_whole().await;
}

#[tokio::test]
async fn a_file_of_somebody_else_stops_the_run() {
    let mut scene = Scene::new().await;
    fs::write(scene.path("notes"), "mine").unwrap();
    assert_eq!(scene.refused().await, "BOOTSTRAP_OUTPUT_EXISTS");
    assert_eq!(scene.names(), ["notes"]);

    fs::remove_file(scene.path("notes")).unwrap();
    scene.cut(Step::KeyWritten).await;
    let other = "x".repeat(fs::read(scene.path(KEY)).unwrap().len());
    fs::write(scene.path(KEY), &other).unwrap();
    assert_eq!(scene.refused().await, "BOOTSTRAP_OUTPUT_EXISTS");
    assert_eq!(fs::read_to_string(scene.path(KEY)).unwrap(), other);
    assert!(scene.path(PASSWORD).exists());
    assert_eq!(scene.count("installation").await, 0);
}

#[tokio::test]
async fn files_of_an_attempt_that_lost_are_discarded() {
    let mut scene = Scene::new().await;
    scene.cut(Step::KeyWritten).await;
    // Another run, with another folder, won in the meantime.
    let other = tempfile::tempdir().unwrap();
    fs::set_permissions(other.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let winner = BootstrapConfig {
        password_file: other.path().join(PASSWORD),
        service_key_file: other.path().join(KEY),
        ..scene.config.clone()
    };
    bootstrap::run(&winner).await.unwrap();
    assert_eq!(scene.run().await, Outcome::AlreadyBootstrapped);
    assert_eq!(scene.names(), Vec::<String>::new());
    assert_eq!(scene.count("service_keys").await, 1);
}

#[tokio::test]
async fn of_two_runs_at_once_one_creates_and_one_verifies() {
    let mut scene = Scene::new().await;
    let (one, two) = tokio::join!(bootstrap::run(&scene.config), bootstrap::run(&scene.config));
    let mut outcomes = [one.unwrap().outcome, two.unwrap().outcome];
    outcomes.sort_by_key(|outcome| *outcome == Outcome::AlreadyBootstrapped);
    assert_eq!(outcomes, [Outcome::Bootstrapped, Outcome::AlreadyBootstrapped]);
    scene.is_whole().await;
}

#[tokio::test]
async fn a_changed_installation_is_named() {
    let mut scene = Scene::new().await;
    scene.run().await;
    scene.config.admin_email = "other@example.org".to_owned();
    assert_eq!(scene.refused().await, "BOOTSTRAP_ACCOUNT_MISSING");
    scene.config.admin_email = "admin@example.org".to_owned();

    scene.execute("update occ.users set disabled_at = now()").await;
    assert_eq!(scene.refused().await, "BOOTSTRAP_ACCOUNT_MISSING");
    scene.execute("update occ.users set disabled_at = null").await;

    scene.execute("delete from occ.iam_bindings where identity_id like 'prn%'").await;
    assert_eq!(scene.refused().await, "BOOTSTRAP_IDENTITY_MISMATCH");
}

#[tokio::test]
async fn a_database_that_nobody_migrated_is_refused() {
    let scene = Scene::new().await;
    let empty = Database::empty().await.unwrap();
    let config = BootstrapConfig { database_url: Secret::new(empty.url("occ_app")), ..scene.config.clone() };
    let error = bootstrap::run(&config).await.unwrap_err();
    assert_eq!((error.code(), error.exit_status()), ("SCHEMA_VERSION_MISMATCH", 3), "{error}");
    let absent = scene.database.url("occ_app").replace("/occ_test_", "/occ_none_");
    let config = BootstrapConfig { database_url: Secret::new(absent), ..scene.config.clone() };
    let error = bootstrap::run(&config).await.unwrap_err();
    assert_eq!((error.code(), error.exit_status()), ("PERSISTENCE_UNAVAILABLE", 1), "{error}");
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_is_found_out() {
    let mut scene = Scene::new().await;
    let proxy = Proxy::start(&scene.database, Manner::Direct).await.unwrap();
    proxy.cut_commit(1);
    scene.config.database_url = Secret::new(proxy.url("occ_app"));
    assert_eq!(scene.run().await, Outcome::Bootstrapped);
    assert!(proxy.has_cut());
    scene.is_whole().await;
}

fn request(id: &str) -> Reissue {
    Reissue { request_id: id.to_owned(), keep_old: false }
}

#[tokio::test]
async fn a_lost_key_is_reissued_once_per_request() {
    let mut scene = Scene::new().await;
    scene.run().await;
    let old = scene.key();
    let error = bootstrap::reissue(&scene.config, &request("r1")).await.unwrap_err();
    assert_eq!(error.code(), "BOOTSTRAP_OUTPUT_EXISTS");
    fs::remove_file(scene.path(KEY)).unwrap();

    assert_eq!(bootstrap::reissue(&scene.config, &request("r1")).await.unwrap(), Reissued::Issued);
    assert!(scene.key_opens().await);
    assert_ne!(scene.key()["data"]["id"], old["data"]["id"]);
    assert_eq!(scene.count("service_keys where revoked_at is not null").await, 1);
    let audited = "audit_events where action = 'openclaw.auth.service-keys.reissue' and actor_id = 'maintenance:occ_app'";
    assert_eq!(scene.count(audited).await, 1);

    assert_eq!(bootstrap::reissue(&scene.config, &request("r1")).await.unwrap(), Reissued::AlreadyIssued);
    assert_eq!(scene.count("service_keys").await, 2);

    fs::remove_file(scene.path(KEY)).unwrap();
    let keep = Reissue { keep_old: true, ..request("r2") };
    assert_eq!(bootstrap::reissue(&scene.config, &keep).await.unwrap(), Reissued::Issued);
    assert_eq!(scene.count("service_keys where revoked_at is null").await, 2);
    assert_eq!(scene.run().await, Outcome::AlreadyBootstrapped);
}

#[tokio::test]
async fn a_reissue_cut_off_after_each_step_is_finished_by_the_next() {
    for step in [Step::RecordWritten, Step::KeyWritten, Step::Committed] {
        let mut scene = Scene::new().await;
        scene.run().await;
        fs::remove_file(scene.path(KEY)).unwrap();
        scene.config.stop_after = Some(step);
        bootstrap::reissue(&scene.config, &request("r1")).await.unwrap_err();
        scene.config.stop_after = None;
        let expected = if step == Step::Committed { Reissued::AlreadyIssued } else { Reissued::Issued };
        assert_eq!(bootstrap::reissue(&scene.config, &request("r1")).await.unwrap(), expected, "{step:?}");
        assert!(scene.key_opens().await, "{step:?}");
        assert_eq!(scene.count("service_keys").await, 2, "{step:?}");
        assert_eq!(scene.names(), [FINISHED, PASSWORD, KEY], "{step:?}");
    }
}
