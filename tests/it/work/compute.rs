//! A compute that remembers what runs, answers what a test says, and checks what every compute may rely on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use occ_host::drivers::types::{Failure, Observation, Outage, OutageKind, Phase, Progress, Reason, Revision};
use occ_host::drivers::{CallContext, CallResult, DriverError};
use occ_host::worker::compute::{Compute, Operation};
use serde_json::json;

/// What runs of one Agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// Revisions that stand.
    pub(crate) staged: BTreeSet<String>,
    /// The one that serves.
    pub(crate) serving: Option<String>,
}

/// One answer out of the ordinary.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Not ready yet.
    Waiting(&'static str),
    /// A dependency is down.
    Outage(&'static str),
    /// Try again.
    Retry(&'static str),
    /// Never.
    Permanent(&'static str),
    /// The component stopped itself.
    Trap,
    /// The breaker is open.
    Busy,
}

#[derive(Debug, Default)]
struct State {
    agents: BTreeMap<String, Runtime>,
    tenants: BTreeSet<String>,
    /// (operation, what it is about) -> answers to come.
    scripts: BTreeMap<(String, String), VecDeque<Answer>>,
    /// What stays broken, whatever was answered before.
    broken: BTreeMap<(String, String), Answer>,
    calls: Vec<(String, String)>,
    /// Highest epoch that wrote to an Agent or tenant.
    fences: BTreeMap<String, u64>,
    fenced: u64,
}

/// The double; shared between worker and test.
#[derive(Debug, Default)]
pub(crate) struct FakeCompute {
    state: Mutex<State>,
}

impl FakeCompute {
    /// The next answers to an operation about a revision, an Agent or a Namespace.
    pub(crate) fn script(&self, operation: &str, about: &str, answers: &[Answer]) {
        self.with(|state| {
            let key = (operation.to_owned(), about.to_owned());
            state.scripts.entry(key).or_default().extend(answers.iter().cloned());
        });
    }

    /// Every answer from now on, until [`heal`](Self::heal).
    pub(crate) fn fail_always(&self, operation: &str, about: &str, answer: Answer) {
        self.with(|state| state.broken.insert((operation.to_owned(), about.to_owned()), answer));
    }

    pub(crate) fn heal(&self) {
        self.with(|state| state.broken.clear());
    }

    /// Somebody else stops what serves.
    pub(crate) fn lose(&self, agent: &str) {
        self.with(|state| state.agents.remove(agent));
    }

    pub(crate) fn runtime(&self, agent: &str) -> Runtime {
        self.with(|state| state.agents.get(agent).cloned().unwrap_or_default())
    }

    pub(crate) fn has_tenant(&self, namespace: &str) -> bool {
        self.with(|state| state.tenants.contains(namespace))
    }

    /// Operations about one revision, Agent or Namespace, in order; repeats in a row are one.
    pub(crate) fn calls(&self, about: &str) -> Vec<String> {
        let mut calls: Vec<String> = self.with(|state| {
            state
                .calls
                .iter()
                .filter(|(_, subject)| subject == about)
                .map(|(operation, _)| operation.clone())
                .collect()
        });
        calls.dedup();
        calls
    }

    /// Writes that came with a lower epoch than an earlier one.
    pub(crate) fn fenced(&self) -> u64 {
        self.with(|state| state.fenced)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn decide(&self, call: &CallContext, operation: Operation<'_>) -> CallResult<Progress> {
        let (name, about) = named(operation);
        self.with(|state| {
            let lane = call.agent.clone().or_else(|| call.tenant.clone()).expect("a subject");
            let fence = state.fences.entry(lane).or_default();
            if call.epoch < *fence {
                state.fenced += 1;
                return Err(failure(Failure::Retry(reason("FENCED"))));
            }
            *fence = call.epoch;
            state.calls.push((name.to_owned(), about.clone()));
            let key = (name.to_owned(), about);
            let scripted = state.scripts.get_mut(&key).and_then(VecDeque::pop_front);
            if let Some(answer) = scripted.or_else(|| state.broken.get(&key).cloned()) {
                return answered(&answer);
            }
            apply(state, operation);
            Ok(Progress::Done)
        })
    }
}

fn apply(state: &mut State, operation: Operation<'_>) {
    match operation {
        Operation::EnsureTenant(tenant) => {
            state.tenants.insert(tenant.namespace_id.clone());
        }
        Operation::DeleteTenant(tenant) => {
            state.tenants.remove(&tenant.namespace_id);
        }
        Operation::Prepare(revision, _) => {
            runtime(state, revision).staged.insert(revision.reference.revision_id.clone());
        }
        Operation::Activate(revision) => {
            let id = revision.reference.revision_id.clone();
            let runtime = runtime(state, revision);
            assert!(runtime.staged.contains(&id), "activated without being prepared");
            runtime.serving = Some(id);
        }
        Operation::Deactivate(revision) => {
            let runtime = runtime(state, revision);
            runtime.serving = runtime.serving.take().filter(|id| *id != revision.reference.revision_id);
        }
        Operation::Retire(agent, gone, serving) => {
            let runtime = state.agents.entry(agent.agent_id.clone()).or_default();
            for reference in gone {
                assert_ne!(
                    serving.map(|it| &it.revision_id),
                    Some(&reference.revision_id),
                    "retires what serves"
                );
                runtime.staged.remove(&reference.revision_id);
                runtime.serving = runtime.serving.take().filter(|id| *id != reference.revision_id);
            }
        }
        Operation::Stop(agent) | Operation::Destroy(agent) => {
            state.agents.remove(&agent.agent_id);
        }
    }
}

fn runtime<'a>(state: &'a mut State, revision: &Revision) -> &'a mut Runtime {
    state.agents.entry(revision.agent.agent_id.clone()).or_default()
}

fn named(operation: Operation<'_>) -> (&'static str, String) {
    match operation {
        Operation::EnsureTenant(tenant) => ("ensure-tenant", tenant.namespace_id.clone()),
        Operation::DeleteTenant(tenant) => ("delete-tenant", tenant.namespace_id.clone()),
        Operation::Prepare(revision, _) => ("prepare", revision.reference.revision_id.clone()),
        Operation::Activate(revision) => ("activate", revision.reference.revision_id.clone()),
        Operation::Deactivate(revision) => ("deactivate", revision.reference.revision_id.clone()),
        Operation::Retire(agent, _, _) => ("retire", agent.agent_id.clone()),
        Operation::Stop(agent) => ("stop", agent.agent_id.clone()),
        Operation::Destroy(agent) => ("destroy", agent.agent_id.clone()),
    }
}

fn answered(answer: &Answer) -> CallResult<Progress> {
    match answer {
        Answer::Waiting(code) => Ok(Progress::Waiting(reason(code))),
        Answer::Outage(dependency) => {
            let dependency = (*dependency).to_owned();
            let outage = Outage { dependency, kind: OutageKind::Unreachable, retry_after_ms: Some(100) };
            Err(failure(Failure::Outage(outage)))
        }
        Answer::Retry(code) => Err(failure(Failure::Retry(reason(code)))),
        Answer::Permanent(code) => Err(failure(Failure::Permanent(reason(code)))),
        Answer::Trap => Err(DriverError::Trap("unreachable".to_owned())),
        Answer::Busy => Err(DriverError::Unavailable {
            retry_after: std::time::Duration::from_millis(100),
            why: occ_driver::Unavailable::BreakerOpen,
        }),
    }
}

fn failure(failure: Failure) -> DriverError {
    DriverError::Failure(failure)
}

fn reason(code: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        message: "As the test says.".to_owned(),
        data: Some(json!({ "exitCode": 78 })),
    }
}

impl Compute for FakeCompute {
    fn run<'a>(
        &'a self,
        call: &'a CallContext,
        operation: Operation<'a>,
    ) -> BoxFuture<'a, CallResult<Progress>> {
        let answer = self.decide(call, operation);
        Box::pin(async move { answer })
    }

    fn observe<'a>(
        &'a self,
        _call: &'a CallContext,
        revision: &'a Revision,
    ) -> BoxFuture<'a, CallResult<Observation>> {
        let runtime = self.runtime(&revision.agent.agent_id);
        let serves = runtime.serving.as_ref() == Some(&revision.reference.revision_id);
        let phase = if serves { Phase::Ready } else { Phase::Absent };
        Box::pin(async move {
            Ok(Observation { phase, instances: Vec::new(), drift: Vec::new(), held_failure: None })
        })
    }

    fn takes_over(&self, plugin: &str, version: &str) -> bool {
        plugin == "compute-fake" && version.starts_with("1.")
    }

    fn harness_approved(&self, plugin: &str) -> bool {
        plugin == "harness-fake"
    }
}
