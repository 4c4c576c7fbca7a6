//! Handlers of Roles, at both levels: the path says which.

use occ_api::ids::RoleId;
use occ_api::types::{Permission, Role, RoleCreate};
use serde::Serialize;

use super::model::{self, VERSION};
use super::store::{self, RoleRow};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db;
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::lock::Home;
use crate::iam::policy;

#[derive(Serialize)]
struct Created<'a> {
    permissions: &'a [Permission],
}

fn to_wire(row: RoleRow) -> Role {
    Role {
        permissions: model::permissions(&row.pairs),
        id: row.id,
        namespace_id: row.namespace,
        name: row.name,
    }
}

/// `GET …/iam/roles`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let page = rq.page()?;
    let after = (page.after_time()?, page.after_id());
    let mut conn = app.db.acquire().await?;
    let rows = store::role_page(&mut conn, home.namespace(), after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), to_wire)
}

/// `POST …/iam/roles`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    let body: RoleCreate = rq.body()?;
    let pairs = model::pairs(&body, &home).map_err(Error::invalid)?;
    policy::require(&app, &rq, &home).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, true).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &home).await?;
    let row = RoleRow {
        id: RoleId::from_uuid(app.ids.uuid()),
        namespace: home.namespace().cloned(),
        name: body.name,
        created_at: app.clock.now(),
        pairs,
    };
    store::role_insert(&mut tx, &row).await?;
    let role = to_wire(row);
    let event = Event::mutation(&rq.caller, &scope, "openclaw.iam.roles.create", resource(&home, &role.id))
        .details(&Created { permissions: &role.permissions })?;
    audit::record(&mut tx, &app, event).await?;
    let reply = Reply::created(&role)?.etag(VERSION);
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `GET …/iam/roles/{roleId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (home, id) = (Home::of(&rq)?, rq.path::<RoleId>("roleId")?);
    policy::require(&app, &rq, &home).await?;
    let mut conn = app.db.acquire().await?;
    let found =
        store::role_find(&mut conn, &id).await?.filter(|row| row.namespace.as_ref() == home.namespace());
    Ok(Reply::ok(&to_wire(found.ok_or_else(Error::not_found)?))?.etag(VERSION))
}

/// `DELETE …/iam/roles/{roleId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let (home, id) = (Home::of(&rq)?, rq.path::<RoleId>("roleId")?);
    policy::require(&app, &rq, &home).await?;
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, false).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &home).await?;
    let found =
        store::role_find(&mut tx, &id).await?.filter(|row| row.namespace.as_ref() == home.namespace());
    let found = to_wire(found.ok_or_else(Error::not_found)?);
    rq.check_version(VERSION)?;
    if store::role_is_bound(&mut tx, &id).await? {
        return Err(Error::conflict("The Role is used by an AccessBinding."));
    }
    store::role_delete(&mut tx, &id).await?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.iam.roles.delete", resource(&home, &id))
        .details(&Created { permissions: &found.permissions })?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::no_content())
}

fn resource(home: &Home, id: &RoleId) -> Resource {
    Resource { kind: "iam_role", id: id.to_string(), namespace: home.namespace().cloned() }
}
