//! The project's own commands. `cargo xtask --help` lists them.

mod dev;
mod migrations;
mod openclaw;
mod plugins;
mod postgres;
mod run;
mod sqlx;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, runs, tests and measures the control plane.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build everything in release and start it: database, API, worker, a demo agent.
    #[command(disable_help_flag = true)]
    Dev {
        /// Options of `occ-host dev`: --detach, --down, --reset, --no-demo, --no-worker, --openclaw DIR.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Format, lints, tidy and every test; with a filter only the matching tests.
    Test(test::Options),
    /// Build in release, measure, print one table.
    Bench {
        /// Options of the bench: --long, --json FILE, --row N.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Build the plugins and pack the bundle.
    Plugins,
    /// Record the compiler-checked statements in .sqlx/.
    Sqlx {
        /// Change nothing; fail when .sqlx/ is not current.
        #[arg(long)]
        check: bool,
    },
    /// Write migrations/manifest.json.
    Migrations {
        /// Change nothing; fail when the manifest is not current.
        #[arg(long)]
        check: bool,
    },
    /// Print the OpenAPI document that the server would serve.
    Openapi,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Dev { options } => dev::dev(&options),
        Command::Test(options) => test::test(&options),
        Command::Bench { options } => dev::bench(&options),
        Command::Plugins => plugins::build().map(|bundle| run::say(&format!("bundle: {}", bundle.display()))),
        Command::Sqlx { check } => sqlx::prepare(check),
        Command::Migrations { check } => migrations::run(check),
        Command::Openapi => dev::openapi(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
