//! The writing half of a freeze: generated credentials, then the one transaction.

use occ_api::ids::RevisionId;
use occ_queue::{NewWork, Owner};
use serde::Serialize;

use super::freeze::{self, Ask, Decided};
use super::model::{self, Revision};
use super::store;
use crate::agents::{self, Agent};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::configurations;
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::{Reply, Request, Token};
use crate::iam::{Access, Action, Kind, Scope};
use crate::{namespaces, secrets};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    revision_id: &'a RevisionId,
    revision: u64,
    configuration_id: String,
    configuration_generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback_of: Option<&'a RevisionId>,
}

/// Makes sure that the credentials which the plan wants generated exist: once per Agent, kept
/// until it is destroyed. Making them takes read and operate on the Agent.
pub(super) async fn ensure_credentials(app: &App, rq: &Request, ask: &Ask, decided: &Decided) -> Result<()> {
    let names = model::generated_names(&decided.snapshot.plan);
    let missing = app.secrets.generated_missing(&ask.namespace, &ask.agent, &names).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let needs = [Action::Read, Action::Operate]
        .map(|action| Access::item(action, Kind::Agent, &ask.namespace, &ask.agent));
    app.iam.require_all(app, &rq.caller, &needs).await?;
    app.secrets.ensure_generated(&ask.namespace, &ask.agent, &missing).await
}

/// The one transaction: lock, compare, decide again, write. `None` when an input changed since it
/// was read.
pub(super) async fn commit(
    app: &App,
    rq: &Request,
    ask: &Ask,
    decided: &Decided,
    token: &Token,
) -> Result<Option<Reply>> {
    let mut tx = db::begin(&app.db).await?;
    namespaces::lock_ready(&mut tx, &ask.namespace).await?;
    let scope = app.iam.decide_again(&mut tx, &rq.caller, &ask.needs).await?;
    let agent = agents::lock(&mut tx, &scope, &ask.agent).await?;
    agents::demand_active(&agent)?;
    if !unchanged(&mut tx, &scope, &agent, decided).await? {
        return Ok(None);
    }
    let snapshot = &decided.snapshot;
    freeze::demand_principal(
        &mut tx,
        app,
        rq,
        &agent,
        snapshot.harness_auth.as_ref(),
        &snapshot.secret_bindings,
    )
    .await?;
    demand_room(&mut tx, &scope, &agent, app.config.limits.revisions_per_agent).await?;
    let revision = Revision {
        id: RevisionId::from_uuid(app.ids.uuid()),
        namespace: ask.namespace.clone(),
        agent: ask.agent.clone(),
        number: agent.last_revision_number + 1,
        rollback_of: decided.rollback_of.clone(),
        created_by: rq.caller.identity.clone(),
        created_at: app.clock.now(),
        snapshot: decided.snapshot.clone(),
    };
    store::revision_insert(&mut tx, &scope, &revision).await?;
    agents::running_set(&mut tx, &scope, &agent.id, revision.number, revision.created_at).await?;
    occ_queue::enqueue(&mut tx, &work_of(app, rq, &revision)).await?;
    audit::record(&mut tx, app, event_of(rq, &scope, &revision)?).await?;
    let reply = Reply::accepted(&revision.to_wire())?;
    token.complete(&mut tx, &reply).await?;
    tx.commit().await?;
    app.hint(ask.agent.as_str());
    Ok(Some(reply))
}

/// Is everything that the decision was made from still as it was read?
async fn unchanged(tx: &mut Tx, scope: &Scope, agent: &Agent, decided: &Decided) -> Result<bool> {
    if decided.rollback_of.is_none() {
        let frozen = &decided.snapshot.configuration;
        if agent.version != decided.agent.version
            || configurations::lock_shared(tx, scope, &frozen.id).await? != frozen.generation
        {
            return Ok(false);
        }
    } else if agent.active_revision != decided.agent.active_revision {
        return Ok(false);
    }
    let ids = decided.secrets.iter().map(|secret| secret.id.clone()).collect();
    let now = secrets::lock_shared(tx, scope, &ids).await?;
    Ok(now
        .iter()
        .map(|secret| &secret.backend_uid)
        .eq(decided.secrets.iter().map(|secret| &secret.backend_uid)))
}

async fn demand_room(tx: &mut Tx, scope: &Scope, agent: &Agent, revisions_max: u32) -> Result<()> {
    if store::revision_count(tx, scope, &agent.id).await? < u64::from(revisions_max) {
        return Ok(());
    }
    Err(Error::conflict(format!("The Agent holds its limit of {revisions_max} revisions.")))
}

fn work_of(app: &App, rq: &Request, revision: &Revision) -> NewWork {
    let owner = Owner::revision(revision.namespace.as_str(), revision.agent.as_str(), revision.id.as_str());
    let key = format!("agent_revision:{}:reconcile", revision.id);
    NewWork::user(key, "revision.reconcile", owner, rq.caller.identity.as_str()).deadline(app.convergence)
}

fn event_of(rq: &Request, scope: &Scope, revision: &Revision) -> Result<Event> {
    let action = match revision.rollback_of {
        Some(_) => "openclaw.agents.rollback",
        None => "openclaw.agents.deploy",
    };
    let resource = Resource::in_namespace("agent", &revision.agent, &revision.namespace);
    Event::mutation(&rq.caller, scope, action, resource).details(&Details {
        revision_id: &revision.id,
        revision: revision.number,
        configuration_id: revision.snapshot.configuration.id.to_string(),
        configuration_generation: revision.snapshot.configuration.generation,
        rollback_of: revision.rollback_of.as_ref(),
    })
}

/// The refusal after the last try.
pub(super) fn inputs_moved() -> Error {
    Error::conflict(
        "The Agent, its Configuration or its Secrets changed while the deploy was decided: try again.",
    )
}
