//! Automatic rollback: back to what served before, when a published revision does not activate.
//!
//! | Step | Does |
//! | --- | --- |
//! | `revert` | one transaction: pointer to the predecessor, phase `rollback`, cause, attempts and deadline anew |
//! | `prepare-previous` | the predecessor again, from its own frozen snapshot |
//! | `activate-previous` | makes it serve |
//! | `retire-failed` | removes what failed |
//! | `settle` | the row fails with `ACTIVATION_ROLLED_BACK`, the next look is armed |
//!
//! - **Service first**: a newer admitted revision does not cancel the branch; a stop or a deletion does.
//! - **Never back to a revision that was not activated**: `publish` recorded where to go.

use occ_api::ids::RevisionId;
use occ_api::types::{DesiredRuntimeState, ExecutionMode, RollbackPolicy};
use occ_queue::{Cadence, Code, Pass, Verdict};
use serde_json::json;

use super::target::Target;
use super::{FIRST_LOOK, locations};
use crate::agents;
use crate::db;
use crate::error::Error;
use crate::revisions;
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault};
use crate::worker::{Context, evidence, guard};

const REVERT: &str = "revert";
const PREPARE: &str = "prepare-previous";
const ACTIVATE: &str = "activate-previous";
const RETIRE: &str = "retire-failed";
const SETTLE: &str = "settle";
const STEPS: [&str; 4] = [REVERT, PREPARE, ACTIVATE, RETIRE];

/// Is there somewhere to go back to, and does the Agent want it?
pub(super) fn applies(pass: &Pass, target: &Target) -> bool {
    target.agent.draft.rollback_policy == RollbackPolicy::Automatic
        && target.agent.desired == DesiredRuntimeState::Running
        && destination(pass, target).is_some()
}

/// The predecessor: recorded by `publish`; before it only the two-process mode has taken it out of service.
fn destination(pass: &Pass, target: &Target) -> Option<RevisionId> {
    if target.is_active() {
        return target.previous_of_own(pass);
    }
    let dedicated =
        target.revision.snapshot.harness().mode == revisions::model::mode_of(ExecutionMode::Dedicated);
    if dedicated && pass.step().is_some() { target.agent.active_revision.clone() } else { None }
}

/// Turns the row round. What follows is the next pass's, under the same row.
pub(super) async fn turn(cx: &Context, pass: &Pass, target: &Target, cause: &Code) -> Result<Verdict, Fault> {
    effect::step(cx, pass, REVERT, || revert(cx, pass, target, cause)).await?;
    Ok(Verdict::Defer { code: cause.clone(), cadence: Cadence::Now, outage: false })
}

async fn revert(cx: &Context, pass: &Pass, target: &Target, cause: &Code) -> Result<(), Fault> {
    let Some(previous) = destination(pass, target) else {
        return Err(Fault::permanent("ACTIVATION_ROLLBACK_FAILED"));
    };
    let mut tx = db::begin(&cx.db).await?;
    let agent = agents::lock(&mut tx, &target.scope, &target.agent.id).await?;
    pass.guard_in(&mut tx).await?;
    if pass.step().as_deref() == Some(REVERT) {
        return Ok(());
    }
    if agent.is_deleting() || agent.desired == DesiredRuntimeState::Stopped {
        return Err(Fault::complete("REVISION_STOPPED"));
    }
    if agent.active_revision != target.agent.active_revision {
        return Err(Fault::retry("ACTIVE_REVISION_CHANGED"));
    }
    if agent.draft.rollback_policy != RollbackPolicy::Automatic {
        return Err(Fault::retry("ACTIVE_REVISION_CHANGED"));
    }
    if target.is_active() {
        let (from, at) = (agent.active_revision.as_ref(), cx.clock.now());
        agents::pointer_move(&mut tx, &target.scope, &agent.id, from, Some(&previous), at).await?;
    }
    pass.turn_in(&mut tx, REVERT, Some(previous.as_str()), cause, cx.convergence).await?;
    evidence::rolled_back(cx, &mut tx, pass.claim(), cause, &previous).await?;
    tx.commit().await?;
    Ok(())
}

/// One pass of the branch.
pub(super) async fn run(cx: &Context, pass: &Pass, target: &Target) -> Result<Verdict, Fault> {
    let Some(previous) = target.previous_of_own(pass) else {
        return failed(cx, pass, target, Code::new("ACTIVATION_ROLLBACK_FAILED")).await;
    };
    match restore(cx, pass, target, &previous).await {
        Err(Fault::Permanent { .. }) => {
            failed(cx, pass, target, Code::new("ACTIVATION_ROLLBACK_FAILED")).await
        }
        other => other,
    }
}

async fn restore(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    previous: &RevisionId,
) -> Result<Verdict, Fault> {
    still_wanted(target)?;
    // A newer revision has published meanwhile: what it left of the failed one is all that is ours.
    let moved_on = target.agent.active_revision.as_ref() != Some(previous);
    if !moved_on {
        let mut conn = cx.db.acquire().await.map_err(Error::from)?;
        let stored = revisions::get(&mut conn, &target.scope, &target.agent.id, previous).await?;
        guard::principal(cx, pass, &mut conn, &target.namespace.id, &target.agent.id, &stored.snapshot)
            .await?;
        drop(conn);
        let revision = stored.to_driver(&target.namespace, locations(&stored.snapshot));
        let (subject, own) = (target.subject(), target.revision.reference());
        let run = || effect::change(cx, pass, subject, Operation::Prepare(&revision, Some(&own)));
        effect::step(cx, pass, PREPARE, run).await?;
        advance(cx, pass, target, PREPARE).await?;
        let run = || effect::change(cx, pass, subject, Operation::Activate(&revision));
        effect::step(cx, pass, ACTIVATE, run).await?;
        advance(cx, pass, target, ACTIVATE).await?;
    }
    let serving = target.agent.active_revision.clone().unwrap_or_else(|| previous.clone());
    let (agent, gone) = (target.driver_agent(), target.all_but(&serving));
    let reference = target.reference_of(&serving);
    let run =
        || effect::change(cx, pass, target.subject(), Operation::Retire(&agent, &gone, reference.as_ref()));
    effect::step(cx, pass, RETIRE, run).await?;
    advance(cx, pass, target, RETIRE).await?;
    effect::step(cx, pass, SETTLE, || async { Ok(()) }).await?;
    end(cx, pass, target, Code::new("ACTIVATION_ROLLED_BACK"), Some(previous)).await
}

fn still_wanted(target: &Target) -> Result<(), Fault> {
    if target.agent.is_deleting() || target.agent.desired == DesiredRuntimeState::Stopped {
        return Err(Fault::complete("REVISION_STOPPED"));
    }
    Ok(())
}

/// Commits a step; only a stop or a deletion ends the branch between two.
async fn advance(cx: &Context, pass: &Pass, target: &Target, step: &'static str) -> Result<(), Fault> {
    let rank = |step: Option<&str>| STEPS.iter().position(|known| Some(*known) == step);
    if rank(pass.step().as_deref()) < rank(Some(step)) {
        pass.advance(step).await?;
    }
    if pass.interrupted() {
        still_wanted(&target.again(cx).await?)?;
    }
    Ok(())
}

/// The branch itself failed: the pointer stays on the predecessor, and the drift timer goes on restoring it.
pub(super) async fn failed(cx: &Context, pass: &Pass, target: &Target, code: Code) -> Result<Verdict, Fault> {
    end(cx, pass, target, code, None).await
}

async fn end(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    code: Code,
    restored: Option<&RevisionId>,
) -> Result<Verdict, Fault> {
    let mut tx = db::begin(&cx.db).await?;
    let agent = agents::lock(&mut tx, &target.scope, &target.agent.id).await?;
    pass.guard_in(&mut tx).await?;
    let cause = pass.claim().cause.as_deref();
    let mut result = json!({ "cause": cause });
    if let (Some(restored), Some(members)) = (restored, result.as_object_mut()) {
        members.insert("restoredRevisionId".to_owned(), json!(restored.as_str()));
    }
    let (done, transition) = pass.finish_in(&mut tx, Verdict::Fail { code, result: Some(result) }).await?;
    evidence::write(cx, &mut tx, &transition, restored.map(|id| id.as_str())).await?;
    if agent.active_revision.is_some() {
        let look = agents::work::observe_work(&target.namespace.id, &agent.id);
        occ_queue::arm_upkeep(&mut tx, &look, FIRST_LOOK).await?;
    }
    tx.commit().await?;
    Ok(Verdict::Done(done))
}
