//! `occ plugin`

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use crate::args::ListArgs;
use crate::client::{Call, segment};
use crate::failure::Result;
use crate::output::{View, at};
use crate::process;
use crate::session::Session;

const VIEW: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("KIND", "/kind"),
        at("VERSION", "/version"),
        at("CONTRACT", "/contract"),
        at("STATE", "/state"),
        at("BREAKER", "/breaker"),
        at("SIGNATURE", "/signature"),
        at("CALLS", "/calls/count"),
        at("FAILURES", "/calls/failures"),
        at("LAST ERROR", "/lastErrorCode"),
    ],
};

/// What can be done with plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Those of the server
    List(ListArgs),
    /// Show one
    Get {
        /// Its id
        id: String,
    },
    /// Check a component on this machine: runs `occ-host plugin test`
    Test {
        /// What `occ-host plugin test` takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<OsString>,
    },
    /// Show what a component is: runs `occ-host plugin inspect`
    Inspect {
        /// What `occ-host plugin inspect` takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<OsString>,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<ExitCode> {
    match command {
        Command::List(list) => {
            let items = session.api()?.list(&Call::get("/plugins"), list.limit)?;
            session.print().list(&VIEW, &items).map(|()| ExitCode::SUCCESS)
        }
        Command::Get { id } => {
            let found = session.api()?.get(format!("/plugins/{}", segment(&id)))?;
            session.print().resource(&VIEW, &found).map(|()| ExitCode::SUCCESS)
        }
        Command::Test { arguments } => host(session, "test", arguments),
        Command::Inspect { arguments } => host(session, "inspect", arguments),
    }
}

fn host(session: &Session, verb: &str, arguments: Vec<OsString>) -> Result<ExitCode> {
    let all: Vec<OsString> = ["plugin", verb].into_iter().map(OsString::from).chain(arguments).collect();
    process::host(&session.environment, &all).map(process::exit_code)
}
