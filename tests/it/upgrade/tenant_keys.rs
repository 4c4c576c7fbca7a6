//! A row of one tenant that names a parent of another fails, for each composite key.

use occ_tests::database::Database;

use super::fixture::{filled, tenants};
use super::tried;

/// Columns and the constant half of a revision, as literals so that `concat!` takes them.
macro_rules! revision {
    () => {
        "insert into occ.agent_revisions (id, namespace_id, agent_id, revision_number, rollback_of, configuration_id,
            configuration_generation, compute_plugin, compute_version, compute_digest, harness_id, harness_version,
            harness_mode, secret_store, snapshot, created_by) values "
    };
}
macro_rules! revision_rest {
    () => {
        ", '{cfg}', 1, 'local', '1', 'sha256:' || repeat('0', 64), 'openclaw', '1', 'embedded', 'database', '{}', 'x')"
    };
}

/// Constraint, then a statement of tenant 1 that names something of tenant 2.
const FOREIGN: [(&str, &str); 15] = [
    (
        "configuration_secret_bindings_configuration_fkey",
        "insert into occ.configuration_secret_bindings values ('{ns}', '{cfg2}', 'A', '{sec}')",
    ),
    (
        "configuration_secret_bindings_secret_fkey",
        "insert into occ.configuration_secret_bindings values ('{ns}', '{cfg}', 'A', '{sec2}')",
    ),
    ("agents_configuration_fkey", "update occ.agents set configuration_id = '{cfg2}' where id = '{agt}'"),
    (
        "agents_harness_secret_fkey",
        "update occ.agents set harness_method = 'api_key', harness_secret_id = '{sec2}' where id = '{agt}'",
    ),
    ("agents_active_revision_fkey", "update occ.agents set active_revision_id = '{rev2}' where id = '{agt}'"),
    (
        "agents_service_principal_fkey",
        "insert into occ.agents (id, namespace_id, name, configuration_id, service_principal_id, created_by)
         values ('{agt3}', '{ns}', 'x', '{cfg}', '{spn2}', 'x')",
    ),
    (
        "iam_identities_agent_fkey",
        "insert into occ.iam_identities (id, kind, namespace_id, agent_id)
         values ('{spn3}', 'service_principal', '{ns}', '{agt2}')",
    ),
    (
        "agent_credentials_agent_fkey",
        "insert into occ.agent_credentials (namespace_id, agent_id, name, store) values ('{ns}', '{agt2}', 'x', 'database')",
    ),
    ("agent_revisions_agent_fkey", concat!(revision!(), "('{rev3}', '{ns}', '{agt2}', 2, null", revision_rest!())),
    ("agent_revisions_rollback_of_fkey", concat!(revision!(), "('{rev3}', '{ns}', '{agt}', 2, '{rev2}'", revision_rest!())),
    (
        "agent_observations_agent_fkey",
        "insert into occ.agent_observations (namespace_id, agent_id, observed_at) values ('{ns}', '{agt2}', now())",
    ),
    (
        "agent_observations_revision_fkey",
        "insert into occ.agent_observations (namespace_id, agent_id, revision_id, observed_at)
         values ('{ns}', '{agt}', '{rev2}', now())",
    ),
    (
        "work_agent_fkey",
        "insert into occ.work (key, kind, lane, namespace_id, agent_id, actor_id, available_at, attempts_max)
         values ('x', 'agent.stop', '{agt2}', '{ns}', '{agt2}', 'x', now(), 5)",
    ),
    (
        "work_revision_fkey",
        "insert into occ.work (key, kind, lane, namespace_id, agent_id, revision_id, actor_id, available_at, attempts_max)
         values ('x', 'agent.stop', '{agt}', '{ns}', '{agt}', '{rev2}', 'x', now(), 5)",
    ),
    ("work_previous_revision_fkey", "update occ.work set previous_revision_id = '{rev2}' where key = 'revision-1'"),
];

#[tokio::test]
async fn no_row_names_another_tenants_parent() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    for (constraint, statement) in FOREIGN {
        let refusal = tried(&mut db, &filled(statement)).await.expect_err(constraint);
        assert_eq!(refusal.sqlstate, "23503", "{constraint}: {refusal:?}");
        assert!(refusal.message.contains(constraint), "{constraint}: {refusal:?}");
    }
}

#[tokio::test]
async fn each_composite_key_is_tried() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    let mut keys: Vec<String> = sqlx::query_scalar(
        "select conname::text from pg_constraint
          where contype = 'f' and connamespace = 'occ'::regnamespace and cardinality(conkey) > 1
            and conname <> 'service_keys_service_principal_fkey'
          order by conname",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    keys.sort();
    let mut tried: Vec<&str> = FOREIGN.iter().map(|(constraint, _)| *constraint).collect();
    tried.sort_unstable();
    assert_eq!(keys, tried);
}

#[tokio::test]
async fn an_agents_identity_never_owns_a_key() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let key = "insert into occ.service_keys (id, service_principal_id, namespace_id, name, prefix, key_hash, created_by,
          expires_at)
        values ('{key}', '{spn}', '{ns}', 'k', 'occ_abcdefgh', sha256('x'), 'x', now() + interval '2 days')";
    let refusal = tried(&mut db, &filled(key)).await.unwrap_err();
    assert_eq!(refusal.sqlstate, "23503");
    let lie =
        key.replace("service_principal_id, namespace_id", "service_principal_id, keyable, namespace_id");
    let refusal =
        tried(&mut db, &filled(&lie.replace("'{spn}', '{ns}'", "'{spn}', false, '{ns}'"))).await.unwrap_err();
    assert_eq!(refusal.sqlstate, "23514");
}
