//! Looking at what runs: order is confirmed, drift is repaired, intent is never changed.

use occ_tests::wait::eventually;

use super::compute::Answer;
use super::world::{Agent, World};

async fn look_now(world: &World, agent: &Agent) -> String {
    let key = format!("agent:{}:observe", agent.id);
    let work = occ_queue::NewWork::upkeep(
        &key,
        "agent.observe",
        occ_queue::Owner::agent(&world.namespace, &agent.id),
        "system",
    );
    let mut conn = world.pool.acquire().await.unwrap();
    assert!(occ_queue::arm_upkeep(&mut conn, &work, std::time::Duration::ZERO).await.unwrap());
    key
}

async fn observed(world: &World, agent: &Agent) -> Option<(bool, String)> {
    sqlx::query!(
        r#"select ready as "ready!", code as "code!" from occ.agent_observations where agent_id = $1"#,
        agent.id
    )
    .fetch_optional(&world.pool)
    .await
    .unwrap()
    .map(|row| (row.ready, row.code))
}

#[tokio::test]
async fn what_is_in_order_is_left_alone() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    let calls = world.compute.calls(&revision);
    let key = look_now(&world, &agent).await;
    world.waits(&key, "OBSERVED_IN_ORDER").await;
    assert_eq!(world.compute.calls(&revision), calls);
    assert_eq!(observed(&world, &agent).await, Some((true, "OBSERVED_IN_ORDER".to_owned())));
    worker.stop().await;
}

#[tokio::test]
async fn drift_is_repaired_without_the_actor() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    world.revoke().await;
    world.compute.lose(&agent.id);
    world.compute.script("prepare", &revision, &[Answer::Trap]);
    let key = look_now(&world, &agent).await;
    world.waits(&key, "DRIFT_REPAIRED").await;
    assert_eq!(world.compute.runtime(&agent.id).serving.as_ref(), Some(&revision));
    assert_eq!(world.pointer(&agent).await, Some(revision));
    assert_eq!(observed(&world, &agent).await, Some((false, "RUNTIME_ABSENT".to_owned())));
    assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.repair").await, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_repair_that_cannot_succeed_rests_and_fails_nothing() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    world.compute.lose(&agent.id);
    world.compute.fail_always("prepare", &revision, Answer::Permanent("RUNTIME_STARTUP_FAILED"));
    let key = look_now(&world, &agent).await;
    world.waits(&key, "RUNTIME_STARTUP_FAILED").await;
    let row = world.row(&format!("agent_revision:{revision}:reconcile")).await.unwrap();
    assert_eq!(row.ended(), ("succeeded", "REVISION_ACTIVATED"), "a deployment's record is never rewritten");
    worker.stop().await;
}

#[tokio::test]
async fn nobody_looks_at_a_stopped_agent() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    world.deployed(&agent).await;
    let stop = world.stop(&agent).await;
    world.ended(&stop).await;
    let key = look_now(&world, &agent).await;
    let row = world.ended(&key).await;
    assert_eq!(row.ended(), ("succeeded", "OBSERVED_IN_ORDER"));
    worker.stop().await;
}

#[tokio::test]
async fn a_change_outside_is_seen_at_once() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    world.deployed(&agent).await;
    let key = look_now(&world, &agent).await;
    world.waits(&key, "OBSERVED_IN_ORDER").await;
    world.compute.lose(&agent.id);
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(occ_queue::wake(&mut conn, &agent.id).await.unwrap(), 1);
    eventually("repaired", || async {
        world.compute.runtime(&agent.id).serving.map_or(Err("nothing serves".to_owned()), |_| Ok(()))
    })
    .await;
    worker.stop().await;
}
