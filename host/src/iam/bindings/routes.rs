//! Handlers of AccessBindings, at both levels: the path says which.

use occ_api::error::FieldCode;
use occ_api::ids::BindingId;
use occ_api::types::{AccessBinding, AccessBindingCreate, SubjectKind};

use super::{model, store};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::decide::Target;
use crate::iam::lock::Home;
use crate::iam::roles::store::{RoleRow, role_find};
use crate::iam::{Access, Action, policy};

/// `GET …/iam/access-bindings`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    policy::require(&app, &rq, &home).await?;
    let page = rq.page()?;
    let after = (page.after_time()?, page.after_id());
    let mut conn = app.db.acquire().await?;
    let rows = store::binding_page(&mut conn, home.namespace(), after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.binding.id.to_string()), |row| row.binding)
}

/// `POST …/iam/access-bindings`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let home = Home::of(&rq)?;
    let body: AccessBindingCreate = rq.body()?;
    let target = model::target(&body, &home).map_err(Error::invalid)?;
    let needs = needs(&app, &home, target.as_ref());
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    policy::require(&app, &rq, &home).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, true).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
    let role = references(&app, &mut tx, &home, &body, target.as_ref()).await?;
    let grants = model::grants(&role.pairs, home.namespace().cloned(), target.as_ref());
    policy::cover(&app, &mut tx, &rq, &grants, "the binding").await?;
    let binding = AccessBinding {
        id: BindingId::from_uuid(app.ids.uuid()),
        namespace_id: home.namespace().cloned(),
        subject_kind: body.subject_kind,
        subject_id: body.subject_id,
        role_id: role.id,
        resource_kind: body.resource_kind,
        resource_id: body.resource_id,
    };
    store::binding_insert(&mut tx, &binding, &rq.caller.identity, app.clock.now()).await?;
    let event = Event::mutation(
        &rq.caller,
        &scope,
        "openclaw.iam.access-bindings.create",
        resource(&home, &binding.id),
    )
    .details(&binding)?;
    audit::record(&mut tx, &app, event).await?;
    let reply = Reply::created(&binding)?;
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `GET …/iam/access-bindings/{bindingId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (home, id) = (Home::of(&rq)?, rq.path::<BindingId>("bindingId")?);
    policy::require(&app, &rq, &home).await?;
    let mut conn = app.db.acquire().await?;
    let found = store::binding_find(&mut conn, home.namespace(), &id).await?.ok_or_else(Error::not_found)?;
    Reply::ok(&found.binding)
}

/// `DELETE …/iam/access-bindings/{bindingId}`
pub(crate) async fn delete(app: App, rq: Request) -> Result<Reply> {
    let (home, id) = (Home::of(&rq)?, rq.path::<BindingId>("bindingId")?);
    policy::require(&app, &rq, &home).await?;
    let mut tx = db::begin(&app.db).await?;
    home.lock(&mut tx, false).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &home).await?;
    let found = store::binding_find(&mut tx, home.namespace(), &id).await?.ok_or_else(Error::not_found)?;
    let grants = model::grants(&found.pairs, home.namespace().cloned(), found.target().as_ref());
    policy::cover(&app, &mut tx, &rq, &grants, "the binding").await?;
    store::binding_delete(&mut tx, &id).await?;
    policy::keep_administrator(&mut tx, &home).await?;
    let event =
        Event::mutation(&rq.caller, &scope, "openclaw.iam.access-bindings.delete", resource(&home, &id))
            .details(&found.binding)?;
    audit::record(&mut tx, &app, event).await?;
    tx.commit().await?;
    Ok(Reply::no_content())
}

/// The policy permissions, and read on an exact target.
fn needs(app: &App, home: &Home, target: Option<&Target>) -> Vec<Access> {
    let mut needs = home.accesses(app);
    if let Some(target) = target {
        needs.push(match home.namespace() {
            Some(namespace) => Access::item(Action::Read, target.kind, namespace, &target.id),
            None => Access::installation(Action::Read, &app.installation),
        });
    }
    needs
}

/// Row 13: everything that the binding names exists and fits its level; the field at fault is named.
async fn references(
    app: &App,
    tx: &mut Tx,
    home: &Home,
    body: &AccessBindingCreate,
    target: Option<&Target>,
) -> Result<RoleRow> {
    let level = store::subject_level(tx, body.subject_kind, &body.subject_id).await?;
    let subject_fits = level.is_some_and(|level| match body.subject_kind {
        SubjectKind::Identity => level.is_none() || level.as_ref() == home.namespace(),
        SubjectKind::Group => level.as_ref() == home.namespace(),
    });
    if !subject_fits {
        return Err(Error::invalid_field("/subjectId", FieldCode::InvalidValue));
    }
    let role = role_find(tx, &body.role_id)
        .await?
        .filter(|role| role.namespace.is_none() || role.namespace.as_ref() == home.namespace());
    let Some(role) = role.filter(|role| model::role_fits(&role.pairs, target)) else {
        return Err(Error::invalid_field("/roleId", FieldCode::InvalidValue));
    };
    if let Some(target) = target {
        let exists = match home.namespace() {
            Some(namespace) => store::target_exists(tx, namespace, target).await?,
            None => target.id == app.installation.as_str(),
        };
        if !exists {
            return Err(Error::invalid_field("/resourceId", FieldCode::InvalidValue));
        }
    }
    let bound = store::subject_bindings_count(tx, &body.subject_id, home.namespace()).await?;
    if bound >= policy::ROWS_PER_PRINCIPAL_MAX {
        return Err(Error::conflict(format!(
            "The subject has {bound} bindings here, the most that are allowed."
        )));
    }
    Ok(role)
}

fn resource(home: &Home, id: &BindingId) -> Resource {
    Resource { kind: "iam_access_binding", id: id.to_string(), namespace: home.namespace().cloned() }
}
