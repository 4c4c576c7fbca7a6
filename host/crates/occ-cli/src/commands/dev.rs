//! `occ dev`: only calls `occ-host dev`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::{Failure, Result};
use crate::process;
use crate::session::Session;

/// What can be done with the installation of this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start it: PostgreSQL, host, worker and a demo Agent
    Up {
        /// Stay attached; Ctrl-C ends it
        #[arg(long)]
        foreground: bool,
        /// Copy the administrator's key to this file, which must not exist
        #[arg(long, value_name = "ABS_PATH")]
        key_output: Option<PathBuf>,
        /// Options of `occ-host dev`, after --
        #[arg(last = true)]
        options: Vec<OsString>,
    },
    /// End it
    Down {
        /// Also remove its folder
        #[arg(long)]
        volumes: bool,
        /// Options of `occ-host dev`, after --
        #[arg(last = true)]
        options: Vec<OsString>,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<ExitCode> {
    match command {
        Command::Up { foreground, key_output, options } => {
            if let Some(path) = &key_output {
                demand_new(path)?;
            }
            let mut all = arguments((!foreground).then_some("--detach"), Vec::new());
            if let Some(path) = key_output {
                all.extend([OsString::from("--key-output"), path.into_os_string()]);
            }
            all.extend(options);
            process::host(&session.environment, &all).map(process::exit_code)
        }
        Command::Down { volumes, options } => {
            let flag = if volumes { "--reset" } else { "--down" };
            process::host(&session.environment, &arguments(Some(flag), options)).map(process::exit_code)
        }
    }
}

fn arguments(flag: Option<&str>, options: Vec<OsString>) -> Vec<OsString> {
    std::iter::once("dev").chain(flag).map(OsString::from).chain(options).collect()
}

fn demand_new(path: &Path) -> Result<()> {
    if !path.is_absolute() {
        return Err(Failure::usage("--key-output must be an absolute path"));
    }
    if path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!("--key-output: {} exists already", path.display())));
    }
    Ok(())
}
