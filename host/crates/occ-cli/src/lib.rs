//! `occ`, the command line client. In reading order:
//!
//! - `args`: the tree of commands and the global flags.
//! - `environment`, [`contexts`], `settings`: where URL, key, Namespace and limits come from.
//! - `session`: what a command gets; `commands`: one module for each noun.
//! - `client`: one origin, strict envelopes, retries; `wait`: waiting for a state.
//! - `names`, `input`, `duration`, `origin`: reading arguments.
//! - `output`, `failure`: the only place that prints; exit codes and the error form.
//!
//! **A key goes only to the origin that it was configured for, and is never printed.**

mod args;
mod client;
mod commands;
pub mod contexts;
mod duration;
mod environment;
mod failure;
mod input;
mod interrupt;
mod names;
mod origin;
mod output;
mod process;
mod session;
mod settings;
mod wait;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use args::Cli;
use environment::Environment;
use failure::Failure;
use output::{Form, Printer};
use session::Session;

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    interrupt::install();
    let session = Session::new(cli.global, Environment::of_process());
    match commands::run(&session, cli.command) {
        Ok(code) => code,
        Err(failure) => {
            session.print().failure(&failure);
            ExitCode::from(failure.exit().code())
        }
    }
}

/// Help and version go to standard output; a wrong command line is an error in the form that it asks for.
fn refused(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Standard output may be closed, as by `occ --help | head -1`.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    match machine_form(std::env::args()) {
        Some(form) => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            Printer::new(form).failure(&Failure::usage(line.strip_prefix("error: ").unwrap_or(line)));
        }
        None => {
            let _ = error.print();
        }
    }
    ExitCode::from(2)
}

/// The form of errors on a command line that could not be read.
fn machine_form(arguments: impl Iterator<Item = String>) -> Option<Form> {
    let arguments: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).cloned()
    };
    let joined =
        |flag: &str| arguments.iter().find_map(|argument| argument.strip_prefix(flag).map(str::to_owned));
    let named =
        joined("--output=").or_else(|| after("--output")).or_else(|| after("-o")).or_else(|| joined("-o"));
    match named?.as_str() {
        "json" => Some(Form::Json),
        "yaml" => Some(Form::Yaml),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_command_line_still_says_its_form() {
        let form = |line: &str| machine_form(line.split(' ').map(str::to_owned));
        assert_eq!(form("occ agent lst -o json"), Some(Form::Json));
        assert_eq!(form("occ -oyaml agent lst"), Some(Form::Yaml));
        assert_eq!(form("occ agent lst --output=json"), Some(Form::Json));
        assert_eq!(form("occ agent lst -- -o json"), None);
        assert_eq!(form("occ agent lst"), None);
    }
}
