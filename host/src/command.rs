//! The command line of `occ-host`: arguments, configuration, run, exit code.
//!
//! Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 refused.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::clock::Clock;
use crate::config::{Environment, Installation, Mode, Problems};
use crate::serve::Ended;
use crate::{bootstrap, dev, http, migrate, plugins, serve, telemetry};

/// The OpenClaw Enterprise control plane.
#[derive(Debug, Parser)]
#[command(name = "occ-host", version, about, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    /// Folders searched first for plugin bundles.
    #[arg(long, value_name = "DIR", global = true)]
    plugins: Vec<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API. Reads OCC_* variables.
    Serve,
    /// Run queued work. Reads OCC_* variables.
    Worker,
    /// Bring the database to this version's schema, or check that it could be.
    Migrate(migrate::Command),
    /// Create the Installation, its first administrator and its first key.
    Bootstrap(bootstrap::Command),
    /// Look at a plugin, or test it.
    #[command(subcommand)]
    Plugin(plugins::Command),
    /// Check configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask a running process how it is; exit 0 when well.
    Health {
        /// Which process.
        #[arg(value_enum)]
        process: serve::HealthTarget,
        /// Ask whether it lives rather than whether it is ready.
        #[arg(long)]
        live: bool,
    },
    /// Print the OpenAPI document.
    Openapi,
    /// A whole installation on this machine, for development.
    Dev(dev::Command),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Read an Installation YAML and print what takes effect.
    Check {
        /// The file.
        file: PathBuf,
        /// Judge it as this mode would.
        #[arg(long, value_enum, default_value = "production")]
        mode: CheckedMode,
    },
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CheckedMode {
    Production,
    Development,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(1, &format!("error: cannot start: {error}")),
    };
    runtime.block_on(run(cli))
}

async fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Serve => {
            let mut environment = Environment::of_process();
            start_logs("occ-api", &mut environment);
            match environment.serve() {
                Ok(mut serve) => {
                    prepend(&mut serve.plugin_path, cli.plugins);
                    ended(Box::pin(serve::api(serve)).await, "startup-error")
                }
                Err(problems) => invalid(&problems),
            }
        }
        Command::Worker => {
            let mut environment = Environment::of_process();
            start_logs("occ-worker", &mut environment);
            match environment.worker() {
                Ok(mut worker) => {
                    prepend(&mut worker.plugin_path, cli.plugins);
                    ended(Box::pin(serve::worker(worker)).await, "worker.startup-error")
                }
                Err(problems) => invalid(&problems),
            }
        }
        Command::Migrate(command) => {
            let mut environment = Environment::of_process();
            start_logs("occ-migration", &mut environment);
            Box::pin(command.run(environment)).await
        }
        Command::Bootstrap(command) => {
            let mut environment = Environment::of_process();
            start_logs("occ-bootstrap", &mut environment);
            Box::pin(command.run(environment)).await
        }
        Command::Plugin(command) => Box::pin(command.run()).await,
        Command::Config(ConfigCommand::Check { file, mode }) => check(&file, mode),
        Command::Health { process, live } => {
            Box::pin(serve::health(process, live, Environment::of_process())).await
        }
        Command::Openapi => print(&http::openapi::build(http::router::table()).to_string()),
        Command::Dev(command) => Box::pin(command.run(cli.plugins)).await,
    }
}

fn start_logs(service: &'static str, environment: &mut Environment) {
    telemetry::start(service, environment.log_format(), "info", Clock::system());
}

fn prepend(path: &mut Vec<PathBuf>, first: Vec<PathBuf>) {
    path.splice(0..0, first);
}

fn ended(result: Result<Ended, crate::error::Error>, event: &'static str) -> ExitCode {
    match result {
        Ok(Ended::Cleanly) => ExitCode::SUCCESS,
        Ok(Ended::Cut) => ExitCode::from(1),
        Err(error) => {
            tracing::error!(code = error.code(), cause = error.internal_text(), "{event}");
            ExitCode::from(1)
        }
    }
}

fn check(file: &std::path::Path, mode: CheckedMode) -> ExitCode {
    let mode = match mode {
        CheckedMode::Production => Mode::Production,
        CheckedMode::Development => Mode::Development,
    };
    match Installation::read(file, mode) {
        Ok(installation) => match serde_json::to_string_pretty(&installation) {
            Ok(text) => print(&text),
            Err(error) => failed(1, &format!("error: {error}")),
        },
        Err(problems) => invalid(&problems),
    }
}

fn invalid(problems: &Problems) -> ExitCode {
    failed(2, &format!("error: {problems}"))
}

/// Data goes to stdout.
#[expect(clippy::print_stdout, reason = "the command's own output")]
fn print(text: &str) -> ExitCode {
    println!("{text}");
    ExitCode::SUCCESS
}

/// Everything else goes to stderr.
#[expect(clippy::print_stderr, reason = "the command's own output")]
fn failed(code: u8, text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(code)
}
