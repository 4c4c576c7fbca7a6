//! `revision.reconcile`: the life of a deployment.
//!
//! Forward, in order; each may run twice:
//!
//! | Step | Does | Commits |
//! | --- | --- | --- |
//! | `clear-way` | two-process mode only: takes every lower revision out of service | step |
//! | `prepare` | stages this revision beside the serving one | step |
//! | `publish` | under Agent, lane and token: pointer from what the pass read to this revision | pointer, step |
//! | `activate` | makes it the one that serves | step |
//! | `retire` | removes every lower revision | step |
//! | `finish` | under Agent and token: the row ends, the first look is armed | all |
//!
//! When activation ends badly, and the Agent's policy is `automatic`, the row turns round (`rollback`).
//!
//! - **A pass that finds the pointer on its own revision starts at `prepare` again**, whatever the step
//!   says. The step answers one question: did activation ever succeed? From then on nothing rolls back.
//! - **The latest deploy wins**: a newer admitted revision supersedes one that has not published.

mod rollback;
mod target;

use std::time::Duration;

use occ_api::types::{DesiredRuntimeState, ExecutionMode};
use occ_queue::{Code, GiveUp, Pass, Phase, Verdict};
use serde_json::{Value, json};

use self::target::Target;
use super::Snapshot;
use super::model::generated_names;
use crate::agents;
use crate::db;
use crate::drivers::types::SecretLocation;
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault, result_of};
use crate::worker::{Context, evidence};

/// The kind of these rows.
pub(crate) const RECONCILE: &str = "revision.reconcile";
/// Steps in their order; the recorded one never goes back.
const STEPS: [&str; 5] = [CLEAR_WAY, PREPARE, PUBLISH, ACTIVATE, RETIRE];
const CLEAR_WAY: &str = "clear-way";
const PREPARE: &str = "prepare";
const PUBLISH: &str = "publish";
const ACTIVATE: &str = "activate";
const RETIRE: &str = "retire";
const FINISH: &str = "finish";
/// The one extra attempt of a row whose revision serves.
const RECOVERY: &str = "ACTIVE_REVISION_RECOVERY";
/// First look at an activated revision.
const FIRST_LOOK: Duration = agents::work::OBSERVE_EVERY;

/// One pass.
pub(crate) async fn reconcile(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = Target::load(cx, pass).await?;
    if pass.claim().phase == Phase::Rollback {
        return rollback::run(cx, pass, &target).await;
    }
    match forward(cx, pass, &target).await {
        Err(Fault::Permanent { code, data }) => ended_badly(cx, pass, &target, code, data).await,
        other => other,
    }
}

async fn forward(cx: &Context, pass: &Pass, target: &Target) -> Result<Verdict, Fault> {
    target.admit(cx, pass).await?;
    let revision = target.driver_revision();
    let subject = target.subject();
    if target.revision.snapshot.harness().mode == super::model::mode_of(ExecutionMode::Dedicated)
        && !target.is_active()
    {
        effect::step(cx, pass, CLEAR_WAY, || target.clear_way(cx, pass)).await?;
        advance(cx, pass, target, CLEAR_WAY).await?;
    }
    // What was published and not yet activated stands beside its predecessor still.
    let serving = if activated(pass) { None } else { target.serving(pass) };
    let run = || effect::change(cx, pass, subject, Operation::Prepare(&revision, serving.as_ref()));
    effect::step(cx, pass, PREPARE, run).await?;
    advance(cx, pass, target, PREPARE).await?;

    effect::step(cx, pass, PUBLISH, || publish(cx, pass, target)).await?;

    let run = || effect::change(cx, pass, subject, Operation::Activate(&revision));
    effect::step(cx, pass, ACTIVATE, run).await.map_err(finalizing)?;
    advance(cx, pass, target, ACTIVATE).await?;

    let (agent, gone, own) = (target.driver_agent(), target.lower(), target.revision.reference());
    let run = || effect::change(cx, pass, subject, Operation::Retire(&agent, &gone, Some(&own)));
    effect::step(cx, pass, RETIRE, run).await.map_err(retiring)?;
    if rank(pass.step().as_deref()) < rank(Some(RETIRE)) {
        pass.advance(RETIRE).await?;
    }
    effect::step(cx, pass, FINISH, || async { Ok(()) }).await?;
    finish(cx, pass, target).await
}

/// Commits a step that is further than the recorded one, and steps aside when a user's row of the
/// lane waits: it may want something else by now.
async fn advance(cx: &Context, pass: &Pass, target: &Target, step: &'static str) -> Result<(), Fault> {
    if rank(pass.step().as_deref()) < rank(Some(step)) {
        pass.advance(step).await?;
    }
    if pass.interrupted() {
        tracing::debug!(event = "revision.interrupted", revision = %target.revision.id, step, at = %cx.clock.now());
        return Err(Fault::step_aside("REVISION_INCOMPLETE"));
    }
    Ok(())
}

fn rank(step: Option<&str>) -> usize {
    STEPS.iter().position(|known| Some(*known) == step).map_or(0, |position| position + 1)
}

/// Did activation ever succeed?
fn activated(pass: &Pass) -> bool {
    rank(pass.step().as_deref()) >= rank(Some(ACTIVATE))
}

/// Moves the pointer, if it still is where this pass saw it.
async fn publish(cx: &Context, pass: &Pass, target: &Target) -> Result<(), Fault> {
    let mut tx = db::begin(&cx.db).await?;
    let agent = agents::lock(&mut tx, &target.scope, &target.agent.id).await?;
    pass.guard_in(&mut tx).await?;
    let own = &target.revision.id;
    if agent.active_revision.as_ref() == Some(own) {
        return Ok(());
    }
    if agent.is_deleting() || agent.desired == DesiredRuntimeState::Stopped {
        return Err(Fault::step_aside("REVISION_INCOMPLETE"));
    }
    if agent.principal != target.revision.snapshot.principal_id {
        return Err(Fault::permanent("INVALID_ADMITTED_REVISION"));
    }
    let from = agent.active_revision.as_ref();
    if from != target.agent.active_revision.as_ref() {
        return Err(Fault::retry("ACTIVE_REVISION_CHANGED"));
    }
    let previous = target.predecessor();
    agents::pointer_move(&mut tx, &target.scope, &agent.id, from, Some(own), cx.clock.now()).await?;
    pass.publish_in(&mut tx, PUBLISH, previous.as_ref().map(|id| id.as_str()), cx.convergence).await?;
    tx.commit().await?;
    Ok(())
}

/// Ends the row while the pointer is on this revision, and arms the first look.
async fn finish(cx: &Context, pass: &Pass, target: &Target) -> Result<Verdict, Fault> {
    let recovered = pass.claim().cause.as_deref() == Some(RECOVERY);
    let code = if recovered { "REVISION_ALREADY_ACTIVE" } else { "REVISION_ACTIVATED" };
    let mut tx = db::begin(&cx.db).await?;
    let agent = agents::lock(&mut tx, &target.scope, &target.agent.id).await?;
    pass.guard_in(&mut tx).await?;
    if agent.active_revision.as_ref() != Some(&target.revision.id) {
        return Err(Fault::retry("ACTIVE_REVISION_CHANGED"));
    }
    let (done, transition) = pass.finish_in(&mut tx, Verdict::complete(code)).await?;
    let left = pass.claim().previous_revision_id.as_deref();
    evidence::write(cx, &mut tx, &transition, left).await?;
    let look = agents::work::observe_work(&target.namespace.id, &agent.id);
    occ_queue::arm_upkeep(&mut tx, &look, FIRST_LOOK).await?;
    tx.commit().await?;
    Ok(Verdict::Done(done))
}

/// Activation waits under one name.
fn finalizing(fault: Fault) -> Fault {
    match fault {
        Fault::Wait { outage: false, cadence, .. } => {
            Fault::Wait { code: Code::new("REVISION_FINALIZATION_INCOMPLETE"), outage: false, cadence }
        }
        other => other,
    }
}

/// From `retire` on nothing rolls back and nothing fails: it waits, and the drift timer repairs.
fn retiring(fault: Fault) -> Fault {
    match fault {
        Fault::Retry(_) | Fault::Permanent { .. } => Fault::wait("REVISION_FINALIZATION_INCOMPLETE"),
        other => finalizing(other),
    }
}

/// No later pass can succeed: back to the predecessor, or the row fails where it is.
async fn ended_badly(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    code: Code,
    data: Option<Value>,
) -> Result<Verdict, Fault> {
    let target = target.again(cx).await?;
    if target.is_active() && activated(pass) {
        return Err(Fault::wait("REVISION_FINALIZATION_INCOMPLETE"));
    }
    if rollback::applies(pass, &target) {
        return rollback::turn(cx, pass, &target, &code).await;
    }
    // A replacement that never served is removed; a first candidate stays for whoever looks for the cause.
    if !target.is_active() && target.agent.active_revision.is_some() {
        target.try_retire_own(cx, pass).await;
    }
    failed(cx, pass, &target, code, data).await
}

/// The terminal hook: attempts used up, or waiting past the deadline.
pub(crate) async fn give_up(cx: &Context, pass: &Pass, why: &GiveUp) -> Result<Verdict, Fault> {
    let target = Target::load(cx, pass).await?;
    if pass.claim().phase == Phase::Rollback {
        return rollback::failed(cx, pass, &target, Code::new("ACTIVATION_ROLLBACK_FAILED")).await;
    }
    if target.is_active() && !why.deadline && pass.claim().cause.is_none() {
        return Ok(Verdict::Extra { code: Code::new(RECOVERY) });
    }
    if rollback::applies(pass, &target) && !activated(pass) {
        return rollback::turn(cx, pass, &target, &why.code).await;
    }
    if why.deadline && !target.is_active() && target.agent.active_revision.is_some() {
        target.try_retire_own(cx, pass).await;
    }
    failed(cx, pass, &target, why.code.clone(), None).await
}

/// Fails the row where it is. When the pointer is on this revision, somebody must go on looking at it.
async fn failed(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    code: Code,
    data: Option<Value>,
) -> Result<Verdict, Fault> {
    let mut tx = db::begin(&cx.db).await?;
    let agent = agents::lock(&mut tx, &target.scope, &target.agent.id).await?;
    pass.guard_in(&mut tx).await?;
    let verdict = Verdict::Fail { code, result: data.map(result_of) };
    let (done, transition) = pass.finish_in(&mut tx, verdict).await?;
    evidence::write(cx, &mut tx, &transition, None).await?;
    if agent.active_revision.as_ref() == Some(&target.revision.id) {
        let look = agents::work::observe_work(&target.namespace.id, &agent.id);
        occ_queue::arm_upkeep(&mut tx, &look, FIRST_LOOK).await?;
    }
    tx.commit().await?;
    Ok(Verdict::Done(done))
}

/// Where the platform finds each value that the plan names; never a value.
pub(crate) fn locations(snapshot: &Snapshot) -> Vec<SecretLocation> {
    let store = &snapshot.secret_store;
    let secrets = snapshot.secrets.iter().map(|secret| SecretLocation {
        secret_id: secret.id.to_string(),
        location: json!({ "store": store, "uid": secret.uid }),
    });
    let generated = generated_names(&snapshot.plan).into_iter().map(|name| SecretLocation {
        secret_id: format!("generated:{name}"),
        location: json!({ "store": store }),
    });
    secrets.chain(generated).collect()
}
