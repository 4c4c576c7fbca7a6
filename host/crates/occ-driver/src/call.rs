//! What a call is about, and the one trait through which capabilities ask the host.
//!
//! A capability (Kubernetes, processes) must know whether the work behind a call
//! still holds its lease, which fence it writes with and which places the tenant
//! owns. All of it comes through [`CallAuthority`], implemented by the host, so that
//! this crate knows neither SQL nor the domain.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use zeroize::Zeroizing;

/// Made by the host for every plugin call; a component can neither see nor change it.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Id of the plugin that is called.
    pub plugin: String,
    /// Name of the contract function, e.g. `prepare`.
    pub operation: &'static str,
    /// Namespace id of the tenant this call is about; `None` for pure calls.
    pub tenant: Option<String>,
    /// Agent id.
    pub agent: Option<String>,
    /// Revision id.
    pub revision: Option<String>,
    /// Key of the work row behind the call; `None` for reads by the API.
    pub work_key: Option<String>,
    /// Fence epoch of the claim; 0 for reads, which may never write.
    pub epoch: u64,
    /// When the call must have ended.
    pub deadline: Instant,
}

impl CallContext {
    /// For a pure call: about no tenant, never writing.
    #[must_use]
    pub fn pure(deadline: Instant) -> Self {
        Self {
            plugin: String::new(),
            operation: "",
            tenant: None,
            agent: None,
            revision: None,
            work_key: None,
            epoch: 0,
            deadline,
        }
    }

    /// For a read of the API on behalf of a tenant: no lease, never writing. The
    /// callee fills in plugin and operation.
    #[must_use]
    pub fn read(tenant: impl Into<String>, deadline: Instant) -> Self {
        Self { tenant: Some(tenant.into()), ..Self::pure(deadline) }
    }

    /// For a step of claimed work: writes carry the claim's `epoch` as their fence. The
    /// callee fills in plugin and operation.
    #[must_use]
    pub fn work(
        tenant: impl Into<String>,
        work_key: impl Into<String>,
        epoch: u64,
        deadline: Instant,
    ) -> Self {
        Self { work_key: Some(work_key.into()), epoch, ..Self::read(tenant, deadline) }
    }

    /// The same about an agent and, where there is one, its revision.
    #[must_use]
    pub fn about(mut self, agent: impl Into<String>, revision: Option<&str>) -> Self {
        self.agent = Some(agent.into());
        self.revision = revision.map(str::to_owned);
        self
    }

    /// Time left until the deadline; zero when it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// A secret value on its way to the process that needs it; wiped when dropped,
/// never printed.
#[derive(Clone)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Takes ownership of a value.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value itself; the caller must not store, log or return it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(hidden)")
    }
}

/// Why the authority could not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The host's own storage does not answer; the call ends as an outage.
    #[error("the host cannot answer now")]
    Unavailable,
    /// There is no such value, or this process has no way to it.
    #[error("no such value")]
    Missing,
    /// The value exists but not for the tenant or agent of this call.
    #[error("the value belongs to another tenant")]
    OutsideTenant,
}

/// Which secret a spawned process needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// An OCC Secret by id.
    Secret(String),
    /// A credential that the host generated for the agent, by name.
    Generated(String),
}

/// A fact worth an audit row of kind `authorization_denial`.
#[derive(Debug, Clone)]
pub struct SecurityEvent {
    /// Stable code, e.g. `OUTSIDE_TENANT`.
    pub code: &'static str,
    /// Capability that refused, e.g. `process`.
    pub capability: &'static str,
    /// Id or name of what was asked for; never a value.
    pub asked: String,
}

/// What capabilities ask of the host. Implemented once, in the host's `drivers/`.
pub trait CallAuthority: Send + Sync + 'static {
    /// Is the lease behind this call still held? Checked before each external write.
    fn lease_alive<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, bool>;
    /// The fence that writes of this call carry.
    fn fence(&self, call: &CallContext) -> u64;
    /// Below this, even an object found in order is stamped anew.
    fn fence_floor<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, Result<u64, AuthorityError>>;
    /// Kubernetes namespaces that the tenant owns (derived or adopted names).
    fn tenant_namespaces<'a>(
        &'a self,
        call: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<String>, AuthorityError>>;
    /// A value for a process that is about to start.
    fn secret_value<'a>(
        &'a self,
        call: &'a CallContext,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretValue, AuthorityError>>;
    /// Records a refusal that an operator must see.
    fn security_event<'a>(&'a self, call: &'a CallContext, event: SecurityEvent) -> BoxFuture<'a, ()>;
}
