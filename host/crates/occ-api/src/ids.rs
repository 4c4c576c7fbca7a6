//! Typed ids: a prefix, `_`, and a lowercase UUID of version 4 (variant 8–b).
//!
//! Role, binding and session ids are opaque on the wire: 1–200 characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::{Uuid, Variant, Version};

/// Longest opaque id, in characters.
pub const OPAQUE_CHARS_MAX: usize = 200;

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an id of the form {form}")]
pub struct IdError {
    /// The form that was expected, e.g. `ns_<uuid>`.
    pub form: &'static str,
}

/// What all id types share.
pub trait TypedId: Sized + fmt::Display + Clone + Send + Sync + 'static {
    /// Name of the type in messages, e.g. `Agent`.
    const NAME: &'static str;
    /// Expected form, e.g. `agt_<uuid>`.
    const FORM: &'static str;

    /// Reads an id.
    ///
    /// # Errors
    /// When the text has another form.
    fn parse(text: &str) -> Result<Self, IdError>;

    /// The id as text.
    fn as_str(&self) -> &str;
}

fn is_uuid(text: &str) -> bool {
    let canonical = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    canonical
        && Uuid::try_parse(text).is_ok_and(|uuid| {
            uuid.get_version() == Some(Version::Random) && uuid.get_variant() == Variant::RFC4122
        })
}

macro_rules! common {
    ($type:ident, $name:literal, $form:literal) => {
        impl $type {
            /// Reads an id.
            ///
            /// # Errors
            /// When the text has another form.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                <Self as TypedId>::parse(text)
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "description": concat!("Id of the form ", $form)})
            }
        }
    };
}

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $type:ident, $name:literal, $form:literal, [$first:literal $(, $other:literal)*]) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// An id from a random UUID.
            #[must_use]
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(format!(concat!($first, "_{}"), uuid))
            }
        }

        impl TypedId for $type {
            const NAME: &'static str = $name;
            const FORM: &'static str = $form;

            fn parse(text: &str) -> Result<Self, IdError> {
                let prefixes = [concat!($first, "_") $(, concat!($other, "_"))*];
                let suffix = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
                match suffix {
                    Some(suffix) if is_uuid(suffix) => Ok(Self(text.to_owned())),
                    _ => Err(IdError { form: $form }),
                }
            }

            fn as_str(&self) -> &str {
                &self.0
            }
        }

        common!($type, $name, $form);
    };
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $type:ident, $name:literal, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// An id from a random UUID.
            #[must_use]
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(format!(concat!($prefix, "_{}"), uuid))
            }
        }

        impl TypedId for $type {
            const NAME: &'static str = $name;
            const FORM: &'static str = "1 to 200 characters";

            fn parse(text: &str) -> Result<Self, IdError> {
                let length = text.chars().count();
                if (1..=OPAQUE_CHARS_MAX).contains(&length) && !text.chars().any(char::is_control) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError { form: Self::FORM })
                }
            }

            fn as_str(&self) -> &str {
                &self.0
            }
        }

        common!($type, $name, "opaque, 1 to 200 characters");
    };
}

prefixed_id!(/// The Installation.
    InstallationId, "Installation", "ins_<uuid>", ["ins"]);
prefixed_id!(/// A tenant.
    NamespaceId, "Namespace", "ns_<uuid>", ["ns"]);
prefixed_id!(/// A Configuration.
    ConfigurationId, "Configuration", "cfg_<uuid>", ["cfg"]);
prefixed_id!(/// A Secret.
    SecretId, "Secret", "sec_<uuid>", ["sec"]);
prefixed_id!(/// An Agent.
    AgentId, "Agent", "agt_<uuid>", ["agt"]);
prefixed_id!(/// An AgentRevision; a deployment's id is the same.
    RevisionId, "AgentRevision", "rev_<uuid>", ["rev"]);
prefixed_id!(/// An audit event.
    AuditId, "audit event", "aud_<uuid>", ["aud"]);
prefixed_id!(/// A request, minted by the server.
    RequestId, "request", "req_<uuid>", ["req"]);
prefixed_id!(/// A ServicePrincipal or a human Principal; new ones are ServicePrincipals.
    IdentityId, "identity", "spn_<uuid> or prn_<uuid>", ["spn", "prn"]);
opaque_id!(/// A Group.
    GroupId, "Group", "grp");
opaque_id!(/// A service key.
    KeyId, "service key", "key");
opaque_id!(/// A user.
    UserId, "user", "usr");
opaque_id!(/// A Role.
    RoleId, "Role", "role");
opaque_id!(/// An AccessBinding.
    BindingId, "AccessBinding", "binding");

impl IdentityId {
    /// The id of a human Principal from a random UUID.
    #[must_use]
    pub fn human(uuid: Uuid) -> Self {
        Self(format!("prn_{uuid}"))
    }

    /// Is this a human Principal?
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.0.starts_with("prn_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";

    #[test]
    fn only_the_exact_form_is_an_id() {
        assert_eq!(AgentId::parse(&format!("agt_{UUID}")).unwrap().to_string(), format!("agt_{UUID}"));
        for wrong in [
            format!("ns_{UUID}"),
            format!("agt_{}", UUID.to_uppercase()),
            format!("agt_{}", UUID.replace("-4c3f-", "-1c3f-")),
            format!("agt_{}", UUID.replace("-8a60-", "-7a60-")),
            format!("agt_{UUID} "),
            format!("agt_{}", UUID.replace('-', "")),
            "agt_".to_owned(),
        ] {
            assert_eq!(AgentId::parse(&wrong), Err(IdError { form: "agt_<uuid>" }), "{wrong}");
        }
        assert!(IdentityId::parse(&format!("prn_{UUID}")).unwrap().is_human());
        assert!(!IdentityId::parse(&format!("spn_{UUID}")).unwrap().is_human());
    }

    #[test]
    fn opaque_ids_have_a_length() {
        assert!(RoleId::parse("role_admin_x").is_ok());
        assert!(RoleId::parse("").is_err());
        assert!(RoleId::parse(&"x".repeat(201)).is_err());
    }
}
