//! Every step of every kind fails once, crashes once, runs twice: the end is the undisturbed one, recorded once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use occ_host::worker::injector::{Fault, Injector, Point, When};
use occ_tests::wait::eventually;

use super::compute::Answer;
use super::world::{Agent, World, deploy_key};

const FORWARD: [&str; 5] = ["prepare", "publish", "activate", "retire", "finish"];
const ROLLBACK: [&str; 5] = ["revert", "prepare-previous", "activate-previous", "retire-failed", "settle"];
const DELETION: [&str; 4] = ["stop", "clear", "destroy", "finalize"];

/// One fault for each key of work, at one point; crashes are told so that the test lets the lease lapse.
#[derive(Default)]
struct Plan {
    faults: Mutex<BTreeMap<String, (&'static str, When, Fault)>>,
    crashed: Mutex<Vec<String>>,
    everywhere: bool,
}

impl Plan {
    fn at(&self, key: &str, step: &'static str, when: When, fault: Fault) {
        self.faults.lock().unwrap().insert(key.to_owned(), (step, when, fault));
    }

    fn left(&self) -> usize {
        self.faults.lock().unwrap().len()
    }

    fn take_crashed(&self) -> Vec<String> {
        std::mem::take(&mut self.crashed.lock().unwrap())
    }
}

impl Injector for Plan {
    fn at(&self, point: Point<'_>) -> Fault {
        if self.everywhere {
            return if point.when == When::Before { Fault::Repeat } else { Fault::None };
        }
        let mut faults = self.faults.lock().unwrap();
        match faults.get(point.key) {
            Some((step, when, fault)) if *step == point.step && *when == point.when => {
                let fault = *fault;
                faults.remove(point.key);
                if fault == Fault::Crash {
                    self.crashed.lock().unwrap().push(point.key.to_owned());
                }
                fault
            }
            _ => Fault::None,
        }
    }
}

/// Every point of a list of steps.
fn points(steps: &'static [&'static str]) -> impl Iterator<Item = (&'static str, When)> {
    steps.iter().flat_map(|step| [When::Before, When::After].map(|when| (*step, when)))
}

async fn world_with(plan: &Arc<Plan>) -> World {
    let mut world = World::new().await;
    world.injector = Some(Arc::clone(plan) as Arc<dyn Injector>);
    world
}

/// Lets the leases of crashed passes lapse until all faults have happened.
async fn let_lapse(world: &World, plan: &Plan) {
    eventually("every fault happened", || async {
        for key in plan.take_crashed() {
            world.lapse(&key).await;
        }
        if plan.left() == 0 { Ok(()) } else { Err(format!("{} left", plan.left())) }
    })
    .await;
    for key in plan.take_crashed() {
        world.lapse(&key).await;
    }
}

/// Deploys one Agent for each point; the one end that all must reach.
async fn forward(fault: Fault) {
    let plan = Arc::new(Plan::default());
    let world = world_with(&plan).await;
    let mut deployments: Vec<(Agent, String, i32)> = Vec::new();
    for (step, when) in points(&FORWARD) {
        let agent = world.agent("automatic").await;
        let revision = world.deploy(&agent).await;
        plan.at(&deploy_key(&revision), step, when, fault);
        // From `retire` on an error waits instead of spending an attempt; a crash always spends one.
        let attempts = if step == "retire" && fault == Fault::Error { 1 } else { 2 };
        deployments.push((agent, revision, attempts));
    }
    let worker = world.worker();
    let_lapse(&world, &plan).await;
    for (agent, revision, attempts) in deployments {
        let row = world.ended(&deploy_key(&revision)).await;
        assert_eq!((row.ended(), row.attempt), (("succeeded", "REVISION_ACTIVATED"), attempts), "{row:?}");
        assert_eq!(world.pointer(&agent).await.as_ref(), Some(&revision));
        let runtime = world.compute.runtime(&agent.id);
        assert_eq!((runtime.serving, runtime.staged), (Some(revision.clone()), [revision].into()));
        assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.activate").await, 1);
    }
    assert_eq!(world.compute.fenced(), 0);
    worker.stop().await;
}

#[tokio::test]
async fn fails_at_every_step_forward() {
    forward(Fault::Error).await;
}

#[tokio::test]
async fn crashes_at_every_step_forward() {
    forward(Fault::Crash).await;
}

async fn rollback(fault: Fault) {
    let plan = Arc::new(Plan::default());
    let world = world_with(&plan).await;
    let worker = world.worker();
    let mut deployments = Vec::new();
    for (step, when) in points(&ROLLBACK) {
        let agent = world.agent("automatic").await;
        let first = world.deployed(&agent).await;
        let second = world
            .deploy_with(&agent, |compute, id| {
                compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"));
                plan.at(&deploy_key(id), step, when, fault);
            })
            .await;
        deployments.push((agent, first, second));
    }
    let_lapse(&world, &plan).await;
    for (agent, first, second) in deployments {
        let row = world.ended(&deploy_key(&second)).await;
        assert_eq!(row.ended(), ("failed_permanent", "ACTIVATION_ROLLED_BACK"), "{row:?}");
        assert_eq!(row.cause.as_deref(), Some("RUNTIME_STARTUP_FAILED"));
        assert_eq!(world.pointer(&agent).await.as_ref(), Some(&first));
        let runtime = world.compute.runtime(&agent.id);
        assert_eq!((runtime.serving, runtime.staged), (Some(first.clone()), [first].into()));
        assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.rollback").await, 2);
    }
    worker.stop().await;
}

#[tokio::test]
async fn fails_at_every_step_of_a_rollback() {
    rollback(Fault::Error).await;
}

#[tokio::test]
async fn crashes_at_every_step_of_a_rollback() {
    rollback(Fault::Crash).await;
}

async fn deletion(fault: Fault) {
    let plan = Arc::new(Plan::default());
    let world = world_with(&plan).await;
    let worker = world.worker();
    let mut deletions = Vec::new();
    for (step, when) in points(&DELETION) {
        let agent = world.agent("automatic").await;
        world.deployed(&agent).await;
        plan.at(&format!("agent:{}:delete", agent.id), step, when, fault);
        let key = world.delete(&agent).await;
        deletions.push((agent, key));
    }
    let_lapse(&world, &plan).await;
    for (agent, key) in deletions {
        eventually("the row is gone", || async {
            world.row(&key).await.map_or(Ok(()), |row| Err(format!("{row:?}")))
        })
        .await;
        assert_eq!(world.compute.runtime(&agent.id), Default::default());
        assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.delete").await, 1);
    }
    worker.stop().await;
}

#[tokio::test]
async fn fails_at_every_step_of_a_deletion() {
    deletion(Fault::Error).await;
}

#[tokio::test]
async fn crashes_at_every_step_of_a_deletion() {
    deletion(Fault::Crash).await;
}

#[tokio::test]
async fn runs_every_step_twice() {
    let plan = Arc::new(Plan { everywhere: true, ..Plan::default() });
    let world = world_with(&plan).await;
    let worker = world.worker();
    let agent = world.agent("automatic").await;
    let first = world.deployed(&agent).await;
    let second = world
        .deploy_with(&agent, |compute, id| {
            compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
        })
        .await;
    assert_eq!(
        world.ended(&deploy_key(&second)).await.ended(),
        ("failed_permanent", "ACTIVATION_ROLLED_BACK")
    );
    assert_eq!(world.pointer(&agent).await.as_ref(), Some(&first));
    assert_eq!(world.compute.runtime(&agent.id).staged, [first].into());
    let stop = world.stop(&agent).await;
    assert_eq!(world.ended(&stop).await.ended(), ("succeeded", "AGENT_STOPPED"));
    let third = world.deployed(&agent).await;
    assert_eq!(world.compute.runtime(&agent.id).serving, Some(third));
    let key = world.delete(&agent).await;
    eventually("the row is gone", || async {
        world.row(&key).await.map_or(Ok(()), |row| Err(format!("{row:?}")))
    })
    .await;
    for (action, count) in [("activate", 2), ("rollback", 2), ("stop", 1), ("delete", 1)] {
        assert_eq!(
            world.audited(&agent.id, &format!("openclaw.agents.lifecycle.{action}")).await,
            count,
            "{action}"
        );
    }
    worker.stop().await;
}
