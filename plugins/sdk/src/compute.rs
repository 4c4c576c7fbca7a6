//! Compute drivers: where and how a workload plan runs.

use std::marker::PhantomData;

use serde_json::Value;

use crate::bindings::compute::{
    Agent, Instance, LogLine, LogRequest, Observation, Revision, RevisionRef, Tenant,
};
use crate::bindings::types::{Failure, Progress, SettingProblem};
use crate::bindings::workload::Plan;
use crate::{Host, Plugin};

/// A compute driver. Every reconciling call is repeated until it answers `done`, may be
/// cut at any point and then runs again, and must find its own traces.
#[expect(clippy::missing_errors_doc, reason = "failures are the same for all: see the contract's `failure`")]
pub trait Compute: Plugin {
    /// Pure. `{bind: loopback|lan, gatewayPort, trustedProxies[]}`, closed.
    fn platform(host: &dyn Host) -> Result<Value, Failure>;
    /// Pure. What of this plan cannot run here; paths point into the plan.
    fn check_plan(host: &dyn Host, plan: &Plan) -> Vec<SettingProblem>;
    /// Makes the tenant's boundary stand.
    fn ensure_tenant(host: &dyn Host, tenant: &Tenant) -> Result<Progress, Failure>;
    /// Removes the boundary of an empty tenant.
    fn delete_tenant(host: &dyn Host, tenant: &Tenant) -> Result<Progress, Failure>;
    /// Stages a revision beside the serving one without disturbing it.
    fn prepare(
        host: &dyn Host,
        revision: &Revision,
        serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure>;
    /// Makes a prepared revision the one that serves.
    fn activate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure>;
    /// Takes a revision out of service; keeps what it stored.
    fn deactivate(host: &dyn Host, revision: &Revision) -> Result<Progress, Failure>;
    /// Removes what revisions own, never what the serving one uses.
    fn retire(
        host: &dyn Host,
        agent: &Agent,
        gone: &[RevisionRef],
        serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure>;
    /// Stops everything of the agent; keeps its state.
    fn stop(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure>;
    /// Removes everything of the agent, its state included.
    fn destroy(host: &dyn Host, agent: &Agent) -> Result<Progress, Failure>;
    /// What stands, compared with what the plan wants. Writes nothing.
    fn observe(host: &dyn Host, revision: &Revision) -> Result<Observation, Failure>;
    /// Where the revision runs. Writes nothing.
    fn locate(host: &dyn Host, revision: &Revision) -> Result<Vec<Instance>, Failure>;
    /// `{pods[], endpoints[]?, sources[]}` as the API's Runtime resource has them.
    fn runtime(host: &dyn Host, revision: &Revision) -> Result<Value, Failure>;
    /// Output of the revision, oldest line first.
    fn read_logs(host: &dyn Host, revision: &Revision, request: &LogRequest)
    -> Result<Vec<LogLine>, Failure>;
}

/// Adapts a [`Compute`] to the contract; [`crate::export!`] names it.
#[derive(Debug)]
pub struct Exported<T>(PhantomData<T>);

#[cfg(target_family = "wasm")]
mod adapter {
    use super::*;
    use crate::bindings::compute_driver::exports::occ::plugin::{compute, driver};
    use crate::bindings::types::Reason;
    use crate::host::Component;

    impl<T: Compute> driver::Guest for Exported<T> {
        fn describe() -> driver::Description {
            driver::Description {
                name: T::NAME.to_owned(),
                version: T::VERSION.to_owned(),
                settings_schema: T::SETTINGS_SCHEMA.to_owned(),
            }
        }

        fn check_settings(settings: String) -> Vec<SettingProblem> {
            T::check_settings(&serde_json::from_str(&settings).unwrap_or(Value::Null))
        }

        fn preflight() -> Result<Vec<Reason>, Failure> {
            T::preflight(&Component)
        }
    }

    impl<T: Compute> compute::Guest for Exported<T> {
        fn platform() -> Result<String, Failure> {
            T::platform(&Component).map(|facts| facts.to_string())
        }

        fn check_plan(plan: Plan) -> Vec<SettingProblem> {
            T::check_plan(&Component, &plan)
        }

        fn ensure_tenant(tenant: Tenant) -> Result<Progress, Failure> {
            T::ensure_tenant(&Component, &tenant)
        }

        fn delete_tenant(tenant: Tenant) -> Result<Progress, Failure> {
            T::delete_tenant(&Component, &tenant)
        }

        fn prepare(revision: Revision, serving: Option<RevisionRef>) -> Result<Progress, Failure> {
            T::prepare(&Component, &revision, serving.as_ref())
        }

        fn activate(revision: Revision) -> Result<Progress, Failure> {
            T::activate(&Component, &revision)
        }

        fn deactivate(revision: Revision) -> Result<Progress, Failure> {
            T::deactivate(&Component, &revision)
        }

        fn retire(
            agent: Agent,
            gone: Vec<RevisionRef>,
            serving: Option<RevisionRef>,
        ) -> Result<Progress, Failure> {
            T::retire(&Component, &agent, &gone, serving.as_ref())
        }

        fn stop(agent: Agent) -> Result<Progress, Failure> {
            T::stop(&Component, &agent)
        }

        fn destroy(agent: Agent) -> Result<Progress, Failure> {
            T::destroy(&Component, &agent)
        }

        fn observe(revision: Revision) -> Result<Observation, Failure> {
            T::observe(&Component, &revision)
        }

        fn locate(revision: Revision) -> Result<Vec<Instance>, Failure> {
            T::locate(&Component, &revision)
        }

        fn runtime(revision: Revision) -> Result<String, Failure> {
            T::runtime(&Component, &revision).map(|document| document.to_string())
        }

        fn read_logs(revision: Revision, request: LogRequest) -> Result<Vec<LogLine>, Failure> {
            T::read_logs(&Component, &revision, &request)
        }
    }
}
