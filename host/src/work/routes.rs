//! Handlers of work.

use occ_api::types::{AgentStatus, DesiredRuntimeState, NamespaceStatus};

use super::model::{self, FAILED, ROLLED_BACK, Row, Sight, Task};
use super::store::{self, Filter};
use crate::agents;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection, Tx};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::decide::decide;
use crate::iam::{Access, Action, Iam, Kind, Scope};
use crate::{namespaces, revisions};

/// `GET /work`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let page = rq.always_page()?;
    let filter = Filter {
        state: rq.query("state"),
        kind: rq.query("kind"),
        namespace_id: rq.query("namespaceId"),
        agent_id: rq.query("agentId"),
    };
    let namespace = filter.namespace_id.map(db::id).transpose()?;
    let seen = |kind| app.iam.visible(&app, &rq.caller, Action::Read, kind, namespace.as_ref());
    let sight = Sight {
        namespaces: seen(Kind::Namespace).await?,
        agents: seen(Kind::Agent).await?,
        revisions: seen(Kind::AgentRevision).await?,
    };
    let after = (page.after_time()?, page.after_id());
    let mut conn = app.db.acquire().await?;
    let rows = store::work_page(&mut conn, &filter, &sight, after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.key.clone()), |row| row.to_wire())
}

/// `GET /work/{key}`; 404 also without the grant, because the key had to be resolved first.
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    Reply::ok(&seen(&app, &rq).await?.to_wire())
}

/// `POST /work/{key}/retry`
pub(crate) async fn retry(app: App, rq: Request) -> Result<Reply> {
    let row = seen(&app, &rq).await?;
    let task = row.task().ok_or_else(|| Error::conflict("Work of this kind cannot be retried here."))?;
    let permission = row.permission(task, &app.installation);
    app.iam.require(&app, &rq.caller, &permission).await?;
    let once = match rq.once(&app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(once) => once,
    };
    let mut tx = db::begin(&app.db).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, std::slice::from_ref(&permission)).await?;
    demand_open(&app, &rq, &mut tx, &row, task).await?;
    requeue(&app, &rq, &mut tx, &scope, &row, task).await?;
    let now = store::work_find(&mut tx, &row.key).await?.ok_or_else(Error::not_found)?;
    let reply = Reply::accepted(&now.to_wire())?;
    once.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    app.hint(row.agent.as_ref().map_or(row.namespace.as_str(), |agent| agent.as_str()));
    Ok(reply)
}

/// The work of the path, when the caller may read its owner.
async fn seen(app: &App, rq: &Request) -> Result<Row> {
    let key = rq.path::<String>("key")?;
    let mut conn = app.db.acquire().await?;
    let row = store::work_find(&mut conn, &key).await?.ok_or_else(Error::not_found)?;
    if rq.caller.key_scope.as_ref().is_some_and(|scope| *scope != row.namespace) {
        return Err(Error::not_found());
    }
    let rows = app.iam.load(&mut conn, &rq.caller.identity, Some(&row.namespace)).await?;
    if decide(&rows, &row.sight()).allowed { Ok(row) } else { Err(Error::not_found()) }
}

/// Row 13: the work failed for good, and what it was for is still wanted. Locks the owner before the lane.
async fn demand_open(app: &App, rq: &Request, tx: &mut Tx, row: &Row, task: Task) -> Result<()> {
    let namespace = namespaces::lock(tx, &row.namespace).await?.ok_or_else(Error::not_found)?;
    let (ready, moved_on) = match task {
        Task::NamespaceEnsure => {
            (namespace.status == NamespaceStatus::Failed, "The Namespace is not failed any more.")
        }
        Task::NamespaceDelete => {
            (namespace.status == NamespaceStatus::Deleting, "The Namespace is not being deleted.")
        }
        Task::AgentStop | Task::AgentDelete | Task::RevisionReconcile => {
            agent_still_wants(app, rq, tx, row, task).await?
        }
        Task::Upkeep => (true, ""),
    };
    if row.state != FAILED {
        return Err(Error::conflict(format!(
            "The work is {}: only permanently failed work is retried.",
            row.state
        )));
    }
    if ready { Ok(()) } else { Err(Error::conflict(moved_on)) }
}

async fn agent_still_wants(
    app: &App,
    rq: &Request,
    tx: &mut Tx,
    row: &Row,
    task: Task,
) -> Result<(bool, &'static str)> {
    let id = row.agent.as_ref().ok_or_else(|| Error::internal("work of an Agent names none"))?;
    let scope = Iam::system_scope(&rq.caller.identity, &row.namespace);
    let agent = agents::lock(tx, &scope, id).await?;
    if task != Task::RevisionReconcile {
        let open = match task {
            Task::AgentStop => agent.desired == DesiredRuntimeState::Stopped,
            _ => agent.status == AgentStatus::Deleting,
        };
        return Ok((open, "The Agent moved on since the work failed."));
    }
    if row.code.as_deref() == Some(ROLLED_BACK) {
        return Ok((false, "The revision was rolled back: deploy or roll back instead."));
    }
    let revision = row.revision.as_ref().ok_or_else(|| Error::internal("work of a revision names none"))?;
    let revision = revisions::get(tx, &scope, id, revision).await?;
    if agent.desired != DesiredRuntimeState::Running || revision.number != agent.last_revision_number {
        return Ok((false, "The Agent was stopped or deployed again since the work failed."));
    }
    let secrets = revision.snapshot.secret_ids();
    let needs = model::freeze_accesses(&row.namespace, &revision.snapshot.configuration.id, &secrets);
    app.iam.decide_again(tx, &rq.caller, &needs).await?;
    for secret in &secrets {
        let access = Access::item(Action::Operate, Kind::Secret, &row.namespace, secret);
        let decision = app.iam.holds(tx, &agent.principal, &access).await?;
        if !decision.allowed {
            let message = format!("The Agent's principal {} lacks operate on {secret}.", agent.principal);
            return Err(app.iam.refuse_naming(&rq.caller, &access, decision, &message));
        }
    }
    Ok((true, ""))
}

/// Queues the row again: for its actor, or for another one that takes a deletion over.
async fn requeue(app: &App, rq: &Request, tx: &mut Tx, scope: &Scope, row: &Row, task: Task) -> Result<()> {
    if keeps_actor(app, rq, tx, row, task).await? {
        if !occ_queue::reset(tx, &row.key, Some(app.convergence)).await? {
            return Err(Error::conflict("The work moved on: only permanently failed work is retried."));
        }
        let event = Event::mutation(&rq.caller, scope, "openclaw.work.retry", resource(row)).work(&row.key);
        audit::record(tx, app, event).await?;
    } else if !store::work_take_over(tx, &row.key, &rq.caller.identity, rq.id.as_str()).await? {
        return Err(Error::conflict("The work moved on: only permanently failed work is retried."));
    }
    if task == Task::NamespaceEnsure {
        let scope = Iam::system_scope(&rq.caller.identity, &row.namespace);
        namespaces::status_set(tx, &scope, NamespaceStatus::Provisioning, app.clock.now()).await?;
    }
    Ok(())
}

/// The initiating actor keeps its work while it holds the right; a deletion whose actor lost it is taken over.
async fn keeps_actor(app: &App, rq: &Request, tx: &mut PgConnection, row: &Row, task: Task) -> Result<bool> {
    let Some(actor) = row.actor.as_ref().filter(|_| task != Task::Upkeep) else {
        return Ok(true);
    };
    if *actor == rq.caller.identity {
        return Ok(true);
    }
    let still_holds = app.iam.holds(tx, actor, &row.permission(task, &app.installation)).await?.allowed;
    match task {
        Task::NamespaceDelete | Task::AgentDelete if !still_holds => Ok(false),
        Task::NamespaceDelete | Task::AgentDelete => {
            Err(Error::conflict("Another actor holds the work and may retry it."))
        }
        _ => Err(Error::conflict("The work belongs to another actor: act anew instead.")),
    }
}

fn resource(row: &Row) -> Resource {
    match (&row.revision, &row.agent) {
        (Some(revision), _) => Resource::in_namespace("agent_revision", revision, &row.namespace),
        (None, Some(agent)) => Resource::in_namespace("agent", agent, &row.namespace),
        (None, None) => Resource::in_namespace("namespace", &row.namespace, &row.namespace),
    }
}
