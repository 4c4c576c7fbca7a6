//! A deployment as clients see it: derived from a revision's work row, never stored.
//!
//! ```text
//! queued ─► running ─► succeeded
//!    ▲         │  └──► failed
//!    └─────────┘ deferred, retried, lease lapsed
//! ```

use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use occ_api::reason;
use occ_api::time::Timestamp;
use occ_api::types::{self, DeploymentStatus};
use serde_json::Value;
use time::OffsetDateTime;

use crate::error::{Error, Result};

/// What an attempt reads as when nobody declared its code.
const UNDECLARED: &str = "RECONCILIATION_PENDING";
/// What a failure with such a code reads as.
const UNDECLARED_FAILURE: &str = "The deployment failed for a reason that its plugin does not declare.";

/// Where the work of a deployment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// Waits, or was claimed by a worker whose lease lapsed.
    Queued,
    /// Under a live lease.
    Claimed,
    /// Ended; the code says how.
    Succeeded,
    /// Ended badly.
    FailedPermanent,
}

impl WorkState {
    pub(super) fn from_columns(state: &str, lease_live: bool) -> Result<Self> {
        match state {
            "queued" => Ok(Self::Queued),
            "claimed" if lease_live => Ok(Self::Claimed),
            "claimed" => Ok(Self::Queued),
            "succeeded" => Ok(Self::Succeeded),
            "failed_permanent" => Ok(Self::FailedPermanent),
            _ => Err(Error::internal("work is in an unknown state")),
        }
    }
}

/// One deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// The revision, whose id is the deployment's too.
    pub revision: RevisionId,
    /// Its Namespace.
    pub namespace: NamespaceId,
    /// Its Agent.
    pub agent: AgentId,
    /// Where the work stands.
    pub work: WorkState,
    /// Code of the newest transition.
    pub code: Option<String>,
    /// Closed document of a settled deployment.
    pub result: Option<Value>,
    /// When a worker last took it up.
    pub last_attempt_at: Option<OffsetDateTime>,
    /// When a worker may take it up next.
    pub next_attempt_at: OffsetDateTime,
}

impl Deployment {
    /// The status, by `queue-worker` rules: a superseded or stopped deployment failed.
    #[must_use]
    pub fn status(&self) -> DeploymentStatus {
        match self.work {
            WorkState::Queued => DeploymentStatus::Queued,
            WorkState::Claimed => DeploymentStatus::Running,
            WorkState::Succeeded if self.activated() => DeploymentStatus::Succeeded,
            WorkState::Succeeded | WorkState::FailedPermanent => DeploymentStatus::Failed,
        }
    }

    /// Does it not change by itself any more?
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.status(), DeploymentStatus::Succeeded | DeploymentStatus::Failed)
    }

    fn activated(&self) -> bool {
        matches!(self.code.as_deref(), Some("REVISION_ACTIVATED" | "REVISION_ALREADY_ACTIVE"))
    }
}

impl Deployment {
    /// The resource as clients see it. Texts come from the one table of reasons and from what the
    /// compute declares; text of drivers at run time never appears.
    #[must_use]
    pub fn to_wire(&self, declared: impl Fn(&str) -> Option<String>) -> types::Deployment {
        let text =
            |code: &str| reason::find(code).map(|known| known.text.to_owned()).or_else(|| declared(code));
        let status = self.status();
        types::Deployment {
            deployment_id: self.revision.clone(),
            namespace_id: self.namespace.clone(),
            agent_id: self.agent.clone(),
            status,
            progress: (!self.is_settled()).then(|| self.progress(status, text)),
            error: (status == DeploymentStatus::Failed).then(|| self.error(text)),
            warnings: Vec::new(),
        }
    }

    fn progress(
        &self,
        status: DeploymentStatus,
        text: impl Fn(&str) -> Option<String>,
    ) -> types::DeploymentProgress {
        let attempt = |at| {
            let known = self.code.as_deref().and_then(|code| Some((code, text(code)?)));
            let (code, message) = known.unwrap_or_else(|| (UNDECLARED, text(UNDECLARED).unwrap_or_default()));
            types::DeploymentAttempt { at: Timestamp::from(at), code: code.to_owned(), message }
        };
        types::DeploymentProgress {
            last_attempt: self.last_attempt_at.map(attempt),
            next_attempt_at: (status == DeploymentStatus::Queued)
                .then(|| Timestamp::from(self.next_attempt_at)),
        }
    }

    fn error(&self, text: impl Fn(&str) -> Option<String>) -> types::DeploymentError {
        let code = self.code.as_deref().unwrap_or(UNDECLARED);
        types::DeploymentError {
            code: code.to_owned(),
            message: text(code).unwrap_or_else(|| UNDECLARED_FAILURE.to_owned()),
            data: self.result.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
