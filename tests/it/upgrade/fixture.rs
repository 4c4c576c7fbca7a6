//! Two tenants with one of everything.

use sqlx::PgConnection;

use super::execute;

/// The id of a tenant's thing: prefix and tenant number.
pub(super) fn id(prefix: &str, tenant: u32) -> String {
    format!("{prefix}_00000000-0000-4000-8000-{tenant:012}")
}

/// Puts the ids of tenant 1 and 2 in place of `{ns}`, `{ns2}` and so on.
pub(super) fn filled(statement: &str) -> String {
    let prefixes = [
        "ins", "ns", "cfg", "sec", "agt", "rev", "prn", "spn", "grp", "rst", "key", "usr", "bat", "aud",
        "role", "binding",
    ];
    let mut text = statement.to_owned();
    for prefix in prefixes {
        for (tenant, mark) in
            [(1, format!("{{{prefix}}}")), (2, format!("{{{prefix}2}}")), (3, format!("{{{prefix}3}}"))]
        {
            text = text.replace(&mark, &id(prefix, tenant));
        }
    }
    text
}

/// An Installation with an administrator and two equal tenants.
pub(super) async fn tenants(db: &mut PgConnection) {
    let shared = "
        insert into occ.installation (id, name, bootstrap_attempt_id) values ('{ins}', 'Test', '{bat}');
        insert into occ.bootstrap_attempts (id, kind) values ('{bat}', 'bootstrap');
        insert into occ.iam_identities (id, kind, issuer, subject) values ('{prn}', 'principal', 'test', 'one');
        insert into occ.users (id, email, name, principal_id) values ('{usr}', 'a@b.c', 'A', '{prn}');
        insert into occ.iam_roles (id) values ('{role}');
        insert into occ.iam_role_permissions values ('{role}', 'administer', 'installation');
        insert into occ.iam_bindings (id, role_id, identity_id, created_by) values ('{binding}', '{role}', '{prn}', '{prn}');
        insert into occ.iam_groups (id, name) values ('{grp}', 'all')";
    execute(db, &filled(shared)).await.unwrap();
    for tenant in [1, 2] {
        let own = own(tenant);
        execute(db, &own).await.unwrap();
    }
}

/// One tenant: Namespace, Configuration, Secret, Agent with identity, credential, revision and queued work.
fn own(tenant: u32) -> String {
    let statements = "
        insert into occ.namespaces (id, name, status) values ('{ns}', 'ns-{n}', 'ready');
        insert into occ.configurations (id, namespace_id, document, created_by) values ('{cfg}', '{ns}', '{}', 'x');
        insert into occ.secrets (id, namespace_id, name, store, state, created_by)
          values ('{sec}', '{ns}', 'openai', 'database', 'ready', 'x');
        begin;
        insert into occ.agents (id, namespace_id, name, configuration_id, service_principal_id, created_by)
          values ('{agt}', '{ns}', 'agent', '{cfg}', '{spn}', 'x');
        insert into occ.iam_identities (id, kind, namespace_id, agent_id)
          values ('{spn}', 'service_principal', '{ns}', '{agt}');
        commit;
        insert into occ.agent_credentials (namespace_id, agent_id, name, store)
          values ('{ns}', '{agt}', 'gateway-password', 'database');
        insert into occ.agent_revisions (id, namespace_id, agent_id, revision_number, configuration_id,
            configuration_generation, compute_plugin, compute_version, compute_digest, harness_id, harness_version,
            harness_mode, secret_store, snapshot, created_by)
          values ('{rev}', '{ns}', '{agt}', 1, '{cfg}', 1, 'local', '1', 'sha256:{digest}', 'openclaw', '1',
            'embedded', 'database', '{}', 'x');
        insert into occ.work_lane (lane, namespace_id, due_at) values ('{agt}', '{ns}', now());
        insert into occ.work (key, kind, lane, namespace_id, agent_id, revision_id, actor_id, available_at, attempts_max)
          values ('revision-{n}', 'revision.reconcile', '{agt}', '{ns}', '{agt}', '{rev}', '{prn}', now(), 5)";
    let mut text = statements.replace("{n}", &tenant.to_string()).replace("{digest}", &"0".repeat(64));
    for prefix in ["ns", "cfg", "sec", "agt", "rev", "spn"] {
        text = text.replace(&format!("{{{prefix}}}"), &id(prefix, tenant));
    }
    filled(&text)
}
