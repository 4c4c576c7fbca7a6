//! The commands, one module for each noun, and what they share.

pub(crate) mod agent;
pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod configuration;
pub(crate) mod context;
pub(crate) mod dev;
mod doctor;
pub(crate) mod iam;
pub(crate) mod installation;
mod logs;
pub(crate) mod namespace;
pub(crate) mod plugin;
mod runtime;
pub(crate) mod secret;
pub(crate) mod service_key;
mod version;
pub(crate) mod wait;
pub(crate) mod work;

use std::process::ExitCode;

use clap::CommandFactory as _;
use occ_api::ids::NamespaceId;
use serde_json::Value;

use crate::args::{Cli, Command};
use crate::failure::{Failure, Result};
use crate::names::Named;
use crate::output::{self, Form};
use crate::session::Session;

/// Runs a command.
///
/// # Errors
/// Whatever ends it.
pub(crate) fn run(session: &Session, command: Command) -> Result<ExitCode> {
    let lines = matches!(&command, Command::Agent(agent::Command::Logs(_)));
    if session.global.output == Some(Form::Text) && !lines {
        return Err(Failure::usage("the form text is for `agent logs`; use table, json, yaml or name"));
    }
    if let Some(namespace) = &session.global.namespace {
        // A wrong argument is told before a file is read.
        Named::<NamespaceId>::parse(namespace)?;
    }
    match command {
        Command::Installation(command) => installation::run(session, &command),
        Command::Namespace(command) => namespace::run(session, command),
        Command::Configuration(command) => configuration::run(session, command),
        Command::Secret(command) => secret::run(session, command),
        Command::Agent(command) => agent::run(session, command),
        Command::Iam(command) => iam::run(session, command),
        Command::Auth(command) => return auth::run(session, &command),
        Command::ServiceKey(command) => service_key::run(session, command),
        Command::Work(command) => work::run(session, command),
        Command::Audit(command) => audit::run(session, command),
        Command::Plugin(command) => return plugin::run(session, command),
        Command::Wait(command) => wait::run(session, &command),
        Command::Api(command) => api::run(session, command),
        Command::Context(command) => context::run(session, command),
        Command::Doctor => return doctor::run(session),
        Command::Dev(command) => return dev::run(session, command),
        Command::Completion { shell } => completion(shell),
        Command::Version { server } => version::run(session, server),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn completion(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "occ", &mut script);
    output::out(&String::from_utf8_lossy(&script))
}

/// A text of a resource, empty when it has none.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
