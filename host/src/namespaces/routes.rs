//! Handlers of Namespaces.

use std::time::Duration;

use occ_api::error::ErrorCode;
use occ_api::ids::NamespaceId;
use occ_api::types::{NamespaceCreate, NamespaceStatus};
use occ_queue::{NewWork, Owner};
use tokio::time::Instant;

use super::model::{self, Content, Namespace, NewNamespace};
use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::{Access, Action, Kind};

/// Time for a Namespace to become ready.
const ENSURE_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// Distance of two looks while a client waits.
const WAIT_STEP: Duration = Duration::from_secs(1);

/// `POST /namespaces`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let body: NamespaceCreate = rq.body()?;
    let mut needs = vec![Access::namespaces(&app.installation)];
    if body.existing_namespace.is_some() {
        needs.push(Access::installation(Action::Administer, &app.installation));
    }
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    if body.existing_namespace.is_some() {
        return Err(Error::new(
            ErrorCode::NotImplemented,
            "existingNamespace is not offered by the selected compute driver.",
        ));
    }
    let new = NewNamespace {
        id: NamespaceId::from_uuid(app.ids.uuid()),
        name: body.name,
        existing_namespace: None,
        created_at: app.clock.now(),
    };
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    demand_room(&mut tx, app.config.limits.namespaces).await?;
    if !store::namespace_insert(&mut tx, &new).await? {
        return Err(name_taken(&mut tx, &new.name).await?);
    }
    let namespace = Namespace::from(new);
    let work = NewWork::user(
        format!("namespace:{}:ensure", namespace.id),
        "namespace.ensure",
        Owner::namespace(namespace.id.as_str()),
        rq.caller.identity.as_str(),
    );
    occ_queue::enqueue(&mut tx, &work.deadline(ENSURE_DEADLINE)).await?;
    let resource = Resource::in_namespace("namespace", &namespace.id, &namespace.id);
    audit::record(&mut tx, &app, Event::mutation(&rq.caller, &scope, "openclaw.namespaces.create", resource))
        .await?;
    let reply = Reply::created(&namespace.to_wire())?;
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    app.hint(namespace.id.as_str());
    Ok(reply)
}

/// `GET /namespaces`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let visible = app.iam.visible(&app, &rq.caller, Action::Read, Kind::Namespace, None).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    let rows =
        store::namespace_page(&mut conn, &visible, (page.after_time()?, page.after_id()), page.fetch())
            .await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let id = rq.namespace()?;
    let needs = [Access::namespace(Action::Read, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let deadline = Instant::now() + rq.wait().unwrap_or_default();
    loop {
        let mut tx = db::begin(&app.db).await?;
        app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
        let namespace = super::get(&mut tx, &id).await?;
        tx.rollback().await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if namespace.is_settled() || left.is_zero() || app.shutdown.begun() {
            return Reply::ok(&namespace.to_wire());
        }
        app.shutdown.pause(left.min(WAIT_STEP)).await;
    }
}

/// `DELETE /namespaces/{namespaceId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let id = rq.namespace()?;
    let needs = [Access::namespace(Action::Delete, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let mut tx = db::begin(&app.db).await?;
    let mut namespace = store::namespace_lock(&mut tx, &id).await?.ok_or_else(Error::not_found)?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    if namespace.status == NamespaceStatus::Deleting {
        super::repeat_deletion(&app, &rq, &mut tx, &scope, &delete_key(&id)).await?;
    } else {
        let contents = store::contents(&mut tx, &scope).await?;
        if !contents.is_empty() {
            tx.rollback().await?;
            return Err(not_empty(&app, &rq, &id, contents).await?);
        }
        store::namespace_status_set(&mut tx, &scope, NamespaceStatus::Deleting, app.clock.now()).await?;
        namespace.status = NamespaceStatus::Deleting;
        let owner = Owner::namespace(id.as_str());
        let work = NewWork::user(delete_key(&id), "namespace.delete", owner, rq.caller.identity.as_str());
        occ_queue::enqueue(&mut tx, &work).await?;
        let resource = Resource::in_namespace("namespace", &id, &id);
        let event = Event::mutation(&rq.caller, &scope, "openclaw.namespaces.delete", resource);
        audit::record(&mut tx, &app, event).await?;
    }
    tx.commit().await?;
    app.hint(id.as_str());
    Reply::accepted(&namespace.to_wire())
}

fn delete_key(id: &NamespaceId) -> String {
    format!("namespace:{id}:delete")
}

async fn name_taken(tx: &mut Tx, name: &str) -> Result<Error> {
    Ok(Error::conflict(if store::name_is_tombstone(tx, name).await? {
        "A deleted Namespace had this name; names of Namespaces are never free again."
    } else {
        "A Namespace of this name exists."
    }))
}

async fn demand_room(tx: &mut Tx, namespaces_max: u32) -> Result<()> {
    if store::namespace_count(tx).await? < u64::from(namespaces_max) {
        return Ok(());
    }
    Err(Error::conflict(format!("The Installation holds its limit of {namespaces_max} Namespaces.")))
}

/// Names what is left, ids only of what the caller may read.
async fn not_empty(app: &App, rq: &Request, id: &NamespaceId, mut contents: Vec<Content>) -> Result<Error> {
    for content in &mut contents {
        let visible =
            app.iam.visible(app, &rq.caller, Action::Read, content.kind.iam_kind(), Some(id)).await?;
        content.ids.retain(|item| visible.shows(id.as_str(), item));
    }
    Ok(Error::new(ErrorCode::NamespaceNotEmpty, model::not_empty_message(&contents)))
}
