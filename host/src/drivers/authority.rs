//! What capabilities ask of the host: leases, fences, secret values, security events.
//!
//! **A value goes to a process that is about to start and nowhere else**, and only when the
//! Namespace of the call owns it.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use occ_api::ids::{AgentId, NamespaceId, SecretId};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::leases::LeaseBook;
use super::{AuthorityError, CallAuthority, CallContext, SecretRef, SecretValue, SecurityEvent};
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db;
use crate::error::Result;
use crate::secret_store::{Found, SecretStore};

/// Refusals that wait to be written to the audit log.
const DENIALS_MAX: usize = 256;
/// Action of their audit rows.
const DENIED: &str = "openclaw.plugins.security.denied";

/// A refusal on its way to the audit log.
#[derive(Debug, Clone)]
pub struct Denial {
    /// The call that was refused.
    pub call: CallContext,
    /// What it asked for.
    pub event: SecurityEvent,
}

/// Receives the refusals of a [`HostAuthority`]; see [`write_denials`].
pub type Denials = mpsc::Receiver<Denial>;

/// The host's answers to capabilities.
#[derive(Debug, Clone)]
pub struct HostAuthority {
    leases: LeaseBook,
    secrets: SecretStore,
    denials: mpsc::Sender<Denial>,
}

impl HostAuthority {
    /// An authority over these leases and values, and where its refusals come out.
    #[must_use]
    pub fn new(leases: LeaseBook, secrets: SecretStore) -> (Self, Denials) {
        let (denials, receiver) = mpsc::channel(DENIALS_MAX);
        (Self { leases, secrets, denials }, receiver)
    }

    async fn value(&self, call: &CallContext, secret: &SecretRef) -> Result<SecretValue, AuthorityError> {
        let namespace = parse::<NamespaceId>(call.tenant.as_deref())?;
        let found = match secret {
            SecretRef::Secret(id) => {
                self.secrets.secret_value(&namespace, &parse::<SecretId>(Some(id))?).await
            }
            SecretRef::Generated(name) => {
                let agent = parse::<AgentId>(call.agent.as_deref())?;
                self.secrets.generated_value(&namespace, &agent, name).await
            }
        };
        match found {
            Ok(Found::Value(value)) => Ok(value),
            Ok(Found::Missing) => Err(AuthorityError::Missing),
            Ok(Found::Foreign) => Err(AuthorityError::OutsideTenant),
            Err(error) => {
                tracing::error!(event = "secret.not_read", plugin = %call.plugin, code = error.code(), cause = ?error);
                Err(AuthorityError::Unavailable)
            }
        }
    }
}

fn parse<T: std::str::FromStr>(text: Option<&str>) -> Result<T, AuthorityError> {
    text.and_then(|text| text.parse().ok()).ok_or(AuthorityError::Missing)
}

impl CallAuthority for HostAuthority {
    fn lease_alive<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, bool> {
        let key = call.work_key.as_deref();
        ready(key.is_some_and(|key| self.leases.alive(key, call.epoch))).boxed()
    }

    fn fence(&self, call: &CallContext) -> u64 {
        call.epoch
    }

    fn fence_floor<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, Result<u64, AuthorityError>> {
        let floor = call.work_key.as_deref().and_then(|key| self.leases.fence_floor(key, call.epoch));
        ready(floor.ok_or(AuthorityError::Missing)).boxed()
    }

    /// This host has no cluster, so no tenant owns a Kubernetes namespace.
    fn tenant_namespaces<'a>(
        &'a self,
        _call: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<String>, AuthorityError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn secret_value<'a>(
        &'a self,
        call: &'a CallContext,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretValue, AuthorityError>> {
        self.value(call, secret).boxed()
    }

    /// Never waits: a component that is refused a thousand times must not slow the host down.
    /// What does not fit is in the log alone.
    fn security_event<'a>(&'a self, call: &'a CallContext, event: SecurityEvent) -> BoxFuture<'a, ()> {
        tracing::warn!(
            event = "plugin.denied",
            plugin = %call.plugin,
            operation = call.operation,
            namespace = call.tenant.as_deref(),
            capability = event.capability,
            code = event.code,
            asked = %event.asked,
        );
        match self.denials.try_send(Denial { call: call.clone(), event }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                tracing::error!(event = "plugin.denial_not_audited", reason = "full")
            }
            Err(TrySendError::Closed(_)) => {
                tracing::error!(event = "plugin.denial_not_audited", reason = "ended")
            }
        }
        ready(()).boxed()
    }
}

/// For work that needs no answer: ending processes, looking at a plugin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoAuthority;

impl CallAuthority for NoAuthority {
    fn lease_alive<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, bool> {
        ready(false).boxed()
    }

    fn fence(&self, call: &CallContext) -> u64 {
        call.epoch
    }

    fn fence_floor<'a>(&'a self, _: &'a CallContext) -> BoxFuture<'a, Result<u64, AuthorityError>> {
        ready(Err(AuthorityError::Unavailable)).boxed()
    }

    fn tenant_namespaces<'a>(
        &'a self,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<String>, AuthorityError>> {
        ready(Err(AuthorityError::Unavailable)).boxed()
    }

    fn secret_value<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretValue, AuthorityError>> {
        ready(Err(AuthorityError::Missing)).boxed()
    }

    fn security_event<'a>(&'a self, _: &'a CallContext, _: SecurityEvent) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
}

/// Writes refusals to the audit log until the last authority is gone.
pub async fn write_denials(app: App, mut denials: Denials) {
    while let Some(denial) = denials.recv().await {
        if let Err(error) = write_denial(&app, &denial).await {
            tracing::error!(event = "plugin.denial_not_audited", code = error.code());
        }
    }
}

async fn write_denial(app: &App, denial: &Denial) -> Result<()> {
    let Denial { call, event } = denial;
    let namespace = call.tenant.as_deref().and_then(|tenant| tenant.parse().ok());
    let resource = Resource { kind: "plugin", id: call.plugin.clone(), namespace };
    let mut audited = Event::security(DENIED, resource, event.code);
    if let Some(key) = &call.work_key {
        audited = audited.work(key);
    }
    let details = serde_json::json!({
        "capability": event.capability,
        "operation": call.operation,
        "asked": event.asked.chars().take(ASKED_CHARS_MAX).collect::<String>(),
    });
    let mut tx = db::begin(&app.db).await?;
    audit::record(&mut tx, app, audited.details(&details)?).await?;
    tx.commit().await
}

/// What a component asked for is its own text: a row holds so many characters of it.
const ASKED_CHARS_MAX: usize = 200;
