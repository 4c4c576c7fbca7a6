//! Handlers of service keys.

use occ_api::error::FieldCode;
use occ_api::ids::{IdentityId, KeyId};
use occ_api::types::{IssuedServiceKey, RevokedServiceKey, ServiceKey, ServiceKeyCreate};
use serde::Serialize;

use super::model;
use super::store::{self, NewRow};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::authn::NewKey;
use crate::iam::lock::Home;
use crate::iam::service_principals::store::principal_find;
use crate::iam::{coverage, policy};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AboutKey<'a> {
    service_principal_id: &'a IdentityId,
    name: &'a str,
    prefix: &'a str,
}

impl<'a> AboutKey<'a> {
    fn of(key: &'a ServiceKey) -> Self {
        Self { service_principal_id: &key.service_principal_id, name: &key.name, prefix: &key.prefix }
    }
}

/// `GET /api/auth/service-keys`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    policy::require(&app, &rq, &Home::Installation).await?;
    let page = rq.page()?;
    let after = (page.after_time()?, page.after_id());
    let mut conn = app.db.acquire().await?;
    let (owner, namespace) = (rq.query("servicePrincipalId"), rq.query("namespaceId"));
    let rows = store::key_page(&mut conn, owner, namespace, after, page.fetch()).await?;
    page.reply(rows, |(at, key)| (sort_time(*at), key.id.to_string()), |(_, key)| key)
}

/// `POST /api/auth/service-keys`
pub(crate) async fn create(app: App, rq: Request) -> Result<Reply> {
    let body: ServiceKeyCreate = rq.body()?;
    let life = model::life(body.expires_in);
    policy::require(&app, &rq, &Home::Installation).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    let owner = owner(&app, &rq, &mut tx, &body).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &Home::Installation).await?;
    let drawn = NewKey::draw(&app.ids);
    let created_at = app.clock.now();
    let key = ServiceKey {
        id: KeyId::from_uuid(app.ids.uuid()),
        service_principal_id: owner,
        namespace_id: body.namespace_id,
        name: body.name,
        prefix: drawn.shown.clone(),
        created_at: created_at.into(),
        expires_at: (created_at + life).into(),
        last_used_at: None,
        revoked_at: None,
    };
    let row = NewRow {
        key: &key,
        hash: &drawn.hash,
        created_by: &rq.caller.identity,
        created_at,
        expires_at: created_at + life,
    };
    store::key_insert(&mut tx, &row).await?;
    let event = Event::mutation(&rq.caller, &scope, "openclaw.auth.service-keys.create", resource(&key));
    audit::record(&mut tx, &app, event.details(&AboutKey::of(&key))?).await?;
    let reply = Reply::created(&IssuedServiceKey {
        id: key.id.clone(),
        service_principal_id: key.service_principal_id,
        namespace_id: key.namespace_id,
        name: key.name,
        expires_at: key.expires_at,
        key: drawn.text.to_string(),
    })?;
    once.complete_without_data(&mut tx, &reply, key.id.as_str()).await?;
    tx.commit().await?;
    Ok(reply)
}

/// `DELETE /api/auth/service-keys/{keyId}`
pub(crate) async fn revoke(app: App, rq: Request) -> Result<Reply> {
    let id = rq.path::<KeyId>("keyId")?;
    policy::require(&app, &rq, &Home::Installation).await?;
    let mut tx = db::begin(&app.db).await?;
    let key = store::key_find(&mut tx, &id).await?.ok_or_else(Error::not_found)?;
    Home::from_column(key.namespace_id.clone()).lock(&mut tx, false).await?;
    let scope = policy::decide_again(&app, &mut tx, &rq, &Home::Installation).await?;
    let held = coverage::grants(&app.iam.load(&mut tx, &key.service_principal_id, None).await?);
    policy::cover(&app, &mut tx, &rq, &held, "the ServicePrincipal").await?;
    if store::key_revoke(&mut tx, &id, app.clock.now()).await? {
        let event = Event::mutation(&rq.caller, &scope, "openclaw.auth.service-keys.revoke", resource(&key));
        audit::record(&mut tx, &app, event.details(&AboutKey::of(&key))?).await?;
    }
    tx.commit().await?;
    Reply::ok(&RevokedServiceKey { id, revoked: true })
}

/// The owner of a new key, locked at its level: it exists, is no Agent's, has the scope that was asked for, and
/// holds nothing that the caller does not.
async fn owner(app: &App, rq: &Request, tx: &mut Tx, body: &ServiceKeyCreate) -> Result<IdentityId> {
    let found = principal_find(tx, body.service_principal_id.as_str()).await?.ok_or_else(Error::not_found)?;
    if found.of_agent {
        return Err(Error::conflict("The ServicePrincipal belongs to an Agent and cannot have a key."));
    }
    if found.namespace != body.namespace_id {
        return Err(Error::invalid_field("/namespaceId", FieldCode::InvalidValue));
    }
    Home::from_column(found.namespace).lock(tx, true).await?;
    let held = coverage::grants(&app.iam.load(tx, &found.id, None).await?);
    policy::cover(app, tx, rq, &held, "the ServicePrincipal").await?;
    Ok(found.id)
}

fn resource(key: &ServiceKey) -> Resource {
    Resource { kind: "service_key", id: key.id.to_string(), namespace: key.namespace_id.clone() }
}
