//! Handlers of the audit log.

use occ_api::ids::AuditId;

use super::model::to_wire;
use super::store::{self, Filter};
use super::{Event, Resource};
use crate::app::App;
use crate::db;
use crate::error::{Error, Result};
use crate::http::page::parse_time;
use crate::http::{Reply, Request, sort_time};
use crate::iam::{Access, Action};

/// `GET /audit-events`; the first page of a view is itself audited.
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let administer = Access::installation(Action::Administer, &app.installation);
    let scope = app.iam.require(&app, &rq.caller, &administer).await?;
    let page = rq.always_page()?;
    let filter = Filter {
        namespace_id: rq.query("namespaceId"),
        actor_id: rq.query("actorId"),
        action: rq.query("action"),
        kind: rq.query("kind"),
        outcome: rq.query("outcome"),
        resource_kind: rq.query("resourceKind"),
        resource_id: rq.query("resourceId"),
        from: rq.query("from").and_then(parse_time),
        to: rq.query("to").and_then(parse_time),
    };
    let after = page.after_time()?.zip(page.after_id());
    let mut tx = db::begin(&app.db).await?;
    let rows = store::events_list(&mut tx, &filter, after, page.fetch()).await?;
    if after.is_none() {
        let resource = Resource::of_installation("installation", &app.installation);
        super::record(&mut tx, &app, Event::access(&rq.caller, &scope, "openclaw.audit.read", resource))
            .await?;
    }
    tx.commit().await?;
    page.reply(rows, |row| (sort_time(row.occurred_at), row.id.clone()), |row| to_wire(&app, row))
}

/// `GET /audit-events/{auditEventId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let id = rq.path::<AuditId>("auditEventId")?;
    let administer = Access::installation(Action::Administer, &app.installation);
    app.iam.require(&app, &rq.caller, &administer).await?;
    let mut conn = app.db.acquire().await?;
    let row = store::event_get(&mut conn, &id).await?.ok_or_else(Error::not_found)?;
    Reply::ok(&to_wire(&app, row))
}
