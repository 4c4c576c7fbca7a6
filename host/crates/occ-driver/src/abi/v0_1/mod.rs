//! Version 0.1 of the contract. It may still change until the first release.

mod bindings;
mod host;
mod input;
mod output;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};

use super::{Answer, Bound, Call, Contract, Fault, Kind};
use crate::engine::Engine;
use crate::error::DriverError;
use crate::state::CallState;
use bindings::exports::occ::plugin::{compute, driver, harness};
use bindings::occ::plugin::{kubernetes, log, process, settings};

/// The adapter.
pub(super) struct V0_1;

const DRIVER: (&str, &[&str]) = ("driver", &["describe", "check-settings", "preflight"]);
const COMPUTE: (&str, &[&str]) = (
    "compute",
    &[
        "platform",
        "check-plan",
        "ensure-tenant",
        "delete-tenant",
        "prepare",
        "activate",
        "deactivate",
        "retire",
        "stop",
        "destroy",
        "observe",
        "locate",
        "runtime",
        "read-logs",
    ],
);
const HARNESS: (&str, &[&str]) = ("harness", &["resolve"]);
const BACKEND: (&str, &[&str]) = ("backend", &["list-models", "probe"]);
const REPO: (&str, &[&str]) = (
    "repo",
    &["maintenance-interval-ms", "list-options", "admit", "open-session", "session-state", "close-session"],
);

impl Contract for V0_1 {
    fn version(&self) -> (u64, u64) {
        (0, 1)
    }

    fn exports(&self, kind: Kind) -> &'static [(&'static str, &'static [&'static str])] {
        match kind {
            Kind::Compute => &[DRIVER, COMPUTE],
            Kind::Harness => &[DRIVER, HARNESS],
            Kind::Backend => &[DRIVER, BACKEND],
            Kind::Repo => &[DRIVER, REPO],
        }
    }

    fn bind(&self, engine: &Engine, kind: Kind, component: &Component) -> wasmtime::Result<Box<dyn Bound>> {
        let mut linker = Linker::<CallState>::new(engine.wasmtime());
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        log::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        settings::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        kubernetes::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        process::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        let instance_pre = linker.instantiate_pre(component)?;
        let driver = driver::GuestIndices::new(&instance_pre)?;
        let (compute, harness) = match kind {
            Kind::Compute => (Some(compute::GuestIndices::new(&instance_pre)?), None),
            Kind::Harness => (None, Some(harness::GuestIndices::new(&instance_pre)?)),
            Kind::Backend | Kind::Repo => (None, None),
        };
        Ok(Box::new(Component0 { instance_pre, driver, compute, harness }))
    }
}

struct Component0 {
    instance_pre: InstancePre<CallState>,
    driver: driver::GuestIndices,
    compute: Option<compute::GuestIndices>,
    harness: Option<harness::GuestIndices>,
}

impl Bound for Component0 {
    fn call<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        call: Call,
    ) -> BoxFuture<'a, Result<Answer, Fault>> {
        match call {
            call @ (Call::Describe | Call::CheckSettings(_) | Call::Preflight) => {
                self.driver(store, call).boxed()
            }
            Call::Resolve(request) => self.resolve(store, request).boxed(),
            call => self.compute(store, call).boxed(),
        }
    }
}

fn wrong_kind() -> DriverError {
    DriverError::Contract("the component is of another kind".to_owned())
}

impl Component0 {
    async fn driver(&self, store: &mut Store<CallState>, call: Call) -> Result<Answer, Fault> {
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        let guest = self.driver.load(&mut *store, &instance)?;
        Ok(match call {
            Call::Describe => Answer::Description(output::description(guest.call_describe(store).await?)?),
            Call::CheckSettings(settings) => Answer::Problems(output::problems(
                guest.call_check_settings(store, &input::json(&settings)).await?,
            )),
            _ => Answer::Warnings(output::reasons(
                guest.call_preflight(store).await?.map_err(output::failure)?,
            )?),
        })
    }

    async fn resolve(
        &self,
        store: &mut Store<CallState>,
        request: crate::types::HarnessRequest,
    ) -> Result<Answer, Fault> {
        let indices = self.harness.as_ref().ok_or_else(wrong_kind)?;
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        let guest = indices.load(&mut *store, &instance)?;
        let answer = guest.call_resolve(store, &input::request(&request)).await?;
        Ok(Answer::Resolved(match answer {
            Ok(plan) => Ok(output::plan(plan)?),
            Err(refusal) => Err(output::refusal(refusal)),
        }))
    }

    async fn compute(&self, store: &mut Store<CallState>, call: Call) -> Result<Answer, Fault> {
        let indices = self.compute.as_ref().ok_or_else(wrong_kind)?;
        let instance = self.instance_pre.instantiate_async(&mut *store).await?;
        let guest = indices.load(&mut *store, &instance)?;
        let progress = match call {
            Call::EnsureTenant(tenant) => guest.call_ensure_tenant(store, &input::tenant(tenant)).await?,
            Call::DeleteTenant(tenant) => guest.call_delete_tenant(store, &input::tenant(tenant)).await?,
            Call::Prepare(revision, serving) => {
                let serving = serving.map(input::reference);
                guest.call_prepare(store, &input::revision(revision), serving.as_ref()).await?
            }
            Call::Activate(revision) => guest.call_activate(store, &input::revision(revision)).await?,
            Call::Deactivate(revision) => guest.call_deactivate(store, &input::revision(revision)).await?,
            Call::Retire(agent, gone, serving) => {
                let gone: Vec<_> = gone.into_iter().map(input::reference).collect();
                let serving = serving.map(input::reference);
                guest.call_retire(store, &input::agent(agent), &gone, serving.as_ref()).await?
            }
            Call::Stop(agent) => guest.call_stop(store, &input::agent(agent)).await?,
            Call::Destroy(agent) => guest.call_destroy(store, &input::agent(agent)).await?,
            reading => return read(&guest, store, reading).await,
        };
        Ok(Answer::Progress(output::progress(progress.map_err(output::failure)?)?))
    }
}

/// The functions that change nothing.
async fn read(guest: &compute::Guest, store: &mut Store<CallState>, call: Call) -> Result<Answer, Fault> {
    Ok(match call {
        Call::Platform => {
            Answer::Platform(output::platform(&guest.call_platform(store).await?.map_err(output::failure)?)?)
        }
        Call::CheckPlan(plan) => {
            Answer::Problems(output::problems(guest.call_check_plan(store, &input::plan(plan)).await?))
        }
        Call::Observe(revision) => {
            let observation = guest.call_observe(store, &input::revision(revision)).await?;
            Answer::Observation(output::observation(observation.map_err(output::failure)?)?)
        }
        Call::Locate(revision) => {
            let instances = guest.call_locate(store, &input::revision(revision)).await?;
            Answer::Instances(output::instances(instances.map_err(output::failure)?)?)
        }
        Call::Runtime(revision) => {
            let document = guest.call_runtime(store, &input::revision(revision)).await?;
            Answer::Document(output::json(&document.map_err(output::failure)?, "runtime")?)
        }
        Call::ReadLogs(revision, request) => {
            let request = input::log_request(request);
            let lines = guest.call_read_logs(store, &input::revision(revision), request).await?;
            Answer::Lines(output::lines(lines.map_err(output::failure)?))
        }
        _ => return Err(wrong_kind().into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables that explain a mismatch are those of the contract's text.
    #[test]
    fn tables_are_the_contracts() {
        let text = include_str!("../../../../../../wit/occ-plugin/v0.1/driver.wit");
        for (interface, functions) in [DRIVER, COMPUTE, HARNESS, BACKEND, REPO] {
            let start = text.find(&format!("interface {interface} {{")).unwrap();
            let body = &text[start..];
            let body = &body[..body.find("\n}").unwrap()];
            let found: Vec<&str> = body
                .lines()
                .filter_map(|line| line.trim().split_once(": func("))
                .map(|(name, _)| name.trim_start_matches('%'))
                .collect();
            assert_eq!(found, functions, "{interface}");
        }
    }
}
