//! Resources and request bodies as they are on the wire. An absent field is absent, not null,
//! unless its type is `Option<Option<_>>` or the comment says null.

mod agent;
mod bodies;
mod iam;
mod operations;
mod runtime;

pub use agent::{
    Agent, AgentRevision, AgentStatus, Configuration, ConfigurationKind, ConfigurationReadError, Delivery,
    Deployment, DeploymentAttempt, DeploymentError, DeploymentProgress, DeploymentStatus,
    DesiredRuntimeState, DryRun, ExecutionMode, HarnessAuth, Installation, Namespace, NamespaceStatus,
    RevisionCompute, RevisionFields, RevisionHarness, RollbackPolicy, Secret, SecretBinding, SecretConsumers,
    SecretDetails, SecretKind, SecretRef,
};
pub use bodies::{
    AgentCreate, AgentUpdate, ConfigurationCreate, ConfigurationUpdate, NamespaceCreate, RollbackRequest,
    SecretCreate, SecretUpdate,
};
pub use iam::{
    AccessBinding, AccessBindingCreate, CanIMany, Check, Decision, Evidence, IssuedServiceKey, Permission,
    RevokedServiceKey, Role, RoleCreate, ServiceKey, ServiceKeyCreate, ServicePrincipal, SubjectKind,
    check_word,
};
pub use operations::{AuditEvent, Plugin, PluginCalls, PluginCapabilities, WorkItem};
pub use runtime::{
    LogLine, LogPage, LogRecord, LogStream, Runtime, RuntimeContainer, RuntimeEndpoint, RuntimeEvent,
    RuntimePod, RuntimeSource, RuntimeSourcePod, RuntimeTermination,
};

/// A closed set of words on the wire.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $type {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $type {
            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of a word.
            #[must_use]
            pub fn find(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;
