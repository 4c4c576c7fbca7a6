//! One adapter for each living version of the contract, behind one trait.
//!
//! **Generated types never leave this module.** The rest of the host knows [`Call`] and
//! [`Answer`], made of its own types. The version of a component is read from its bytes
//! (`inspect`) before anything compiles it; it decides which adapter binds it.

mod v0_1;

use futures_util::future::BoxFuture;
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Component;

use crate::engine::Engine;
use crate::error::DriverError;
use crate::state::CallState;
use crate::types::{
    Agent, Description, HarnessRequest, Instance, LogLine, LogRequest, Observation, Plan, PlatformFacts,
    Progress, Reason, Refusal, Revision, RevisionRef, SettingProblem, Tenant,
};

/// What a plugin is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Realises workload plans.
    Compute,
    /// Turns configurations into workload plans.
    Harness,
    /// A provider of models.
    Backend,
    /// A source of repositories.
    Repo,
}

impl Kind {
    /// Lower-case name, as manifests and the API have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Harness => "harness",
            Self::Backend => "backend",
            Self::Repo => "repo",
        }
    }

    /// The world of the contract that a component of this kind implements.
    #[must_use]
    pub fn world(self) -> &'static str {
        match self {
            Self::Compute => "compute-driver",
            Self::Harness => "harness-resolver",
            Self::Backend => "backend-driver",
            Self::Repo => "repo-driver",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One call of the contract with everything that it takes.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Describe,
    CheckSettings(Value),
    Preflight,
    Platform,
    CheckPlan(Plan),
    EnsureTenant(Tenant),
    DeleteTenant(Tenant),
    Prepare(Revision, Option<RevisionRef>),
    Activate(Revision),
    Deactivate(Revision),
    Retire(Agent, Vec<RevisionRef>, Option<RevisionRef>),
    Stop(Agent),
    Destroy(Agent),
    Observe(Revision),
    Locate(Revision),
    Runtime(Revision),
    ReadLogs(Revision, LogRequest),
    Resolve(HarnessRequest),
}

impl Call {
    /// Name of the function in the contract.
    pub(crate) fn operation(&self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::CheckSettings(_) => "check-settings",
            Self::Preflight => "preflight",
            Self::Platform => "platform",
            Self::CheckPlan(_) => "check-plan",
            Self::EnsureTenant(_) => "ensure-tenant",
            Self::DeleteTenant(_) => "delete-tenant",
            Self::Prepare(..) => "prepare",
            Self::Activate(_) => "activate",
            Self::Deactivate(_) => "deactivate",
            Self::Retire(..) => "retire",
            Self::Stop(_) => "stop",
            Self::Destroy(_) => "destroy",
            Self::Observe(_) => "observe",
            Self::Locate(_) => "locate",
            Self::Runtime(_) => "runtime",
            Self::ReadLogs(..) => "read-logs",
            Self::Resolve(_) => "resolve",
        }
    }

    /// Pure calls have the same random numbers each time and are about no tenant.
    pub(crate) fn is_pure(&self) -> bool {
        matches!(
            self,
            Self::Describe | Self::CheckSettings(_) | Self::Platform | Self::CheckPlan(_) | Self::Resolve(_)
        )
    }
}

/// What a call answers; the variant belongs to the call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Description(Description),
    Problems(Vec<SettingProblem>),
    Warnings(Vec<Reason>),
    Platform(PlatformFacts),
    Progress(Progress),
    Observation(Observation),
    Instances(Vec<Instance>),
    Document(Value),
    Lines(Vec<LogLine>),
    Resolved(Result<Plan, Refusal>),
}

/// Why a call has no answer, before the store's own verdict is asked.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Wasmtime ended the call.
    Engine(wasmtime::Error),
    /// The call ended, but not as the contract says.
    Driver(DriverError),
}

impl From<wasmtime::Error> for Fault {
    fn from(error: wasmtime::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<DriverError> for Fault {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

/// A living version of the contract.
pub(crate) trait Contract: Send + Sync {
    /// Major and minor number.
    fn version(&self) -> (u64, u64);
    /// Interfaces that a component of this kind exports, with the functions of each.
    fn exports(&self, kind: Kind) -> &'static [(&'static str, &'static [&'static str])];
    /// Links a component of this kind, once for all of its calls.
    fn bind(&self, engine: &Engine, kind: Kind, component: &Component) -> wasmtime::Result<Box<dyn Bound>>;
}

/// A component that was linked and can be instantiated for each call.
pub(crate) trait Bound: Send + Sync {
    /// Instantiates in the store and calls.
    fn call<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        call: Call,
    ) -> BoxFuture<'a, Result<Answer, Fault>>;
}

/// Living versions, newest first.
static CONTRACTS: [&dyn Contract; 1] = [&v0_1::V0_1];

/// The adapter of a version.
pub(crate) fn contract(version: (u64, u64)) -> Option<&'static dyn Contract> {
    CONTRACTS.iter().copied().find(|contract| contract.version() == version)
}

/// Versions that this host offers, newest first, such as `0.1`.
#[must_use]
pub fn versions() -> Vec<String> {
    CONTRACTS
        .iter()
        .map(|contract| contract.version())
        .map(|(major, minor)| format!("{major}.{minor}"))
        .collect()
}
