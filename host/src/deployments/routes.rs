//! The handler of deployments.

use std::time::Duration;

use occ_api::ids::RevisionId;
use tokio::time::Instant;

use super::store;
use crate::app::App;
use crate::db;
use crate::error::{Error, Result};
use crate::http::{Reply, Request};
use crate::iam::{Access, Action, Kind};

/// Distance of two looks while a client waits.
const WAIT_STEP: Duration = Duration::from_secs(1);

/// `GET /namespaces/{namespaceId}/agents/{agentId}/deployments/{deploymentId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, agent, id) = (rq.namespace()?, rq.agent()?, rq.path::<RevisionId>("deploymentId")?);
    let needs = [Access::item(Action::Read, Kind::AgentRevision, &namespace, &id)];
    app.iam.require_all(&app, &rq.caller, &needs).await?;
    let deadline = Instant::now() + rq.wait().unwrap_or_default();
    loop {
        let mut tx = db::begin(&app.db).await?;
        let scope = app.iam.decide_again(&mut tx, &rq.caller, &needs).await?;
        let deployment =
            store::deployment_get(&mut tx, &scope, &agent, &id).await?.ok_or_else(Error::not_found)?;
        tx.rollback().await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if deployment.is_settled() || left.is_zero() || app.shutdown.begun() {
            return Reply::ok(&deployment.to_wire(|code| app.drivers.declared_text(code).map(str::to_owned)));
        }
        app.shutdown.pause(left.min(WAIT_STEP)).await;
    }
}
