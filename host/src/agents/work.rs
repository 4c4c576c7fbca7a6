//! Work on Agents.
//!
//! - `agent.stop`: authorise → `stop` until nothing runs → pointer compared and cleared.
//! - `agent.delete`: authorise → `stop` → `clear` (pointer) → `destroy` (volumes last) → `credentials`
//!   (none left) → `finalize`: rows, principal, keys, bindings, work and lane, in one transaction.
//! - `agent.observe`: look → in order, or `repair` (prepare and activate of the *active* revision).
//!
//! **A stop keeps volumes, credentials and revisions, and never clears a pointer that a later deploy
//! moved.** A stop takes as long as the grace of what runs: it is a chain of short passes.

mod observe;

use std::time::Duration;

use occ_api::ids::{AgentId, IdentityId, NamespaceId};
use occ_api::types::DesiredRuntimeState;
use occ_queue::{Cadence, Code, Done, NewWork, Owner, Pass, Verdict};

pub(crate) use observe::observe;

use super::Agent;
use crate::db::{self, PgConnection};
use crate::drivers::types as driver;
use crate::error::Error;
use crate::iam::{Access, Action, Iam, Kind, Scope};
use crate::namespaces::{self, Namespace};
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault, Subject};
use crate::worker::{Context, evidence, guard, store};

/// Stops what runs.
pub(crate) const STOP: &str = "agent.stop";
/// Removes the Agent.
pub(crate) const DELETE: &str = "agent.delete";
/// Looks at what runs.
pub(crate) const OBSERVE: &str = "agent.observe";
/// Distance of two looks, ± 20 %.
pub(crate) const OBSERVE_EVERY: Duration = Duration::from_secs(300);

/// What a pass about an Agent begins with.
pub(super) struct Target {
    pub(super) id: AgentId,
    pub(super) scope: Scope,
    pub(super) namespace: Namespace,
    /// None once the deletion is done.
    pub(super) agent: Option<Agent>,
}

impl Target {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject { namespace: &self.namespace.id, agent: Some(&self.id), revision: None }
    }

    pub(super) fn driver(&self, agent: &Agent) -> driver::Agent {
        driver::Agent {
            tenant: self.namespace.to_driver(),
            agent_id: agent.id.to_string(),
            service_principal_id: agent.principal.to_string(),
        }
    }
}

/// The row that looks at an Agent; one for all time, armed again and again.
pub(crate) fn observe_work(namespace: &NamespaceId, agent: &AgentId) -> NewWork {
    let owner = Owner::agent(namespace.as_str(), agent.as_str());
    NewWork::upkeep(format!("agent:{agent}:observe"), OBSERVE, owner, "system")
}

/// Upkeep rests and comes again.
pub(crate) fn rest(cx: &Context, code: Code) -> Verdict {
    let spread = 0.8 + 0.4 * cx.ids.fraction();
    Verdict::Complete { code, result: None, again_in: Some(OBSERVE_EVERY.mul_f64(spread)) }
}

/// `agent.stop`
pub(crate) async fn stop(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = find(cx, pass).await?;
    let Some(agent) = &target.agent else {
        return Ok(Verdict::complete("AGENT_ALREADY_STOPPED"));
    };
    if agent.desired == DesiredRuntimeState::Running {
        return Ok(Verdict::complete("STOP_SUPERSEDED"));
    }
    authorise(cx, pass, &target, Action::Operate, "openclaw.agents.stop").await?;
    stop_all(cx, pass, &target, agent).await?;

    let mut tx = db::begin(&cx.db).await?;
    let now = super::lock(&mut tx, &target.scope, &target.id).await?;
    pass.guard_in(&mut tx).await?;
    let code = match (now.desired, &now.active_revision) {
        (DesiredRuntimeState::Running, _) => "STOP_SUPERSEDED",
        (_, None) => "AGENT_ALREADY_STOPPED",
        (_, Some(_)) if now.active_revision != agent.active_revision => {
            return Err(Fault::step_aside("STOP_INCOMPLETE"));
        }
        (_, Some(revision)) => {
            let (at, from) = (cx.clock.now(), Some(revision));
            super::pointer_move(&mut tx, &target.scope, &target.id, from, None, at).await?;
            "AGENT_STOPPED"
        }
    };
    let (done, transition) = pass.finish_in(&mut tx, Verdict::complete(code)).await?;
    let left = agent.active_revision.as_ref().map(|id| id.as_str());
    evidence::write(cx, &mut tx, &transition, left).await?;
    tx.commit().await?;
    Ok(Verdict::Done(done))
}

/// `agent.delete`
pub(crate) async fn delete(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = find(cx, pass).await?;
    let Some(agent) = &target.agent else {
        return Ok(Verdict::complete("AGENT_DELETED"));
    };
    if !agent.is_deleting() {
        return Ok(Verdict::fail("INVALID_TARGET"));
    }
    authorise(cx, pass, &target, Action::Delete, "openclaw.agents.delete").await?;
    if pass.step().as_deref() != Some("destroy") {
        stop_all(cx, pass, &target, agent).await?;
        effect::step(cx, pass, "clear", || clear(cx, pass, &target)).await?;
        let subject = target.driver(agent);
        let run = || effect::change(cx, pass, target.subject(), Operation::Destroy(&subject));
        effect::step(cx, pass, "destroy", run)
            .await
            .map_err(|fault| waiting_as(fault, "DELETION_INCOMPLETE"))?;
        pass.advance("destroy").await?;
    }
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    if store::credentials_left(&mut conn, &target.scope, &target.id).await? > 0 {
        return Err(Fault::wait("CREDENTIALS_PENDING"));
    }
    drop(conn);
    effect::step(cx, pass, "finalize", || finalize(cx, pass, &target)).await
}

/// Removes every row of the Agent; the row of this work goes with them. Its absence afterwards is the proof,
/// so running it again after a lost answer finds nothing to do.
async fn finalize(cx: &Context, pass: &Pass, target: &Target) -> Result<Verdict, Fault> {
    let mut tx = db::begin(&cx.db).await?;
    if super::store::agent_lock(&mut tx, &target.scope, &target.id).await?.is_none() {
        return Ok(Verdict::Done(Done::removed("AGENT_DELETED")));
    }
    pass.guard_in(&mut tx).await?;
    if !store::agent_finalize(&mut tx, &target.scope, &target.id, pass.claim()).await? {
        return Err(Fault::wait("DELETION_INCOMPLETE"));
    }
    tx.commit().await?;
    Ok(Verdict::Done(Done::removed("AGENT_DELETED")))
}

/// Stops everything of the Agent, candidates included.
async fn stop_all(cx: &Context, pass: &Pass, target: &Target, agent: &Agent) -> Result<(), Fault> {
    let subject = target.driver(agent);
    let run = || effect::change(cx, pass, target.subject(), Operation::Stop(&subject));
    effect::step(cx, pass, "stop", run).await.map_err(|fault| waiting_as(fault, "STOP_INCOMPLETE"))?;
    pass.advance("stop").await?;
    Ok(())
}

/// Clears the pointer of an Agent that is being deleted.
async fn clear(cx: &Context, pass: &Pass, target: &Target) -> Result<(), Fault> {
    let mut tx = db::begin(&cx.db).await?;
    let now = super::lock(&mut tx, &target.scope, &target.id).await?;
    pass.guard_in(&mut tx).await?;
    if let Some(revision) = &now.active_revision {
        super::pointer_move(&mut tx, &target.scope, &target.id, Some(revision), None, cx.clock.now()).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Waiting has one name per operation; an outage keeps its own.
fn waiting_as(fault: Fault, name: &'static str) -> Fault {
    match fault {
        Fault::Wait { outage: false, cadence, .. } => {
            Fault::Wait { code: Code::new(name), outage: false, cadence }
        }
        // Giving up would leave something running that nobody watches.
        Fault::Permanent { code, .. } => {
            Fault::Wait { code, outage: false, cadence: Cadence::After(Duration::from_secs(30)) }
        }
        other => other,
    }
}

async fn authorise(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    action: Action,
    name: &'static str,
) -> Result<(), Fault> {
    let access = [Access::item(action, Kind::Agent, &target.namespace.id, &target.id)];
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    guard::actor(cx, pass, &mut conn, name, &access).await
}

pub(super) async fn find(cx: &Context, pass: &Pass) -> Result<Target, Fault> {
    let owner = &pass.claim().owner;
    let invalid = |_| Fault::permanent("INVALID_TARGET");
    let namespace: NamespaceId = db::id(&owner.namespace_id).map_err(invalid)?;
    let id: AgentId = db::id(owner.agent_id.as_deref().unwrap_or_default()).map_err(invalid)?;
    // Upkeep has no identity; nothing is decided by the name that its statements carry.
    let actor = db::id(&pass.claim().actor_id).unwrap_or_else(|_| IdentityId::from_uuid(cx.ids.uuid()));
    let scope = Iam::system_scope(&actor, &namespace);
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    let namespace = namespaces::get(&mut conn, &namespace).await?;
    let agent = read(&mut conn, &scope, &id).await?;
    Ok(Target { id, scope, namespace, agent })
}

async fn read(conn: &mut PgConnection, scope: &Scope, id: &AgentId) -> Result<Option<Agent>, Error> {
    super::store::agent_get(conn, scope, id).await
}
