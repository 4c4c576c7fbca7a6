//! Roles, bindings, principals, keys and decisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words;
use crate::error::{FieldCode, FieldError};
use crate::ids::{BindingId, IdentityId, KeyId, NamespaceId, RoleId};
use crate::json::{FromBody, Object};
use crate::name::is_name;
use crate::time::Timestamp;

/// Most permissions of one Role.
const PERMISSIONS_MAX: usize = 64;
/// Most checks of one request.
const CHECKS_MAX: usize = 64;
/// Shortest life of a key, in seconds.
const KEY_SECS_MIN: u64 = 86_400;
/// Longest life of a key, in seconds.
const KEY_SECS_MAX: u64 = 31_536_000;
/// Longest name of a key, in code points.
const KEY_NAME_CHARS_MAX: usize = 32;
/// Longest opaque text.
const OPAQUE_CHARS_MAX: usize = 200;

/// A pair that a Role grants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// What may be done.
    pub action: String,
    /// To which kind.
    pub resource_kind: String,
}

/// A Role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Its id.
    pub id: RoleId,
    /// Absent at Installation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// A label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it grants.
    pub permissions: Vec<Permission>,
}

/// Body of createIAMRole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoleCreate {
    /// A label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// 1 to 64 pairs.
    pub permissions: Vec<Permission>,
}

impl FromBody for RoleCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let name =
            body.optional_text("name", |text| is_name(text).then_some(()).ok_or(FieldCode::InvalidValue));
        let permissions = body.required("permissions").and_then(|list| permissions(&mut body, list));
        body.finish(permissions.map(|permissions| Self { name, permissions }))
    }
}

fn permissions(body: &mut Object<'_>, list: &Value) -> Option<Vec<Permission>> {
    let Some(items) = list.as_array() else {
        body.fault("permissions", FieldCode::InvalidType);
        return None;
    };
    if items.is_empty() || items.len() > PERMISSIONS_MAX {
        body.fault(
            "permissions",
            if items.is_empty() { FieldCode::InvalidValue } else { FieldCode::TooLong },
        );
        return None;
    }
    let mut read = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut pair = Object::new(item, format!("/permissions/{index}"));
        let action = pair.text("action", check_word);
        let resource_kind = pair.text("resourceKind", check_word);
        let found =
            action.zip(resource_kind).map(|(action, resource_kind)| Permission { action, resource_kind });
        match pair.finish(found) {
            Ok(permission) if read.contains(&permission) => {
                body.fault(&format!("permissions/{index}"), FieldCode::InvalidValue)
            }
            Ok(permission) => read.push(permission),
            Err(faults) => {
                faults.iter().for_each(|fault| body.fault(fault.path.trim_start_matches('/'), fault.code))
            }
        }
    }
    Some(read)
}

/// A word of lower-case letters and underscores; whether it is known is the host's to say.
///
/// # Errors
/// `INVALID_VALUE` for anything else.
pub fn check_word(text: &str) -> Result<(), FieldCode> {
    let plain =
        (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    plain.then_some(()).ok_or(FieldCode::InvalidValue)
}

fn opaque(text: &str) -> Result<(), FieldCode> {
    let length = text.chars().count();
    if length == 0 || text.chars().any(char::is_control) {
        return Err(FieldCode::InvalidFormat);
    }
    (length <= OPAQUE_CHARS_MAX).then_some(()).ok_or(FieldCode::TooLong)
}

words!(/// Who is bound.
SubjectKind {
    /// One identity.
    Identity = "identity",
    /// Every member of a Group.
    Group = "group",
});

/// An AccessBinding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessBinding {
    /// Its id.
    pub id: BindingId,
    /// Absent at Installation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// Identity or group.
    pub subject_kind: SubjectKind,
    /// Who is bound.
    pub subject_id: String,
    /// What is granted.
    pub role_id: RoleId,
    /// Kind of the exact target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_kind: Option<String>,
    /// The exact target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
}

/// Body of createIAMAccessBinding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessBindingCreate {
    /// Identity or group.
    pub subject_kind: SubjectKind,
    /// Who is bound.
    pub subject_id: String,
    /// What is granted.
    pub role_id: RoleId,
    /// Kind of the exact target; with `resourceId` or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_kind: Option<String>,
    /// The exact target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
}

impl FromBody for AccessBindingCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let subject_kind = body.word("subjectKind", SubjectKind::find);
        let subject_id = body.text("subjectId", opaque);
        let role_id = body.id("roleId");
        let resource_kind = body.optional_text("resourceKind", check_word);
        let resource_id = body.optional_text("resourceId", opaque);
        let sent = |key: &str| value.get(key).is_some();
        for (one, other) in [("resourceKind", "resourceId"), ("resourceId", "resourceKind")] {
            if sent(one) && !sent(other) {
                body.fault(other, FieldCode::Required);
            }
        }
        let ready = (subject_kind, subject_id, role_id);
        let (Some(subject_kind), Some(subject_id), Some(role_id)) = ready else {
            return body.finish(None);
        };
        body.finish(Some(Self { subject_kind, subject_id, role_id, resource_kind, resource_id }))
    }
}

/// A ServicePrincipal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePrincipal {
    /// Its id.
    pub id: IdentityId,
    /// Absent at Installation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
}

/// A service key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceKey {
    /// Its id.
    pub id: KeyId,
    /// Whose it is.
    pub service_principal_id: IdentityId,
    /// Absent at Installation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// A label.
    pub name: String,
    /// First characters of the key.
    pub prefix: String,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Null when it was never used.
    pub last_used_at: Option<Timestamp>,
    /// Null unless it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A service key as it is issued, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedServiceKey {
    /// Its id.
    pub id: KeyId,
    /// Whose it is.
    pub service_principal_id: IdentityId,
    /// Absent at Installation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// A label.
    pub name: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The key itself.
    pub key: String,
}

/// Answer of revokeServiceKey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokedServiceKey {
    /// Its id.
    pub id: KeyId,
    /// Always true.
    pub revoked: bool,
}

/// Body of createServiceKey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceKeyCreate {
    /// Whose it will be.
    pub service_principal_id: IdentityId,
    /// Scope; equal to the ServicePrincipal's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// A label of 1 to 32 characters.
    pub name: String,
    /// Life in seconds, 86,400 to 31,536,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
}

impl FromBody for ServiceKeyCreate {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let service_principal_id = body.id("servicePrincipalId");
        let namespace_id = body.optional_id("namespaceId");
        let name = body.text("name", |text| {
            let length = text.chars().count();
            if length > KEY_NAME_CHARS_MAX {
                return Err(FieldCode::TooLong);
            }
            (!text.trim().is_empty() && !text.chars().any(char::is_control))
                .then_some(())
                .ok_or(FieldCode::InvalidValue)
        });
        let expires_in = body.optional("expiresIn").and_then(|value| match value.as_u64() {
            Some(secs) if (KEY_SECS_MIN..=KEY_SECS_MAX).contains(&secs) => Some(secs),
            _ => {
                body.fault(
                    "expiresIn",
                    if value.is_number() { FieldCode::InvalidValue } else { FieldCode::InvalidType },
                );
                None
            }
        });
        let ready = service_principal_id.zip(name);
        body.finish(ready.map(|(service_principal_id, name)| Self {
            service_principal_id,
            namespace_id,
            name,
            expires_in,
        }))
    }
}

/// One question to the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What would be done.
    pub action: String,
    /// To which kind.
    pub resource_kind: String,
    /// To which resource.
    pub resource_id: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
}

/// Body of canIMany and explainMany.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanIMany {
    /// About whom; the caller when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<IdentityId>,
    /// 1 to 64 questions.
    pub checks: Vec<Check>,
}

impl FromBody for CanIMany {
    fn from_body(value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut body = Object::new(value, "");
        let principal_id = body.optional_id("principalId");
        let mut checks = Vec::new();
        match body.required("checks").map(|list| (list, list.as_array())) {
            Some((_, Some(items))) if (1..=CHECKS_MAX).contains(&items.len()) => {
                for (index, item) in items.iter().enumerate() {
                    match read_check(item, &format!("/checks/{index}")) {
                        Ok(check) => checks.push(check),
                        Err(faults) => faults
                            .iter()
                            .for_each(|fault| body.fault(fault.path.trim_start_matches('/'), fault.code)),
                    }
                }
            }
            Some((_, Some(items))) => {
                body.fault(
                    "checks",
                    if items.is_empty() { FieldCode::InvalidValue } else { FieldCode::TooLong },
                );
            }
            Some(_) => body.fault("checks", FieldCode::InvalidType),
            None => {}
        }
        body.finish(Some(Self { principal_id, checks }))
    }
}

fn read_check(item: &Value, path: &str) -> Result<Check, Vec<FieldError>> {
    let mut object = Object::new(item, path);
    let action = object.text("action", check_word);
    let resource_kind = object.text("resourceKind", check_word);
    let resource_id = object.text("resourceId", opaque);
    let namespace_id = object.optional_id("namespaceId");
    let (Some(action), Some(resource_kind), Some(resource_id)) = (action, resource_kind, resource_id) else {
        return object.finish(None);
    };
    object.finish(Some(Check { action, resource_kind, resource_id, namespace_id }))
}

/// A decision; `evidence` only in explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// May it be done?
    pub allowed: bool,
    /// What.
    pub action: String,
    /// To which kind.
    pub resource_kind: String,
    /// To which resource.
    pub resource_id: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<NamespaceId>,
    /// By whom; only in explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<IdentityId>,
    /// Why; only in explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Every matching row; only in explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// Rows behind a decision, sorted, at most 1,000 a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Who.
    pub identity_id: String,
    /// Groups that counted.
    pub group_ids: Vec<String>,
    /// Bindings that matched.
    pub binding_ids: Vec<String>,
    /// Their Roles.
    pub role_ids: Vec<String>,
    /// Restrictions that matched.
    pub restriction_ids: Vec<String>,
    /// Present when a set was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}
