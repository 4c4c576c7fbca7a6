//! The answer to a COMMIT is lost: what was committed is read, never repeated.

use occ_tests::proxy::{Manner, Proxy};
use occ_tests::wait::eventually;
use sqlx::postgres::PgPoolOptions;

use super::compute::Answer;
use super::world::{World, deploy_key};

/// Commits of one deployment that waits once: its wait, its publication, its end; then none of its own.
const COMMITS: i64 = 3;

#[tokio::test]
async fn a_lost_answer_to_any_commit_of_a_deployment_changes_nothing() {
    let world = World::new().await;
    let proxy = Proxy::start(world.database(), Manner::Direct).await.unwrap();
    let pool = PgPoolOptions::new().max_connections(8).connect(&proxy.url("occ_app")).await.unwrap();
    let worker = world.worker_on(pool);
    for count in 1..=COMMITS {
        let agent = world.agent("automatic").await;
        proxy.cut_commit(count);
        let revision = world
            .deploy_with(&agent, |compute, id| {
                compute.script("prepare", id, &[Answer::Waiting("REVISION_INCOMPLETE")]);
            })
            .await;
        eventually("the answer was lost", || async {
            if proxy.has_cut() { Ok(()) } else { Err(format!("commit {count} has not come")) }
        })
        .await;
        // A claim whose end was lost with its answer waits for nobody but its lease.
        world.lapse(&deploy_key(&revision)).await;
        let row = world.ended(&deploy_key(&revision)).await;
        assert_eq!(row.ended(), ("succeeded", "REVISION_ACTIVATED"), "commit {count}: {row:?}");
        assert_eq!(world.pointer(&agent).await.as_ref(), Some(&revision));
        assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.activate").await, 1, "commit {count}");
        assert_eq!(world.compute.runtime(&agent.id).serving, Some(revision));
    }
    worker.stop().await;
}
