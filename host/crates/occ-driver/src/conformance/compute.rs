//! Rules for compute drivers: the life of an agent, in order, repeated and interrupted.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::double::Held;
use super::subject::{Subject, World, limits};
use super::{Finding, Named, fixture};
use crate::abi::{Answer, Call};
use crate::capability::process::{HttpProbe, ProcessSpec};
use crate::limits::CallLimits;
use crate::types::{LogRequest, Observation, Phase, Progress, Role};

pub(super) const CHECKS: &[Named] = &[
    ("platform-is-stable", platform_is_stable),
    ("plan-is-checked", plan_is_checked),
    ("deploy-converges", deploy_converges),
    ("reads-answer", reads_answer),
    ("runtime-names-only-given-ids", runtime_names_only_given_ids),
    ("logs-answer", logs_answer),
    ("repeated-calls-change-nothing", repeated_calls_change_nothing),
    ("interrupted-orders-converge", interrupted_orders_converge),
    ("replacement-runs-one-at-a-time", replacement_runs_one_at_a_time),
    ("deactivate-is-done-twice", deactivate_is_done_twice),
    ("retire-spares-the-serving-revision", retire_spares_the_serving_revision),
    ("unknown-ids-are-harmless", unknown_ids_are_harmless),
    ("stop-keeps-state", stop_keeps_state),
    ("destroy-removes-state", destroy_removes_state),
    ("tenant-ends-empty", tenant_ends_empty),
    ("foreign-objects-are-left-alone", foreign_objects_are_left_alone),
    ("limits-are-survived", limits_are_survived),
];

fn held(world: &World) -> Vec<Held> {
    world.processes.held(fixture::TENANT)
}

fn running(world: &World) -> usize {
    held(world).iter().filter(|held| held.running).count()
}

async fn observe(world: &World, number: u64) -> Result<Observation, String> {
    match world.call(Call::Observe(fixture::revision(number))).await? {
        Answer::Observation(observation) => Ok(observation),
        _ => Err("observe: answers something else".to_owned()),
    }
}

/// A driver that runs nothing has nothing to show as ready.
fn runs_something(world: &World) -> bool {
    world.processes.starts(fixture::TENANT) > 0
}

fn platform_is_stable(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let first = subject.world().call(Call::Platform).await?;
        let second = subject.world().call(Call::Platform).await?;
        if first == second { Ok(()) } else { Err("platform answers differently the second time".to_owned()) }
    }
    .boxed()
}

fn plan_is_checked(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        match subject.world().call(Call::CheckPlan(fixture::plan(1))).await? {
            Answer::Problems(problems) if problems.is_empty() => Ok(()),
            Answer::Problems(problems) => {
                let all: Vec<String> = problems
                    .into_iter()
                    .map(|problem| format!("{} {}", problem.path, problem.message))
                    .collect();
                Err(format!("check-plan refuses the suite's plan: {}", all.join("; ")))
            }
            _ => Err("check-plan: answers something else".to_owned()),
        }
    }
    .boxed()
}

fn deploy_converges(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let observation = observe(&world, 1).await?;
        if runs_something(&world) && observation.phase != Phase::Ready {
            return Err(format!("observe: phase is {:?} after activate was done", observation.phase));
        }
        if let Some(drift) = observation.drift.first().filter(|_| runs_something(&world)) {
            return Err(format!("observe: drift {} after activate was done", drift.code));
        }
        Ok(())
    }
    .boxed()
}

fn reads_answer(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let before = held(&world);
        let revision = fixture::revision(1);
        observe(&world, 1).await?;
        match world.call(Call::Locate(revision)).await? {
            Answer::Instances(instances) if instances.is_empty() && runs_something(&world) => {
                Err("locate: finds no instance of what runs".to_owned())
            }
            Answer::Instances(_) if held(&world) == before => Ok(()),
            _ => Err("a read changed something".to_owned()),
        }
    }
    .boxed()
}

fn runtime_names_only_given_ids(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        match world.call(Call::Runtime(fixture::revision(1))).await? {
            Answer::Document(document) if document.get("pods").is_some_and(serde_json::Value::is_array) => {
                Ok(())
            }
            _ => Err("runtime: has no list of pods".to_owned()),
        }
    }
    .boxed()
}

fn logs_answer(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        for tail_lines in [0, 2, 100] {
            let request =
                LogRequest { role: Role::Gateway, previous: false, tail_lines, since_seconds: None };
            world.call(Call::ReadLogs(fixture::revision(1), request)).await?;
        }
        Ok(())
    }
    .boxed()
}

fn repeated_calls_change_nothing(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let (before, starts) = (held(&world), world.processes.starts(fixture::TENANT));
        let revision = fixture::revision(1);
        for call in [
            Call::EnsureTenant(fixture::tenant()),
            Call::Prepare(revision.clone(), Some(fixture::reference(1))),
            Call::Activate(revision),
        ] {
            let operation = call.operation();
            if world.step(call).await? != Progress::Done {
                return Err(format!("{operation}: waits when everything stands already"));
            }
            if held(&world) != before || world.processes.starts(fixture::TENANT) != starts {
                return Err(format!("{operation}: changes what stands already"));
            }
        }
        Ok(())
    }
    .boxed()
}

/// Half done calls of another order, as a worker leaves them that dies, and then the right
/// order: the end must be that of an undisturbed run.
fn interrupted_orders_converge(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let undisturbed = subject.world();
        undisturbed.deploy(1, None).await?;
        undisturbed.deploy(2, Some(1)).await?;
        let (one, two) = (fixture::revision(1), fixture::revision(2));
        let agent = fixture::agent();
        let orders: [&[Call]; 4] = [
            &[Call::Prepare(one.clone(), None)],
            &[Call::Prepare(one.clone(), None), Call::Stop(agent.clone()), Call::Prepare(one.clone(), None)],
            &[
                Call::Prepare(one.clone(), None),
                Call::Activate(one.clone()),
                Call::Prepare(two.clone(), Some(fixture::reference(1))),
            ],
            &[Call::Activate(one.clone()), Call::Activate(two), Call::Deactivate(one), Call::Stop(agent)],
        ];
        for (number, order) in orders.into_iter().enumerate() {
            let world = subject.world();
            world.settle(Call::EnsureTenant(fixture::tenant())).await?;
            for call in order {
                world.step(call.clone()).await?;
            }
            world.deploy(1, None).await?;
            world.deploy(2, Some(1)).await?;
            if held(&world) != held(&undisturbed) {
                return Err(format!("order {number}: ends differently from an undisturbed run"));
            }
        }
        Ok(())
    }
    .boxed()
}

fn replacement_runs_one_at_a_time(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let before = held(&world);
        let two = fixture::revision(2);
        world.settle(Call::Prepare(two.clone(), Some(fixture::reference(1)))).await?;
        if held(&world) != before {
            return Err("prepare: disturbs the serving revision".to_owned());
        }
        for _ in 0..20 {
            let done = world.step(Call::Activate(two.clone())).await? == Progress::Done;
            if running(&world) > 1 {
                return Err("activate: two processes hold one agent's state".to_owned());
            }
            if done {
                return Ok(());
            }
        }
        Err("activate: does not come to an end".to_owned())
    }
    .boxed()
}

fn deactivate_is_done_twice(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        world.settle(Call::Deactivate(fixture::revision(1))).await?;
        world.settle(Call::Deactivate(fixture::revision(1))).await?;
        if running(&world) > 0 { Err("deactivate: the revision still runs".to_owned()) } else { Ok(()) }
    }
    .boxed()
}

fn retire_spares_the_serving_revision(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        world.deploy(2, Some(1)).await?;
        let before = held(&world);
        for gone in [vec![1], vec![1, 2]] {
            let gone = gone.into_iter().map(fixture::reference).collect();
            world.settle(Call::Retire(fixture::agent(), gone, Some(fixture::reference(2)))).await?;
            if held(&world) != before {
                return Err("retire: touches the serving revision".to_owned());
            }
        }
        Ok(())
    }
    .boxed()
}

fn unknown_ids_are_harmless(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let before = held(&world);
        let unknown = fixture::unknown_agent();
        let never = fixture::revision(9);
        for call in [
            Call::Deactivate(never.clone()),
            Call::Retire(unknown.clone(), vec![fixture::reference(9)], None),
            Call::Stop(unknown.clone()),
            Call::Destroy(unknown),
        ] {
            world.settle(call).await?;
        }
        let observation = observe(&world, 9).await?;
        if observation.phase != Phase::Absent {
            return Err(format!("observe: a revision that never was is {:?}", observation.phase));
        }
        world.call(Call::Locate(never.clone())).await?;
        world.call(Call::Runtime(never)).await?;
        if held(&world) == before {
            Ok(())
        } else {
            Err("a call about unknown ids changed something".to_owned())
        }
    }
    .boxed()
}

fn stop_keeps_state(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        let before = held(&world).len();
        world.settle(Call::Stop(fixture::agent())).await?;
        if running(&world) > 0 {
            return Err("stop: something still runs".to_owned());
        }
        if held(&world).len() != before {
            return Err("stop: state is gone".to_owned());
        }
        world.settle(Call::Stop(fixture::agent())).await?;
        let phase = observe(&world, 1).await?.phase;
        if phase == Phase::Absent {
            Ok(())
        } else {
            Err(format!("observe: phase is {phase:?} after stop was done"))
        }
    }
    .boxed()
}

fn destroy_removes_state(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        world.settle(Call::Destroy(fixture::agent())).await?;
        world.settle(Call::Destroy(fixture::agent())).await?;
        if held(&world).is_empty() { Ok(()) } else { Err("destroy: state is left".to_owned()) }
    }
    .boxed()
}

fn tenant_ends_empty(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let world = subject.world();
        world.deploy(1, None).await?;
        world.settle(Call::Destroy(fixture::agent())).await?;
        world.settle(Call::DeleteTenant(fixture::tenant())).await?;
        world.settle(Call::DeleteTenant(fixture::tenant())).await?;
        if held(&world).is_empty() { Ok(()) } else { Err("delete-tenant: something is left".to_owned()) }
    }
    .boxed()
}

/// An object under the agent's own id that belongs to somebody else.
fn foreign_objects_are_left_alone(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let probe =
            HttpProbe { path: "/".to_owned(), port: "p".to_owned(), period_seconds: 1, timeout_seconds: 1 };
        let foreign = ProcessSpec {
            id: fixture::agent().agent_id,
            labels: Vec::new(),
            command: vec!["/bin/foreign".to_owned()],
            env: Vec::new(),
            state: Vec::new(),
            scratch: Vec::new(),
            files: Vec::new(),
            ports: Vec::new(),
            readiness: probe,
            grace_seconds: 1,
        };
        let world = subject.world();
        world.processes.plant(fixture::STRANGER, foreign);
        let before = world.processes.held(fixture::STRANGER);
        let deployed = world.deploy(1, None).await;
        for call in [Call::Stop(fixture::agent()), Call::Destroy(fixture::agent())] {
            // Refusing is as right as finding nothing.
            let _ = world.step(call).await;
        }
        if world.processes.held(fixture::STRANGER) != before {
            return Err("an object of another tenant was changed".to_owned());
        }
        match deployed {
            Ok(()) if runs_something(&world) => {
                Err("runs beside another tenant's object of the same id".to_owned())
            }
            Err(why) if why.contains("the plugin failed") || why.contains("still waits") => Ok(()),
            other => other,
        }
    }
    .boxed()
}

/// A call that was cut at a limit leaves nothing that the next cannot finish.
fn limits_are_survived(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let whole = subject.world();
        whole.deploy(1, None).await?;
        let world = subject.world();
        for host_calls in 0..4 {
            let bounds = CallLimits { host_calls, ..limits() };
            let cut = subject.bounded(bounds, Arc::clone(&world.processes));
            for call in [Call::Prepare(fixture::revision(1), None), Call::Activate(fixture::revision(1))] {
                // Whether it was cut there is not the question.
                let _ = cut.call(call).await;
            }
        }
        world.deploy(1, None).await?;
        if held(&world) == held(&whole) {
            Ok(())
        } else {
            Err("ends differently after calls were cut".to_owned())
        }
    }
    .boxed()
}
