//! `occ audit`

use clap::Subcommand;

use crate::args::ListArgs;
use crate::client::{Call, segment};
use crate::failure::Result;
use crate::output::{View, at};
use crate::session::Session;

const VIEW: View = View {
    id: "/id",
    columns: &[
        at("TIME", "/occurredAt"),
        at("ACTION", "/action"),
        at("OUTCOME", "/outcome"),
        at("ACTOR", "/actorId"),
        at("RESOURCE", "/resource/id"),
        at("REASON", "/reasonCode"),
        at("ID", "/id"),
    ],
};

/// What can be done with audit events.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Newest first
    List {
        /// Not before this time, such as 2026-03-02T10:00:00Z
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Before this time
        #[arg(long, value_name = "TIME")]
        to: Option<String>,
        /// Id of who did it
        #[arg(long, value_name = "PRINCIPAL")]
        actor: Option<String>,
        /// Such as openclaw.agents.deploy
        #[arg(long)]
        action: Option<String>,
        /// success, denied or failure
        #[arg(long)]
        outcome: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one event
    Get {
        /// Its id
        id: String,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::List { from, to, actor, action, outcome, list } => {
            let namespace = match session.global.namespace {
                Some(_) => session.namespace_if_named()?,
                None => None,
            };
            let call = Call::get("/audit-events")
                .query_if("namespaceId", namespace.map(ToString::to_string))
                .query_if("actorId", actor)
                .query_if("action", action)
                .query_if("outcome", outcome)
                .query_if("from", from)
                .query_if("to", to);
            session.print().list(&VIEW, &session.api()?.list(&call, list.limit)?)
        }
        Command::Get { id } => {
            let found = session.api()?.get(format!("/audit-events/{}", segment(&id)))?;
            session.print().resource(&VIEW, &found)
        }
    }
}
