//! Automatic rollback: pointer and runtime agree with the last intent, whatever happens on the way.

use serde_json::json;

use super::compute::Answer;
use super::world::{SHORT, World, deploy_key};

#[tokio::test]
async fn a_revision_that_never_activates_gives_way_to_its_predecessor() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(
        (row.ended(), row.phase.as_str()),
        (("failed_permanent", "ACTIVATION_ROLLED_BACK"), "rollback")
    );
    assert_eq!(row.result, Some(json!({ "cause": "RUNTIME_STARTUP_FAILED", "restoredRevisionId": first })));
    assert_eq!(
        (row.cause.as_deref(), row.step.as_deref()),
        (Some("RUNTIME_STARTUP_FAILED"), Some("retire-failed"))
    );
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&first));
    let runtime = world.compute.runtime(&agent.id);
    assert_eq!((runtime.serving, runtime.staged), (Some(first.clone()), [first.clone()].into()));
    assert_eq!(world.compute.calls(&second), ["prepare", "activate"]);
    assert_eq!(
        world.audited(&agent.id, "openclaw.agents.lifecycle.rollback").await,
        2,
        "turned round, and settled"
    );

    // History stays honest, and the next deploy works as ever.
    assert_eq!(world.row(&deploy_key(&first)).await.unwrap().ended(), ("succeeded", "REVISION_ACTIVATED"));
    let third = world.deployed(&agent).await;
    assert_eq!(world.compute.runtime(&agent.id).staged, [third].into());
    worker.stop().await;
}

#[tokio::test]
async fn waiting_past_the_activation_deadline_rolls_back() {
    let mut world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    worker.stop().await;
    world.convergence = SHORT;
    let worker = world.worker();
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Waiting("REVISION_FINALIZATION_INCOMPLETE"))
        })
        .await;
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(row.ended(), ("failed_permanent", "ACTIVATION_ROLLED_BACK"));
    assert_eq!(row.cause.as_deref(), Some("CONVERGENCE_DEADLINE_EXCEEDED"));
    assert_eq!(world.pointer(&agent).await, Some(first));
    worker.stop().await;
}

#[tokio::test]
async fn waiting_past_the_deadline_before_publication_fails_alone() {
    let mut world = World::new().await;
    world.convergence = SHORT;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("prepare", id, Answer::Outage("kubernetes-api"))
        })
        .await;
    let row = world.ended(&deploy_key(&revision)).await;
    assert_eq!(
        row.ended(),
        ("failed_permanent", "KUBERNETES_API_UNAVAILABLE"),
        "the dependency was still down"
    );
    assert_eq!(world.pointer(&agent).await, None);
    worker.stop().await;
}

#[tokio::test]
async fn without_the_policy_or_a_predecessor_the_pointer_stays() {
    let world = World::new().await;
    let worker = world.worker();
    let manual = world.agent("manual").await;
    world.deployed(&manual).await;
    let second = world
        .deploy_with(&manual, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    assert_eq!(
        world.ended(&deploy_key(&second)).await.ended(),
        ("failed_permanent", "RUNTIME_STARTUP_FAILED")
    );
    assert_eq!(world.pointer(&manual).await, Some(second));

    let lonely = world.agent("automatic").await;
    let only = world
        .deploy_with(&lonely, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    assert_eq!(world.ended(&deploy_key(&only)).await.ended(), ("failed_permanent", "RUNTIME_STARTUP_FAILED"));
    assert_eq!(world.pointer(&lonely).await, Some(only));
    worker.stop().await;
}

#[tokio::test]
async fn a_revision_that_was_never_activated_is_no_place_to_go_back_to() {
    let world = World::new().await;
    let agent = world.agent("manual").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    let half = world
        .deploy_with(&agent, |compute, id| {
            compute.script("activate", id, &[Answer::Permanent("RUNTIME_STARTUP_FAILED")])
        })
        .await;
    assert_eq!(world.ended(&deploy_key(&half)).await.ended(), ("failed_permanent", "RUNTIME_STARTUP_FAILED"));
    sqlx::query!("update occ.agents set rollback_policy = 'automatic' where id = $1", agent.id)
        .execute(&world.pool)
        .await
        .unwrap();
    let third = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_LOGIN_FAILED"))
        })
        .await;
    assert_eq!(
        world.ended(&deploy_key(&third)).await.ended(),
        ("failed_permanent", "ACTIVATION_ROLLED_BACK")
    );
    assert_eq!(world.pointer(&agent).await, Some(first), "not {half}");
    worker.stop().await;
}

#[tokio::test]
async fn a_stop_ends_the_branch() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    world.compute.fail_always("activate", &first, Answer::Waiting("REVISION_INCOMPLETE"));
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    world.waits(&deploy_key(&second), "REVISION_INCOMPLETE").await;
    let stop = world.stop(&agent).await;
    assert_eq!(world.ended(&stop).await.ended(), ("succeeded", "AGENT_STOPPED"));
    assert_eq!(world.ended(&deploy_key(&second)).await.ended(), ("succeeded", "REVISION_STOPPED"));
    assert_eq!(world.pointer(&agent).await, None);
    assert_eq!(world.compute.runtime(&agent.id), Default::default());
    worker.stop().await;
}

#[tokio::test]
async fn service_comes_before_a_newer_deploy() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    let waiting = [Answer::Waiting("REVISION_INCOMPLETE"), Answer::Waiting("REVISION_INCOMPLETE")];
    world.compute.script("activate", &first, &waiting);
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    world.waits(&deploy_key(&second), "REVISION_INCOMPLETE").await;
    let third = world.deploy(&agent).await;
    assert_eq!(world.ended(&deploy_key(&third)).await.ended(), ("succeeded", "REVISION_ACTIVATED"));
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(row.ended(), ("failed_permanent", "ACTIVATION_ROLLED_BACK"), "{row:?}");
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&third));
    assert_eq!(world.compute.runtime(&agent.id).serving, Some(third));
    worker.stop().await;
}

#[tokio::test]
async fn a_branch_that_fails_keeps_the_pointer_on_the_predecessor() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    world.compute.fail_always("prepare", &first, Answer::Permanent("IMAGE_GONE"));
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(row.ended(), ("failed_permanent", "ACTIVATION_ROLLBACK_FAILED"));
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&first));
    // Upkeep goes on where the branch gave up.
    world.compute.heal();
    let key = format!("agent:{}:observe", agent.id);
    sqlx::query!("update occ.work set available_at = now() where key = $1", key)
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::query!("update occ.work_lane set upkeep_due_at = now() where lane = $1", agent.id)
        .execute(&world.pool)
        .await
        .unwrap();
    occ_tests::wait::eventually("restored", || async {
        let runtime = world.compute.runtime(&agent.id);
        if runtime.serving.as_ref() == Some(&first) { Ok(()) } else { Err(format!("{runtime:?}")) }
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn the_last_attempt_of_a_published_revision_is_given_once_more_and_then_rolls_back() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    worker.stop().await;
    let second =
        world.deploy_with(&agent, |compute, id| compute.fail_always("activate", id, Answer::Trap)).await;
    sqlx::query!("update occ.work set attempt = 4 where revision_id = $1", second)
        .execute(&world.pool)
        .await
        .unwrap();
    let worker = world.worker();
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(row.ended(), ("failed_permanent", "ACTIVATION_ROLLED_BACK"), "{row:?}");
    assert_eq!(world.pointer(&agent).await, Some(first));
    worker.stop().await;
}
