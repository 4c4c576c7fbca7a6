//! The component under test: each check makes a fresh plugin of it, with fresh doubles.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::double::FakeSupervisor;
use super::fixture;
use crate::abi::{Answer, Call};
use crate::call::CallContext;
use crate::capability::process::ProcessGrant;
use crate::capability::{Granted, ProcessSupervisor};
use crate::limits::CallLimits;
use crate::load::{self, Prepared, Services};
use crate::plugin::{Origin, Plugin};
use crate::types::{Description, PluginIdentity, Progress};

/// Wall time of one call; a right component answers doubles at once.
const WALL: Duration = Duration::from_secs(5);
/// Calls until a reconciling call must have come to its end.
const LOOKS_MAX: usize = 20;

pub(super) struct Subject {
    services: Services,
    prepared: Prepared,
    settings: Value,
    description: Description,
}

/// One plugin with its doubles.
pub(super) struct World {
    pub(super) plugin: Plugin,
    pub(super) processes: Arc<FakeSupervisor>,
}

impl Subject {
    pub(super) async fn new(
        services: &Services,
        prepared: Prepared,
        settings: Option<&Value>,
    ) -> Result<Self, String> {
        let bare = make(services, &prepared, &json!({}), limits()).plugin;
        let description = match bare.call_pure(Call::Describe).await {
            Ok(Answer::Description(description)) => description,
            Ok(_) => return Err("describe answers something else".to_owned()),
            Err(error) => return Err(format!("describe: {error}")),
        };
        let example =
            || description.settings_schema.pointer("/examples/0").cloned().unwrap_or_else(|| json!({}));
        let settings = settings.cloned().unwrap_or_else(example);
        Ok(Self { services: services.clone(), prepared, settings, description })
    }

    pub(super) fn settings(&self) -> &Value {
        &self.settings
    }

    pub(super) fn description(&self) -> &Description {
        &self.description
    }

    /// A plugin that nothing was asked of yet.
    pub(super) fn world(&self) -> World {
        make(&self.services, &self.prepared, &self.settings, limits())
    }

    /// The same with other bounds; the doubles may be another world's.
    pub(super) fn bounded(&self, limits: CallLimits, processes: Arc<FakeSupervisor>) -> World {
        let granted = granted(&self.settings, Arc::clone(&processes));
        World { plugin: assembled(&self.services, &self.prepared, granted, limits), processes }
    }

    /// The settings against the schema and the plugin's own rules.
    pub(super) async fn check_settings(&self, settings: &Value) -> Result<(), String> {
        let mut plugin = self.world().plugin;
        load::check_settings(&mut plugin, settings).await.map_err(|error| error.to_string())
    }
}

pub(super) fn limits() -> CallLimits {
    CallLimits { wall: WALL, wall_reconcile: WALL, ..CallLimits::default() }
}

fn make(services: &Services, prepared: &Prepared, settings: &Value, limits: CallLimits) -> World {
    let processes = Arc::new(FakeSupervisor::default());
    let granted = granted(settings, Arc::clone(&processes));
    World { plugin: assembled(services, prepared, granted, limits), processes }
}

fn granted(settings: &Value, processes: Arc<FakeSupervisor>) -> Granted {
    let supervisor: Arc<dyn ProcessSupervisor> = processes;
    Granted::new("under-test".to_owned(), settings.to_string(), Some((supervisor, ProcessGrant::default())))
}

fn assembled(services: &Services, prepared: &Prepared, granted: Granted, limits: CallLimits) -> Plugin {
    let identity = PluginIdentity {
        id: "under-test".to_owned(),
        version: semver::Version::new(0, 0, 0),
        digest: format!("sha256:{}", prepared.sha256),
        accepts: semver::VersionReq::STAR,
    };
    let origin = Origin {
        kind: prepared.kind,
        contract: prepared.contract.to_string(),
        bundle: String::new(),
        standing: "unsigned",
        compiled: prepared.loaded.compiled,
        codes: Vec::new(),
    };
    let prepared = Prepared {
        kind: prepared.kind,
        contract: prepared.contract.clone(),
        sha256: prepared.sha256.clone(),
        bound: Arc::clone(&prepared.bound),
        memories: prepared.memories,
        loaded: prepared.loaded,
    };
    load::assemble(services, prepared, identity, origin, granted, limits)
}

impl World {
    /// One call about the suite's agent.
    pub(super) async fn call(&self, call: Call) -> Result<Answer, String> {
        let operation = call.operation();
        let cx = CallContext::work(fixture::TENANT, "conformance", 1, Instant::now() + WALL)
            .about(fixture::agent().agent_id, None);
        self.plugin.call(&cx, call).await.map_err(|error| format!("{operation}: {error}"))
    }

    /// One reconciling call; a wait must say why.
    pub(super) async fn step(&self, call: Call) -> Result<Progress, String> {
        let operation = call.operation();
        match self.call(call).await? {
            Answer::Progress(Progress::Waiting(reason)) if reason.message.trim().is_empty() => {
                Err(format!("{operation}: waits with {} and no message", reason.code))
            }
            Answer::Progress(progress) => Ok(progress),
            _ => Err(format!("{operation}: answers something else")),
        }
    }

    /// Repeats a reconciling call until it is done.
    pub(super) async fn settle(&self, call: Call) -> Result<(), String> {
        let operation = call.operation();
        let mut last = None;
        for _ in 0..LOOKS_MAX {
            match self.step(call.clone()).await? {
                Progress::Done => return Ok(()),
                Progress::Waiting(reason) => last = Some(reason.code),
            }
        }
        Err(format!(
            "{operation}: still waits after {LOOKS_MAX} calls, last with {}",
            last.unwrap_or_default()
        ))
    }

    /// Deploys a revision from the beginning, beside `serving`.
    pub(super) async fn deploy(&self, number: u64, serving: Option<u64>) -> Result<(), String> {
        self.settle(Call::EnsureTenant(fixture::tenant())).await?;
        let revision = fixture::revision(number);
        self.settle(Call::Prepare(revision.clone(), serving.map(fixture::reference))).await?;
        self.settle(Call::Activate(revision)).await
    }
}
