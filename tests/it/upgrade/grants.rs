//! The grant table as data, and each of its cells tried as the application role.

use std::collections::BTreeSet;

use occ_tests::database::Database;

use super::{Refusal, execute};

/// Columns that the application may update.
enum Update {
    None,
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

use Update::{AllBut, None as Never, Only};

const BACKEND: [&str; 4] = ["backend_namespace", "backend_name", "backend_key", "backend_uid"];

/// Table, may insert, may update, may delete. Everything may be selected.
const GRANTS: [(&str, bool, Update, bool); 29] = [
    ("installation", true, Only(&["event_stream"]), false),
    ("schema_state", false, Never, false),
    ("bootstrap_attempts", true, Never, false),
    ("audit_events", true, Never, false),
    ("namespaces", true, Only(&["status", "updated_at", "deleted_at"]), false),
    ("configurations", true, Only(&["generation", "document", "updated_at"]), true),
    ("configuration_secret_bindings", true, Never, true),
    (
        "secrets",
        true,
        Only(&["state", "version", BACKEND[0], BACKEND[1], BACKEND[2], BACKEND[3], "updated_at"]),
        true,
    ),
    ("secret_values", true, AllBut(&["secret_id"]), true),
    (
        "agent_credentials",
        true,
        Only(&[
            "state",
            BACKEND[0],
            BACKEND[1],
            BACKEND[2],
            BACKEND[3],
            "key_id",
            "wrapped_key",
            "key_nonce",
            "nonce",
            "ciphertext",
        ]),
        true,
    ),
    (
        "agents",
        true,
        Only(&[
            "configuration_id",
            "backend_id",
            "execution_mode",
            "harness_method",
            "harness_secret_id",
            "plugins",
            "plugin_approvers",
            "repository_bindings",
            "rollback_policy",
            "desired_runtime_state",
            "status",
            "active_revision_id",
            "last_revision_number",
            "version",
            "updated_at",
        ]),
        false,
    ),
    ("agent_revisions", true, Never, false),
    ("agent_observations", true, AllBut(&["agent_id"]), true),
    ("iam_identities", true, Only(&["label"]), true),
    ("iam_groups", true, Only(&["name", "version"]), true),
    ("iam_roles", true, Only(&["name", "version"]), true),
    ("iam_group_members", true, Never, true),
    ("iam_role_permissions", true, Never, true),
    ("iam_bindings", true, Never, true),
    ("iam_restrictions", true, Never, true),
    (
        "users",
        true,
        Only(&["name", "password_hash", "version", "method_version", "disabled_at", "updated_at"]),
        true,
    ),
    ("service_keys", true, Only(&["last_used_at", "revoked_at"]), true),
    (
        "work",
        true,
        AllBut(&[
            "key",
            "kind",
            "lane",
            "namespace_id",
            "agent_id",
            "revision_id",
            "actor_id",
            "upkeep",
            "attempts_max",
            "traceparent",
            "created_at",
        ]),
        true,
    ),
    ("work_lane", true, AllBut(&["lane", "namespace_id"]), false),
    ("idempotency_keys", true, AllBut(&["principal_id", "scope", "key"]), true),
    ("events", true, AllBut(&["seq"]), true),
    ("processes", true, AllBut(&["id"]), true),
    ("plugin_observations", true, AllBut(&["process_id", "plugin_id", "digest"]), true),
    ("reconciler_runs", true, AllBut(&["name"]), true),
];

/// Was the statement allowed? Columns that the server fills by itself count as forbidden.
fn allowed(said: Result<(), Refusal>, statement: &str) -> bool {
    match said {
        Ok(()) => true,
        Err(refusal) if matches!(refusal.sqlstate.as_str(), "42501" | "428C9") => false,
        Err(refusal) => panic!("{statement}: {refusal:?}"),
    }
}

#[tokio::test]
async fn each_cell_of_the_grant_table_holds() {
    let database = Database::new().await.unwrap();
    let mut owner = database.connect("occ_migrator").await.unwrap();
    let mut app = database.connect("occ_app").await.unwrap();
    let columns: Vec<(String, String, bool)> = sqlx::query_scalar::<_, sqlx::types::Json<(String, String, bool)>>(
        "select json_build_array(c.relname, a.attname, a.attidentity <> '' or a.attgenerated <> '')
           from pg_class c join pg_attribute a on a.attrelid = c.oid
          where c.relnamespace = 'occ'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
          order by c.relname, a.attnum",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap()
    .into_iter()
    .map(|row| row.0)
    .collect();

    let tables: BTreeSet<&str> = columns.iter().map(|(table, ..)| table.as_str()).collect();
    let listed: BTreeSet<&str> = GRANTS.iter().map(|(table, ..)| *table).collect();
    assert_eq!(tables, listed, "tables of the schema, and of the grant table");

    let mut wrong = Vec::new();
    for (table, insert, update, delete) in &GRANTS {
        for (_, column, filled) in columns.iter().filter(|(of, ..)| of == table) {
            let updatable = match update {
                Never => false,
                Only(list) => list.contains(&column.as_str()),
                AllBut(list) => !list.contains(&column.as_str()),
            };
            let cells = [
                (format!("select {column} from occ.{table} where false"), true),
                (
                    format!(
                        "insert into occ.{table} ({column}) select {column} from occ.{table} where false"
                    ),
                    *insert && !filled,
                ),
                (format!("update occ.{table} set {column} = {column} where false"), updatable && !filled),
            ];
            for (statement, expected) in cells {
                if allowed(execute(&mut app, &statement).await, &statement) != expected {
                    wrong.push(format!("{statement}: expected {expected}"));
                }
            }
        }
        let delete_statement = format!("delete from occ.{table} where false");
        if allowed(execute(&mut app, &delete_statement).await, &delete_statement) != *delete {
            wrong.push(format!("{delete_statement}: expected {delete}"));
        }
        for statement in [
            format!("truncate occ.{table}"),
            format!("create trigger x before insert on occ.{table} execute function occ.immutable_row()"),
            format!("alter table occ.{table} add column x text"),
        ] {
            if allowed(execute(&mut app, &statement).await, &statement) {
                wrong.push(format!("{statement}: expected false"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn neither_role_can_act_as_the_other_and_the_ledger_is_hidden() {
    let database = Database::new().await.unwrap();
    for (role, statement) in [
        ("occ_app", "set role occ_migrator"),
        ("occ_app", "set session authorization occ_migrator"),
        ("occ_app", "select from occ_migrations.receipts"),
        ("occ_app", "create schema x"),
        ("occ_app", "create table occ.x (y text)"),
        ("occ_migrator", "set role occ_app"),
        ("occ_migrator", "create database occ_x"),
        ("occ_migrator", "create role occ_x"),
    ] {
        let mut db = database.connect(role).await.unwrap();
        let refusal = execute(&mut db, statement).await.expect_err(statement);
        assert_eq!(refusal.sqlstate, "42501", "{statement}: {refusal:?}");
    }
}

#[tokio::test]
async fn the_application_has_its_bounds_and_the_public_nothing() {
    let database = Database::new().await.unwrap();
    let mut app = database.connect("occ_app").await.unwrap();
    let settings: Vec<String> = sqlx::query_scalar(
        "select name || '=' || setting || coalesce(unit, '') from pg_settings
          where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'search_path')
          order by name",
    )
    .fetch_all(&mut app)
    .await
    .unwrap();
    assert_eq!(
        settings,
        [
            "idle_in_transaction_session_timeout=10000ms",
            "lock_timeout=2000ms",
            "search_path=pg_catalog, occ",
            "statement_timeout=10000ms",
        ]
    );
    let open: Vec<String> = sqlx::query_scalar(
        "select p.proname::text from pg_proc p
          where p.pronamespace = 'occ'::regnamespace and has_function_privilege('public', p.oid, 'execute')
         union all
         select c.relname::text from pg_class c, aclexplode(c.relacl) acl
          where c.relnamespace = 'occ'::regnamespace and acl.grantee = 0",
    )
    .fetch_all(&mut app)
    .await
    .unwrap();
    assert_eq!(open, Vec::<String>::new());
}
