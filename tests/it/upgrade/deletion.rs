//! The two functions that hold rights the application has not.

use occ_tests::database::Database;
use sqlx::{AssertSqlSafe, PgConnection};

use super::execute;
use super::fixture::{filled, tenants};

const TOKEN: &str = "11111111-1111-4111-8111-111111111111";

/// Agent 1 is being deleted under a live claim of epoch 7, and others hold bindings on it.
async fn deleting(database: &Database) -> PgConnection {
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let statements = format!(
        "delete from occ.agent_credentials where agent_id = '{{agt}}';
         update occ.agents set status = 'deleting' where id = '{{agt}}';
         insert into occ.agent_observations (namespace_id, agent_id, revision_id, observed_at)
           values ('{{ns}}', '{{agt}}', '{{rev}}', now());
         insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, resource_kind, resource_id, created_by)
           values ('{{binding2}}', '{{role}}', '{{spn}}', '{{ns}}', 'secret', '{{sec}}', 'x'),
                  ('{{binding3}}', '{{role}}', '{{prn}}', '{{ns}}', 'agent', '{{agt}}', 'x');
         insert into occ.iam_restrictions (id, namespace_id, identity_id, action, resource_kind, created_by)
           values ('{{rst}}', '{{ns}}', '{{spn}}', 'read', 'secret', 'x');
         update occ.work_lane set busy = true, epoch = 7 where lane = '{{agt}}';
         insert into occ.work (key, kind, lane, namespace_id, agent_id, actor_id, available_at, attempts_max, state,
                               lease_token, lease_until, epoch)
           values ('delete', 'agent.delete', '{{agt}}', '{{ns}}', '{{agt}}', '{{prn}}', now(), 5, 'claimed',
                   '{TOKEN}', now() + interval '1 hour', 7)"
    );
    execute(&mut db, &filled(&statements)).await.unwrap();
    db
}

async fn finalize(db: &mut PgConnection, token: &str, epoch: i64) -> bool {
    let call = filled(&format!(
        "select occ.finalize_agent_deletion('{{ns}}', '{{agt}}', 'delete', '{token}', {epoch})"
    ));
    sqlx::query_scalar(AssertSqlSafe(call)).fetch_one(db).await.unwrap()
}

async fn count(db: &mut PgConnection, what: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(filled(&format!("select count(*) from occ.{what}"))))
        .fetch_one(db)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_live_claim_removes_everything_that_names_the_agent() {
    let database = Database::new().await.unwrap();
    let mut owner = deleting(&database).await;
    let mut app = database.connect("occ_app").await.unwrap();
    assert!(finalize(&mut app, TOKEN, 7).await);
    for gone in [
        "agents where id = '{agt}'",
        "agent_revisions where agent_id = '{agt}'",
        "agent_observations where agent_id = '{agt}'",
        "iam_identities where id = '{spn}'",
        "iam_bindings where id in ('{binding2}', '{binding3}')",
        "iam_restrictions where id = '{rst}'",
        "work where agent_id = '{agt}'",
        "work_lane where lane = '{agt}'",
    ] {
        assert_eq!(count(&mut owner, gone).await, 0, "{gone}");
    }
    for kept in ["agents", "agent_revisions", "work", "work_lane", "iam_bindings where id = '{binding}'"] {
        assert_eq!(count(&mut owner, kept).await, 1, "{kept}");
    }
    let audit: (String, serde_json::Value) = sqlx::query_scalar::<_, sqlx::types::Json<_>>(
        "select json_build_array(actor_id, details->'removed') from occ.audit_events where reason_code = 'AGENT_DELETED'",
    )
    .fetch_one(&mut owner)
    .await
    .unwrap()
    .0;
    assert_eq!(audit.0, filled("{prn}"));
    let removed = filled(r#"["{binding2}", "{binding3}", "{rst}"]"#);
    assert_eq!(audit.1, serde_json::from_str::<serde_json::Value>(&removed).unwrap());
    assert_eq!(count(&mut owner, "events where kind = 'agent.deleted' and resource_id = '{agt}'").await, 1);
}

#[tokio::test]
async fn long_lists_of_removed_bindings_are_split() {
    let database = Database::new().await.unwrap();
    let mut owner = deleting(&database).await;
    let many = "insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, resource_kind, resource_id, created_by)
        select 'binding_' || gen_random_uuid(), '{role}', '{prn}', '{ns}', 'agent', '{agt}', 'x' from generate_series(1, 250)";
    execute(&mut owner, &filled(many)).await.unwrap();
    assert!(finalize(&mut owner, TOKEN, 7).await);
    let parts: Vec<i32> = sqlx::query_scalar(
        "select jsonb_array_length(details->'removed') from occ.audit_events where reason_code = 'AGENT_DELETED'
          order by (details->>'part')::integer",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert_eq!(parts, [100, 100, 53]);
}

#[tokio::test]
async fn anything_but_the_live_claim_changes_nothing() {
    let other = "22222222-2222-4222-8222-222222222222";
    let cases = [
        ("wrong token", "select 1", other, 7),
        ("older epoch", "select 1", TOKEN, 6),
        ("lapsed lease", "update occ.work set lease_until = now() where key = 'delete'", TOKEN, 7),
        (
            "other kind",
            "alter table occ.work disable trigger user; update occ.work set kind = 'agent.stop' where key = 'delete'",
            TOKEN,
            7,
        ),
        (
            "not deleting",
            "alter table occ.agents disable trigger user; update occ.agents set status = 'active' where id = '{agt}'",
            TOKEN,
            7,
        ),
        ("still active", "update occ.agents set active_revision_id = '{rev}' where id = '{agt}'", TOKEN, 7),
    ];
    for (case, change, token, epoch) in cases {
        let database = Database::new().await.unwrap();
        let mut owner = deleting(&database).await;
        execute(&mut owner, &filled(change)).await.unwrap();
        let mut app = database.connect("occ_app").await.unwrap();
        assert!(!finalize(&mut app, token, epoch).await, "{case}");
        for kept in ["agents", "agent_revisions", "work_lane"] {
            assert_eq!(count(&mut owner, kept).await, 2, "{case}: {kept}");
        }
        assert_eq!(count(&mut owner, "audit_events").await, 0, "{case}");
        assert_eq!(count(&mut owner, "iam_bindings").await, 3, "{case}");
    }
}

#[tokio::test]
async fn a_temporary_table_does_not_stand_in_for_ours() {
    let database = Database::new().await.unwrap();
    let mut owner = deleting(&database).await;
    let mut app = database.connect("occ_app").await.unwrap();
    execute(
        &mut app,
        "create temporary table agents (namespace_id text, id text); create temporary table work (key text)",
    )
    .await
    .unwrap();
    assert!(finalize(&mut app, TOKEN, 7).await);
    assert_eq!(count(&mut owner, "agents where id = '{agt}'").await, 0);
}

#[tokio::test]
async fn a_failed_deletion_is_taken_over_and_nothing_else() {
    let database = Database::new().await.unwrap();
    let mut owner = database.connect("occ_migrator").await.unwrap();
    tenants(&mut owner).await;
    let ended = "insert into occ.work (key, kind, lane, namespace_id, agent_id, actor_id, available_at, attempts_max,
          attempt, state, completed_at, reason_code)
        values ('delete', 'agent.delete', '{agt}', '{ns}', '{agt}', '{prn}', now(), 5, 5, 'failed_permanent', now(), 'X'),
               ('stop', 'agent.stop', '{agt}', '{ns}', '{agt}', '{prn}', now(), 5, 5, 'failed_permanent', now(), 'X'),
               ('done', 'agent.delete', '{agt}', '{ns}', '{agt}', '{prn}', now(), 5, 1, 'succeeded', now(), 'X');
        update occ.work_lane set due_at = null where lane = '{agt}'";
    execute(&mut owner, &filled(ended)).await.unwrap();
    let mut app = database.connect("occ_app").await.unwrap();
    for (key, expected) in
        [("stop", false), ("done", false), ("absent", false), ("delete", true), ("delete", false)]
    {
        let call = filled(&format!("select occ.work_take_over('{key}', '{{spn2}}')"));
        let taken: bool = sqlx::query_scalar(AssertSqlSafe(call)).fetch_one(&mut app).await.unwrap();
        assert_eq!(taken, expected, "{key}");
    }
    let queued = "work where key = 'delete' and state = 'queued' and attempt = 0 and actor_id = '{spn2}'";
    assert_eq!(count(&mut owner, queued).await, 1);
    assert_eq!(count(&mut owner, "work_lane where lane = '{agt}' and due_at <= now()").await, 1);
    let audited = "audit_events where action = 'openclaw.work.takeover' and actor_id = '{spn2}' and work_key = 'delete'";
    assert_eq!(count(&mut owner, audited).await, 1);
}
