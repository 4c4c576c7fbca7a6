//! The way forward: guards, waiting, errors, replacement, supersession.

use super::compute::Answer;
use super::world::{World, deploy_key};

#[tokio::test]
async fn a_first_deployment_is_prepared_published_activated_and_recorded_once() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    assert_eq!(world.compute.calls(&revision), ["prepare", "activate"]);
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&revision));
    let runtime = world.compute.runtime(&agent.id);
    assert_eq!((runtime.serving, runtime.staged), (Some(revision.clone()), [revision.clone()].into()));
    let row = world.row(&deploy_key(&revision)).await.unwrap();
    assert_eq!((row.attempt, row.step.as_deref()), (1, Some("retire")));
    assert_eq!(
        world.audit(&agent.id).await,
        [("openclaw.agents.lifecycle.activate".to_owned(), "REVISION_ACTIVATED".to_owned())]
    );
    let look = world.row(&format!("agent:{}:observe", agent.id)).await.unwrap();
    assert_eq!(look.state, "queued", "somebody goes on looking");
    worker.stop().await;
}

#[tokio::test]
async fn a_replacement_takes_over_and_removes_what_came_before() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    let second = world.deployed(&agent).await;
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&second));
    assert_eq!(world.compute.runtime(&agent.id).staged, [second].into(), "{first} is gone");
    worker.stop().await;
}

#[tokio::test]
async fn waiting_costs_no_attempt_and_keeps_the_predecessor_serving() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    world.compute.fail_always("retire", &agent.id, Answer::Waiting("REVISION_FINALIZATION_INCOMPLETE"));
    let answers = [Answer::Waiting("REVISION_UNSCHEDULABLE"), Answer::Outage("kubernetes-api")];
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.script("prepare", id, &answers);
            compute.script("activate", id, &[Answer::Busy, Answer::Waiting("ANYTHING")]);
        })
        .await;
    let row = world.waits(&deploy_key(&second), "REVISION_FINALIZATION_INCOMPLETE").await;
    assert_eq!(row.attempt, 0, "{row:?}");
    world.compute.heal();
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!((row.ended(), row.attempt), (("succeeded", "REVISION_ACTIVATED"), 1), "{first}");
    worker.stop().await;
}

#[tokio::test]
async fn the_latest_deploy_wins() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let first = world.deploy(&agent).await;
    let second = world.deploy(&agent).await;
    let worker = world.worker();
    assert_eq!(world.ended(&deploy_key(&first)).await.ended(), ("succeeded", "REVISION_SUPERSEDED"));
    assert_eq!(world.ended(&deploy_key(&second)).await.ended(), ("succeeded", "REVISION_ACTIVATED"));
    assert!(world.compute.calls(&first).is_empty(), "a superseded revision is never prepared");
    assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.supersede").await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn errors_spend_attempts_and_leave_what_serves() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let first = world.deployed(&agent).await;
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.script("prepare", id, &[Answer::Trap, Answer::Retry("RUNTIME_LOGIN_FAILED")])
        })
        .await;
    let row = world.ended(&deploy_key(&second)).await;
    assert_eq!(row.ended(), ("succeeded", "REVISION_ACTIVATED"));
    let third = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("prepare", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    let row = world.ended(&deploy_key(&third)).await;
    assert_eq!(
        (row.ended(), row.phase.as_str()),
        (("failed_permanent", "RUNTIME_STARTUP_FAILED"), "forward")
    );
    assert_eq!(row.result, Some(serde_json::json!({ "exitCode": 78 })));
    assert_eq!(
        world.pointer(&agent).await.as_ref(),
        Some(&second),
        "never published: nothing to go back from"
    );
    let runtime = world.compute.runtime(&agent.id);
    assert_eq!((runtime.serving, runtime.staged), (Some(second.clone()), [second].into()), "{first}");
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_right_stops_the_deployment_before_any_call() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let revision = world.deploy(&agent).await;
    world.revoke().await;
    let worker = world.worker();
    assert_eq!(
        world.ended(&deploy_key(&revision)).await.ended(),
        ("failed_permanent", "AUTHORIZATION_DENIED")
    );
    assert!(world.compute.calls(&revision).is_empty());
    assert!(
        world.audit(&agent.id).await.contains(&("openclaw.agents.deploy".to_owned(), "NO_GRANT".to_owned())),
        "{:?}",
        world.audit(&agent.id).await
    );
    worker.stop().await;
}

#[tokio::test]
async fn what_was_frozen_must_still_fit() {
    let world = World::new().await;
    let worker = world.worker();
    let refused = async |change: fn(&mut occ_host::revisions::Snapshot)| {
        let agent = world.agent("automatic").await;
        let revision = world.deploy_as(&agent, |_, snapshot| change(snapshot)).await;
        let row = world.ended(&deploy_key(&revision)).await;
        assert!(world.compute.calls(&revision).is_empty());
        row.code.unwrap()
    };
    assert_eq!(
        refused(|snapshot| snapshot.compute.version = "2.0.0".to_owned()).await,
        "COMPUTE_DRIVER_MISMATCH"
    );
    assert_eq!(
        refused(|snapshot| snapshot.harness_plugin.id = "gone".to_owned()).await,
        "HARNESS_DESCRIPTOR_MISMATCH"
    );
    assert_eq!(
        refused(|snapshot| snapshot.plan.harness.version = "2".to_owned()).await,
        "INVALID_ADMITTED_REVISION"
    );
    let agent = world.agent("automatic").await;
    sqlx::query!("update occ.namespaces set status = 'deleting' where id = $1", world.namespace)
        .execute(&world.pool)
        .await
        .unwrap();
    let revision = world.deploy(&agent).await;
    assert_eq!(
        world.ended(&deploy_key(&revision)).await.ended(),
        ("failed_permanent", "NAMESPACE_NOT_READY")
    );
    worker.stop().await;
}
