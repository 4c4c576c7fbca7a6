//! What the platform alone decides about the gateway: where it listens, whom it trusts as
//! a proxy, and how clients sign in.
//!
//! A document's own address is replaced with a warning, so that one document runs on every
//! compute. Its own way of signing in is refused: the platform could not keep it.

use occ_plugin_sdk::bindings::types::{Reason, SettingProblem};
use occ_plugin_sdk::json::pointer;
use occ_plugin_sdk::reason::{problem, reason_with};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::document::Node;

/// Environment variable of the gateway's password.
pub(crate) const PASSWORD: &str = "OPENCLAW_GATEWAY_PASSWORD";
/// The part of `gateway.auth` that stays the document's own: it can only narrow access.
const KEPT: &str = "rateLimit";

/// What `compute.platform` answered.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Platform {
    pub(crate) bind: Bind,
    pub(crate) gateway_port: u16,
    pub(crate) trusted_proxies: Vec<String>,
}

/// Which addresses the gateway listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bind {
    /// 127.0.0.1 only.
    Loopback,
    /// Every address.
    Lan,
}

/// Settings of the document that would open or break access.
pub(crate) fn problems(root: &Node<'_>) -> Vec<SettingProblem> {
    let gateway = root.get("gateway");
    let mut found = Vec::new();
    let mut fixed = |node: Node<'_>, allowed: Value| {
        if node.value.is_some_and(|value| *value != allowed) {
            let message = format!("must be {allowed} or absent: access to the gateway is the platform's");
            found.push(problem(node.path, message));
        }
    };
    fixed(gateway.at(&["auth", "mode"]), json!("password"));
    fixed(gateway.get("mode"), json!("local"));
    fixed(gateway.at(&["tailscale", "mode"]), json!("off"));
    fixed(gateway.at(&["tls", "enabled"]), json!(false));
    for node in [gateway.clone(), gateway.get("auth")] {
        if node.value.is_some() && node.object().is_none() {
            found.push(problem(node.path, "must be an object"));
        }
    }
    found
}

/// Puts the platform's facts into the document; a warning for each setting they replace.
pub(crate) fn stamp(document: &mut Value, platform: &Platform) -> Vec<Reason> {
    let mut warnings = Vec::new();
    let Some(root) = document.as_object_mut() else {
        return warnings;
    };
    let gateway = root.entry("gateway").or_insert_with(|| json!({}));
    let Some(gateway) = gateway.as_object_mut() else {
        return warnings;
    };
    let bind = if platform.bind == Bind::Lan { "lan" } else { "loopback" };
    let facts = [
        ("mode", json!("local")),
        ("bind", json!(bind)),
        ("port", json!(platform.gateway_port)),
        ("trustedProxies", json!(platform.trusted_proxies)),
    ];
    for (name, fact) in facts {
        let replaced = gateway.insert(name.to_owned(), fact.clone());
        if replaced.is_some_and(|replaced| replaced != fact) {
            warnings.push(replaced_warning(&pointer("/gateway", name)));
        }
    }
    if gateway.remove("customBindHost").is_some() {
        warnings.push(replaced_warning("/gateway/customBindHost"));
    }
    let own = gateway.remove("auth");
    gateway.insert("auth".to_owned(), auth(own, &mut warnings));
    warnings
}

fn auth(own: Option<Value>, warnings: &mut Vec<Reason>) -> Value {
    let mut auth = Map::new();
    auth.insert("mode".to_owned(), json!("password"));
    auth.insert("password".to_owned(), json!({ "source": "env", "provider": "default", "id": PASSWORD }));
    let Some(Value::Object(own)) = own else {
        return Value::Object(auth);
    };
    for (name, value) in own {
        if name == KEPT {
            auth.insert(name, value);
        } else if auth.get(&name) != Some(&value) {
            warnings.push(replaced_warning(&pointer("/gateway/auth", &name)));
        }
    }
    Value::Object(auth)
}

fn replaced_warning(path: &str) -> Reason {
    let message = "The platform's own value replaces this setting of the gateway.";
    reason_with("GATEWAY_SETTING_REPLACED", message, &json!({ "path": path }))
}
