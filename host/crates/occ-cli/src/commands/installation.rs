//! `occ installation`

use clap::Subcommand;

use crate::failure::Result;
use crate::output::{View, at};
use crate::session::Session;

const VIEW: View =
    View { id: "/id", columns: &[at("ID", "/id"), at("NAME", "/name"), at("CREATED", "/createdAt")] };

/// What can be done with the Installation.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show it
    Get,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Get => session.print().resource(&VIEW, &session.api()?.get("/installation")?),
    }
}
