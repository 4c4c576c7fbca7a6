//! Asks the plugins: the harness for a plan, the compute whether it can run it.
//!
//! What a plugin says about a value becomes a pointer; its words go to the log alone.

use occ_api::error::ErrorCode;

use super::model::{self, FrozenAuth, PluginIdentity, Snapshot};
use crate::agents::Agent;
use crate::app::App;
use crate::configurations::Configuration;
use crate::drivers::types::{HarnessRequest, Plan, PlatformFacts, Refusal, SettingProblem};
use crate::drivers::{DriverError, Resolved};
use crate::error::{Error, Result};

/// A plan, and who made and accepted it.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) platform: PlatformFacts,
    pub(super) harness: PluginIdentity,
    pub(super) compute: PluginIdentity,
}

/// The plan for an Agent's draft, accepted by the compute.
///
/// # Errors
/// `INVALID_REQUEST` with a pointer for what a plugin refuses; `DEPENDENCY_UNAVAILABLE` when one
/// does not answer or answers with what it may not.
pub(super) async fn resolve(
    app: &App,
    agent: &Agent,
    configuration: &Configuration,
    auth: Option<&FrozenAuth>,
) -> Result<Planned> {
    let platform = app.drivers.compute.platform().clone();
    let request = HarnessRequest {
        configuration: configuration.document.clone(),
        mode: model::mode_of(agent.draft.execution_mode),
        auth: auth.map(FrozenAuth::to_driver),
        secret_bindings: configuration
            .secret_bindings
            .iter()
            .map(|(name, id)| (name.clone(), id.to_string()))
            .collect(),
        platform: platform.clone(),
    };
    let Resolved { plan, harness } = match app.drivers.resolve(&request).await.map_err(unavailable)? {
        Ok(resolved) => resolved,
        Err(Refusal::Invalid(problems) | Refusal::Unsupported(problems)) => return Err(refused(&problems)),
    };
    let allowed = model::secret_ids(auth, &configuration.secret_bindings);
    if let Some(foreign) = model::foreign_secret(&plan, &allowed) {
        tracing::error!(event = "harness.foreign-secret", plugin = harness.id, secret = foreign);
        return Err(Error::unavailable("The harness plugin answered with a plan that is not allowed."));
    }
    check(app, &plan).await?;
    Ok(Planned {
        plan,
        platform,
        harness: PluginIdentity::from(&harness),
        compute: PluginIdentity::from(app.drivers.compute.identity()),
    })
}

/// Does the selected compute take over a snapshot of an earlier revision?
///
/// # Errors
/// `RESOURCE_CONFLICT` when it does not; `DEPENDENCY_UNAVAILABLE` when it does not answer.
pub(super) async fn accepts(app: &App, snapshot: &Snapshot) -> Result<()> {
    let frozen = &snapshot.compute;
    let selected = app.drivers.compute.identity();
    if !selected.takes_over(&frozen.id, &frozen.version) {
        return Err(Error::conflict(format!(
            "The selected plugin {}@{} does not take over revisions of {}@{}.",
            selected.id, selected.version, frozen.id, frozen.version
        )));
    }
    if app.drivers.harness(&snapshot.harness_plugin.id).is_none() {
        return Err(Error::conflict("The revision's harness is not approved any more."));
    }
    if !snapshot.is_intact() {
        return Err(Error::conflict("The revision's plan cannot be read any more."));
    }
    let problems = app.drivers.compute.check_plan(&snapshot.plan).await.map_err(unavailable)?;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::conflict("The selected plugin cannot run the revision's plan."))
    }
}

async fn check(app: &App, plan: &Plan) -> Result<()> {
    let problems = app.drivers.compute.check_plan(plan).await.map_err(unavailable)?;
    if problems.is_empty() { Ok(()) } else { Err(refused(&problems)) }
}

/// The pointers of a refusal; the plugin's words stay in the log.
fn refused(problems: &[SettingProblem]) -> Error {
    for problem in problems {
        tracing::info!(event = "deploy.refused", path = problem.path, rule = problem.message);
    }
    let details = model::field_errors(problems);
    if details.is_empty() {
        return Error::new(
            ErrorCode::InvalidRequest,
            "The request is invalid: no approved harness serves it.",
        );
    }
    Error::invalid(details)
}

fn unavailable(error: DriverError) -> Error {
    Error::unavailable("A plugin does not answer now.").caused_by(error)
}
