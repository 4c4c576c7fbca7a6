//! The rows of the table about the Installation, policy, keys and the audit log.
//!
//! Rows are not wrapped: a row is read, compared and merged as one line.

use occ_api::types;

use crate::http::operation::{BODY_BYTES_MAX, Check, On, Operation, check, delete, get, post};
use crate::http::query::{Param, Rule};
use crate::iam::Action::{Administer, Read};
use crate::iam::{self, Action, Kind};
use crate::installation;

pub(super) fn operations() -> Vec<Operation> {
    let groups =
        [installation(), policy(), installation_policy(), questions(), keys(), audit(), plugins(), work()];
    groups.into_iter().flatten().collect()
}

/// Installation administer.
const I: &[Check] = &[check(Administer, Kind::Installation, On::Installation)];
/// Installation administer and read on the Namespace of the path.
const P: &[Check] =
    &[check(Administer, Kind::Installation, On::Installation), check(Read, Kind::Namespace, On::Item)];

#[rustfmt::skip]
fn installation() -> Vec<Operation> {
    const READ: &[Check] = &[check(Read, Kind::Installation, On::Installation)];
    vec![get("/installation", "getInstallation", installation::routes::get).needs(READ).ok::<types::Installation>()]
}

/// Policy of a Namespace.
#[rustfmt::skip]
fn policy() -> Vec<Operation> {
    use iam::{bindings, roles, service_principals};
    const ROLES: &str = "/namespaces/{namespaceId}/iam/roles";
    const ROLE: &str = "/namespaces/{namespaceId}/iam/roles/{roleId}";
    const BINDINGS: &str = "/namespaces/{namespaceId}/iam/access-bindings";
    const BINDING: &str = "/namespaces/{namespaceId}/iam/access-bindings/{bindingId}";
    const PRINCIPALS: &str = "/namespaces/{namespaceId}/iam/service-principals";
    const PRINCIPAL: &str = "/namespaces/{namespaceId}/iam/service-principals/{servicePrincipalId}";
    vec![
        get(ROLES, "listIAMRoles", roles::routes::list).needs(P).list::<types::Role>(),
        post(ROLES, "createIAMRole", roles::routes::create).needs(P).body::<types::RoleCreate>(BODY_BYTES_MAX).created::<types::Role>().etag().idempotent().audited("openclaw.iam.roles.create"),
        get(ROLE, "getIAMRole", roles::routes::get).needs(P).ok::<types::Role>().etag(),
        delete(ROLE, "deleteIAMRole", roles::routes::delete).needs(P).no_content().if_match().audited("openclaw.iam.roles.delete"),
        get(BINDINGS, "listIAMAccessBindings", bindings::routes::list).needs(P).list::<types::AccessBinding>(),
        post(BINDINGS, "createIAMAccessBinding", bindings::routes::create).needs(P).body::<types::AccessBindingCreate>(BODY_BYTES_MAX).created::<types::AccessBinding>().idempotent().audited("openclaw.iam.access-bindings.create"),
        get(BINDING, "getIAMAccessBinding", bindings::routes::get).needs(P).ok::<types::AccessBinding>(),
        delete(BINDING, "deleteIAMAccessBinding", bindings::routes::delete).needs(P).no_content().audited("openclaw.iam.access-bindings.delete"),
        get(PRINCIPALS, "listIAMServicePrincipals", service_principals::routes::list).needs(P).list::<types::ServicePrincipal>(),
        post(PRINCIPALS, "createIAMServicePrincipal", service_principals::routes::create).needs(P).empty_body().created::<types::ServicePrincipal>().idempotent().audited("openclaw.iam.service-principals.create"),
        get(PRINCIPAL, "getIAMServicePrincipal", service_principals::routes::get).needs(P).ok::<types::ServicePrincipal>(),
        delete(PRINCIPAL, "deleteIAMServicePrincipal", service_principals::routes::delete).needs(P).no_content().audited("openclaw.iam.service-principals.delete"),
    ]
}

/// Policy of the Installation.
#[rustfmt::skip]
fn installation_policy() -> Vec<Operation> {
    use iam::{bindings, roles, service_principals};
    const ROLES: &str = "/iam/roles";
    const ROLE: &str = "/iam/roles/{roleId}";
    const BINDINGS: &str = "/iam/access-bindings";
    const BINDING: &str = "/iam/access-bindings/{bindingId}";
    const PRINCIPALS: &str = "/iam/service-principals";
    const PRINCIPAL: &str = "/iam/service-principals/{servicePrincipalId}";
    vec![
        get(ROLES, "listInstallationRoles", roles::routes::list).needs(I).list::<types::Role>(),
        post(ROLES, "createInstallationRole", roles::routes::create).needs(I).body::<types::RoleCreate>(BODY_BYTES_MAX).created::<types::Role>().etag().idempotent().audited("openclaw.iam.roles.create"),
        get(ROLE, "getInstallationRole", roles::routes::get).needs(I).ok::<types::Role>().etag(),
        delete(ROLE, "deleteInstallationRole", roles::routes::delete).needs(I).no_content().if_match().audited("openclaw.iam.roles.delete"),
        get(BINDINGS, "listInstallationAccessBindings", bindings::routes::list).needs(I).list::<types::AccessBinding>(),
        post(BINDINGS, "createInstallationAccessBinding", bindings::routes::create).needs(I).body::<types::AccessBindingCreate>(BODY_BYTES_MAX).created::<types::AccessBinding>().idempotent().audited("openclaw.iam.access-bindings.create"),
        get(BINDING, "getInstallationAccessBinding", bindings::routes::get).needs(I).ok::<types::AccessBinding>(),
        delete(BINDING, "deleteInstallationAccessBinding", bindings::routes::delete).needs(I).no_content().audited("openclaw.iam.access-bindings.delete"),
        get(PRINCIPALS, "listInstallationServicePrincipals", service_principals::routes::list).needs(I).list::<types::ServicePrincipal>(),
        post(PRINCIPALS, "createInstallationServicePrincipal", service_principals::routes::create).needs(I).empty_body().created::<types::ServicePrincipal>().idempotent().audited("openclaw.iam.service-principals.create"),
        get(PRINCIPAL, "getInstallationServicePrincipal", service_principals::routes::get).needs(I).ok::<types::ServicePrincipal>(),
        delete(PRINCIPAL, "deleteInstallationServicePrincipal", service_principals::routes::delete).needs(I).no_content().audited("openclaw.iam.service-principals.delete"),
    ]
}

/// What policy says about a request that nobody makes.
#[rustfmt::skip]
fn questions() -> Vec<Operation> {
    use iam::check::routes;
    let asks = |operation: Operation| {
        operation
            .param(Param::new("action", Rule::OneOf(Action::WORDS)).required())
            .param(Param::new("resourceKind", Rule::OneOf(Kind::WORDS)).required())
            .param(Param::text("resourceId").required())
            .param(Param::new("namespaceId", Rule::Namespace))
            .ok::<types::Decision>()
    };
    vec![
        asks(get("/iam/can-i", "canI", routes::can_i)),
        post("/iam/can-i", "canIMany", routes::can_i_many).body::<types::CanIMany>(BODY_BYTES_MAX).array::<types::Decision>(),
        asks(get("/iam/explain", "explain", routes::explain)),
        post("/iam/explain", "explainMany", routes::explain_many).body::<types::CanIMany>(BODY_BYTES_MAX).array::<types::Decision>(),
    ]
}

#[rustfmt::skip]
fn keys() -> Vec<Operation> {
    use iam::keys::routes;
    const KEYS: &str = "/api/auth/service-keys";
    const KEY: &str = "/api/auth/service-keys/{keyId}";
    vec![
        get(KEYS, "listServiceKeys", routes::list).needs(I).list::<types::ServiceKey>().param(Param::text("servicePrincipalId")).param(Param::new("namespaceId", Rule::Namespace)),
        post(KEYS, "createServiceKey", routes::create).needs(I).body::<types::ServiceKeyCreate>(BODY_BYTES_MAX).created::<types::IssuedServiceKey>().idempotent().audited("openclaw.auth.service-keys.create"),
        delete(KEY, "revokeServiceKey", routes::revoke).needs(I).ok::<types::RevokedServiceKey>().audited("openclaw.auth.service-keys.revoke"),
    ]
}

#[rustfmt::skip]
fn audit() -> Vec<Operation> {
    use crate::audit::{KINDS, OUTCOMES, routes};
    vec![
        get("/audit-events", "listAuditEvents", routes::list).needs(I).pages::<types::AuditEvent>().param(Param::new("namespaceId", Rule::Namespace)).param(Param::text("actorId")).param(Param::text("action")).param(Param::new("kind", Rule::OneOf(KINDS))).param(Param::new("outcome", Rule::OneOf(OUTCOMES))).param(Param::text("resourceKind")).param(Param::text("resourceId")).param(Param::new("from", Rule::Time)).param(Param::new("to", Rule::Time)).audited("openclaw.audit.read"),
        get("/audit-events/{auditEventId}", "getAuditEvent", routes::get).needs(I).ok::<types::AuditEvent>(),
    ]
}

#[rustfmt::skip]
fn plugins() -> Vec<Operation> {
    use crate::plugins::routes;
    vec![
        get("/plugins", "listPlugins", routes::list).needs(I).pages::<types::Plugin>(),
        get("/plugins/{pluginId}", "getPlugin", routes::get).needs(I).ok::<types::Plugin>(),
    ]
}

#[rustfmt::skip]
fn work() -> Vec<Operation> {
    use crate::work::{STATES, routes};
    const SEEN: &[Check] = &[check(Read, Kind::AgentRevision, On::Each), check(Read, Kind::Agent, On::Each), check(Read, Kind::Namespace, On::Each)];
    const OWNER: &[Check] = &[check(Read, Kind::AgentRevision, On::Subject), check(Read, Kind::Agent, On::Subject), check(Read, Kind::Namespace, On::Subject)];
    vec![
        get("/work", "listWork", routes::list).needs(SEEN).pages::<types::WorkItem>().param(Param::new("state", Rule::OneOf(STATES))).param(Param::text("kind")).param(Param::new("namespaceId", Rule::Namespace)).param(Param::text("agentId")),
        get("/work/{key}", "getWork", routes::get).needs(OWNER).ok::<types::WorkItem>(),
        post("/work/{key}/retry", "retryWork", routes::retry).needs(OWNER).accepted::<types::WorkItem>().idempotent().audited("openclaw.work.retry"),
    ]
}
