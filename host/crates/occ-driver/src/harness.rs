//! A loaded harness resolver, as the host calls it.

use crate::error::{CallResult, DriverError, Unavailable};
use crate::types::{HarnessRequest, Plan, PluginIdentity, Refusal};

/// A harness resolver that passed every check of loading.
#[derive(Debug)]
pub struct Harness {
    identity: PluginIdentity,
}

impl Harness {
    /// Id, version and digest, as a revision records them.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        &self.identity
    }

    /// Turns a configuration into a plan, or says why not. Pure.
    #[expect(clippy::unused_async, reason = "signatures first")]
    pub async fn resolve(&self, _request: &HarnessRequest) -> CallResult<Result<Plan, Refusal>> {
        Err(DriverError::Unavailable {
            retry_after: std::time::Duration::from_secs(60),
            why: Unavailable::BreakerOpen,
        })
    }
}
