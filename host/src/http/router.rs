//! The whole API in one table: one line per operation, grouped by slice.
//!
//! The server, `/openapi.json` and the tests read this table; nothing else declares a route.

mod administration;

use std::sync::LazyLock;

use occ_api::types::{
    Agent, AgentCreate, AgentRevision, AgentUpdate, Configuration, ConfigurationCreate, ConfigurationUpdate, Deployment,
    LogPage, Namespace, NamespaceCreate, RollbackRequest, Runtime, Secret, SecretCreate, SecretDetails, SecretUpdate,
};

use super::admission::Resource;
use super::operation::{
    AGENT_BODY_BYTES_MAX, BODY_BYTES_MAX, CONFIGURATION_BODY_BYTES_MAX, On, Operation, SECRET_BODY_BYTES_MAX,
    check, delete, get, patch, post,
};
use super::query::{Param, Rule};
use super::{health, openapi};
use crate::iam::Action::{Create, Delete, Deploy, Operate, Read, ReadLogs, Update};
use crate::iam::Kind;

static TABLE: LazyLock<Vec<Operation>> = LazyLock::new(operations);

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let mut resources: Vec<Resource> = Vec::new();
    for operation in TABLE.iter() {
        match resources.iter_mut().find(|resource| resource.path == operation.path) {
            Some(resource) => resource.operations.push(operation),
            None => resources.push(Resource { path: operation.path, operations: vec![operation] }),
        }
    }
    resources
});

/// Every operation that this server answers.
#[must_use]
pub fn table() -> &'static [Operation] {
    &TABLE
}

pub(super) fn resources() -> &'static [Resource] {
    &RESOURCES
}

fn operations() -> Vec<Operation> {
    [
        service(),
        namespaces(),
        configurations(),
        secrets(),
        agents(),
        revisions(),
        deployments(),
        administration::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn service() -> Vec<Operation> {
    vec![
        get("/healthz", "health", health::health).open::<health::Health>(),
        get("/readyz", "readiness", health::readiness).open::<health::Readiness>(),
        get("/openapi.json", "openapi", openapi::document).open::<serde_json::Value>(),
    ]
}

fn namespaces() -> Vec<Operation> {
    use crate::namespaces::routes;
    const ALL: &str = "/namespaces";
    const ONE: &str = "/namespaces/{namespaceId}";
    vec![
        post(ALL, "createNamespace", routes::create)
            .body::<NamespaceCreate>(BODY_BYTES_MAX)
            .created::<Namespace>()
            .idempotent()
            .needs(const { &[check(Create, Kind::Namespace, On::Parent)] })
            .audited("openclaw.namespaces.create"),
        get(ALL, "listNamespaces", routes::list).list::<Namespace>().needs(const { &[check(Read, Kind::Namespace, On::Each)] }),
        get(ONE, "getNamespace", routes::get)
            .waits()
            .ok::<Namespace>()
            .needs(const { &[check(Read, Kind::Namespace, On::Item)] }),
        delete(ONE, "deleteNamespace", routes::delete)
            .accepted::<Namespace>()
            .needs(const { &[check(Delete, Kind::Namespace, On::Item)] })
            .audited("openclaw.namespaces.delete"),
    ]
}

fn configurations() -> Vec<Operation> {
    use crate::configurations::routes;
    const ALL: &str = "/namespaces/{namespaceId}/configurations";
    const ONE: &str = "/namespaces/{namespaceId}/configurations/{configurationId}";
    const KIND: Kind = Kind::Configuration;
    vec![
        post(ALL, "createConfiguration", routes::create)
            .body::<ConfigurationCreate>(CONFIGURATION_BODY_BYTES_MAX)
            .deep("values")
            .created::<Configuration>()
            .etag()
            .idempotent()
            .needs(const { &[check(Create, KIND, On::Parent), check(Operate, Kind::Secret, On::Item)] })
            .audited("openclaw.configurations.create"),
        get(ALL, "listConfigurations", routes::list)
            .list::<Configuration>()
            .needs(const { &[check(Read, Kind::Namespace, On::Item), check(Read, KIND, On::Each)] }),
        get(ONE, "getConfiguration", routes::get)
            .ok::<Configuration>()
            .etag()
            .needs(const { &[check(Read, KIND, On::Item)] }),
        patch(ONE, "updateConfiguration", routes::update)
            .body::<ConfigurationUpdate>(CONFIGURATION_BODY_BYTES_MAX)
            .deep("values")
            .ok::<Configuration>()
            .etag()
            .if_match()
            .needs(const { &[check(Update, KIND, On::Item), check(Operate, Kind::Secret, On::Item)] })
            .audited("openclaw.configurations.update"),
        delete(ONE, "deleteConfiguration", routes::delete)
            .no_content()
            .if_match()
            .needs(const { &[check(Delete, KIND, On::Item)] })
            .audited("openclaw.configurations.delete"),
    ]
}

fn secrets() -> Vec<Operation> {
    use crate::secrets::routes;
    const ALL: &str = "/namespaces/{namespaceId}/secrets";
    const ONE: &str = "/namespaces/{namespaceId}/secrets/{secretId}";
    const KIND: Kind = Kind::Secret;
    vec![
        post(ALL, "createSecret", routes::create)
            .body::<SecretCreate>(SECRET_BODY_BYTES_MAX)
            .created::<Secret>()
            .etag()
            .idempotent()
            .needs(const { &[check(Create, KIND, On::Parent)] })
            .audited("openclaw.secrets.create"),
        get(ALL, "listSecrets", routes::list)
            .list::<Secret>()
            .needs(const { &[check(Read, Kind::Namespace, On::Item), check(Read, KIND, On::Each)] }),
        get(ONE, "getSecret", routes::get).ok::<SecretDetails>().etag().needs(const { &[check(Read, KIND, On::Item)] }),
        patch(ONE, "updateSecret", routes::update)
            .body::<SecretUpdate>(SECRET_BODY_BYTES_MAX)
            .ok::<Secret>()
            .etag()
            .if_match()
            .needs(const { &[check(Update, KIND, On::Item)] })
            .audited("openclaw.secrets.update"),
        delete(ONE, "deleteSecret", routes::delete)
            .no_content()
            .if_match()
            .needs(const { &[check(Delete, KIND, On::Item)] })
            .audited("openclaw.secrets.delete"),
    ]
}

fn agents() -> Vec<Operation> {
    use crate::agents::routes;
    const ALL: &str = "/namespaces/{namespaceId}/agents";
    const ONE: &str = "/namespaces/{namespaceId}/agents/{agentId}";
    const KIND: Kind = Kind::Agent;
    vec![
        post(ALL, "createAgent", routes::create)
            .body::<AgentCreate>(AGENT_BODY_BYTES_MAX)
            .created::<Agent>()
            .etag()
            .idempotent()
            .needs(const { &[
                check(Create, KIND, On::Parent),
                check(Read, Kind::Configuration, On::Item),
                check(Operate, Kind::Secret, On::Item),
            ] })
            .audited("openclaw.agents.create"),
        get(ALL, "listAgents", routes::list)
            .list::<Agent>()
            .needs(const { &[check(Read, Kind::Namespace, On::Item), check(Read, KIND, On::Each)] }),
        get(ONE, "getAgent", routes::get).ok::<Agent>().etag().needs(const { &[check(Read, KIND, On::Item)] }),
        patch(ONE, "updateAgent", routes::update)
            .body::<AgentUpdate>(BODY_BYTES_MAX)
            .ok::<Agent>()
            .etag()
            .if_match()
            .needs(const { &[
                check(Update, KIND, On::Item),
                check(Read, Kind::Configuration, On::Item),
                check(Operate, Kind::Secret, On::Item),
            ] })
            .audited("openclaw.agents.update"),
        delete(ONE, "deleteAgent", routes::delete)
            .accepted::<Agent>()
            .if_match()
            .needs(const { &[check(Delete, KIND, On::Item)] })
            .audited("openclaw.agents.delete"),
        post("/namespaces/{namespaceId}/agents/{agentId}/stop", "stopAgent", routes::stop)
            .accepted::<Agent>()
            .needs(const { &[check(Operate, KIND, On::Item)] })
            .audited("openclaw.agents.stop"),
    ]
}

fn revisions() -> Vec<Operation> {
    use crate::revisions::routes;
    const KIND: Kind = Kind::AgentRevision;
    vec![
        post("/namespaces/{namespaceId}/agents/{agentId}/deploy", "deployAgent", routes::deploy)
            .param(Param::new("dryRun", Rule::Flag))
            .accepted::<AgentRevision>()
            .idempotent()
            .needs(const { &[
                check(Deploy, Kind::Agent, On::Item),
                check(Read, Kind::Configuration, On::Item),
                check(Operate, Kind::Secret, On::Item),
            ] })
            .audited("openclaw.agents.deploy"),
        post("/namespaces/{namespaceId}/agents/{agentId}/rollback", "rollbackAgent", routes::rollback)
            .body::<RollbackRequest>(BODY_BYTES_MAX)
            .accepted::<AgentRevision>()
            .idempotent()
            .needs(const { &[
                check(Deploy, Kind::Agent, On::Item),
                check(Read, Kind::Configuration, On::Item),
                check(Operate, Kind::Secret, On::Item),
                check(Read, KIND, On::Item),
            ] })
            .audited("openclaw.agents.rollback"),
        get("/namespaces/{namespaceId}/agents/{agentId}/revisions", "listAgentRevisions", routes::list)
            .list::<AgentRevision>()
            .needs(const { &[check(Read, Kind::Agent, On::Item), check(Read, KIND, On::Each)] }),
        get(
            "/namespaces/{namespaceId}/agents/{agentId}/revisions/{revisionId}",
            "getAgentRevision",
            routes::get,
        )
        .ok::<AgentRevision>()
        .needs(const { &[check(Read, KIND, On::Item)] }),
    ]
}

fn deployments() -> Vec<Operation> {
    use crate::{deployments, runtime};
    const ONE: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}";
    const RUNTIME: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}/runtime";
    const LOGS: &str = "/namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}/runtime/logs";
    vec![
        get(ONE, "getAgentDeployment", deployments::routes::get)
            .waits()
            .ok::<Deployment>()
            .needs(const { &[check(Read, Kind::AgentRevision, On::Item)] }),
        get(RUNTIME, "getAgentDeploymentRuntime", runtime::routes::get)
            .ok::<Runtime>()
            .needs(const { &[
                check(Operate, Kind::Agent, On::Item),
                check(Read, Kind::Agent, On::Item),
                check(Read, Kind::AgentRevision, On::Item),
            ] }),
        get(LOGS, "getAgentDeploymentRuntimeLogs", runtime::routes::logs)
            .param(Param::new("source", Rule::OneOf(&["gateway", "agent", "sandbox"])).required())
            .param(Param::text("pod"))
            .param(Param::new("previous", Rule::Flag))
            .param(Param::new("tailLines", Rule::Integer { min: 1, max: 1_000 }))
            .param(Param::new("sinceSeconds", Rule::Integer { min: 1, max: 86_400 }))
            .param(Param::new("minLevel", Rule::OneOf(&["error", "warn", "info", "debug"])))
            .param(Param::new("cursor", Rule::Text { max: 2_000 }))
            .param(Param::new("download", Rule::Flag))
            .ok::<LogPage>()
            .needs(const { &[check(ReadLogs, Kind::Agent, On::Item), check(Read, Kind::Agent, On::Item)] })
            .audited("openclaw.agents.runtime_logs.view"),
    ]
}
