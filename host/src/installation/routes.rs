//! Handlers of the Installation.

use super::store;
use crate::app::App;
use crate::error::{Error, Result};
use crate::http::{Reply, Request};
use crate::iam::{Access, Action};

/// `GET /installation`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    app.iam.require(&app, &rq.caller, &Access::installation(Action::Read, &app.installation)).await?;
    let mut conn = app.db.acquire().await?;
    Reply::ok(&store::installation_get(&mut conn).await?.ok_or_else(Error::not_found)?)
}
