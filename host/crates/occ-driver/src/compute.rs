//! A loaded compute driver, as the host calls it.

use std::sync::Arc;

use serde_json::Value;

use crate::abi::{Answer, Call, Kind};
use crate::call::CallContext;
use crate::error::{CallResult, DriverError};
use crate::load::{self, LoadError};
use crate::plugin::Plugin;
use crate::types::{
    Agent, Instance, LogLine, LogRequest, Observation, Plan, PlatformFacts, PluginIdentity, Progress,
    Revision, RevisionRef, SettingProblem, Tenant,
};

/// A compute driver that passed every check of loading.
///
/// Each call runs in a fresh instance. The callee fills in the context's `plugin` and
/// `operation` and shortens its deadline to the operation's limit.
#[derive(Debug)]
pub struct Compute {
    plugin: Arc<Plugin>,
    platform: PlatformFacts,
}

/// The answer of one variant; another variant is a defect of an adapter.
macro_rules! answer {
    ($result:expr, $variant:path) => {
        match $result? {
            $variant(answer) => Ok(answer),
            _ => Err(DriverError::Contract("another answer was due".to_owned())),
        }
    };
}
pub(crate) use answer;

impl Compute {
    /// Asks a loaded plugin for its platform.
    ///
    /// # Errors
    /// When it is of another kind or does not answer.
    pub async fn new(plugin: Arc<Plugin>) -> Result<Self, LoadError> {
        let kind = plugin.origin.kind;
        if kind != Kind::Compute {
            return Err(LoadError::NotSelected {
                found: format!("a {kind}"),
                wanted: "a compute".to_owned(),
            });
        }
        let platform: CallResult<_> =
            async { answer!(plugin.call_pure(Call::Platform).await, Answer::Platform) }.await;
        let platform = platform.map_err(|error| LoadError::Call { operation: "platform", error })?;
        Ok(Self { plugin, platform })
    }

    /// Calls `preflight`; its warnings are logged.
    ///
    /// # Errors
    /// The plugin says that it cannot work.
    pub async fn preflight(&self) -> Result<(), LoadError> {
        load::preflight(&self.plugin).await.map(|_| ())
    }

    /// The plugin behind it.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// Id, version and digest, as a revision records them.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        self.plugin.identity()
    }

    /// What the platform decides for every agent; read when the plugin was loaded.
    #[must_use]
    pub fn platform(&self) -> &PlatformFacts {
        &self.platform
    }

    async fn progress(&self, cx: &CallContext, call: Call) -> CallResult<Progress> {
        answer!(self.plugin.call(cx, call).await, Answer::Progress)
    }

    /// Can this platform run the plan? Empty means yes. Pure.
    pub async fn check_plan(&self, plan: &Plan) -> CallResult<Vec<SettingProblem>> {
        answer!(self.plugin.call_pure(Call::CheckPlan(plan.clone())).await, Answer::Problems)
    }

    /// Makes the tenant's boundary stand; before anything else of it.
    pub async fn ensure_tenant(&self, cx: &CallContext, tenant: &Tenant) -> CallResult<Progress> {
        self.progress(cx, Call::EnsureTenant(tenant.clone())).await
    }

    /// Removes the boundary of an empty tenant.
    pub async fn delete_tenant(&self, cx: &CallContext, tenant: &Tenant) -> CallResult<Progress> {
        self.progress(cx, Call::DeleteTenant(tenant.clone())).await
    }

    /// Stages a revision beside the serving one without disturbing it.
    pub async fn prepare(
        &self,
        cx: &CallContext,
        revision: &Revision,
        serving: Option<&RevisionRef>,
    ) -> CallResult<Progress> {
        self.progress(cx, Call::Prepare(revision.clone(), serving.cloned())).await
    }

    /// Makes a prepared revision the one that serves.
    pub async fn activate(&self, cx: &CallContext, revision: &Revision) -> CallResult<Progress> {
        self.progress(cx, Call::Activate(revision.clone())).await
    }

    /// Takes a revision out of service; keeps what it stored.
    pub async fn deactivate(&self, cx: &CallContext, revision: &Revision) -> CallResult<Progress> {
        self.progress(cx, Call::Deactivate(revision.clone())).await
    }

    /// Removes what revisions own, never what the serving one uses.
    pub async fn retire(
        &self,
        cx: &CallContext,
        agent: &Agent,
        gone: &[RevisionRef],
        serving: Option<&RevisionRef>,
    ) -> CallResult<Progress> {
        self.progress(cx, Call::Retire(agent.clone(), gone.to_vec(), serving.cloned())).await
    }

    /// Stops everything of the agent; keeps its state.
    pub async fn stop(&self, cx: &CallContext, agent: &Agent) -> CallResult<Progress> {
        self.progress(cx, Call::Stop(agent.clone())).await
    }

    /// Removes everything of the agent, its state included.
    pub async fn destroy(&self, cx: &CallContext, agent: &Agent) -> CallResult<Progress> {
        self.progress(cx, Call::Destroy(agent.clone())).await
    }

    /// What stands of a revision.
    pub async fn observe(&self, cx: &CallContext, revision: &Revision) -> CallResult<Observation> {
        answer!(self.plugin.call(cx, Call::Observe(revision.clone())).await, Answer::Observation)
    }

    /// Where the parts of a revision run.
    pub async fn locate(&self, cx: &CallContext, revision: &Revision) -> CallResult<Vec<Instance>> {
        answer!(self.plugin.call(cx, Call::Locate(revision.clone())).await, Answer::Instances)
    }

    /// `{pods[], endpoints[]}` as the API's Runtime resource has them.
    pub async fn runtime(&self, cx: &CallContext, revision: &Revision) -> CallResult<Value> {
        answer!(self.plugin.call(cx, Call::Runtime(revision.clone())).await, Answer::Document)
    }

    /// Lines of a revision's output, oldest first.
    pub async fn read_logs(
        &self,
        cx: &CallContext,
        revision: &Revision,
        request: &LogRequest,
    ) -> CallResult<Vec<LogLine>> {
        answer!(self.plugin.call(cx, Call::ReadLogs(revision.clone(), *request)).await, Answer::Lines)
    }
}
