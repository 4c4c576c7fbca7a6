//! Handlers of Configurations.

use std::collections::{BTreeMap, BTreeSet};

use occ_api::ids::{BindingId, ConfigurationId, NamespaceId, SecretId};
use occ_api::types::{ConfigurationCreate, ConfigurationUpdate};
use serde::Serialize;

use super::model::{self, Configuration};
use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db;
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::{self, Access, Action, Kind};
use crate::{namespaces, secrets};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Edited {
    generation: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    binding_ids: Vec<BindingId>,
}

/// `POST /namespaces/{namespaceId}/configurations`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let body: ConfigurationCreate = rq.body()?;
    demand_valid(&body.values)?;
    let bindings = bindings(&namespace, &body.secret_bindings.unwrap_or_default())?;
    let mut needs = vec![Access::collection(Kind::Configuration, &namespace)];
    needs.extend(operate(&namespace, bindings.values()));
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    namespaces::lock_for_contents(&mut tx, &namespace).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    secrets::demand_shared(&mut tx, &scope, &bindings.values().cloned().collect()).await?;
    let new = Configuration {
        id: ConfigurationId::from_uuid(app.ids.uuid()),
        namespace,
        generation: 1,
        document: body.values,
        secret_bindings: bindings,
        created_at: app.clock.now(),
    };
    store::configuration_insert(&mut tx, &scope, &new, &rq.caller.identity).await?;
    store::bindings_insert(&mut tx, &scope, &new.id, &new.secret_bindings).await?;
    let event = Event::mutation(
        &rq.caller,
        &scope,
        "openclaw.configurations.create",
        resource(&new.namespace, &new.id),
    );
    audit::record(&mut tx, &app, event).await?;
    let reply = Reply::created(&new.to_wire())?.etag(new.generation);
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `GET /namespaces/{namespaceId}/configurations`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let scope = app.iam.require(&app, &rq.caller, &Access::namespace(Action::Read, &namespace)).await?;
    let visible =
        app.iam.visible(&app, &rq.caller, Action::Read, Kind::Configuration, Some(&namespace)).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    namespaces::get(&mut conn, &namespace).await?;
    let after = (page.after_time()?, page.after_id());
    let rows = store::configuration_page(&mut conn, &scope, &visible, after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}/configurations/{configurationId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<ConfigurationId>("configurationId")?);
    let access = Access::item(Action::Read, Kind::Configuration, &namespace, &id);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let mut conn = app.db.acquire().await?;
    let found = super::get(&mut conn, &scope, &id).await?;
    Ok(Reply::ok(&found.to_wire())?.etag(found.generation))
}

/// `PATCH /namespaces/{namespaceId}/configurations/{configurationId}`
pub(crate) async fn update(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<ConfigurationId>("configurationId")?);
    let body: ConfigurationUpdate = rq.body()?;
    demand_valid(&body.values)?;
    let sent = body.secret_bindings.map(|sent| bindings(&namespace, &sent)).transpose()?;
    let mut needs = vec![Access::item(Action::Update, Kind::Configuration, &namespace, &id)];
    needs.extend(operate(&namespace, sent.iter().flat_map(BTreeMap::values)));
    app.iam.require_all(&app, &rq.caller, &needs).await?;

    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let mut found = store::configuration_lock(&mut tx, &scope, &id).await?.ok_or_else(Error::not_found)?;
    // Bindings that the edit merely keeps are used by its result all the same.
    needs.extend(operate(&namespace, found.secret_bindings.values().filter(|_| sent.is_none())));
    app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    rq.check_version(found.generation)?;
    if let Some(sent) = sent {
        secrets::demand_shared(&mut tx, &scope, &sent.values().cloned().collect()).await?;
        store::bindings_delete(&mut tx, &scope, &id).await?;
        store::bindings_insert(&mut tx, &scope, &id, &sent).await?;
        found.secret_bindings = sent;
    }
    found.generation = store::document_set(&mut tx, &scope, &id, &body.values, app.clock.now()).await?;
    found.document = body.values;
    let event =
        Event::mutation(&rq.caller, &scope, "openclaw.configurations.update", resource(&namespace, &id))
            .details(&Edited { generation: found.generation })?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::ok(&found.to_wire())?.etag(found.generation))
}

/// `DELETE /namespaces/{namespaceId}/configurations/{configurationId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<ConfigurationId>("configurationId")?);
    let needs = [Access::item(Action::Delete, Kind::Configuration, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let found = store::configuration_lock(&mut tx, &scope, &id).await?.ok_or_else(Error::not_found)?;
    rq.check_version(found.generation)?;
    if let Some(agent) = store::referencing_agent(&mut tx, &scope, &id).await? {
        return Err(Error::conflict(format!("The Configuration is used by Agent {agent}.")));
    }
    let removed = iam::exact_bindings_delete(&mut tx, Kind::Configuration, id.as_str()).await?;
    store::configuration_delete(&mut tx, &scope, &id).await?;
    let event =
        Event::mutation(&rq.caller, &scope, "openclaw.configurations.delete", resource(&namespace, &id))
            .details(&Removed { binding_ids: removed })?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::no_content())
}

fn demand_valid(values: &serde_json::Value) -> Result<()> {
    let faults = model::document_faults(values);
    if faults.is_empty() { Ok(()) } else { Err(Error::invalid(faults)) }
}

fn bindings(
    namespace: &NamespaceId,
    sent: &BTreeMap<String, occ_api::types::SecretBinding>,
) -> Result<BTreeMap<String, SecretId>> {
    model::bindings_of(namespace, sent).map_err(Error::invalid)
}

fn operate<'a>(
    namespace: &'a NamespaceId,
    ids: impl Iterator<Item = &'a SecretId>,
) -> impl Iterator<Item = Access> {
    let distinct: BTreeSet<&SecretId> = ids.collect();
    distinct.into_iter().map(move |id| Access::item(Action::Operate, Kind::Secret, namespace, id))
}

fn resource(namespace: &NamespaceId, id: &ConfigurationId) -> Resource {
    Resource::in_namespace("configuration", id, namespace)
}
