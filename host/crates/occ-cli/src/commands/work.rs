//! `occ work`

use clap::Subcommand;

use crate::args::{ListArgs, RepeatArgs};
use crate::client::{Call, segment};
use crate::failure::{Failure, Result};
use crate::names;
use crate::output::{View, at};
use crate::session::Session;

/// Longest key, in characters.
const KEY_CHARS_MAX: usize = 512;
const VIEW: View = View {
    id: "/key",
    columns: &[
        at("KEY", "/key"),
        at("STATE", "/state"),
        at("PHASE", "/phase"),
        at("STEP", "/step"),
        at("ATTEMPT", "/attempt"),
        at("OF", "/attemptsMax"),
        at("CODE", "/code"),
        at("AVAILABLE", "/availableAt"),
    ],
};

/// What can be done with the queue.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Newest first
    List {
        /// queued, claimed, succeeded or failed_permanent
        #[arg(long)]
        state: Option<String>,
        /// Of one Agent, by id or name
        #[arg(long)]
        agent: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one item
    Get {
        /// Its key
        key: String,
    },
    /// Queue a permanently failed item again
    Retry {
        /// Its key
        key: String,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::List { state, agent, list } => {
            let agent = agent.map(|agent| names::agent(session, &agent)).transpose()?;
            // Only a Namespace that was asked for here narrows the list.
            let namespace = match session.global.namespace {
                Some(_) => session.namespace_if_named()?,
                None => None,
            };
            let call = Call::get("/work")
                .query_if("state", state)
                .query_if("namespaceId", namespace.map(ToString::to_string))
                .query_if("agentId", agent.map(|agent| agent.to_string()));
            session.print().list(&VIEW, &session.api()?.list(&call, list.limit)?)
        }
        Command::Get { key } => session.print().resource(&VIEW, &session.api()?.get(path(&key)?)?),
        Command::Retry { key, repeat } => {
            let call = Call::post(format!("{}/retry", path(&key)?)).repeatable(repeat.idempotency_key);
            session.print().resource(&VIEW, &session.api()?.send(&call)?.data)
        }
    }
}

fn path(key: &str) -> Result<String> {
    if !(1..=KEY_CHARS_MAX).contains(&key.chars().count()) {
        return Err(Failure::usage(format!("a key of work has 1 to {KEY_CHARS_MAX} characters"))
            .hint("occ work list"));
    }
    Ok(format!("/work/{}", segment(key)))
}
