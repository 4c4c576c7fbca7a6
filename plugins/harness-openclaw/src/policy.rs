//! The native model policy: which model an agent uses and which harness runs it.
//!
//! OpenClaw takes the runtime of a model from the most specific place that names one: the
//! model's own entry, its entry in the provider's list, the provider's wildcard, the
//! provider. Here all places that name one must agree, and each model that the agent may
//! use must come to the same provider and harness.

use occ_plugin_sdk::bindings::types::SettingProblem;
use occ_plugin_sdk::bindings::workload::ExecutionMode;
use occ_plugin_sdk::json::pointer;
use occ_plugin_sdk::reason::problem;

use crate::document::Node;

/// The harness that this plugin serves.
pub(crate) const OPENCLAW: &str = "openclaw";
const CODEX: &str = "codex";
/// Providers that OpenClaw itself brings and whose runtime is never in doubt.
const UNAMBIGUOUS: [&str; 1] = ["anthropic"];

/// The one provider that every model of the agent comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) provider: String,
}

/// A model that the agent may use, as `provider/model`, and where the document says so.
struct Choice<'a> {
    path: String,
    provider: &'a str,
    reference: &'a str,
    /// The agent entry that it belongs to; the defaults have none.
    entry: Option<Node<'a>>,
}

/// A runtime's id and the place that names it.
struct Runtime<'a> {
    id: &'a str,
    path: String,
}

/// The policy of the document, or everything that keeps it from being served in `mode`.
pub(crate) fn read(root: &Node<'_>, mode: ExecutionMode) -> Result<Policy, Vec<SettingProblem>> {
    let mut found = Vec::new();
    let list = root.at(&["agents", "list"]);
    if list.value.is_some_and(|list| list.as_array().is_none_or(|list| !list.is_empty())) {
        found.push(problem(list.path, "must be empty: an Agent of the platform is one OpenClaw agent"));
    }
    for (_, channel) in root.at(&["channels"]).members() {
        let off = channel.get("enabled").value.and_then(serde_json::Value::as_bool) == Some(false);
        if channel.object().is_some() && !off && !channel.path.ends_with("/defaults") {
            found.push(problem(channel.path, "is not served by an embedded agent: set enabled to false"));
        }
    }
    let choices = choices(root, &mut found);
    let policy = match choices.split_first() {
        Some((primary, others)) => served(root, primary, others, mode, &mut found),
        None => None,
    };
    match policy {
        Some(policy) if found.is_empty() => Ok(policy),
        _ => Err(found),
    }
}

/// Judges the primary model and compares the others with it.
fn served(
    root: &Node<'_>,
    primary: &Choice<'_>,
    others: &[Choice<'_>],
    mode: ExecutionMode,
    found: &mut Vec<SettingProblem>,
) -> Option<Policy> {
    let runtime = runtime(root, primary, found)?;
    match (runtime.id, mode) {
        (OPENCLAW, ExecutionMode::Embedded) => {}
        (OPENCLAW | CODEX, _) => {
            let modes = if runtime.id == CODEX { "dedicated, which is not served yet" } else { "embedded" };
            found.push(problem("/mode", format!("does not fit harness {}: it runs {modes}", runtime.id)));
        }
        (other, _) => {
            let message = format!("must be \"{OPENCLAW}\": no approved harness is called \"{other}\"");
            found.push(problem(runtime.path, message));
        }
    }
    for choice in others {
        let mut own = Vec::new();
        let same = choice.provider == primary.provider
            && self::runtime(root, choice, &mut own).is_some_and(|other| other.id == runtime.id);
        if !same {
            let message = format!(
                "must come to provider \"{}\" and harness \"{}\", as the first model does",
                primary.provider, runtime.id
            );
            found.push(problem(choice.path.clone(), message));
            found.append(&mut own);
        }
    }
    Some(Policy { provider: primary.provider.to_owned() })
}

/// Every model of the defaults and of each agent entry; the first is the primary one.
fn choices<'a>(root: &Node<'a>, found: &mut Vec<SettingProblem>) -> Vec<Choice<'a>> {
    let mut choices = Vec::new();
    let default = root.at(&["agents", "defaults", "model"]);
    if default.value.is_none() {
        found.push(problem(default.path.clone(), "is required: name the model as \"provider/model\""));
    }
    collect(&default, None, &mut choices, found);
    for entry in root.at(&["agents", "entries"]).children() {
        collect(&entry.get("model"), Some(&entry), &mut choices, found);
    }
    choices
}

/// The models of one `model` value: text, or `{primary, fallbacks}`.
fn collect<'a>(
    model: &Node<'a>,
    entry: Option<&Node<'a>>,
    choices: &mut Vec<Choice<'a>>,
    found: &mut Vec<SettingProblem>,
) {
    let mut nodes = Vec::new();
    match model.value {
        None => {}
        Some(value) if value.is_object() => {
            let primary = model.get("primary");
            if primary.value.is_some() || entry.is_none() {
                nodes.push(primary);
            }
            nodes.extend(model.get("fallbacks").children());
        }
        Some(_) => nodes.push(model.clone()),
    }
    for node in nodes {
        let parts =
            node.text().and_then(|text| text.split_once('/').map(|(provider, id)| (text, provider, id)));
        match parts {
            Some((reference, provider, id)) if !provider.is_empty() && !id.is_empty() => {
                choices.push(Choice { path: node.path, provider, reference, entry: entry.cloned() });
            }
            _ => found.push(problem(node.path, "must be \"provider/model\"")),
        }
    }
}

/// The runtime of a model, if the places that name one agree.
fn runtime<'a>(root: &Node<'a>, choice: &Choice<'a>, found: &mut Vec<SettingProblem>) -> Option<Runtime<'a>> {
    let mut named = places(root, choice).into_iter().filter_map(|place| {
        let id = place.at(&["agentRuntime", "id"]);
        id.text().map(|text| Runtime { id: text, path: id.path })
    });
    let Some(first) = named.next() else {
        let plugins = root.get("plugins").object().is_some_and(|plugins| !plugins.is_empty());
        if UNAMBIGUOUS.contains(&choice.provider) && !plugins {
            return Some(Runtime { id: OPENCLAW, path: choice.path.clone() });
        }
        let message = format!(
            "must name the runtime of \"{}\": set {{\"agentRuntime\": {{\"id\": \"{OPENCLAW}\"}}}}",
            choice.reference
        );
        found.push(problem(root.at(&["agents", "defaults", "models"]).path, message));
        return None;
    };
    for other in named.filter(|other| other.id != first.id) {
        let message = format!("contradicts \"{}\", which {} asks for", first.id, first.path);
        found.push(problem(other.path, message));
    }
    Some(first)
}

/// Where a runtime may be named, the most specific place first.
fn places<'a>(root: &Node<'a>, choice: &Choice<'a>) -> Vec<Node<'a>> {
    let defaults = root.at(&["agents", "defaults", "models"]);
    let entry = choice.entry.as_ref().map(|entry| entry.get("models"));
    let provider = root.at(&["models", "providers", choice.provider]);
    let wildcard = format!("{}/*", choice.provider);
    let id = choice.reference.strip_prefix(choice.provider).and_then(|rest| rest.strip_prefix('/'));
    let listed = provider.get("models").children().into_iter().filter(|model| model.get("id").text() == id);
    let mut places: Vec<Node<'a>> = entry.iter().map(|models| models.get(choice.reference)).collect();
    places.push(defaults.get(choice.reference));
    places.extend(listed);
    places.extend(entry.iter().map(|models| models.get(&wildcard)));
    places.push(defaults.get(&wildcard));
    places.push(provider);
    places
}

/// The pointer of a provider's field.
pub(crate) fn provider_path(root: &Node<'_>, provider: &str, field: &str) -> String {
    pointer(&root.at(&["models", "providers", provider]).path, field)
}
