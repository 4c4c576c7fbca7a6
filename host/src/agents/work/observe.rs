//! Looks at an active revision and puts it in order.
//!
//! **Nothing here moves the pointer, retires the running revision, or fails a deployment.**

use std::time::Duration;

use occ_api::ids::RevisionId;
use occ_api::types::DesiredRuntimeState;
use occ_queue::{Cadence, Code, Pass, Verdict};
use serde_json::json;

use super::{Target, find, rest};
use crate::agents::Agent;
use crate::db;
use crate::drivers::types::{Observation, Phase, Revision};
use crate::error::Error;
use crate::revisions;
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault, Subject};
use crate::worker::store::{self, Seen};
use crate::worker::{Context, guard};

/// Distance of two looks while a repair converges.
const REPAIR_LOOK: Duration = Duration::from_secs(5);

/// `agent.observe`
pub(crate) async fn observe(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = find(cx, pass).await?;
    let Some(agent) = target.agent.as_ref().filter(|agent| !agent.is_deleting()) else {
        return Ok(Verdict::complete("SUPERSEDED_TARGET"));
    };
    let Some(active) =
        agent.active_revision.as_ref().filter(|_| agent.desired == DesiredRuntimeState::Running)
    else {
        return idle(cx, pass, &target, agent).await;
    };
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    let stored = revisions::get(&mut conn, &target.scope, &target.id, active).await?;
    guard::principal(cx, pass, &mut conn, &target.namespace.id, &target.id, &stored.snapshot).await?;
    drop(conn);
    let revision = stored.to_driver(&target.namespace, revisions::work::locations(&stored.snapshot));
    let subject = Subject { revision: Some(active), ..target.subject() };
    let seen = effect::look(cx, pass, subject, &revision).await?;
    let finding = finding_of(&seen);
    note(cx, &target, active, &seen, &finding).await?;
    match finding {
        None => Ok(rest(cx, Code::new("OBSERVED_IN_ORDER"))),
        Some(_) => repair(cx, pass, subject, &revision).await,
    }
}

/// An Agent that shall not run: what runs nevertheless is stopped, and nobody looks any more.
async fn idle(cx: &Context, pass: &Pass, target: &Target, agent: &Agent) -> Result<Verdict, Fault> {
    if agent.desired == DesiredRuntimeState::Stopped {
        let subject = target.driver(agent);
        let run = || effect::change(cx, pass, target.subject(), Operation::Stop(&subject));
        effect::step(cx, pass, "stop", run).await?;
    }
    Ok(Verdict::complete("OBSERVED_IN_ORDER"))
}

/// Prepares and activates the active revision again.
async fn repair(
    cx: &Context,
    pass: &Pass,
    subject: Subject<'_>,
    revision: &Revision,
) -> Result<Verdict, Fault> {
    let prepare = || effect::change(cx, pass, subject, Operation::Prepare(revision, None));
    let activate = || effect::change(cx, pass, subject, Operation::Activate(revision));
    let done = match effect::step(cx, pass, "prepare", prepare).await {
        Ok(()) => effect::step(cx, pass, "activate", activate).await,
        Err(fault) => Err(fault),
    };
    match done {
        Ok(()) => Ok(rest(cx, Code::new("DRIFT_REPAIRED"))),
        Err(Fault::Wait { code, outage: false, .. }) => {
            Err(Fault::Wait { code, outage: false, cadence: Cadence::After(REPAIR_LOOK) })
        }
        Err(Fault::Permanent { code, .. }) => Ok(rest(cx, code)),
        Err(other) => Err(other),
    }
}

/// The first thing that is not as the plan wants it.
fn finding_of(seen: &Observation) -> Option<String> {
    if let Some(held) = &seen.held_failure {
        return Some(held.code.clone());
    }
    match (seen.drift.first(), seen.phase) {
        (Some(drift), _) => Some(drift.code.clone()),
        (None, Phase::Ready) => None,
        (None, Phase::Absent) => Some("RUNTIME_ABSENT".to_owned()),
        (None, Phase::Starting | Phase::Degraded | Phase::Stopping) => Some("RUNTIME_NOT_READY".to_owned()),
    }
}

/// Keeps what was seen, for whoever looks at the Agent.
async fn note(
    cx: &Context,
    target: &Target,
    active: &RevisionId,
    seen: &Observation,
    finding: &Option<String>,
) -> Result<(), Fault> {
    let detail = (!seen.drift.is_empty()).then(|| {
        let codes: Vec<&str> = seen.drift.iter().map(|drift| drift.code.as_str()).collect();
        json!({ "drift": codes })
    });
    let code = finding.as_deref().unwrap_or("OBSERVED_IN_ORDER");
    let put = Seen { revision: active, ready: seen.phase == Phase::Ready, code, detail };
    let mut tx = db::begin(&cx.db).await?;
    let before = store::observation_put(&mut tx, &target.scope, &target.id, &put, cx.clock.now()).await?;
    tx.commit().await?;
    if before.as_deref() != Some(code) {
        tracing::info!(event = "agent.observed", agent = %target.id, code);
    }
    Ok(())
}
