//! `occ dev`: only calls `occ-host dev`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::contexts::Contexts;
use crate::failure::{Exit, Failure, Result};
use crate::session::Session;
use crate::{process, settings};

/// Context that `occ-host dev` writes.
const CONTEXT: &str = "dev";

/// What can be done with the installation of this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start it: PostgreSQL, host, worker and a demo Agent
    Up {
        /// Stay attached; Ctrl-C ends it
        #[arg(long)]
        foreground: bool,
        /// Copy the administrator's key to this file, which must not exist
        #[arg(long, value_name = "ABS_PATH", conflicts_with = "foreground")]
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
        Command::Up {
            foreground,
            key_output,
            options,
        } => {
            if let Some(path) = &key_output {
                demand_new(path)?;
            }
            let flag = if foreground { None } else { Some("--detach") };
            let status = process::host(&session.environment, &arguments(flag, options))?;
            match key_output {
                Some(path) if status.success() => copy_key(session, &path).map(|()| ExitCode::SUCCESS),
                _ => Ok(process::exit_code(status)),
            }
        }
        Command::Down { volumes, options } => {
            let flag = if volumes { "--reset" } else { "--down" };
            process::host(&session.environment, &arguments(Some(flag), options)).map(process::exit_code)
        }
    }
}

fn arguments(flag: Option<&str>, options: Vec<OsString>) -> Vec<OsString> {
    std::iter::once("dev")
        .chain(flag)
        .map(OsString::from)
        .chain(options)
        .collect()
}

fn demand_new(path: &Path) -> Result<()> {
    if !path.is_absolute() {
        return Err(Failure::usage("--key-output must be an absolute path"));
    }
    if path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!(
            "--key-output: {} exists already",
            path.display()
        )));
    }
    Ok(())
}

/// Copies the key file that the context `dev` names.
fn copy_key(session: &Session, to: &Path) -> Result<()> {
    let config = settings::config_path(&session.global, &session.environment)?;
    let saved = Contexts::load(&config).map_err(settings::failed)?;
    let from = saved
        .find(CONTEXT)
        .and_then(|context| context.service_key_file.clone());
    let from = from.ok_or_else(|| {
        Failure::local(
            Exit::Failed,
            "CONTEXT",
            "occ-host dev wrote no context with a key file",
        )
    })?;
    let key = std::fs::read(&from).map_err(|error| Failure::file(&from, &error))?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .and_then(|mut file| file.write_all(&key).and_then(|()| file.sync_all()));
    written.map_err(|error| Failure::file(to, &error))
}
