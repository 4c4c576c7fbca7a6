//! Handlers of Secrets.

use occ_api::ids::{BindingId, NamespaceId, SecretId};
use occ_api::types::{self, SecretCreate, SecretUpdate};
use serde::Serialize;

use super::model::NewSecret;
use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection};
use crate::drivers::SecretValue;
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::{self, Access, Action, Kind, Scope};
use crate::namespaces;

/// Version of a new Secret.
const FIRST_VERSION: u64 = 1;
/// References that one look at consumers examines.
const CONSUMERS_MAX: usize = 50;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    binding_ids: Vec<BindingId>,
}

#[derive(Serialize)]
struct Rotated {
    version: u64,
}

/// `GET /namespaces/{namespaceId}/secrets`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let scope = app.iam.require(&app, &rq.caller, &Access::namespace(Action::Read, &namespace)).await?;
    let visible = app.iam.visible(&app, &rq.caller, Action::Read, Kind::Secret, Some(&namespace)).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    namespaces::get(&mut conn, &namespace).await?;
    let after = (page.after_time()?, page.after_id());
    let rows = store::secret_page(&mut conn, &scope, &visible, after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}/secrets/{secretId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<SecretId>("secretId")?);
    let access = Access::item(Action::Read, Kind::Secret, &namespace, &id);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let mut conn = app.db.acquire().await?;
    let secret = store::secret_get(&mut conn, &scope, &id).await?.ok_or_else(Error::not_found)?;
    let consumers = consumers(&app, &rq, &mut conn, &scope, &id).await?;
    Ok(Reply::ok(&secret.to_wire_with(consumers))?.etag(secret.version))
}

/// Who uses the Secret: at most 50 references by kind and id; those that the caller may not read
/// are counted alone.
async fn consumers(
    app: &App,
    rq: &Request,
    conn: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
) -> Result<types::SecretConsumers> {
    let namespace = scope.namespace()?;
    let fetch = i64::try_from(CONSUMERS_MAX).unwrap_or(i64::MAX).saturating_add(1);
    let mut agents = store::using_agents(conn, scope, id, fetch).await?;
    let mut configurations = store::binding_configurations(conn, scope, id, fetch).await?;
    let truncated = agents.len() + configurations.len() > CONSUMERS_MAX;
    agents.truncate(CONSUMERS_MAX);
    configurations.truncate(CONSUMERS_MAX - agents.len());
    let examined = agents.len() + configurations.len();
    let readable = app.iam.visible(app, &rq.caller, Action::Read, Kind::Agent, Some(namespace)).await?;
    agents.retain(|agent| readable.shows(namespace.as_str(), agent.as_str()));
    let readable =
        app.iam.visible(app, &rq.caller, Action::Read, Kind::Configuration, Some(namespace)).await?;
    configurations.retain(|configuration| readable.shows(namespace.as_str(), configuration.as_str()));
    let unreadable = u32::try_from(examined - agents.len() - configurations.len()).unwrap_or(u32::MAX);
    Ok(types::SecretConsumers {
        agents,
        configurations,
        credential_sources: Vec::new(),
        provisioning_requests: Vec::new(),
        unreadable,
        truncated,
    })
}

/// `POST /namespaces/{namespaceId}/secrets`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let body: SecretCreate = rq.body()?;
    let needs = [Access::collection(Kind::Secret, &namespace)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let token = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(token) => token,
    };
    let id = SecretId::from_uuid(app.ids.uuid());
    let new = NewSecret { id, name: body.name, store: app.secrets.kind(), created_at: app.clock.now() };
    let mut tx = db::begin(&app.db).await?;
    namespaces::lock_ready(&mut tx, &namespace).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    if !store::secret_insert(&mut tx, &scope, &new, &rq.caller.identity).await? {
        return Err(Error::conflict("A Secret of this name exists in the Namespace."));
    }
    app.secrets
        .put_secret(&mut tx, &namespace, &new.id, FIRST_VERSION, &SecretValue::new(body.value))
        .await?;
    let secret = store::secret_ready(&mut tx, &scope, &new.id, new.created_at).await?;
    let event =
        Event::mutation(&rq.caller, &scope, "openclaw.secrets.create", resource(&namespace, &secret.id));
    audit::record(&mut tx, &app, event).await?;
    let reply = Reply::created(&secret.to_wire())?.etag(secret.version);
    token.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `PATCH /namespaces/{namespaceId}/secrets/{secretId}`
pub(crate) async fn update(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<SecretId>("secretId")?);
    let body: SecretUpdate = rq.body()?;
    let needs = [Access::item(Action::Update, Kind::Secret, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    namespaces::lock_ready(&mut tx, &namespace).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let mut secret = store::secret_lock(&mut tx, &scope, &id).await?.ok_or_else(Error::not_found)?;
    rq.check_version(secret.version)?;
    secret.version += 1;
    app.secrets.put_secret(&mut tx, &namespace, &id, secret.version, &SecretValue::new(body.value)).await?;
    store::version_set(&mut tx, &scope, &id, secret.version, app.clock.now()).await?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.secrets.update", resource(&namespace, &id))
        .details(&Rotated { version: secret.version })?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::ok(&secret.to_wire())?.etag(secret.version))
}

/// `DELETE /namespaces/{namespaceId}/secrets/{secretId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<SecretId>("secretId")?);
    let needs = [Access::item(Action::Delete, Kind::Secret, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let secret = store::secret_lock(&mut tx, &scope, &id).await?.ok_or_else(Error::not_found)?;
    rq.check_version(secret.version)?;
    demand_unused(&mut tx, &scope, &id).await?;
    let binding_ids = iam::exact_bindings_delete(&mut tx, Kind::Secret, id.as_str()).await?;
    store::secret_delete(&mut tx, &scope, &id).await?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.secrets.delete", resource(&namespace, &id))
        .details(&Removed { binding_ids })?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::no_content())
}

/// Bindings, drafts, active revisions and pending deployments hold a Secret.
async fn demand_unused(tx: &mut PgConnection, scope: &Scope, id: &SecretId) -> Result<()> {
    if let Some(configuration) = store::binding_configurations(tx, scope, id, 1).await?.first() {
        return Err(Error::conflict(format!("The Secret is bound by Configuration {configuration}.")));
    }
    if let Some(agent) = store::using_agents(tx, scope, id, 1).await?.first() {
        return Err(Error::conflict(format!("The Secret is used by Agent {agent}.")));
    }
    Ok(())
}

fn resource(namespace: &NamespaceId, id: &SecretId) -> Resource {
    Resource::in_namespace("secret", id, namespace)
}
