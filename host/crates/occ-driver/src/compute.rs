//! A loaded compute driver, as the host calls it.

use crate::call::CallContext;
use crate::error::{CallResult, DriverError, Unavailable};
use crate::types::{
    Agent, Instance, LogLine, LogRequest, Observation, Plan, PlatformFacts, PluginIdentity,
    Progress, Revision, RevisionRef, SettingProblem, Tenant,
};

/// A compute driver that passed every check of loading.
///
/// Each call runs in a fresh instance. The callee fills in the context's `plugin` and
/// `operation` and shortens its deadline to the operation's limit.
#[derive(Debug)]
pub struct Compute {
    identity: PluginIdentity,
    platform: PlatformFacts,
}

fn unbuilt<T>() -> CallResult<T> {
    Err(DriverError::Unavailable {
        retry_after: std::time::Duration::from_secs(60),
        why: Unavailable::BreakerOpen,
    })
}

#[expect(clippy::unused_async, reason = "signatures first")]
impl Compute {
    /// Id, version and digest, as a revision records them.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    /// What the platform decides for every agent; read when the plugin was loaded.
    #[must_use]
    pub fn platform(&self) -> &PlatformFacts {
        &self.platform
    }

    /// Can this platform run the plan? Empty means yes. Pure.
    pub async fn check_plan(&self, _plan: &Plan) -> CallResult<Vec<SettingProblem>> {
        unbuilt()
    }

    /// Makes the tenant's boundary stand; before anything else of it.
    pub async fn ensure_tenant(&self, _cx: &CallContext, _tenant: &Tenant) -> CallResult<Progress> {
        unbuilt()
    }

    /// Removes the boundary of an empty tenant.
    pub async fn delete_tenant(&self, _cx: &CallContext, _tenant: &Tenant) -> CallResult<Progress> {
        unbuilt()
    }

    /// Stages a revision beside the serving one without disturbing it.
    pub async fn prepare(
        &self,
        _cx: &CallContext,
        _revision: &Revision,
        _serving: Option<&RevisionRef>,
    ) -> CallResult<Progress> {
        unbuilt()
    }

    /// Makes a prepared revision the one that serves.
    pub async fn activate(&self, _cx: &CallContext, _revision: &Revision) -> CallResult<Progress> {
        unbuilt()
    }

    /// Takes a revision out of service; keeps what it stored.
    pub async fn deactivate(&self, _cx: &CallContext, _revision: &Revision) -> CallResult<Progress> {
        unbuilt()
    }

    /// Removes what revisions own, never what the serving one uses.
    pub async fn retire(
        &self,
        _cx: &CallContext,
        _agent: &Agent,
        _gone: &[RevisionRef],
        _serving: Option<&RevisionRef>,
    ) -> CallResult<Progress> {
        unbuilt()
    }

    /// Stops everything of the agent; keeps its state.
    pub async fn stop(&self, _cx: &CallContext, _agent: &Agent) -> CallResult<Progress> {
        unbuilt()
    }

    /// Removes everything of the agent, its state included.
    pub async fn destroy(&self, _cx: &CallContext, _agent: &Agent) -> CallResult<Progress> {
        unbuilt()
    }

    /// What stands of a revision.
    pub async fn observe(&self, _cx: &CallContext, _revision: &Revision) -> CallResult<Observation> {
        unbuilt()
    }

    /// Where the parts of a revision run.
    pub async fn locate(&self, _cx: &CallContext, _revision: &Revision) -> CallResult<Vec<Instance>> {
        unbuilt()
    }

    /// `{pods[], endpoints[]}` as the API's Runtime resource has them.
    pub async fn runtime(
        &self,
        _cx: &CallContext,
        _revision: &Revision,
    ) -> CallResult<serde_json::Value> {
        unbuilt()
    }

    /// Lines of a revision's output, oldest first.
    pub async fn read_logs(
        &self,
        _cx: &CallContext,
        _revision: &Revision,
        _request: &LogRequest,
    ) -> CallResult<Vec<LogLine>> {
        unbuilt()
    }
}
