//! Turns a native OpenClaw configuration into a workload plan.
//!
//! Pure: the same request always gives the same plan, byte by byte. In reading order:
//! `document` (values with their pointers) · `credentials` (no literal one) · `gateway`
//! (what the platform stamps) · `policy` (which model, which harness) · `secrets` (which
//! Secret under which name) · `plan`.
//!
//! A refusal lists everything that is wrong at once. Paths point into the request:
//! `/configuration/...`, `/mode`, `/auth/...`, `/secretBindings/NAME`.

mod credentials;
mod document;
mod gateway;
mod plan;
mod policy;
mod secrets;

use occ_plugin_sdk::bindings::harness::{Refusal, Request};
use occ_plugin_sdk::bindings::types::SettingProblem;
use occ_plugin_sdk::bindings::workload::Plan;
use occ_plugin_sdk::reason::problem;
use occ_plugin_sdk::{Harness, Host, Plugin, json};
use serde_json::Value;

use document::Node;

/// Problems that one refusal names; the rest shows after these are mended.
const PROBLEMS_MAX: usize = 64;

/// The resolver.
#[derive(Debug)]
pub struct OpenClaw;

impl Plugin for OpenClaw {
    const NAME: &'static str = "harness-openclaw";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SETTINGS_SCHEMA: &'static str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {},
  "additionalProperties": false,
  "examples": [{}]
}"#;
}

impl Harness for OpenClaw {
    fn resolve(_host: &dyn Host, request: &Request) -> Result<Plan, Refusal> {
        resolve(request)
    }
}

/// The plan of a request.
///
/// # Errors
/// `invalid` when the configuration itself is at fault, `unsupported` when no approved
/// harness serves it.
pub fn resolve(request: &Request) -> Result<Plan, Refusal> {
    let mut document: Value = serde_json::from_str(&request.configuration)
        .map_err(|_| Refusal::Invalid(vec![problem("/configuration", "must be JSON")]))?;
    let platform: gateway::Platform = serde_json::from_str(&request.platform)
        .map_err(|_| Refusal::Invalid(vec![problem("/platform", "is not what this harness knows")]))?;
    let root = Node::root(&document);
    if root.object().is_none() {
        return Err(Refusal::Invalid(vec![problem(root.path, "must be an object")]));
    }
    let mut invalid = credentials::problems(&root);
    invalid.extend(gateway::problems(&root));
    let policy = policy::read(&root, request.mode);
    let secrets = policy.as_ref().ok().map(|policy| secrets::environment(&root, request, policy));
    let (policy, env) = match (policy, secrets) {
        (Ok(_), Some(Ok(env))) => (Vec::new(), env),
        (Ok(_), Some(Err(refused))) => (refused, Vec::new()),
        (Ok(_), None) => (Vec::new(), Vec::new()),
        (Err(refused), _) => (refused, Vec::new()),
    };
    refuse(invalid, policy)?;
    let mut warnings = secrets::unbound(&root, &env);
    warnings.extend(gateway::stamp(&mut document, &platform));
    Ok(plan::embedded(json::canonical(&document), platform.gateway_port, env, warnings))
}

/// One refusal with every problem; a fault of the document outweighs the rest.
fn refuse(invalid: Vec<SettingProblem>, unsupported: Vec<SettingProblem>) -> Result<(), Refusal> {
    let at_fault = !invalid.is_empty();
    let mut problems = invalid;
    problems.extend(unsupported);
    problems.truncate(PROBLEMS_MAX);
    match (problems.is_empty(), at_fault) {
        (true, _) => Ok(()),
        (false, true) => Err(Refusal::Invalid(problems)),
        (false, false) => Err(Refusal::Unsupported(problems)),
    }
}

occ_plugin_sdk::export!(harness: OpenClaw);
