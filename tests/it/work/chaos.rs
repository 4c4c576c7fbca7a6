//! Two workers, random intents, random faults between steps: when it is quiet, pointer, runtime and audit agree
//! with the last intent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use occ_host::worker::injector::{Fault, Injector, Point, When};
use occ_tests::wait::eventually;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;

use super::compute::Answer;
use super::world::{Agent, World, deploy_key};

const AGENTS: u64 = 10;
const INTENTS: usize = 5;
/// Of a hundred points, so many have a fault.
const FAULTS_PERCENT: u32 = 8;

/// Random faults; crashed passes are told so that their leases lapse.
struct Dice {
    random: Mutex<StdRng>,
    crashed: Mutex<Vec<String>>,
}

impl Injector for Dice {
    fn at(&self, point: Point<'_>) -> Fault {
        let roll = self.random.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..100_u32);
        if roll >= FAULTS_PERCENT {
            return Fault::None;
        }
        match roll % 3 {
            0 => Fault::Error,
            1 if point.when == When::Before => Fault::Repeat,
            1 => Fault::None,
            _ => {
                self.crashed.lock().unwrap_or_else(PoisonError::into_inner).push(point.key.to_owned());
                Fault::Crash
            }
        }
    }
}

/// What somebody wants of an Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Deploy,
    /// A revision that is prepared and never activates.
    DeployBroken,
    /// A revision that is never even prepared.
    DeployImpossible,
    Stop,
}

/// Says what it wants, a few times, at random moments; answers the last intent and the revisions made.
async fn live(world: Arc<World>, agent: Agent, seed: u64) -> (Agent, Intent, Vec<(String, Intent)>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut revisions = Vec::new();
    let mut last = Intent::Stop;
    for _ in 0..INTENTS {
        last = match random.random_range(0..6_u32) {
            0 => Intent::Stop,
            1 => Intent::DeployBroken,
            2 => Intent::DeployImpossible,
            _ => Intent::Deploy,
        };
        if last == Intent::Stop {
            world.stop(&agent).await;
        } else {
            let revision = world
                .deploy_with(&agent, |compute, id| match last {
                    Intent::DeployBroken => {
                        compute.fail_always("activate", id, Answer::Permanent("RUNTIME_STARTUP_FAILED"))
                    }
                    Intent::DeployImpossible => {
                        compute.fail_always("prepare", id, Answer::Permanent("IMAGE_GONE"))
                    }
                    Intent::Deploy | Intent::Stop => {}
                })
                .await;
            revisions.push((revision, last));
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await;
    }
    (agent, last, revisions)
}

async fn chaos(seed: u64) {
    let dice = Arc::new(Dice { random: Mutex::new(StdRng::seed_from_u64(seed)), crashed: Mutex::default() });
    let mut world = World::new().await;
    world.injector = Some(Arc::clone(&dice) as Arc<dyn Injector>);
    world.attempts_max = 50;
    let world = Arc::new(world);
    let workers = [world.worker(), world.worker()];
    let mut lives = JoinSet::new();
    for n in 0..AGENTS {
        let agent = world.agent("automatic").await;
        lives.spawn(live(Arc::clone(&world), agent, seed * 1_000 + n));
    }
    let lives = lives.join_all().await;

    eventually("quiet", || async {
        let crashed = std::mem::take(&mut *dice.crashed.lock().unwrap_or_else(PoisonError::into_inner));
        for key in crashed {
            world.lapse(&key).await;
        }
        match world.open_work().await {
            open if open.is_empty() => Ok(()),
            open => Err(format!("seed {seed}: {open:?}")),
        }
    })
    .await;
    for (agent, last, revisions) in lives {
        check(&world, seed, &agent, last, &revisions).await;
    }
    let mut conn = world.pool.acquire().await.unwrap();
    assert_eq!(occ_queue::sweep_lanes(&mut conn).await.unwrap(), 0);
    drop(conn);
    for worker in workers {
        worker.stop().await;
    }
}

async fn check(world: &World, seed: u64, agent: &Agent, last: Intent, revisions: &[(String, Intent)]) {
    let (pointer, runtime) = (world.pointer(agent).await, world.compute.runtime(&agent.id));
    let mut ends = BTreeMap::new();
    for (revision, intent) in revisions {
        let row = world.row(&deploy_key(revision)).await.unwrap();
        let activated = row
            .code
            .as_deref()
            .is_some_and(|code| code == "REVISION_ACTIVATED" || code == "REVISION_ALREADY_ACTIVE");
        assert!(!activated || *intent == Intent::Deploy, "seed {seed}: {revision} {intent:?} {row:?}");
        ends.insert(revision.clone(), activated);
    }
    let about = format!("seed {seed} {agent:?} {last:?} {pointer:?} {runtime:?} {ends:?}");
    let newest = revisions.last().map(|(revision, _)| revision.clone());
    match last {
        Intent::Stop => assert_eq!((pointer.clone(), runtime.serving.clone()), (None, None), "{about}"),
        Intent::Deploy => assert_eq!((&pointer, &runtime.serving), (&newest, &newest), "{about}"),
        // Never restored to a revision that was not activated; it serves what the pointer says.
        Intent::DeployBroken | Intent::DeployImpossible => {
            if let Some(pointer) = pointer.as_ref().filter(|pointer| Some(*pointer) != newest.as_ref()) {
                assert_eq!(ends.get(pointer), Some(&true), "{about}");
                assert_eq!(runtime.serving.as_ref(), Some(pointer), "{about}");
            }
        }
    }
    let activated = ends.values().filter(|activated| **activated).count();
    assert_eq!(world.audited(&agent.id, "openclaw.agents.lifecycle.activate").await, activated, "{about}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_the_last_intent_stands() {
    for seed in [1, 2, 3] {
        chaos(seed).await;
    }
}
