//! The selected plugins: loaded once, called through one façade per kind.
//!
//! **Nothing else of the host uses `occ_driver`**: its types come from here. A call gets a
//! [`CallContext`] that says what it is about and how long it may take.

pub mod authority;
mod info;
pub mod leases;
mod load;
mod metrics;
mod workbench;

use std::sync::Arc;

pub use occ_driver::call::{
    AuthorityError, CallAuthority, CallContext, SecretRef, SecretValue, SecurityEvent,
};
pub use occ_driver::capability::process::{ProcessChange, ProcessHost};
pub use occ_driver::types::PluginIdentity;
pub use occ_driver::{CallResult, Compute as ComputeDriver, DriverError, Harness as HarnessDriver, types};

pub use authority::HostAuthority;
pub use info::{DURATION_BOUNDS_US, PluginInfo, Totals, WINDOW_SECS};
pub use leases::LeaseBook;
pub use load::{LoadOptions, Loaded, load, processes_end, write_denials_until};
pub use metrics::PluginMetrics;
pub use workbench::{Kind, Report, contracts_offered, inspect, test};

use types::{HarnessRequest, Plan, Refusal};

/// Every plugin that the Installation selects.
#[derive(Debug)]
pub struct Drivers {
    /// Runs agents.
    pub compute: Arc<ComputeDriver>,
    harnesses: Vec<Arc<HarnessDriver>>,
}

/// A plan and the plugin that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// What to run.
    pub plan: Plan,
    /// Who made the plan.
    pub harness: PluginIdentity,
}

impl Drivers {
    /// A selected harness by its plugin id, such as `harness-openclaw`; `None` when the
    /// Installation does not approve it any more.
    #[must_use]
    pub fn harness(&self, plugin: &str) -> Option<&Arc<HarnessDriver>> {
        self.harnesses.iter().find(|harness| harness.identity().id == plugin)
    }

    /// Asks the harnesses in the Installation's order; the first that supports the request
    /// decides. When none does, the last refusal is the answer.
    ///
    /// # Errors
    /// When a harness has no answer, those after it are not asked.
    pub async fn resolve(&self, request: &HarnessRequest) -> CallResult<Result<Resolved, Refusal>> {
        let mut refusal = Refusal::Unsupported(Vec::new());
        for harness in &self.harnesses {
            match harness.resolve(request).await? {
                Ok(plan) => {
                    return Ok(Ok(Resolved { plan, harness: harness.identity().clone() }));
                }
                Err(unsupported @ Refusal::Unsupported(_)) => refusal = unsupported,
                Err(invalid @ Refusal::Invalid(_)) => return Ok(Err(invalid)),
            }
        }
        Ok(Err(refusal))
    }
}
