//! The triggers: for each rule a statement that it accepts and one that it refuses.

use occ_tests::database::Database;

use super::fixture::{filled, tenants};
use super::{execute, tried};

/// A key of a ServicePrincipal, as a literal so that `concat!` takes it.
macro_rules! key {
    () => {
        "insert into occ.iam_identities (id, kind) values ('{spn3}', 'service_principal');
         insert into occ.service_keys (id, service_principal_id, name, prefix, key_hash, created_by, expires_at)
           values ('{key}', '{spn3}', 'k', 'occ_abcdefgh', sha256('x'), 'x', now() + interval '2 days')"
    };
}

/// Rule, table that the refusal names, accepted, refused.
const RULES: [(&str, &str, &str, &str); 29] = [
    ("a revision never changes", "agent_revisions", "select 1", "update occ.agent_revisions set created_by = 'y'"),
    ("audit is append only", "audit_events", AUDIT, "update occ.audit_events set actor_id = 'y'"),
    ("audit is never deleted", "audit_events", AUDIT, "delete from occ.audit_events"),
    ("audit is never truncated", "audit_events", AUDIT, "truncate occ.audit_events"),
    (
        "an attempt never changes",
        "bootstrap_attempts",
        "insert into occ.bootstrap_attempts (id, kind) values ('{bat2}', 'reissue')",
        "update occ.bootstrap_attempts set kind = 'reissue'",
    ),
    (
        "the Installation keeps its name",
        "installation",
        "update occ.installation set event_stream = gen_random_uuid()",
        "update occ.installation set name = 'Other'",
    ),
    ("the Installation is never deleted", "installation", "select 1", "delete from occ.installation"),
    (
        "a Namespace keeps its name",
        "namespaces",
        "update occ.namespaces set updated_at = now() where id = '{ns}'",
        "update occ.namespaces set name = 'other' where id = '{ns}'",
    ),
    (
        "an Agent keeps its name",
        "agents",
        "update occ.agents set version = 2 where id = '{agt}'",
        "update occ.agents set name = 'other' where id = '{agt}'",
    ),
    (
        "a Configuration keeps its Namespace",
        "configurations",
        "update occ.configurations set generation = 2 where id = '{cfg}'",
        "update occ.configurations set namespace_id = '{ns2}', generation = 2 where id = '{cfg}'",
    ),
    (
        "a Secret keeps its store",
        "secrets",
        "update occ.secrets set version = 2 where id = '{sec}'",
        "update occ.secrets set store = 'kubernetes', state = 'writing' where id = '{sec}'",
    ),
    (
        "an identity keeps its subject",
        "iam_identities",
        "update occ.iam_identities set label = 'x' where id = '{prn}'",
        "update occ.iam_identities set subject = 'two' where id = '{prn}'",
    ),
    (
        "a credential keeps its name",
        "agent_credentials",
        "update occ.agent_credentials set state = 'deleting' where agent_id = '{agt}'",
        "update occ.agent_credentials set name = 'other' where agent_id = '{agt}'",
    ),
    (
        "work keeps its owner",
        "work",
        "update occ.work set attempt = 1, actor_id = 'y' where key = 'revision-1'",
        "update occ.work set kind = 'agent.stop' where key = 'revision-1'",
    ),
    (
        "a key keeps its life",
        "service_keys",
        concat!(key!(), "; update occ.service_keys set last_used_at = now()"),
        concat!(key!(), "; update occ.service_keys set expires_at = expires_at + interval '1 day'"),
    ),
    (
        "a key is revoked once",
        "service_keys",
        concat!(key!(), "; update occ.service_keys set revoked_at = now(); update occ.service_keys set last_used_at = now()"),
        concat!(key!(), "; update occ.service_keys set revoked_at = now(); update occ.service_keys set revoked_at = null"),
    ),
    (
        "a Namespace does not go back",
        "namespaces",
        "update occ.namespaces set status = 'deleting' where id = '{ns}'",
        "update occ.namespaces set status = 'provisioning' where id = '{ns}'",
    ),
    (
        "a Namespace with contents stays",
        "namespaces",
        "insert into occ.namespaces (id, name, status) values ('{ns3}', 'x', 'deleting');
         update occ.namespaces set deleted_at = now() where id = '{ns3}'",
        "update occ.namespaces set status = 'deleting', deleted_at = now() where id = '{ns}'",
    ),
    (
        "a tombstone never changes",
        "namespaces",
        "select 1",
        "insert into occ.namespaces (id, name, status, deleted_at) values ('{ns3}', 'x', 'deleting', now());
         update occ.namespaces set updated_at = now() where id = '{ns3}'",
    ),
    (
        "deleting is final",
        "agents",
        "update occ.agents set status = 'deleting' where id = '{agt}'",
        "update occ.agents set status = 'deleting' where id = '{agt}';
         update occ.agents set status = 'active' where id = '{agt}'",
    ),
    (
        "an Agent that goes stays stopped",
        "agents",
        "update occ.agents set desired_runtime_state = 'running' where id = '{agt}'",
        "update occ.agents set status = 'deleting' where id = '{agt}';
         update occ.agents set desired_runtime_state = 'running' where id = '{agt}'",
    ),
    (
        "revision numbers never fall",
        "agents",
        "update occ.agents set last_revision_number = 5 where id = '{agt}'",
        "update occ.agents set last_revision_number = 5 where id = '{agt}';
         update occ.agents set last_revision_number = 4 where id = '{agt}'",
    ),
    (
        "a generation counts each update",
        "configurations",
        "update occ.configurations set generation = 2, document = '{\"a\": 1}' where id = '{cfg}'",
        "update occ.configurations set document = '{\"a\": 1}' where id = '{cfg}'",
    ),
    (
        "an epoch never falls",
        "work_lane",
        "update occ.work_lane set epoch = 3 where lane = '{agt}'",
        "update occ.work_lane set epoch = 3 where lane = '{agt}'; update occ.work_lane set epoch = 2 where lane = '{agt}'",
    ),
    (
        "a binding's role is of its scope",
        "iam_bindings",
        "insert into occ.iam_roles (id, namespace_id) values ('{role2}', '{ns}');
         insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, created_by)
           values ('{binding2}', '{role2}', '{prn}', '{ns}', 'x')",
        "insert into occ.iam_roles (id, namespace_id) values ('{role2}', '{ns}');
         insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, created_by)
           values ('{binding2}', '{role2}', '{prn}', '{ns2}', 'x')",
    ),
    (
        "a binding's group is of its scope",
        "iam_bindings",
        "insert into occ.iam_bindings (id, role_id, group_id, created_by) values ('{binding2}', '{role}', '{grp}', 'x')",
        "insert into occ.iam_bindings (id, role_id, group_id, namespace_id, created_by)
           values ('{binding2}', '{role}', '{grp}', '{ns}', 'x')",
    ),
    (
        "a binding's target is of its Namespace",
        "iam_bindings",
        "insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, resource_kind, resource_id, created_by)
           values ('{binding2}', '{role}', '{spn}', '{ns}', 'secret', '{sec}', 'x')",
        "insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, resource_kind, resource_id, created_by)
           values ('{binding2}', '{role}', '{spn}', '{ns}', 'secret', '{sec2}', 'x')",
    ),
    (
        "a Namespace role holds nothing of the Installation",
        "iam_role_permissions",
        "insert into occ.iam_roles (id, namespace_id) values ('{role2}', '{ns}');
         insert into occ.iam_role_permissions values ('{role2}', 'read', 'namespace')",
        "insert into occ.iam_roles (id, namespace_id) values ('{role2}', '{ns}');
         insert into occ.iam_role_permissions values ('{role2}', 'create', 'namespace')",
    ),
    (
        "members are principals",
        "iam_group_members",
        "insert into occ.iam_group_members (group_id, principal_id) values ('{grp}', '{prn}')",
        "insert into occ.iam_group_members (group_id, principal_id) values ('{grp}', '{spn}')",
    ),
];

const AUDIT: &str = "
    insert into occ.audit_events (id, kind, actor_id, action, resource_kind, resource_id, outcome, actor)
    values ('{aud}', 'mutation', 'x', 'openclaw.agents.stop', 'agent', '{agt}', 'success', '{}')";

#[tokio::test]
async fn each_rule_accepts_and_refuses() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    execute(&mut db, &filled(&AUDIT.replace("{aud}", "{aud2}"))).await.unwrap();
    for (rule, table, accepted, refused) in RULES {
        assert_eq!(tried(&mut db, &filled(accepted)).await, Ok(()), "{rule}: accepted");
        let refusal = tried(&mut db, &filled(refused)).await.expect_err(rule);
        assert_eq!(
            (refusal.sqlstate.as_str(), refusal.table.as_deref()),
            ("55000", Some(table)),
            "{rule}: {refusal:?}"
        );
        assert!(refusal.message.starts_with(&format!("occ.{table}: ")), "{rule}: {refusal:?}");
    }
}

#[tokio::test]
async fn a_value_is_kept_only_for_the_database_store() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let value = "insert into occ.secret_values values ('{sec}', 1, 'k', decode(repeat('00', 48), 'hex'),
        decode(repeat('00', 12), 'hex'), decode(repeat('00', 12), 'hex'), decode(repeat('00', 17), 'hex'))";
    assert_eq!(tried(&mut db, &filled(value)).await, Ok(()));
    let elsewhere = "insert into occ.secrets (id, namespace_id, name, store, created_by)
        values ('{sec3}', '{ns}', 'other', 'kubernetes', 'x');";
    let refused = format!("{elsewhere} {}", value.replace("{sec}", "{sec3}"));
    let refusal = tried(&mut db, &filled(&refused)).await.unwrap_err();
    assert_eq!((refusal.sqlstate.as_str(), refusal.table.as_deref()), ("55000", Some("secret_values")));
}

#[tokio::test]
async fn the_application_deletes_only_work_that_is_no_history() {
    let database = Database::new().await.unwrap();
    let mut owner = database.connect("occ_migrator").await.unwrap();
    tenants(&mut owner).await;
    let ended =
        "insert into occ.work (key, kind, lane, namespace_id, agent_id, actor_id, available_at, attempts_max,
          state, completed_at, reason_code)
        select k, replace(k, '-', '.'), '{agt}', '{ns}', '{agt}', 'x', now(), 5, 'succeeded', now(), 'DONE'
          from unnest(array['agent-stop', 'revision-reconcile', 'namespace-ensure']) as k";
    execute(&mut owner, &filled(ended)).await.unwrap();
    let mut app = database.connect("occ_app").await.unwrap();
    assert_eq!(tried(&mut app, "delete from occ.work where key = 'agent-stop'").await, Ok(()));
    for key in ["revision-1", "revision-reconcile", "namespace-ensure"] {
        let refusal =
            tried(&mut app, &format!("delete from occ.work where key = '{key}'")).await.expect_err(key);
        assert_eq!((refusal.sqlstate.as_str(), refusal.table.as_deref()), ("55000", Some("work")), "{key}");
    }
    assert_eq!(tried(&mut owner, "delete from occ.work where key = 'revision-1'").await, Ok(()));
}

#[tokio::test]
async fn the_last_administrator_stays_by_every_path() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let paths = [
        ("iam_bindings", "delete from occ.iam_bindings where id = '{binding}'"),
        ("iam_role_permissions", "delete from occ.iam_role_permissions where role_id = '{role}'"),
        ("users", "update occ.users set disabled_at = now() where id = '{usr}'"),
    ];
    for (table, path) in paths {
        let refusal = tried(&mut db, &filled(path)).await.expect_err(path);
        assert_eq!((refusal.sqlstate.as_str(), refusal.table.as_deref()), ("55000", Some(table)), "{path}");
    }

    // With another administrator each of these passes, and so does a removal of tenants' bindings at any time.
    let second = "insert into occ.iam_identities (id, kind) values ('{spn3}', 'service_principal');
        insert into occ.iam_roles (id) values ('{role3}');
        insert into occ.iam_role_permissions values ('{role3}', 'administer', 'installation');
        insert into occ.iam_bindings (id, role_id, identity_id, created_by)
          values ('{binding3}', '{role3}', '{spn3}', 'x');";
    for (_, path) in paths {
        assert_eq!(tried(&mut db, &filled(&format!("{second} {path}"))).await, Ok(()), "{path}");
    }
    let tenant = "insert into occ.iam_bindings (id, role_id, identity_id, namespace_id, created_by)
          values ('{binding3}', '{role}', '{spn}', '{ns}', 'x'); delete from occ.iam_bindings where id = '{binding3}'";
    assert_eq!(tried(&mut db, &filled(tenant)).await, Ok(()));
}

#[tokio::test]
async fn the_last_administrator_stays_when_he_is_one_by_a_group() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let by_group = "insert into occ.iam_group_members (group_id, principal_id) values ('{grp}', '{prn}');
        insert into occ.iam_bindings (id, role_id, group_id, created_by) values ('{binding2}', '{role}', '{grp}', 'x');
        delete from occ.iam_bindings where id = '{binding}'";
    execute(&mut db, &format!("begin; {}; commit", filled(by_group))).await.unwrap();
    let refusal = tried(&mut db, "delete from occ.iam_group_members").await.unwrap_err();
    assert_eq!((refusal.sqlstate.as_str(), refusal.table.as_deref()), ("55000", Some("iam_group_members")));
}

#[tokio::test]
async fn a_lane_has_one_claim() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    tenants(&mut db).await;
    let claimed = |key: &str, lane: &str| {
        filled(&format!(
            "insert into occ.work (key, kind, lane, namespace_id, agent_id, actor_id, available_at, attempts_max, state,
                                   lease_token, lease_until, epoch)
             values ('{key}', 'agent.stop', '{{agt{lane}}}', '{{ns{lane}}}', '{{agt{lane}}}', 'x', now(), 5, 'claimed',
                     gen_random_uuid(), now(), 1)"
        ))
    };
    assert_eq!(tried(&mut db, &[claimed("a", ""), claimed("b", "2")].join(";")).await, Ok(()));
    let refusal = tried(&mut db, &[claimed("a", ""), claimed("b", "")].join(";")).await.unwrap_err();
    assert_eq!(refusal.sqlstate, "23505");
    assert!(refusal.message.contains("work_one_claim_per_lane"), "{refusal:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_removals_at_once_that_leave_nobody_one_is_refused() {
    let database = Database::new().await.unwrap();
    let mut owner = database.connect("occ_migrator").await.unwrap();
    tenants(&mut owner).await;
    let second = "insert into occ.iam_identities (id, kind) values ('{spn3}', 'service_principal');
        insert into occ.iam_bindings (id, role_id, identity_id, created_by) values ('{binding3}', '{role}', '{spn3}', 'x')";
    execute(&mut owner, &filled(second)).await.unwrap();

    let mut sessions = Vec::new();
    for binding in ["{binding}", "{binding3}"] {
        let mut app = database.connect("occ_app").await.unwrap();
        let removal = filled(&format!("begin; delete from occ.iam_bindings where id = '{binding}'"));
        execute(&mut app, &removal).await.unwrap();
        sessions.push(app);
    }
    let mut commits = tokio::task::JoinSet::new();
    for mut app in sessions {
        commits.spawn(async move { execute(&mut app, "commit").await });
    }
    let said: Vec<_> = commits.join_all().await;
    let refused: Vec<_> = said.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].sqlstate, "55000");
    let left: i64 =
        sqlx::query_scalar("select count(*) from occ.iam_bindings").fetch_one(&mut owner).await.unwrap();
    assert_eq!(left, 1);
}
