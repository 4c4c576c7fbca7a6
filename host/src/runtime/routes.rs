//! Handlers of runtime and logs.

use std::time::Duration;

use occ_api::error::ErrorCode;
use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use serde::Serialize;

use super::cursor::Cursor;
use super::view::{self, View};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db;
use crate::error::{Error, Result};
use crate::http::{Reply, Request};
use crate::iam::{Access, Action, Kind, Scope, decide};
use crate::revisions::{self, Revision};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Viewed<'a> {
    revision_id: &'a RevisionId,
}

/// Time for one read of logs.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// `GET …/deployments/{deploymentId}/runtime`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, agent, id) = ids(&rq)?;
    let needs = [
        Access::item(Action::Operate, Kind::Agent, &namespace, &agent),
        Access::item(Action::Read, Kind::Agent, &namespace, &agent),
        Access::item(Action::Read, Kind::AgentRevision, &namespace, &id),
    ];
    let scope = app.iam.require_all(&app, &rq.caller, &needs).await?;
    let revision = revision(&app, &scope, &agent, &id).await?;
    let instances = view::instances(&app, &revision).await?;
    Reply::ok(&instances.into_wire(&revision.id, app.clock.now()))
}

/// `GET …/deployments/{deploymentId}/runtime/logs`
pub(crate) async fn logs(app: App, rq: Request) -> Result<Reply> {
    let (namespace, agent, id) = ids(&rq)?;
    let scope = demand_log_access(&app, &rq, &namespace, &agent).await?;
    let view = View::of(&rq)?;
    let cursor = match rq.query("cursor") {
        None => None,
        Some(text) => Some(
            Cursor::open(text, &app.auth_key)
                .filter(|cursor| cursor.fits(rq.caller.identity.as_str(), id.as_str(), &view.text()))
                .ok_or_else(|| {
                    Error::new(ErrorCode::RuntimeLogsCursorInvalid, "The cursor is not of this view.")
                })?,
        ),
    };
    let revision = revision(&app, &scope, &agent, &id).await?;
    let now = app.clock.now();
    app.log_reads.spend(rq.caller.identity.as_str(), agent.as_str(), now).map_err(|wait| {
        let secs = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
        Error::new(ErrorCode::RuntimeLogsRateLimited, "Too many reads of this Agent's logs.")
            .with_retry_after(secs)
    })?;
    if cursor.is_none() {
        record_view(&app, &rq, &scope, &agent, &id, view.download).await?;
    }
    let read = tokio::time::timeout(READ_TIMEOUT, view::read(&app, &rq, &revision, &view, cursor.as_ref()));
    let reading = read.await.map_err(|_| {
        Error::new(ErrorCode::RuntimeLogsTimeout, "The logs could not be read in 10 seconds.")
    })??;
    if view.download {
        let name = format!("{agent}-{id}-{}.log", view.source);
        return Ok(Reply::attachment("text/plain; charset=utf-8", name, reading.text().into_bytes()));
    }
    Reply::ok(&reading.to_wire(&id, &view, now))
}

fn ids(rq: &Request) -> Result<(NamespaceId, AgentId, RevisionId)> {
    Ok((rq.namespace()?, rq.agent()?, rq.path("deploymentId")?))
}

async fn revision(app: &App, scope: &Scope, agent: &AgentId, id: &RevisionId) -> Result<Revision> {
    let mut conn = app.db.acquire().await?;
    revisions::get(&mut conn, scope, agent, id).await
}

/// (read_logs or administer) and read; a Restriction on read_logs refuses administrators too.
async fn demand_log_access(
    app: &App,
    rq: &Request,
    namespace: &NamespaceId,
    agent: &AgentId,
) -> Result<Scope> {
    let on_agent = |action| Access::item(action, Kind::Agent, namespace, agent);
    let rows = app.iam.rows(app, &rq.caller, Some(namespace)).await?;
    let logs = decide::decide(&rows, &on_agent(Action::ReadLogs));
    let first = if logs.allowed || !logs.evidence.restrictions.is_empty() {
        Action::ReadLogs
    } else {
        Action::Administer
    };
    app.iam.require_all(app, &rq.caller, &[on_agent(first), on_agent(Action::Read)]).await
}

async fn record_view(
    app: &App,
    rq: &Request,
    scope: &Scope,
    agent: &AgentId,
    id: &RevisionId,
    download: bool,
) -> Result<()> {
    let action =
        if download { "openclaw.agents.runtime_logs.download" } else { "openclaw.agents.runtime_logs.view" };
    let write = async {
        let mut tx = db::begin(&app.db).await?;
        let resource = Resource::in_namespace("agent", agent, scope.namespace()?);
        let event =
            Event::access(&rq.caller, scope, action, resource).details(&Viewed { revision_id: id })?;
        audit::record(&mut tx, app, event).await?;
        tx.commit().await
    };
    write.await.map_err(|error| {
        Error::new(
            ErrorCode::RuntimeLogsAuditUnavailable,
            "The view could not be recorded, so nothing is shown.",
        )
        .caused_by(error)
    })
}
