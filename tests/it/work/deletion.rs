//! Stop and delete: intent wins, state is kept by one and removed by the other.

use occ_tests::wait::eventually;

use super::compute::Answer;
use super::world::{World, deploy_key};

#[tokio::test]
async fn a_stop_ends_what_runs_and_clears_the_pointer() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    world.compute.script("stop", &agent.id, &[Answer::Waiting("STOPPING"), Answer::Outage("kubernetes-api")]);
    let stop = world.stop(&agent).await;
    let row = world.ended(&stop).await;
    assert_eq!((row.ended(), row.attempt), (("succeeded", "AGENT_STOPPED"), 1));
    assert_eq!(world.pointer(&agent).await, None);
    assert_eq!(world.compute.runtime(&agent.id), Default::default());
    assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.stop").await, 1);
    let again = world.stop(&agent).await;
    assert_eq!(world.ended(&again).await.ended(), ("succeeded", "AGENT_ALREADY_STOPPED"));
    // What was frozen stays, and a new deploy runs.
    assert_eq!(world.row(&deploy_key(&revision)).await.unwrap().ended().0, "succeeded");
    world.deployed(&agent).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_later_deploy_supersedes_a_stop() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    world.deployed(&agent).await;
    worker.stop().await;
    let stop = world.stop(&agent).await;
    let second = world.deploy(&agent).await;
    let worker = world.worker();
    assert_eq!(world.ended(&stop).await.ended(), ("succeeded", "STOP_SUPERSEDED"));
    assert_eq!(world.ended(&deploy_key(&second)).await.ended(), ("succeeded", "REVISION_ACTIVATED"));
    assert_eq!(world.pointer(&agent).await, Some(second));
    worker.stop().await;
}

#[tokio::test]
async fn a_stop_reaches_a_deployment_under_way() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("prepare", id, Answer::Waiting("REVISION_INCOMPLETE"))
        })
        .await;
    world.waits(&deploy_key(&revision), "REVISION_INCOMPLETE").await;
    let stop = world.stop(&agent).await;
    world.ended(&stop).await;
    assert_eq!(world.ended(&deploy_key(&revision)).await.ended(), ("succeeded", "REVISION_STOPPED"));
    assert_eq!(world.pointer(&agent).await, None);
    assert!(world.compute.runtime(&agent.id).staged.is_empty());
    worker.stop().await;
}

#[tokio::test]
async fn a_stop_without_the_right_is_denied() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    world.revoke().await;
    let stop = world.stop(&agent).await;
    assert_eq!(world.ended(&stop).await.ended(), ("failed_permanent", "AUTHORIZATION_DENIED"));
    assert_eq!(world.pointer(&agent).await, Some(revision));
    worker.stop().await;
}

#[tokio::test]
async fn a_deletion_waits_for_the_credentials_and_removes_everything() {
    let world = World::new().await;
    let agent = world.agent("automatic").await;
    let worker = world.worker();
    let revision = world.deployed(&agent).await;
    sqlx::query!(
        "insert into occ.agent_credentials (namespace_id, agent_id, name, store) values ($1, $2, 'gateway-password', 'database')",
        world.namespace,
        agent.id
    )
    .execute(&world.pool)
    .await
    .unwrap();
    let key = world.delete(&agent).await;
    let row = world.waits(&key, "CREDENTIALS_PENDING").await;
    assert_eq!((row.step.as_deref(), row.attempt), (Some("destroy"), 0));
    assert_eq!(world.compute.calls(&agent.id), ["retire", "stop", "destroy"]);
    sqlx::query!("delete from occ.agent_credentials where agent_id = $1", agent.id)
        .execute(&world.pool)
        .await
        .unwrap();
    eventually("the row is gone", || async {
        world.row(&key).await.map_or(Ok(()), |row| Err(format!("{row:?}")))
    })
    .await;
    let left = sqlx::query_scalar!(
        r#"select (select count(*) from occ.agents where id = $1) + (select count(*) from occ.agent_revisions where id = $2)
                + (select count(*) from occ.iam_identities where id = $3) + (select count(*) from occ.work where lane = $1)
                + (select count(*) from occ.work_lane where lane = $1) as "left!""#,
        agent.id,
        revision,
        agent.principal
    )
    .fetch_one(&world.pool)
    .await
    .unwrap();
    assert_eq!(left, 0);
    assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.delete").await, 1);
    worker.stop().await;
}
