//! A loaded harness resolver, as the host calls it.

use std::sync::Arc;

use crate::abi::{Answer, Call, Kind};
use crate::compute::answer;
use crate::error::{CallResult, DriverError};
use crate::load::{self, LoadError};
use crate::plugin::Plugin;
use crate::types::{HarnessRequest, Plan, PluginIdentity, Refusal};

/// A harness resolver that passed every check of loading.
#[derive(Debug)]
pub struct Harness {
    plugin: Arc<Plugin>,
}

impl Harness {
    /// Takes a loaded plugin.
    ///
    /// # Errors
    /// When it is of another kind.
    pub fn new(plugin: Arc<Plugin>) -> Result<Self, LoadError> {
        let kind = plugin.origin.kind;
        if kind != Kind::Harness {
            return Err(LoadError::NotSelected {
                found: format!("a {kind}"),
                wanted: "a harness".to_owned(),
            });
        }
        Ok(Self { plugin })
    }

    /// Calls `preflight`; its warnings are logged.
    ///
    /// # Errors
    /// The plugin says that it cannot work.
    pub async fn preflight(&self) -> Result<(), LoadError> {
        load::preflight(&self.plugin).await.map(|_| ())
    }

    /// The plugin behind it.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// Id, version and digest, as a revision records them.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        self.plugin.identity()
    }

    /// Turns a configuration into a plan, or says why not. Pure.
    pub async fn resolve(&self, request: &HarnessRequest) -> CallResult<Result<Plan, Refusal>> {
        answer!(self.plugin.call_pure(Call::Resolve(request.clone())).await, Answer::Resolved)
    }
}
