//! From a bundle's entry to a plugin that can be called.
//!
//! The order, and nothing before its turn: digest -> names and version in the bytes ->
//! compiled code -> links -> grants -> `describe` -> settings against the schema ->
//! `check-settings` -> `platform` (compute) -> `preflight`.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use wasmtime::component::Component;

use crate::abi::{self, Answer, Bound, Call, Kind};
use crate::breaker::Breaker;
use crate::bundle::{BundleError, Found};
use crate::cache::{self, Cache, Loaded};
use crate::capability::{GrantProblem, Granted, Grants, ProcessSupervisor};
use crate::digest;
use crate::engine::Engine;
use crate::error::DriverError;
use crate::inspect::{self, Header, InspectError};
use crate::limits::{CallLimits, LimitRequest};
use crate::plugin::{Now, Origin, Plugin};
use crate::stats::Stats;
use crate::types::{PluginIdentity, Reason, SettingProblem};

/// What the host gives to every plugin that it loads.
#[derive(Clone)]
pub struct Services {
    /// Runs components.
    pub engine: Engine,
    /// Where compiled code is kept; without it every start compiles.
    pub cache: Option<Cache>,
    /// Supervises processes, in a host that offers them.
    pub processes: Option<Arc<dyn ProcessSupervisor>>,
    /// Time since 1970, by the host's clock.
    pub now: Now,
    /// This is a development installation.
    pub development: bool,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services")
            .field("engine", &self.engine)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// What an Installation says about one plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// What it must be.
    pub kind: Kind,
    /// Exact version, when given.
    pub version: Option<String>,
    /// `sha256:` and digits, when given.
    pub digest: Option<String>,
    /// Its settings.
    pub settings: Value,
    /// What it is granted.
    pub grants: Value,
    /// Caps on its limits.
    pub cap: LimitRequest,
}

/// Why a plugin is not loaded. The caller adds the plugin's id.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Its bytes.
    #[error("{file} {error}")]
    Inspect {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: InspectError,
    },
    /// It is not what was selected.
    #[error("is {found}, the Installation selects {wanted}")]
    NotSelected {
        /// What it is.
        found: String,
        /// What was selected.
        wanted: String,
    },
    /// Wasmtime cannot compile or link it.
    #[error("cannot be {step}: {why}")]
    Engine {
        /// `compiled` or `linked`.
        step: &'static str,
        /// Wasmtime's text, and the first function that does not fit.
        why: String,
    },
    /// Requests and grants differ.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Grants(Vec<GrantProblem>),
    /// Settings that the schema or the plugin refuses; paths and rules, no values.
    #[error("settings: {}", .0.iter().map(|problem| format!("{}: {}", at(&problem.path), problem.message)).collect::<Vec<_>>().join("; "))]
    Settings(Vec<SettingProblem>),
    /// Its schema is no JSON Schema.
    #[error("its settings schema cannot be used: {0}")]
    Schema(String),
    /// Bundle and component disagree.
    #[error("its component says version {component}, its bundle says {manifest}")]
    Version {
        /// Of `describe`.
        component: String,
        /// Of the manifest.
        manifest: String,
    },
    /// One of the calls of loading.
    #[error("{operation}: {error}")]
    Call {
        /// The function.
        operation: &'static str,
        /// How it ended.
        error: DriverError,
    },
}

fn at(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// A component that was verified, compiled and linked, but not called yet.
pub(crate) struct Prepared {
    pub(crate) kind: Kind,
    pub(crate) contract: semver::Version,
    pub(crate) sha256: String,
    pub(crate) bound: Arc<dyn Bound>,
    pub(crate) memories: u32,
    pub(crate) loaded: Loaded,
}

impl Prepared {
    /// Verifies, compiles or finds compiled, and links. Slow when it compiles: call it on
    /// a thread that may block.
    pub(crate) fn new(
        engine: &Engine,
        cache: Option<&Cache>,
        kind: Kind,
        file: &str,
        bytes: &[u8],
    ) -> Result<Self, LoadError> {
        let inspect = |error| LoadError::Inspect { file: file.to_owned(), error };
        let header = Header::read(bytes).map_err(inspect)?;
        let key = header.accept(kind, bytes).map_err(inspect)?;
        let contract = header.version().map_err(inspect)?;
        let adapter = abi::contract(key)
            .ok_or_else(|| inspect(InspectError::Malformed("unknown contract".to_owned())))?;
        let sha256 = digest::sha256(bytes);
        let (component, loaded) = cache::component(engine, cache, &sha256, bytes)
            .map_err(|error| LoadError::Engine { step: "compiled", why: format!("{error:#}") })?;
        let bound = adapter.bind(engine, kind, &component).map_err(|error| {
            if let Some(missing) = inspect::missing(bytes, kind, Some(key)) {
                let version = contract.to_string();
                return inspect(InspectError::OtherWorld { world: kind.world(), version, missing });
            }
            LoadError::Engine { step: "linked", why: format!("{error:#}") }
        })?;
        Ok(Self { kind, contract, sha256, bound: Arc::from(bound), memories: memories(&component), loaded })
    }
}

fn memories(component: &Component) -> u32 {
    component.resources_required().map_or(1, |resources| resources.num_memories.max(1))
}

/// Loads a plugin up to `check-settings`: everything that needs neither a cluster nor a
/// database. The façade of its kind does the rest.
///
/// # Errors
/// See [`LoadError`].
pub async fn load(
    services: &Services,
    found: Found<'_>,
    selection: &Selection,
) -> Result<Arc<Plugin>, LoadError> {
    let entry = found.entry();
    selected(&found, selection)?;
    let grants = Grants::effective(&entry.requests, &entry.optional, &selection.grants, services.development)
        .map_err(LoadError::Grants)?;
    let bytes = found.bytes()?;
    let (engine, cache) = (services.engine.clone(), services.cache.clone());
    let (kind, file) = (entry.kind, format!("{}/{}", found.source(), entry.file));
    let prepared =
        tokio::task::spawn_blocking(move || Prepared::new(&engine, cache.as_ref(), kind, &file, &bytes))
            .await
            .map_err(|error| LoadError::Engine { step: "compiled", why: error.to_string() })??;
    let identity = PluginIdentity {
        id: entry.id.clone(),
        version: entry.version.clone(),
        digest: format!("sha256:{}", prepared.sha256),
        accepts: entry.accepts(),
    };
    let process = services.processes.clone().zip(grants.process);
    let granted = Granted::new(entry.id.clone(), selection.settings.to_string(), process);
    let origin = Origin {
        kind,
        contract: prepared.contract.to_string(),
        bundle: found.source(),
        standing: found.standing().as_str(),
        compiled: prepared.loaded.compiled,
        codes: entry.codes.clone(),
    };
    let limits = CallLimits::effective(entry.limits, selection.cap);
    let mut plugin = assemble(services, prepared, identity, origin, granted, limits);
    plugin.requested = entry.requests.names();
    check_settings(&mut plugin, &selection.settings).await?;
    let component = plugin.description.as_ref().map_or("", |description| &description.version).to_owned();
    if component != entry.version.to_string() {
        return Err(LoadError::Version { component, manifest: entry.version.to_string() });
    }
    tracing::info!(
        event = "plugin.loaded",
        plugin = %plugin.identity.id,
        version = %plugin.identity.version,
        digest = plugin.identity.digest,
        contract = plugin.origin.contract,
        bundle = plugin.origin.bundle,
        signature = plugin.origin.standing,
        compiled = plugin.origin.compiled,
        "a plugin is loaded"
    );
    Ok(Arc::new(plugin))
}

pub(crate) fn assemble(
    services: &Services,
    prepared: Prepared,
    identity: PluginIdentity,
    origin: Origin,
    granted: Granted,
    limits: CallLimits,
) -> Plugin {
    Plugin {
        engine: services.engine.clone(),
        identity,
        origin,
        bound: prepared.bound,
        memories: prepared.memories,
        requested: Vec::new(),
        granted: Arc::new(granted),
        limits,
        now: Arc::clone(&services.now),
        description: None,
        breaker: Breaker::default(),
        stats: Stats::new(Instant::now()),
    }
}

fn selected(found: &Found<'_>, selection: &Selection) -> Result<(), LoadError> {
    let entry = found.entry();
    let digest = format!("sha256:{}", entry.sha256);
    let version = entry.version.to_string();
    let contract = &entry.contract;
    let pairs = [
        (format!("a {}", entry.kind), Some(format!("a {}", selection.kind))),
        (
            format!("version {version}"),
            selection.version.as_ref().map(|version| format!("version {version}")),
        ),
        (format!("digest {digest}"), selection.digest.as_ref().map(|digest| format!("digest {digest}"))),
    ];
    for (found, wanted) in pairs {
        match wanted {
            Some(wanted) if wanted != found => return Err(LoadError::NotSelected { found, wanted }),
            _ => {}
        }
    }
    if abi::versions().iter().any(|offered| offered == contract) {
        return Ok(());
    }
    let error = InspectError::OtherVersion {
        built: contract.clone(),
        offered: abi::versions().join(", "),
        missing: None,
    };
    Err(LoadError::Inspect { file: format!("{}/{}", found.source(), entry.file), error })
}

/// `describe`, then the settings against its schema and the plugin's own rules.
pub(crate) async fn check_settings(plugin: &mut Plugin, settings: &Value) -> Result<(), LoadError> {
    let call = |operation| move |error| LoadError::Call { operation, error };
    let description = match plugin.call_pure(Call::Describe).await.map_err(call("describe"))? {
        Answer::Description(description) => description,
        _ => {
            return Err(call("describe")(DriverError::Contract("another answer was due".to_owned())));
        }
    };
    let problems = schema_problems(&description.settings_schema, settings)?;
    plugin.description = Some(description);
    if !problems.is_empty() {
        return Err(LoadError::Settings(problems));
    }
    match plugin.call_pure(Call::CheckSettings(settings.clone())).await.map_err(call("check-settings"))? {
        Answer::Problems(problems) if problems.is_empty() => Ok(()),
        Answer::Problems(problems) => Err(LoadError::Settings(problems)),
        _ => Err(call("check-settings")(DriverError::Contract("another answer was due".to_owned()))),
    }
}

/// `preflight` with every granted capability; answers its warnings.
pub(crate) async fn preflight(plugin: &Plugin) -> Result<Vec<Reason>, LoadError> {
    let warnings = match plugin.call_pure(Call::Preflight).await {
        Ok(Answer::Warnings(warnings)) => warnings,
        Ok(_) => Vec::new(),
        Err(error) => {
            return Err(LoadError::Call { operation: "preflight", error });
        }
    };
    for warning in &warnings {
        tracing::warn!(
            event = "plugin.preflight_warning",
            plugin = %plugin.identity.id,
            code = warning.code,
            detail = warning.message,
            "a plugin starts with a warning"
        );
    }
    Ok(warnings)
}

/// Settings against a schema. Rules are told by their keyword: a message could repeat the
/// value, which may be wrong because it is a misplaced credential.
fn schema_problems(schema: &Value, settings: &Value) -> Result<Vec<SettingProblem>, LoadError> {
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .build(schema)
        .map_err(|error| LoadError::Schema(error.to_string()))?;
    Ok(validator
        .iter_errors(settings)
        .map(|error| SettingProblem {
            path: error.instance_path().to_string(),
            message: format!("breaks the rule {}", error.schema_path()),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_problem_of_settings_is_told_without_values() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["commands"],
            "properties": {"commands": {"type": "object"}, "port": {"type": "integer", "maximum": 65535}}
        });
        assert_eq!(schema_problems(&schema, &json!({"commands": {}})).unwrap(), []);
        let problems = schema_problems(&schema, &json!({"port": "hunter2", "hunter3": 1})).unwrap();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems.iter().any(|problem| problem.path == "/port"), "{problems:?}");
        let text = LoadError::Settings(problems).to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(matches!(schema_problems(&json!({"type": 7}), &json!({})), Err(LoadError::Schema(_))));
    }
}
