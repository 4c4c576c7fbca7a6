//! No credential may stand in a configuration: it would be frozen in the revision, shown
//! to whoever may read it, and never rotate. The host refuses most of them when the
//! configuration is stored; this is the second look, before a plan exists.

use occ_plugin_sdk::bindings::types::SettingProblem;
use occ_plugin_sdk::reason::problem;
use serde_json::Value;

use crate::document::{Node, env_reference};

/// Endings of names whose text value is a credential, as OpenClaw's schema uses them;
/// compared without case, `-` and `_`.
const CREDENTIAL_MEMBERS: [&str; 7] =
    ["apikey", "password", "passphrase", "privatekey", "secret", "token", "encryptkey"];
/// Endings of headers that carry a credential; compared in the same way.
const CREDENTIAL_HEADERS: [&str; 7] =
    ["authorization", "cookie", "apikey", "token", "secret", "password", "credentials"];
/// Environment of the model credentials, which the platform alone sets.
const MODEL_ENVIRONMENT: [&str; 3] = ["OPENAI_", "ANTHROPIC_", "CODEX_"];

const WAY_OUT: &str = "must not be a literal credential: store it as a Secret and refer to it";

/// Every literal credential in the document, by its path; the message never has the value.
pub(crate) fn problems(root: &Node<'_>) -> Vec<SettingProblem> {
    let mut found = Vec::new();
    if root.get("auth").object().is_some_and(|auth| !auth.is_empty()) {
        let message = "is the platform's: the agent's harnessAuth says how it signs in to its model";
        found.push(problem(root.get("auth").path, message));
    }
    let env = root.get("env");
    for (name, node) in env.members().into_iter().chain(env.get("vars").members()) {
        let upper = name.to_uppercase();
        let model = MODEL_ENVIRONMENT.iter().any(|prefix| upper.starts_with(prefix));
        // Those that are credentials by their name are found with all others below.
        if model && !is_named(name, &CREDENTIAL_MEMBERS) && is_literal(node.value) {
            found.push(problem(node.path, WAY_OUT));
        }
    }
    for (_, provider) in root.at(&["models", "providers"]).members() {
        if provider.get("baseUrl").text().is_some_and(has_userinfo) {
            found.push(problem(provider.get("baseUrl").path, WAY_OUT));
        }
    }
    walk(root, &mut found);
    found
}

fn walk(node: &Node<'_>, found: &mut Vec<SettingProblem>) {
    for (name, member) in node.members() {
        if plain(name) == "headers" {
            headers(&member, found);
        } else if is_named(name, &CREDENTIAL_MEMBERS) && is_literal(member.value) {
            found.push(problem(member.path.clone(), WAY_OUT));
        } else {
            walk(&member, found);
        }
    }
    if let Some(Value::Array(_)) = node.value {
        node.children().iter().for_each(|item| walk(item, found));
    }
}

fn headers(node: &Node<'_>, found: &mut Vec<SettingProblem>) {
    for (name, header) in node.members() {
        if is_named(name, &CREDENTIAL_HEADERS) && is_literal(header.value) {
            found.push(problem(header.path, "must not be a literal credential header"));
        }
    }
}

fn is_named(name: &str, endings: &[&str]) -> bool {
    let name = plain(name);
    endings.iter().any(|ending| name.ends_with(ending))
}

fn plain(name: &str) -> String {
    name.chars().filter(|char| !matches!(char, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Text that is itself the value: not blank, not `${VARIABLE}`, not a native reference.
fn is_literal(value: Option<&Value>) -> bool {
    let Some(text) = value.and_then(Value::as_str).map(str::trim) else {
        return false;
    };
    let variable = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    !text.is_empty() && !variable.is_some_and(is_name)
}

fn has_userinfo(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Environment variables that the document's native references read.
pub(crate) fn references(node: &Node<'_>, found: &mut Vec<String>) {
    if let Some(name) = node.value.and_then(env_reference) {
        found.push(name.to_owned());
        return;
    }
    node.children().iter().for_each(|child| references(child, found));
}
