//! Handlers of Agents; deploy and rollback are in `revisions`.

use occ_api::error::{ErrorCode, FieldCode, FieldError};
use occ_api::ids::{AgentId, IdentityId, NamespaceId};
use occ_api::types::{
    AgentCreate, AgentUpdate, DesiredRuntimeState, ExecutionMode, HarnessAuth, RollbackPolicy,
};
use occ_queue::{NewWork, Owner};
use serde::Serialize;

use super::model::{Agent, Auth, Draft, NewAgent};
use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::{self, Access, Action, Kind, Scope};
use crate::{configurations, namespaces, secrets};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    service_principal_id: IdentityId,
}

/// `POST /namespaces/{namespaceId}/agents`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let body: AgentCreate = rq.body()?;
    let draft = Draft {
        configuration: body.configuration_id.clone(),
        execution_mode: body.execution_mode.unwrap_or(ExecutionMode::Embedded),
        auth: auth_of(&namespace, body.harness_auth.as_ref())?,
        rollback_policy: body.rollback_policy.unwrap_or(RollbackPolicy::Automatic),
    };
    let mut needs = vec![Access::collection(Kind::Agent, &namespace)];
    needs.extend(draft_needs(&namespace, &draft));
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    demand_built(&body.not_built)?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let id = AgentId::from_uuid(app.ids.uuid());
    let mut tx = db::begin(&app.db).await?;
    namespaces::lock_for_contents(&mut tx, &namespace).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    lock_references(&mut tx, &scope, &draft).await?;
    demand_room(&mut tx, &scope, app.config.limits.agents_per_namespace).await?;
    // The principal comes first: the foreign keys between the two wait for the commit.
    let principal = iam::agent_principal_create(&mut tx, &app, &namespace, &id).await?;
    let new = NewAgent { id, name: body.name, draft, principal, created_at: app.clock.now() };
    let agent = store::agent_insert(&mut tx, &scope, &new, &rq.caller.identity)
        .await?
        .ok_or_else(|| Error::conflict("An Agent of this name exists in the Namespace."))?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.agents.create", resource(&agent))
        .details(&Created { service_principal_id: agent.principal.clone() })?;
    audit::record(&mut tx, &app, event).await?;
    let reply = Reply::created(&agent.to_wire())?.etag(agent.version);
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `GET /namespaces/{namespaceId}/agents`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let scope = app.iam.require(&app, &rq.caller, &Access::namespace(Action::Read, &namespace)).await?;
    let visible = app.iam.visible(&app, &rq.caller, Action::Read, Kind::Agent, Some(&namespace)).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    namespaces::get(&mut conn, &namespace).await?;
    let after = (page.after_time()?, page.after_id());
    let rows = store::agent_page(&mut conn, &scope, &visible, after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}/agents/{agentId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let access = Access::item(Action::Read, Kind::Agent, &rq.namespace()?, rq.agent()?);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let mut conn = app.db.acquire().await?;
    let agent = super::get(&mut conn, &scope, &rq.agent()?).await?;
    Ok(Reply::ok(&agent.to_wire())?.etag(agent.version))
}

/// `PATCH /namespaces/{namespaceId}/agents/{agentId}`
pub(crate) async fn update(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.agent()?);
    let body: AgentUpdate = rq.body()?;
    let sent_auth = match &body.harness_auth {
        None => None,
        Some(None) => Some(Auth::Unset),
        Some(Some(auth)) => Some(auth_of(&namespace, Some(auth))?),
    };
    let mut needs = vec![
        Access::item(Action::Update, Kind::Agent, &namespace, &id),
        Access::item(Action::Read, Kind::Configuration, &namespace, &body.configuration_id),
    ];
    needs.extend(sent_auth.as_ref().and_then(Auth::secret).map(|secret| operate(&namespace, secret)));
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    demand_built(&body.not_built)?;

    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let mut agent = super::lock(&mut tx, &scope, &id).await?;
    // The sources that the draft has now are given up or kept: both need their grant.
    needs.extend(agent.draft.auth.secret().map(|secret| operate(&namespace, secret)));
    app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    super::demand_active(&agent)?;
    rq.check_version(agent.version)?;
    let draft = Draft {
        configuration: body.configuration_id,
        execution_mode: body.execution_mode.unwrap_or(agent.draft.execution_mode),
        auth: sent_auth.unwrap_or_else(|| agent.draft.auth.clone()),
        rollback_policy: body.rollback_policy.unwrap_or(agent.draft.rollback_policy),
    };
    lock_references(&mut tx, &scope, &draft).await?;
    store::draft_set(&mut tx, &scope, &id, &draft, app.clock.now()).await?;
    agent.draft = draft;
    agent.version += 1;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.agents.update", resource(&agent));
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::ok(&agent.to_wire())?.etag(agent.version))
}

/// `POST /namespaces/{namespaceId}/agents/{agentId}/stop`
pub(crate) async fn stop(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.agent()?);
    let needs = [Access::item(Action::Operate, Kind::Agent, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let mut agent = super::lock(&mut tx, &scope, &id).await?;
    super::demand_active(&agent)?;
    if agent.desired == DesiredRuntimeState::Stopped {
        return Reply::accepted(&agent.to_wire());
    }
    store::stopped_set(&mut tx, &scope, &id, app.clock.now()).await?;
    agent.desired = DesiredRuntimeState::Stopped;
    let key = format!("agent:{id}:stop:{}", app.ids.uuid());
    enqueue(&mut tx, &rq, &agent, key, "agent.stop").await?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.agents.stop", resource(&agent));
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    app.hint(id.as_str());
    Reply::accepted(&agent.to_wire())
}

/// `DELETE /namespaces/{namespaceId}/agents/{agentId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.agent()?);
    let needs = [Access::item(Action::Delete, Kind::Agent, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let mut agent = super::lock(&mut tx, &scope, &id).await?;
    rq.check_version(agent.version)?;
    let key = format!("agent:{id}:delete");
    if agent.is_deleting() {
        namespaces::repeat_deletion(&app, &rq, &mut tx, &scope, &key).await?;
    } else {
        store::deleting_set(&mut tx, &scope, &id, app.clock.now()).await?;
        agent = super::get(&mut tx, &scope, &id).await?;
        enqueue(&mut tx, &rq, &agent, key, "agent.delete").await?;
        let event = Event::mutation(&rq.caller, &scope, "openclaw.agents.delete", resource(&agent));
        audit::record(&mut tx, &app, event).await?;
    }
    tx.commit().await?;
    app.hint(id.as_str());
    Reply::accepted(&agent.to_wire())
}

async fn enqueue(tx: &mut Tx, rq: &Request, agent: &Agent, key: String, kind: &'static str) -> Result<()> {
    let owner = Owner::agent(agent.namespace.as_str(), agent.id.as_str());
    occ_queue::enqueue(tx, &NewWork::user(key, kind, owner, rq.caller.identity.as_str())).await?;
    Ok(())
}

/// Grants that a draft's sources need, beside the one on the Agent.
fn draft_needs(namespace: &NamespaceId, draft: &Draft) -> Vec<Access> {
    let read = Access::item(Action::Read, Kind::Configuration, namespace, &draft.configuration);
    std::iter::once(read).chain(draft.auth.secret().map(|secret| operate(namespace, secret))).collect()
}

fn operate(namespace: &NamespaceId, secret: &occ_api::ids::SecretId) -> Access {
    Access::item(Action::Operate, Kind::Secret, namespace, secret)
}

/// The sources exist in this Namespace, and stay until the transaction ends.
async fn lock_references(tx: &mut Tx, scope: &Scope, draft: &Draft) -> Result<()> {
    configurations::lock_shared(tx, scope, &draft.configuration).await?;
    secrets::demand_shared(tx, scope, &draft.auth.secret().cloned().into_iter().collect()).await?;
    Ok(())
}

async fn demand_room(tx: &mut Tx, scope: &Scope, agents_max: u32) -> Result<()> {
    if store::agent_count(tx, scope).await? < u64::from(agents_max) {
        return Ok(());
    }
    Err(Error::conflict(format!("The Namespace holds its limit of {agents_max} Agents.")))
}

/// Reads `harnessAuth`: methods that are not built yet are refused by name.
fn auth_of(namespace: &NamespaceId, auth: Option<&HarnessAuth>) -> Result<Auth> {
    let source = match auth {
        None => return Ok(Auth::Unset),
        Some(HarnessAuth::Runtime) => return Ok(Auth::Runtime),
        Some(HarnessAuth::ApiKey { source }) => source,
        Some(HarnessAuth::CodexPat { .. }) => return Err(not_built("harnessAuth method codex_pat")),
        Some(HarnessAuth::Oauth { .. }) => return Err(not_built("harnessAuth method oauth")),
        Some(HarnessAuth::CredentialSource { .. }) => {
            return Err(not_built("harnessAuth method credential_source"));
        }
    };
    if source.namespace_id != *namespace {
        return Err(Error::invalid(vec![FieldError::new(
            "/harnessAuth/source/namespaceId",
            FieldCode::InvalidValue,
        )]));
    }
    Ok(Auth::ApiKey(source.id.clone()))
}

/// Known fields of later versions are refused, so that nobody believes that they took effect.
fn demand_built(fields: &[&str]) -> Result<()> {
    match fields.first() {
        None => Ok(()),
        Some(field) => Err(not_built(field)),
    }
}

fn not_built(what: &str) -> Error {
    Error::new(ErrorCode::NotImplemented, format!("{what} is not implemented."))
}

fn resource(agent: &Agent) -> Resource {
    Resource::in_namespace("agent", &agent.id, &agent.namespace)
}
