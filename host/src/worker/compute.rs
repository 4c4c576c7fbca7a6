//! What the worker asks of a compute: one call for what changes, one for what looks.
//!
//! The selected plugin is behind it in production; tests put a double there, because the steps are
//! about what a compute may answer, not about how one works.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::drivers::types::{Agent, Observation, Progress, Revision, RevisionRef, Tenant};
use crate::drivers::{CallContext, CallResult, Drivers};

/// One call that may change the world. Each is safe to repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operation<'a> {
    /// Make the tenant's boundary stand.
    EnsureTenant(&'a Tenant),
    /// Remove the boundary of an empty tenant.
    DeleteTenant(&'a Tenant),
    /// Stage a revision beside the serving one.
    Prepare(&'a Revision, Option<&'a RevisionRef>),
    /// Make a prepared revision the one that serves.
    Activate(&'a Revision),
    /// Take a revision out of service.
    Deactivate(&'a Revision),
    /// Remove what revisions own, never what the serving one uses.
    Retire(&'a Agent, &'a [RevisionRef], Option<&'a RevisionRef>),
    /// Stop everything of the agent; keep its state.
    Stop(&'a Agent),
    /// Remove everything of the agent.
    Destroy(&'a Agent),
}

/// A compute as the worker sees it.
pub trait Compute: Send + Sync + 'static {
    /// Makes one step towards the wanted state, and says how far it is.
    fn run<'a>(
        &'a self,
        call: &'a CallContext,
        operation: Operation<'a>,
    ) -> BoxFuture<'a, CallResult<Progress>>;
    /// What stands of a revision.
    fn observe<'a>(
        &'a self,
        call: &'a CallContext,
        revision: &'a Revision,
    ) -> BoxFuture<'a, CallResult<Observation>>;
    /// Does it run revisions that this version of this plugin froze?
    fn takes_over(&self, plugin: &str, version: &str) -> bool;
    /// Is the harness still one of the Installation's?
    fn harness_approved(&self, plugin: &str) -> bool;
}

impl Compute for Drivers {
    fn run<'a>(
        &'a self,
        call: &'a CallContext,
        operation: Operation<'a>,
    ) -> BoxFuture<'a, CallResult<Progress>> {
        Box::pin(async move {
            match operation {
                Operation::EnsureTenant(tenant) => self.compute.ensure_tenant(call, tenant).await,
                Operation::DeleteTenant(tenant) => self.compute.delete_tenant(call, tenant).await,
                Operation::Prepare(revision, serving) => self.compute.prepare(call, revision, serving).await,
                Operation::Activate(revision) => self.compute.activate(call, revision).await,
                Operation::Deactivate(revision) => self.compute.deactivate(call, revision).await,
                Operation::Retire(agent, gone, serving) => {
                    self.compute.retire(call, agent, gone, serving).await
                }
                Operation::Stop(agent) => self.compute.stop(call, agent).await,
                Operation::Destroy(agent) => self.compute.destroy(call, agent).await,
            }
        })
    }

    fn observe<'a>(
        &'a self,
        call: &'a CallContext,
        revision: &'a Revision,
    ) -> BoxFuture<'a, CallResult<Observation>> {
        Box::pin(self.compute.observe(call, revision))
    }

    fn takes_over(&self, plugin: &str, version: &str) -> bool {
        self.compute.identity().takes_over(plugin, version)
    }

    fn harness_approved(&self, plugin: &str) -> bool {
        self.harness(plugin).is_some()
    }
}

impl<T: Compute> Compute for Arc<T> {
    fn run<'a>(
        &'a self,
        call: &'a CallContext,
        operation: Operation<'a>,
    ) -> BoxFuture<'a, CallResult<Progress>> {
        T::run(self, call, operation)
    }

    fn observe<'a>(
        &'a self,
        call: &'a CallContext,
        revision: &'a Revision,
    ) -> BoxFuture<'a, CallResult<Observation>> {
        T::observe(self, call, revision)
    }

    fn takes_over(&self, plugin: &str, version: &str) -> bool {
        T::takes_over(self, plugin, version)
    }

    fn harness_approved(&self, plugin: &str) -> bool {
        T::harness_approved(self, plugin)
    }
}
