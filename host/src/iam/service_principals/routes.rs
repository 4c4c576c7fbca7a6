//! Handlers of ServicePrincipals, at both levels: the path says which.

use occ_api::ids::{BindingId, IdentityId, KeyId};
use occ_api::types::ServicePrincipal;
use serde::Serialize;

use super::store::{self, Stored};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::bindings::store::bindings_of_delete;
use crate::iam::lock::Home;
use crate::iam::{coverage, policy};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    service_key_ids: Vec<KeyId>,
    binding_ids: Vec<BindingId>,
}

fn to_wire(row: Stored) -> ServicePrincipal {
    ServicePrincipal { id: row.id, namespace_id: row.namespace }
}

/// `GET …/iam/service-principals`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let page = rq.page()?;
    let after = (page.after_time()?, page.after_id());
    let mut conn = app.db.acquire().await?;
    let rows = store::principal_page(&mut conn, home.namespace(), after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), to_wire)
}

/// `POST …/iam/service-principals`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, true).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &home).await?;
    let made = ServicePrincipal {
        id: IdentityId::from_uuid(app.ids.uuid()),
        namespace_id: home.namespace().cloned(),
    };
    store::principal_insert(&mut tx, &made.id, home.namespace(), app.clock.now()).await?;
    let action = "openclaw.iam.service-principals.create";
    audit::record(&mut tx, &app, Event::mutation(&rq.caller, &scope, action, resource(&home, &made.id)))
        .await?;
    let reply = Reply::created(&made)?;
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `GET …/iam/service-principals/{servicePrincipalId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let mut conn = app.db.acquire().await?;
    Reply::ok(&to_wire(find(&mut conn, &rq, &home).await?))
}

/// `DELETE …/iam/service-principals/{servicePrincipalId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, false).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &home).await?;
    let found = find(&mut tx, &rq, &home).await?;
    let held = coverage::grants(&app.iam.load(&mut tx, &found.id, None).await?);
    policy::cover(&app, &mut tx, &rq, &held, "the ServicePrincipal").await?;
    if found.of_agent {
        return Err(Error::conflict("The ServicePrincipal belongs to an Agent and goes with it."));
    }
    let removed = Removed {
        service_key_ids: store::keys_of_delete(&mut tx, &found.id).await?,
        binding_ids: bindings_of_delete(&mut tx, &found.id).await?,
    };
    store::principal_delete(&mut tx, &found.id).await?;
    policy::keep_administrator(&mut tx, &home).await?;
    let action = "openclaw.iam.service-principals.delete";
    let event = Event::mutation(&rq.caller, &scope, action, resource(&home, &found.id)).details(&removed)?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::no_content())
}

async fn find(conn: &mut PgConnection, rq: &Request, home: &Home) -> Result<Stored> {
    let id = rq.path::<String>("servicePrincipalId")?;
    let found =
        store::principal_find(conn, &id).await?.filter(|row| row.namespace.as_ref() == home.namespace());
    found.ok_or_else(Error::not_found)
}

fn resource(home: &Home, id: &IdentityId) -> Resource {
    Resource { kind: "iam_service_principal", id: id.to_string(), namespace: home.namespace().cloned() }
}
