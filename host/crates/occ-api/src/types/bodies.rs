//! Request bodies of the tenant's resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::agent::{
    ConfigurationKind, Delivery, ExecutionMode, HarnessAuth, RollbackPolicy, SecretBinding, SecretKind,
    SecretRef,
};
use crate::error::{FieldCode, FieldError};
use crate::ids::{ConfigurationId, RevisionId};
use crate::json::{FromBody, Object};
use crate::name::{is_dns_label, is_name};

/// Longest value of a Secret, in bytes.
const SECRET_VALUE_BYTES_MAX: usize = 65_536;
/// Most bindings of a Configuration.
const BINDINGS_MAX: usize = 64;
/// Fields of an Agent that are known and not offered yet.
const AGENT_LATER: [&str; 6] = [
    "backendId",
    "credentialSources",
    "plugins",
    "pluginApprovers",
    "repositoryBindings",
    "repositoryAccess",
];

/// Body of createNamespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceCreate {
    /// Unique in the Installation.
    pub name: String,
    /// A Kubernetes namespace to adopt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing_namespace: Option<String>,
}

impl FromBody for NamespaceCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let name = body.text("name", name);
        let existing_namespace = body.optional_text("existingNamespace", |text| {
            is_dns_label(text).then_some(()).ok_or(FieldCode::InvalidFormat)
        });
        body.finish(name.map(|name| Self { name, existing_namespace }))
    }
}

/// Body of createConfiguration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationCreate {
    /// Always `agent`.
    pub kind: ConfigurationKind,
    /// The document.
    pub values: Value,
    /// Environment name to Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_bindings: Option<BTreeMap<String, SecretBinding>>,
}

impl FromBody for ConfigurationCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let kind = body.word("kind", ConfigurationKind::find);
        let values = values(&mut body);
        let secret_bindings = bindings(&mut body);
        body.finish(kind.zip(values).map(|(kind, values)| Self { kind, values, secret_bindings }))
    }
}

/// Body of updateConfiguration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationUpdate {
    /// The document that replaces the one before.
    pub values: Value,
    /// Absent keeps, an empty object clears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_bindings: Option<BTreeMap<String, SecretBinding>>,
}

impl FromBody for ConfigurationUpdate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let values = values(&mut body);
        let secret_bindings = bindings(&mut body);
        body.finish(values.map(|values| Self { values, secret_bindings }))
    }
}

/// Body of createSecret; the value is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SecretCreate {
    /// Unique in the Namespace.
    pub name: String,
    /// 1 to 65,536 bytes, no NUL.
    pub value: String,
}

impl FromBody for SecretCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let name = body.text("name", name);
        let secret = body.text("value", secret_value);
        body.finish(name.zip(secret).map(|(name, value)| Self { name, value }))
    }
}

/// Body of updateSecret; the value is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SecretUpdate {
    /// 1 to 65,536 bytes, no NUL.
    pub value: String,
}

impl FromBody for SecretUpdate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let secret = body.text("value", secret_value);
        body.finish(secret.map(|value| Self { value }))
    }
}

/// Body of createAgent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCreate {
    /// Unique in the Namespace.
    pub name: String,
    /// What its deployments freeze.
    pub configuration_id: ConfigurationId,
    /// How it authenticates to its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness_auth: Option<HarnessAuth>,
    /// `embedded` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<ExecutionMode>,
    /// `automatic` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_policy: Option<RollbackPolicy>,
    /// Known fields that were sent and are not offered yet.
    #[serde(skip)]
    #[schemars(skip)]
    pub not_built: Vec<&'static str>,
}

impl FromBody for AgentCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let name = body.text("name", name);
        let configuration_id = body.id("configurationId");
        let harness_auth = body
            .optional("harnessAuth")
            .filter(|auth| !auth.is_null())
            .and_then(|auth| harness_auth(&mut body, auth));
        let execution_mode = body.optional_word("executionMode", ExecutionMode::find);
        let rollback_policy = body.optional_word("rollbackPolicy", RollbackPolicy::find);
        let not_built = later(&mut body);
        let ready = name.zip(configuration_id);
        body.finish(ready.map(|(name, configuration_id)| Self {
            name,
            configuration_id,
            harness_auth,
            execution_mode,
            rollback_policy,
            not_built,
        }))
    }
}

/// Body of updateAgent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUpdate {
    /// Always sent.
    pub configuration_id: ConfigurationId,
    /// Absent keeps, null clears.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HarnessAuth>")]
    pub harness_auth: Option<Option<HarnessAuth>>,
    /// Absent keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<ExecutionMode>,
    /// Absent keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_policy: Option<RollbackPolicy>,
    /// Known fields that were sent and are not offered yet.
    #[serde(skip)]
    #[schemars(skip)]
    pub not_built: Vec<&'static str>,
}

impl FromBody for AgentUpdate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let configuration_id = body.id("configurationId");
        let harness_auth = match body.optional("harnessAuth") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(auth) => harness_auth(&mut body, auth).map(Some),
        };
        let execution_mode = body.optional_word("executionMode", ExecutionMode::find);
        let rollback_policy = body.optional_word("rollbackPolicy", RollbackPolicy::find);
        let not_built = later(&mut body);
        body.finish(configuration_id.map(|configuration_id| Self {
            configuration_id,
            harness_auth,
            execution_mode,
            rollback_policy,
            not_built,
        }))
    }
}

/// Body of rollbackAgent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackRequest {
    /// The newest earlier revision that served and differs, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_id: Option<RevisionId>,
}

impl FromBody for RollbackRequest {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let revision_id = body.optional_id("revisionId");
        body.finish(Some(Self { revision_id }))
    }
}

fn name(text: &str) -> Result<(), FieldCode> {
    if text.chars().count() > crate::name::NAME_CHARS_MAX {
        return Err(FieldCode::TooLong);
    }
    is_name(text).then_some(()).ok_or(FieldCode::InvalidValue)
}

fn secret_value(text: &str) -> Result<(), FieldCode> {
    match text.len() {
        0 => Err(FieldCode::InvalidValue),
        length if length > SECRET_VALUE_BYTES_MAX => Err(FieldCode::TooLong),
        _ if text.contains('\0') => Err(FieldCode::InvalidValue),
        _ => Ok(()),
    }
}

fn values(body: &mut Object<'_>) -> Option<Value> {
    let values = body.required("values")?;
    if !values.is_object() {
        body.fault("values", FieldCode::InvalidType);
        return None;
    }
    Some(values.clone())
}

fn bindings(body: &mut Object<'_>) -> Option<BTreeMap<String, SecretBinding>> {
    let value = body.optional("secretBindings")?;
    if value.as_object().is_some_and(|members| members.len() > BINDINGS_MAX) {
        body.fault("secretBindings", FieldCode::TooLong);
        return None;
    }
    body.nested("secretBindings", value, |entries| Some(entries.entries(binding)))
}

fn binding<'a>(parent: &mut Object<'a>, env_name: &'a str, value: &'a Value) -> Option<SecretBinding> {
    if !crate::document::is_free_destination(env_name) {
        parent.fault(env_name, FieldCode::InvalidValue);
    }
    parent.nested(env_name, value, |object| {
        let source = object.required("source").and_then(|source| object.nested("source", source, secret_ref));
        let delivery = object.optional("delivery");
        if let Some(delivery) = delivery {
            object.nested("delivery", delivery, |delivery| {
                delivery.word("type", |word| (word == "env").then_some(()))
            });
        }
        source.map(|source| SecretBinding { source, delivery: Some(Delivery::Env) })
    })
}

fn secret_ref(object: &mut Object<'_>) -> Option<SecretRef> {
    let kind = object.word("kind", SecretKind::find);
    let namespace_id = object.id("namespaceId");
    let id = object.id("id");
    Some(SecretRef { kind: kind?, namespace_id: namespace_id?, id: id? })
}

fn harness_auth<'a>(body: &mut Object<'a>, value: &'a Value) -> Option<HarnessAuth> {
    body.nested("harnessAuth", value, |object| {
        let method = object.word("method", |word| {
            ["runtime", "api_key", "codex_pat", "oauth", "credential_source"]
                .into_iter()
                .find(|known| *known == word)
        })?;
        if method == "runtime" {
            return Some(HarnessAuth::Runtime);
        }
        let source = object.required("source")?;
        match method {
            "api_key" => {
                object.nested("source", source, secret_ref).map(|source| HarnessAuth::ApiKey { source })
            }
            "codex_pat" => Some(HarnessAuth::CodexPat { source: source.clone() }),
            "oauth" => Some(HarnessAuth::Oauth { source: source.clone() }),
            _ => Some(HarnessAuth::CredentialSource { source: source.clone() }),
        }
    })
}

/// Known fields that are not offered: null and empty lists ask for nothing.
fn later(body: &mut Object<'_>) -> Vec<&'static str> {
    AGENT_LATER
        .into_iter()
        .filter(|key| {
            body.optional(key)
                .is_some_and(|value| !value.is_null() && !value.as_array().is_some_and(Vec::is_empty))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMESPACE: &str = "ns_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";
    const SECRET: &str = "sec_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";
    const CONFIGURATION: &str = "cfg_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";

    fn faults<T: FromBody>(value: &Value) -> Vec<(String, FieldCode)> {
        T::from_body(value)
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|fault| (fault.path, fault.code))
            .collect()
    }

    #[test]
    fn an_agent_reads_with_its_key() {
        let source = json!({"kind": "secret", "namespaceId": NAMESPACE, "id": SECRET});
        let body = json!({"name": "concierge", "configurationId": CONFIGURATION, "harnessAuth": {"method": "api_key", "source": source}});
        let agent = AgentCreate::from_body(&body).unwrap();
        assert!(
            matches!(agent.harness_auth, Some(HarnessAuth::ApiKey { source }) if source.id.as_str() == SECRET)
        );
        assert!(agent.not_built.is_empty());
    }

    #[test]
    fn later_fields_are_known_and_named() {
        let body = json!({"name": "a", "configurationId": CONFIGURATION, "backendId": "b", "plugins": []});
        assert_eq!(AgentCreate::from_body(&body).unwrap().not_built, ["backendId"]);
    }

    #[test]
    fn bindings_are_checked_one_by_one() {
        let source = json!({"kind": "secret", "namespaceId": NAMESPACE, "id": "sec_x"});
        let body = json!({"kind": "agent", "values": {}, "secretBindings": {"OPENCLAW_X": {"source": source}, "A": {}}});
        assert_eq!(
            faults::<ConfigurationCreate>(&body),
            [
                ("/secretBindings/OPENCLAW_X".to_owned(), FieldCode::InvalidValue),
                ("/secretBindings/OPENCLAW_X/source/id".to_owned(), FieldCode::InvalidFormat),
                ("/secretBindings/A/source".to_owned(), FieldCode::Required),
            ]
        );
    }

    #[test]
    fn secret_values_count_bytes() {
        let body = |value: String| json!({"name": "s", "value": value});
        assert!(faults::<SecretCreate>(&body("é".repeat(32_768))).is_empty());
        assert_eq!(
            faults::<SecretCreate>(&body("é".repeat(32_769))),
            [("/value".to_owned(), FieldCode::TooLong)]
        );
        assert_eq!(
            faults::<SecretCreate>(&body(String::new())),
            [("/value".to_owned(), FieldCode::InvalidValue)]
        );
    }

    #[test]
    fn null_clears_and_absence_keeps() {
        let update = |value: Value| AgentUpdate::from_body(&value).unwrap().harness_auth;
        assert_eq!(update(json!({"configurationId": CONFIGURATION})), None);
        assert_eq!(update(json!({"configurationId": CONFIGURATION, "harnessAuth": null})), Some(None));
    }
}
