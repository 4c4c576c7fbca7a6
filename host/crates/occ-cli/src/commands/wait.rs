//! `occ wait KIND/ID --for CONDITION`

use std::time::Duration;

use clap::{Args, ValueEnum};
use occ_api::ids::{AgentId, NamespaceId};

use super::agent::{self, revisions};
use super::text;
use crate::duration;
use crate::failure::{Exit, Failure, Result};
use crate::names::{self, Named};
use crate::output::notice;
use crate::session::Session;
use crate::wait::{self, Deadline};

/// Waiting for Namespaces and deployments.
const LONG: Duration = Duration::from_secs(15 * 60);
/// Waiting for the rest.
const SHORT: Duration = Duration::from_secs(5 * 60);

/// Wait until a resource has reached a state.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// namespace/NAME or agent/NAME; a name or an id
    #[arg(value_name = "KIND/ID")]
    target: String,
    /// The state
    #[arg(long = "for", value_enum, value_name = "CONDITION")]
    condition: Condition,
    /// How long; 15m for ready and deployed, 5m for the rest
    #[arg(long, value_parser = duration::parse)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Condition {
    /// A Namespace can be used
    Ready,
    /// A Namespace or Agent is gone
    Deleted,
    /// The newest revision of an Agent is the active one
    Deployed,
    /// An Agent has no runtime
    Stopped,
}

pub(super) fn run(session: &Session, command: &Wait) -> Result<()> {
    let (kind, id) = command.target.split_once('/').ok_or_else(|| {
        Failure::usage(format!("`{}` is not of the form KIND/ID, such as agent/concierge", command.target))
    })?;
    let whole = command.timeout.unwrap_or(match command.condition {
        Condition::Ready | Condition::Deployed => LONG,
        Condition::Deleted | Condition::Stopped => SHORT,
    });
    let deadline = Deadline::after(whole);
    match (kind, command.condition) {
        ("namespace", Condition::Ready) => {
            let id = namespace(session, id)?;
            wait::namespace_ready(session, &id, deadline).map(|_| notice(&format!("Namespace {id} is ready")))
        }
        ("namespace", Condition::Deleted) => {
            let Some(id) = present(namespace(session, id))? else {
                return Ok(());
            };
            let (path, resume) =
                (format!("/namespaces/{id}"), format!("occ wait namespace/{id} --for deleted"));
            wait::gone(session, &path, &format!("Namespace {id}"), &resume, deadline)
        }
        ("agent", Condition::Deleted) => {
            let Some(id) = present(names::agent(session, id))? else {
                return Ok(());
            };
            let resume = format!("occ wait agent/{id} --for deleted{}", session.namespace_flag());
            wait::gone(session, &agent::path(session, &id)?, &format!("Agent {id}"), &resume, deadline)
        }
        ("agent", Condition::Stopped) => {
            wait::stopped(session, &names::agent(session, id)?, deadline).map(|_| ())
        }
        ("agent", Condition::Deployed) => deployed(session, &names::agent(session, id)?, deadline),
        ("namespace" | "agent", _) => Err(Failure::usage(format!(
            "a {kind} has no such condition; a namespace can be ready or deleted, an agent deployed, stopped or deleted"
        ))),
        _ => Err(Failure::usage(format!("cannot wait for a `{kind}`; there are namespace and agent"))),
    }
}

fn namespace(session: &Session, text: &str) -> Result<NamespaceId> {
    names::namespace(session, &Named::parse(text)?)
}

/// A name that matches nothing belongs to something that is gone.
fn present<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(failure) if failure.code() == "NO_SUCH_NAME" => Ok(None),
        found => found.map(Some),
    }
}

/// The highest revision's deployment has ended and the Agent's pointer names it.
fn deployed(session: &Session, id: &AgentId, deadline: Deadline) -> Result<()> {
    let newest = revisions::newest(session, id)?;
    wait::deployment(session, id, &newest, deadline)?;
    let found = session.api()?.get(agent::path(session, id)?)?;
    let active = text(&found, "/activeRevisionId");
    if active == newest.as_str() {
        notice(&format!("revision {newest} is active"));
        return Ok(());
    }
    let message = match active {
        "" => format!("revision {newest} was deployed, but no revision is active now"),
        active => format!("revision {newest} was deployed, but revision {active} is active now"),
    };
    Err(Failure::local(Exit::Failed, "NOT_ACTIVE", message))
}
