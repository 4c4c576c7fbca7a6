//! Which Secret reaches the process under which name. Values never come here: a plan
//! names Secrets, the platform delivers them.

use std::collections::BTreeSet;

use occ_plugin_sdk::bindings::harness::Request;
use occ_plugin_sdk::bindings::types::{Reason, SettingProblem};
use occ_plugin_sdk::bindings::workload::{EnvValue, EnvVar};
use occ_plugin_sdk::json::pointer;
use occ_plugin_sdk::reason::{problem, reason_with};
use serde_json::json;

use crate::credentials;
use crate::document::{Node, env_reference};
use crate::gateway::PASSWORD;
use crate::plan::{is_reserved, variable};
use crate::policy::{Policy, provider_path};

/// The environment of the model credential and of the bindings.
pub(crate) fn environment(
    root: &Node<'_>,
    request: &Request,
    policy: &Policy,
) -> Result<Vec<EnvVar>, Vec<SettingProblem>> {
    let mut found = Vec::new();
    let mut env = Vec::new();
    match credential(root, request, policy) {
        Ok(credential) => env.extend(credential),
        Err(refused) => found.push(refused),
    }
    for (name, secret) in &request.secret_bindings {
        let path = pointer("/secretBindings", name);
        if is_reserved(name) {
            found.push(problem(path, "is a name that the platform sets"));
        } else if env.iter().any(|variable: &EnvVar| variable.name == *name) {
            found.push(problem(path, "is there already: the agent's harnessAuth delivers it"));
        } else {
            env.push(variable(name, EnvValue::Secret(secret.clone())));
        }
    }
    if found.is_empty() { Ok(env) } else { Err(found) }
}

/// The model credential, under the name that the provider reads.
fn credential(root: &Node<'_>, request: &Request, policy: &Policy) -> Result<Option<EnvVar>, SettingProblem> {
    let Some(auth) = &request.auth else {
        return Ok(None);
    };
    match (auth.method.as_str(), &auth.secret_id) {
        // The operator of the machine provides it.
        ("runtime", _) => Ok(None),
        ("api_key", Some(secret)) => {
            let name = credential_name(root, policy)?;
            Ok(Some(variable(&name, EnvValue::Secret(secret.clone()))))
        }
        ("api_key", None) => Err(problem("/auth/source", "must be a Secret")),
        _ => Err(problem("/auth/method", "must be api_key or runtime for an embedded agent")),
    }
}

fn credential_name(root: &Node<'_>, policy: &Policy) -> Result<String, SettingProblem> {
    match policy.provider.as_str() {
        "openai" => return Ok("OPENAI_API_KEY".to_owned()),
        "anthropic" => return Ok("ANTHROPIC_API_KEY".to_owned()),
        _ => {}
    }
    let key = root.at(&["models", "providers", &policy.provider, "apiKey"]);
    match key.value.and_then(env_reference) {
        Some(name) if !is_reserved(name) => Ok(name.to_owned()),
        _ => {
            let message = "must be an env reference: it names the variable that delivers the agent's key";
            Err(problem(provider_path(root, &policy.provider, "apiKey"), message))
        }
    }
}

/// A warning for each variable that the document reads and nothing sets.
pub(crate) fn unbound(root: &Node<'_>, env: &[EnvVar]) -> Vec<Reason> {
    let mut names = Vec::new();
    credentials::references(root, &mut names);
    let unset: BTreeSet<_> = names
        .into_iter()
        .filter(|name| name != PASSWORD && !env.iter().any(|variable| variable.name == *name))
        .collect();
    let message = "The configuration reads an environment variable that no Secret is bound to.";
    unset
        .iter()
        .map(|name| reason_with("SECRET_REFERENCE_UNBOUND", message, &json!({ "name": name })))
        .collect()
}
