//! The rows of the table about what tenants own: Namespaces, Configurations, Secrets, Agents, and
//! what is deployed of them.
//!
//! Rows are not wrapped: a row is read, compared and merged as one line.

use occ_api::types;

use crate::http::operation::{
    AGENT_BODY_BYTES_MAX, BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX, Check, On, Operation,
    SECRET_BODY_BYTES_MAX, check, delete, get, patch, post,
};
use crate::http::query::{Param, Rule};
use crate::iam::Action::{Create, Delete, Deploy, Operate, Read, ReadLogs, Update};
use crate::iam::{Action, Kind};
use crate::{agents, configurations, deployments, namespaces, revisions, runtime, secrets};

/// Most characters of the cursor of log reads.
const LOG_CURSOR_CHARS_MAX: usize = 2_000;

pub(super) fn operations() -> Vec<Operation> {
    let groups =
        [of_namespaces(), of_configurations(), of_secrets(), of_agents(), of_revisions(), of_deployments()];
    groups.into_iter().flatten().collect()
}

const fn on_parent(kind: Kind) -> Check {
    check(Create, kind, On::Parent)
}

const fn on_item(action: Action, kind: Kind) -> Check {
    check(action, kind, On::Item)
}

const fn on_each(kind: Kind) -> Check {
    check(Read, kind, On::Each)
}

/// Read on the Namespace, then on each item.
const fn list_of(kind: Kind) -> [Check; 2] {
    [on_item(Read, Kind::Namespace), on_each(kind)]
}

#[rustfmt::skip]
fn of_namespaces() -> Vec<Operation> {
    use namespaces::routes;
    const ALL: &str = "/namespaces";
    const ONE: &str = "/namespaces/{namespaceId}";
    const KIND: Kind = Kind::Namespace;
    const EACH: &[Check] = &[on_each(KIND)];
    const MAKE: &[Check] = &[on_parent(KIND)];
    const LOOK: &[Check] = &[on_item(Read, KIND)];
    const REMOVE: &[Check] = &[on_item(Delete, KIND)];
    vec![
        get(ALL, "listNamespaces", routes::list).needs(EACH).list::<types::Namespace>(),
        post(ALL, "createNamespace", routes::create).needs(MAKE).body::<types::NamespaceCreate>(BODY_BYTES_MAX).created::<types::Namespace>().idempotent().audited("openclaw.namespaces.create"),
        get(ONE, "getNamespace", routes::get).needs(LOOK).waits().ok::<types::Namespace>(),
        delete(ONE, "deleteNamespace", routes::delete).needs(REMOVE).accepted::<types::Namespace>().audited("openclaw.namespaces.delete"),
    ]
}

#[rustfmt::skip]
fn of_configurations() -> Vec<Operation> {
    use configurations::routes;
    const ALL: &str = "/namespaces/{namespaceId}/configurations";
    const ONE: &str = "/namespaces/{namespaceId}/configurations/{configurationId}";
    const KIND: Kind = Kind::Configuration;
    const EACH: &[Check] = &list_of(KIND);
    const MAKE: &[Check] = &[on_parent(KIND), on_item(Operate, Kind::Secret)];
    const LOOK: &[Check] = &[on_item(Read, KIND)];
    const EDIT: &[Check] = &[on_item(Update, KIND), on_item(Operate, Kind::Secret)];
    const REMOVE: &[Check] = &[on_item(Delete, KIND)];
    vec![
        get(ALL, "listConfigurations", routes::list).needs(EACH).list::<types::Configuration>(),
        post(ALL, "createConfiguration", routes::create).needs(MAKE).body::<types::ConfigurationCreate>(CONFIGURATION_BODY_BYTES_MAX).deep("values").created::<types::Configuration>().etag().idempotent().audited("openclaw.configurations.create"),
        get(ONE, "getConfiguration", routes::get).needs(LOOK).ok::<types::Configuration>().etag(),
        patch(ONE, "updateConfiguration", routes::update).needs(EDIT).body::<types::ConfigurationUpdate>(CONFIGURATION_BODY_BYTES_MAX).deep("values").ok::<types::Configuration>().etag().if_match().audited("openclaw.configurations.update"),
        delete(ONE, "deleteConfiguration", routes::delete).needs(REMOVE).no_content().if_match().audited("openclaw.configurations.delete"),
    ]
}

#[rustfmt::skip]
fn of_secrets() -> Vec<Operation> {
    use secrets::routes;
    const ALL: &str = "/namespaces/{namespaceId}/secrets";
    const ONE: &str = "/namespaces/{namespaceId}/secrets/{secretId}";
    const KIND: Kind = Kind::Secret;
    const EACH: &[Check] = &list_of(KIND);
    const MAKE: &[Check] = &[on_parent(KIND)];
    const LOOK: &[Check] = &[on_item(Read, KIND)];
    const EDIT: &[Check] = &[on_item(Update, KIND)];
    const REMOVE: &[Check] = &[on_item(Delete, KIND)];
    vec![
        get(ALL, "listSecrets", routes::list).needs(EACH).list::<types::Secret>(),
        post(ALL, "createSecret", routes::create).needs(MAKE).body::<types::SecretCreate>(SECRET_BODY_BYTES_MAX).created::<types::Secret>().etag().idempotent().audited("openclaw.secrets.create"),
        get(ONE, "getSecret", routes::get).needs(LOOK).ok::<types::SecretDetails>().etag(),
        patch(ONE, "updateSecret", routes::update).needs(EDIT).body::<types::SecretUpdate>(SECRET_BODY_BYTES_MAX).ok::<types::Secret>().etag().if_match().audited("openclaw.secrets.update"),
        delete(ONE, "deleteSecret", routes::delete).needs(REMOVE).no_content().if_match().audited("openclaw.secrets.delete"),
    ]
}

#[rustfmt::skip]
fn of_agents() -> Vec<Operation> {
    use agents::routes;
    const ALL: &str = "/namespaces/{namespaceId}/agents";
    const ONE: &str = "/namespaces/{namespaceId}/agents/{agentId}";
    const STOP: &str = "/namespaces/{namespaceId}/agents/{agentId}/stop";
    const KIND: Kind = Kind::Agent;
    const EACH: &[Check] = &list_of(KIND);
    const MAKE: &[Check] = &[on_parent(KIND), on_item(Read, Kind::Configuration), on_item(Operate, Kind::Secret)];
    const LOOK: &[Check] = &[on_item(Read, KIND)];
    const EDIT: &[Check] = &[on_item(Update, KIND), on_item(Read, Kind::Configuration), on_item(Operate, Kind::Secret)];
    const USE: &[Check] = &[on_item(Operate, KIND)];
    const REMOVE: &[Check] = &[on_item(Delete, KIND)];
    vec![
        get(ALL, "listAgents", routes::list).needs(EACH).list::<types::Agent>(),
        post(ALL, "createAgent", routes::create).needs(MAKE).body::<types::AgentCreate>(AGENT_BODY_BYTES_MAX).created::<types::Agent>().etag().idempotent().audited("openclaw.agents.create"),
        get(ONE, "getAgent", routes::get).needs(LOOK).ok::<types::Agent>().etag(),
        patch(ONE, "updateAgent", routes::update).needs(EDIT).body::<types::AgentUpdate>(BODY_BYTES_MAX).ok::<types::Agent>().etag().if_match().audited("openclaw.agents.update"),
        delete(ONE, "deleteAgent", routes::delete).needs(REMOVE).accepted::<types::Agent>().if_match().audited("openclaw.agents.delete"),
        post(STOP, "stopAgent", routes::stop).needs(USE).accepted::<types::Agent>().audited("openclaw.agents.stop"),
    ]
}

#[rustfmt::skip]
fn of_revisions() -> Vec<Operation> {
    use revisions::routes;
    const DEPLOY: &str = "/namespaces/{namespaceId}/agents/{agentId}/deploy";
    const ROLLBACK: &str = "/namespaces/{namespaceId}/agents/{agentId}/rollback";
    const ALL: &str = "/namespaces/{namespaceId}/agents/{agentId}/revisions";
    const ONE: &str = "/namespaces/{namespaceId}/agents/{agentId}/revisions/{revisionId}";
    const KIND: Kind = Kind::AgentRevision;
    const FREEZE: &[Check] = &[on_item(Deploy, Kind::Agent), on_item(Read, Kind::Configuration), on_item(Operate, Kind::Secret)];
    const REPEAT: &[Check] = &[on_item(Deploy, Kind::Agent), on_item(Read, Kind::Configuration), on_item(Operate, Kind::Secret), on_item(Read, KIND)];
    const EACH: &[Check] = &[on_item(Read, Kind::Agent), on_each(KIND)];
    const LOOK: &[Check] = &[on_item(Read, KIND)];
    vec![
        post(DEPLOY, "deployAgent", routes::deploy).needs(FREEZE).param(Param::new("dryRun", Rule::Flag)).accepted::<types::AgentRevision>().idempotent().audited("openclaw.agents.deploy"),
        post(ROLLBACK, "rollbackAgent", routes::rollback).needs(REPEAT).body::<types::RollbackRequest>(BODY_BYTES_MAX).accepted::<types::AgentRevision>().idempotent().audited("openclaw.agents.rollback"),
        get(ALL, "listAgentRevisions", routes::list).needs(EACH).list::<types::AgentRevision>(),
        get(ONE, "getAgentRevision", routes::get).needs(LOOK).ok::<types::AgentRevision>(),
    ]
}

#[rustfmt::skip]
fn of_deployments() -> Vec<Operation> {
    const ONE: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}";
    const RUNTIME: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}/runtime";
    const LOGS: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}/runtime/logs";
    const LOOK: &[Check] = &[on_item(Read, Kind::AgentRevision)];
    const INSPECT: &[Check] = &[on_item(Operate, Kind::Agent), on_item(Read, Kind::Agent), on_item(Read, Kind::AgentRevision)];
    const LISTEN: &[Check] = &[on_item(ReadLogs, Kind::Agent), on_item(Read, Kind::Agent)];
    let logs = get(LOGS, "getAgentDeploymentRuntimeLogs", runtime::routes::logs)
        .param(Param::new("source", Rule::OneOf(&["gateway", "agent", "sandbox"])).required())
        .param(Param::text("pod"))
        .param(Param::new("previous", Rule::Flag))
        .param(Param::new("tailLines", Rule::Integer { min: 1, max: 1_000 }))
        .param(Param::new("sinceSeconds", Rule::Integer { min: 1, max: 86_400 }))
        .param(Param::new("minLevel", Rule::OneOf(&["error", "warn", "info", "debug"])))
        .param(Param::new("cursor", Rule::Text { max: LOG_CURSOR_CHARS_MAX }))
        .param(Param::new("download", Rule::Flag));
    vec![
        get(ONE, "getAgentDeployment", deployments::routes::get).needs(LOOK).waits().ok::<types::Deployment>(),
        get(RUNTIME, "getAgentDeploymentRuntime", runtime::routes::get).needs(INSPECT).ok::<types::Runtime>(),
        logs.needs(LISTEN).ok::<types::LogPage>().audited("openclaw.agents.runtime_logs.view"),
    ]
}
