//! The Installation YAML: a closed schema; what it selects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Mode, Problem, Problems, yaml};

/// The whole document.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Installation {
    /// Labels of this Installation.
    pub occ: Labels,
    /// Log level.
    #[serde(default)]
    pub logging: Logging,
    /// Which drivers run.
    pub drivers: Drivers,
    /// Trust and limits of plugins.
    #[serde(default)]
    pub plugins: Plugins,
    /// Counts and sizes.
    #[serde(default)]
    pub limits: Limits,
}

/// `occ`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Labels {
    /// Label of the cluster in logs and inventory, 1–200 characters.
    pub cluster: String,
}

/// `logging`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Logging {
    /// Least level that is written.
    #[serde(default)]
    pub level: LogLevel,
}

/// `logging.level`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// The default.
    #[default]
    Info,
    /// Warnings and errors.
    Warn,
    /// Errors only.
    Error,
}

/// `drivers`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drivers {
    /// Only `native`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam: Option<Fixed>,
    /// Only `database`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Fixed>,
    /// Where secret values live.
    pub secret: SecretStoreSelection,
    /// The one compute.
    pub compute: DriverSelection,
    /// At least one.
    pub harnesses: Vec<DriverSelection>,
}

/// A driver that has one implementation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixed {
    /// Its id.
    pub id: String,
}

/// `drivers.secret`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "id", content = "settings", rename_all = "lowercase", deny_unknown_fields)]
pub enum SecretStoreSelection {
    /// Encrypted in PostgreSQL.
    #[serde(rename_all = "camelCase")]
    Database {
        /// Absolute path of the key-encryption key.
        key_file: PathBuf,
    },
}

/// One selected plugin.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DriverSelection {
    /// Plugin id.
    pub plugin: String,
    /// Exact version, when it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `sha256:` and 64 hexadecimal digits, when it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Checked against the plugin's own schema.
    #[serde(default = "empty_object")]
    pub settings: Value,
    /// What the Installation grants of what the manifest requests.
    #[serde(default = "empty_object")]
    pub grants: Value,
}

/// `plugins`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plugins {
    /// Which bundles may run.
    #[serde(default)]
    pub trust: Trust,
    /// Caps by plugin id.
    #[serde(default)]
    pub limits: BTreeMap<String, PluginLimits>,
}

/// `plugins.trust`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trust {
    /// SHA-256 digests of `bundle.json` files that are trusted as they are.
    #[serde(default)]
    pub digests: Vec<String>,
    /// Public keys in PEM whose signatures are trusted.
    #[serde(default)]
    pub keys: Vec<String>,
    /// What to do with a bundle that nothing vouches for.
    #[serde(default)]
    pub unsigned: Unsigned,
}

/// `plugins.trust.unsigned`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsigned {
    /// Refuse it.
    #[default]
    Deny,
    /// Run it; refused in production.
    Allow,
}

/// Caps on one plugin's limits; absent means the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginLimits {
    /// Memory in MiB over all memories.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// CPU time of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    /// Wall time of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u32>,
    /// Host calls of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<u32>,
}

/// `limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Agents of one Namespace.
    pub agents_per_namespace: u32,
    /// Revisions of one Agent.
    pub revisions_per_agent: u32,
    /// Namespaces, tombstones not counted.
    pub namespaces: u32,
    /// Hours that events are kept.
    pub events_retention_hours: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            agents_per_namespace: 1000,
            revisions_per_agent: 1000,
            namespaces: 1000,
            events_retention_hours: 24,
        }
    }
}

impl Installation {
    /// Reads the file, screens it, checks the closed schema and the rules of the mode.
    ///
    /// # Errors
    /// Every problem of the first stage that fails; paths and rules, never values.
    pub fn read(path: &Path, mode: Mode) -> Result<Self, Problems> {
        let failed = |rule: String| vec![Problem::new(path.display().to_string(), rule)];
        let text = std::fs::metadata(path)
            .and_then(|metadata| {
                if metadata.is_file() {
                    std::fs::read_to_string(path)
                } else {
                    Err(std::io::ErrorKind::InvalidInput.into())
                }
            })
            .map_err(|error| invalid(failed(format!("must be a readable regular file: {}", error.kind()))))?;
        Self::parse(&text, mode)
    }

    /// The same for a text.
    ///
    /// # Errors
    /// As [`Installation::read`].
    pub fn parse(text: &str, mode: Mode) -> Result<Self, Problems> {
        let value = yaml::read(text).map_err(invalid)?;
        let installation: Self = serde_json::from_value(value)
            .map_err(|error| invalid(vec![Problem::new("", format!("breaks the schema: {error}"))]))?;
        let problems = installation.problems(mode);
        if problems.is_empty() { Ok(installation) } else { Err(invalid(problems)) }
    }

    fn problems(&self, mode: Mode) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut rule = |holds: bool, at: &str, text: &str| {
            if !holds {
                problems.push(Problem::new(at, text));
            }
        };
        let cluster = self.occ.cluster.chars().count();
        rule((1..=200).contains(&cluster), "/occ/cluster", "must have 1 to 200 characters");
        rule(
            self.drivers.iam.as_ref().is_none_or(|fixed| fixed.id == "native"),
            "/drivers/iam/id",
            "must be native",
        );
        let configuration = self.drivers.configuration.as_ref();
        rule(
            configuration.is_none_or(|fixed| fixed.id == "database"),
            "/drivers/configuration/id",
            "must be database",
        );
        let SecretStoreSelection::Database { key_file } = &self.drivers.secret;
        rule(key_file.is_absolute(), "/drivers/secret/settings/keyFile", "must be an absolute path");
        rule(!self.drivers.harnesses.is_empty(), "/drivers/harnesses", "must name at least one plugin");
        let ids: BTreeSet<&str> =
            self.drivers.harnesses.iter().map(|harness| harness.plugin.as_str()).collect();
        rule(ids.len() == self.drivers.harnesses.len(), "/drivers/harnesses", "must not name a plugin twice");
        for (at, value) in [
            ("/limits/agentsPerNamespace", self.limits.agents_per_namespace),
            ("/limits/revisionsPerAgent", self.limits.revisions_per_agent),
            ("/limits/namespaces", self.limits.namespaces),
            ("/limits/eventsRetentionHours", self.limits.events_retention_hours),
        ] {
            rule((1..=100_000).contains(&value), at, "must be a number from 1 to 100000");
        }
        if mode == Mode::Production {
            rule(
                self.plugins.trust.unsigned == Unsigned::Deny,
                "/plugins/trust/unsigned",
                "must be deny in production",
            );
            rule(
                self.drivers.compute.plugin != "compute-local",
                "/drivers/compute/plugin",
                "must not be compute-local in production",
            );
        }
        problems
    }
}

fn invalid(list: Vec<Problem>) -> Problems {
    Problems { code: "CONFIGURATION_INVALID", list }
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}
