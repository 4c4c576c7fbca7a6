//! Handlers of plugins.

use super::model;
use crate::app::App;
use crate::error::{Error, Result};
use crate::http::{Reply, Request};
use crate::iam::{Access, Action};

/// `GET /plugins`, ordered by id.
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let page = rq.always_page()?;
    app.iam.require(&app, &rq.caller, &Access::installation(Action::Administer, &app.installation)).await?;
    let after = page.after_id();
    let shown = app
        .drivers
        .plugins()
        .into_iter()
        .filter(|info| after.is_none_or(|after| info.identity.id.as_str() > after));
    let rows = shown.take(usize::try_from(page.fetch()).unwrap_or(usize::MAX)).collect();
    page.reply(rows, |info| ("0".to_owned(), info.identity.id.clone()), model::wire)
}

/// `GET /plugins/{pluginId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    app.iam.require(&app, &rq.caller, &Access::installation(Action::Administer, &app.installation)).await?;
    let id = rq.path::<String>("pluginId")?;
    let info =
        app.drivers.plugins().into_iter().find(|info| info.identity.id == id).ok_or_else(Error::not_found)?;
    Reply::ok(&model::wire(info))
}
