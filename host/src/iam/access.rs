//! What can be asked of IAM: an action on a kind of resource, by its identifier.

use std::fmt;
use std::str::FromStr;

use occ_api::ids::{InstallationId, NamespaceId};

/// Declares a closed set of words with their wire form.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every member, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Their words.
            pub const WORDS: &[&'static str] = &[$($word,)+];

            /// The word on the wire and in the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word { $($word => Ok(Self::$variant),)+ _ => Err(UnknownWord) }
            }
        }
    };
}

/// The word names no action or kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known action or kind")]
pub struct UnknownWord;

words! {
    /// What is done. No action implies another.
    Action {
        /// Make one in a parent.
        Create = "create",
        /// See it.
        Read = "read",
        /// Change it.
        Update = "update",
        /// Remove it.
        Delete = "delete",
        /// Deploy an Agent.
        Deploy = "deploy",
        /// Use it: bind a Secret, stop an Agent, look into its runtime.
        Operate = "operate",
        /// Administer the Installation or an Agent.
        Administer = "administer",
        /// Read an Agent's logs.
        ReadLogs = "read_logs",
    }
}

words! {
    /// What it is done to.
    Kind {
        /// The Installation itself.
        Installation = "installation",
        /// A tenant.
        Namespace = "namespace",
        /// A native configuration document.
        Configuration = "configuration",
        /// A configuration template.
        Preset = "preset",
        /// An account at a provider.
        ServiceAccount = "service_account",
        /// A stored secret value.
        Secret = "secret",
        /// A broker of credentials.
        CredentialSource = "credential_source",
        /// An agent.
        Agent = "agent",
        /// An immutable revision of an Agent.
        AgentRevision = "agent_revision",
    }
}

/// One permission: an action on a kind.
pub type Pair = (Action, Kind);

/// Does some operation check this pair? Others are refused in a Role.
#[must_use]
pub fn is_checked((action, kind): Pair) -> bool {
    use Action::{Administer, Create, Delete, Deploy, Operate, Read, ReadLogs, Update};
    match kind {
        Kind::Installation => matches!(action, Read | Administer),
        Kind::Namespace => matches!(action, Create | Read | Delete),
        Kind::Configuration | Kind::Preset | Kind::ServiceAccount => {
            matches!(action, Create | Read | Update | Delete)
        }
        Kind::Secret | Kind::CredentialSource => matches!(action, Create | Read | Update | Delete | Operate),
        Kind::Agent => {
            matches!(action, Create | Read | Update | Delete | Deploy | Operate | Administer | ReadLogs)
        }
        Kind::AgentRevision => action == Read,
    }
}

/// May a Role of a Namespace hold this pair?
#[must_use]
pub fn fits_namespace_role((action, kind): Pair) -> bool {
    match kind {
        Kind::Installation => false,
        Kind::Namespace => !matches!(action, Action::Create | Action::Delete),
        _ => true,
    }
}

/// One question to IAM. `id` names the resource, or the parent when the action is `create`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// What is to be done.
    pub action: Action,
    /// To which kind.
    pub kind: Kind,
    /// The resource; for `create` the parent.
    pub id: String,
    /// Absent for the Installation and for creating a Namespace.
    pub namespace: Option<NamespaceId>,
}

impl Access {
    /// On the Installation itself.
    #[must_use]
    pub fn installation(action: Action, installation: &InstallationId) -> Self {
        Self { action, kind: Kind::Installation, id: installation.to_string(), namespace: None }
    }

    /// On one Namespace.
    #[must_use]
    pub fn namespace(action: Action, namespace: &NamespaceId) -> Self {
        Self { action, kind: Kind::Namespace, id: namespace.to_string(), namespace: Some(namespace.clone()) }
    }

    /// Creating a Namespace in the Installation.
    #[must_use]
    pub fn namespaces(installation: &InstallationId) -> Self {
        Self { action: Action::Create, kind: Kind::Namespace, id: installation.to_string(), namespace: None }
    }

    /// Creating a resource of a kind in a Namespace.
    #[must_use]
    pub fn collection(kind: Kind, namespace: &NamespaceId) -> Self {
        Self { action: Action::Create, kind, id: namespace.to_string(), namespace: Some(namespace.clone()) }
    }

    /// On one resource of a Namespace.
    #[must_use]
    pub fn item(action: Action, kind: Kind, namespace: &NamespaceId, id: impl fmt::Display) -> Self {
        Self { action, kind, id: id.to_string(), namespace: Some(namespace.clone()) }
    }

    /// Does the request name its scope as its kind demands?
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        match (self.kind, self.action, &self.namespace) {
            (Kind::Installation, _, None) | (Kind::Namespace, Action::Create, None) => true,
            (Kind::Installation, _, Some(_)) | (Kind::Namespace, Action::Create, Some(_)) | (_, _, None) => {
                false
            }
            (Kind::Namespace, _, Some(namespace)) => namespace.as_str() == self.id,
            (_, _, Some(_)) => true,
        }
    }
}
