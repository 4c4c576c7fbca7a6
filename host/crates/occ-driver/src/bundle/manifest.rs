//! `bundle.json`: a closed schema, version 1.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::abi::Kind;
use crate::capability::Requests;
use crate::digest;
use crate::limits::LimitRequest;
use crate::verify;

/// The only schema so far.
pub const SCHEMA: u32 = 1;
/// Plugins of one bundle.
const PLUGINS_MAX: usize = 64;
/// Reason codes that one plugin declares.
const CODES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 64;
const CODE_TEXT_CHARS_MAX: usize = 120;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name for people.
    pub name: String,
    /// Version of the bundle.
    pub version: String,
    /// What is in it.
    pub plugins: Vec<PluginEntry>,
}

/// One plugin of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginEntry {
    /// `[a-z0-9][a-z0-9-]{0,63}`; unique among all bundles of a host.
    pub id: String,
    /// What it is for.
    pub kind: Kind,
    /// Semantic version; what a revision records.
    pub version: semver::Version,
    /// Version of the contract, major and minor.
    pub contract: String,
    /// Name of the component's file in the bundle.
    pub file: String,
    /// SHA-256 of that file in lower-case hexadecimal.
    pub sha256: String,
    /// Capabilities that it asks for.
    #[serde(default)]
    pub requests: Requests,
    /// Requests that it can do without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<String>,
    /// Other limits than the defaults.
    #[serde(default)]
    pub limits: LimitRequest,
    /// Old versions whose revisions it takes over; the same major number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<semver::VersionReq>,
    /// Which kind of Backend.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<BackendType>,
    /// Reason codes beyond those of the API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<Code>,
}

/// Which provider a Backend plugin serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    /// ChatGPT.
    Chatgpt,
    /// GitHub.
    Github,
    /// OpenShell.
    Openshell,
}

/// A declared reason code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// `[A-Z][A-Z0-9_]{0,63}`.
    pub code: String,
    /// What clients read; at most 120 characters.
    pub text: String,
}

/// A rule of the manifest that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {rule}")]
pub struct ManifestProblem {
    /// JSON Pointer.
    pub at: String,
    /// The rule.
    pub rule: String,
}

impl Manifest {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// The first fault of its shape, or every rule that it breaks.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<ManifestProblem>> {
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| vec![ManifestProblem { at: String::new(), rule: error.to_string() }])?;
        let problems = manifest.problems();
        if problems.is_empty() { Ok(manifest) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<ManifestProblem> {
        let mut problems = Vec::new();
        let mut rule = |holds: bool, at: String, rule: &str| {
            if !holds {
                problems.push(ManifestProblem { at, rule: rule.to_owned() });
            }
        };
        rule(self.schema == SCHEMA, "/schema".to_owned(), "must be 1: this host reads no other");
        let count = self.plugins.len();
        rule((1..=PLUGINS_MAX).contains(&count), "/plugins".to_owned(), "must have 1 to 64 plugins");
        let mut ids = BTreeSet::new();
        for (index, plugin) in self.plugins.iter().enumerate() {
            let at = |field: &str| format!("/plugins/{index}/{field}");
            rule(is_id(&plugin.id), at("id"), "must match [a-z0-9][a-z0-9-]{0,63}");
            rule(ids.insert(&plugin.id), at("id"), "is used twice in this bundle");
            rule(is_file_name(&plugin.file), at("file"), "must be the name of a file beside bundle.json");
            rule(digest::is_sha256(&plugin.sha256), at("sha256"), "must be 64 lower-case hexadecimal digits");
            let known = ["kubernetes", "http", "process"];
            let optional = plugin.optional.iter().all(|name| known.contains(&name.as_str()));
            rule(optional, at("optional"), "must name only kubernetes, http or process");
            let backend = (plugin.kind == Kind::Backend) == plugin.backend_type.is_some();
            rule(backend, at("type"), "must be given for a backend and for nothing else");
            rule(plugin.codes.len() <= CODES_MAX, at("codes"), "must have at most 256 codes");
            for (index, code) in plugin.codes.iter().enumerate() {
                let here = at(&format!("codes/{index}"));
                rule(verify::is_code(&code.code), format!("{here}/code"), "must match [A-Z][A-Z0-9_]{0,63}");
                let short = (1..=CODE_TEXT_CHARS_MAX).contains(&code.text.chars().count());
                rule(short, format!("{here}/text"), "must have 1 to 120 characters");
            }
        }
        problems
    }
}

impl PluginEntry {
    /// Versions whose revisions it takes over.
    #[must_use]
    pub fn accepts(&self) -> semver::VersionReq {
        let same_major = || semver::VersionReq {
            comparators: vec![semver::Comparator {
                op: semver::Op::Exact,
                major: self.version.major,
                minor: None,
                patch: None,
                pre: semver::Prerelease::EMPTY,
            }],
        };
        self.accepts.clone().unwrap_or_else(same_major)
    }
}

fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| plain(byte) || byte == b'-')
        && id.bytes().next().is_some_and(plain)
}

fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry() -> Value {
        json!({
            "id": "compute-local", "kind": "compute", "version": "0.1.0", "contract": "0.1",
            "file": "compute_local.wasm", "sha256": "0".repeat(64), "requests": {"process": {}},
            "codes": [{"code": "PROCESS_ABSENT", "text": "No process of the revision exists."}]
        })
    }

    fn read(plugins: &[Value]) -> Result<Manifest, Vec<ManifestProblem>> {
        Manifest::read(
            json!({"schema": 1, "name": "n", "version": "1", "plugins": plugins}).to_string().as_bytes(),
        )
    }

    #[test]
    fn the_schema_is_closed_and_every_rule_is_told() {
        let manifest = read(&[entry()]).unwrap();
        assert!(manifest.plugins[0].accepts().matches(&semver::Version::new(0, 1, 0)));
        assert!(!manifest.plugins[0].accepts().matches(&semver::Version::new(1, 0, 0)));
        let mut unknown = entry();
        unknown["more"] = json!(1);
        assert!(read(&[unknown]).unwrap_err()[0].rule.contains("unknown field"));
        let mut bad = entry();
        bad["id"] = json!("Compute");
        bad["file"] = json!("../x.wasm");
        bad["sha256"] = json!("abc");
        bad["type"] = json!("github");
        let at: Vec<String> = read(&[bad]).unwrap_err().into_iter().map(|problem| problem.at).collect();
        assert_eq!(at, ["/plugins/0/id", "/plugins/0/file", "/plugins/0/sha256", "/plugins/0/type"]);
        assert_eq!(read(&[entry(), entry()]).unwrap_err()[0].at, "/plugins/1/id");
    }
}
