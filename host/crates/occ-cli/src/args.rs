//! The command line: global flags and the tree of commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::commands;
use crate::output::Form;

/// Controls OpenClaw Enterprise: Namespaces, Configurations, Secrets, Agents and who may do what.
#[derive(Debug, Parser)]
#[command(name = "occ", version, about, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Start here: `occ dev up`, then `occ agent list`.\n\
    Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 not found, 5 conflict, 6 time is up, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Origin of the server, such as https://occ.example.com [env: OCC_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// JSON file with the key at data.key [env: OCC_SERVICE_KEY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) service_key_file: Option<PathBuf>,
    /// Namespace, by id or name [env: OCC_NAMESPACE]
    #[arg(long, short = 'n', global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// PEM roots that are trusted beside the system's [env: OCC_CA_BUNDLE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_bundle: Option<PathBuf>,
    /// Time for one request, in seconds [env: OCC_TIMEOUT_SECONDS] [default: 30]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout_seconds: Option<u64>,
    /// Saved context to use [env: OCC_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// File of saved contexts [env: OCC_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Form of the output [default: table]
    #[arg(long, short = 'o', global = true, value_name = "FORM", value_enum)]
    pub(crate) output: Option<Form>,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The Installation
    #[command(subcommand)]
    Installation(commands::installation::Command),
    /// Namespaces: tenants
    #[command(subcommand)]
    Namespace(commands::namespace::Command),
    /// Configurations: native OpenClaw documents
    #[command(subcommand)]
    Configuration(commands::configuration::Command),
    /// Secrets: values that nothing gives back
    #[command(subcommand)]
    Secret(commands::secret::Command),
    /// Agents: deploy, watch, roll back, stop
    #[command(subcommand)]
    Agent(commands::agent::Command),
    /// Roles, access bindings and service principals
    #[command(subcommand)]
    Iam(commands::iam::Command),
    /// What the credential is and may do
    #[command(subcommand)]
    Auth(commands::auth::Command),
    /// Keys of service principals
    #[command(subcommand)]
    ServiceKey(commands::service_key::Command),
    /// The worker's queue
    #[command(subcommand)]
    Work(commands::work::Command),
    /// What was done, by whom
    #[command(subcommand)]
    Audit(commands::audit::Command),
    /// Plugins of the server, and tools for your own
    #[command(subcommand)]
    Plugin(commands::plugin::Command),
    /// Wait until a resource has reached a state
    Wait(commands::wait::Wait),
    /// Send any request with the configured credential
    Api(commands::api::Api),
    /// Saved contexts
    #[command(subcommand)]
    Context(commands::context::Command),
    /// Check URL, credential, server and what it says about itself
    Doctor,
    /// A whole installation on this machine
    #[command(subcommand)]
    Dev(commands::dev::Command),
    /// Print the completion script of a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version {
        /// Also the contract version of the server
        #[arg(long)]
        server: bool,
    },
}

/// How much of a list.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ListArgs {
    /// Stop after this many
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) limit: Option<usize>,
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "must be a whole number above 0".to_owned())
}

/// An input file.
#[derive(Debug, Clone, Args)]
pub(crate) struct FileArgs {
    /// JSON or YAML; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// The key of a repeatable request.
#[derive(Debug, Clone, Args)]
pub(crate) struct RepeatArgs {
    /// Key under which the request may be repeated; one is made up by default
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    pub(crate) idempotency_key: Option<String>,
}

fn idempotency_key(text: &str) -> Result<String, String> {
    let mut characters = text.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    if begins
        && text.len() <= 128
        && characters.all(|rest| rest.is_ascii_alphanumeric() || "._:-".contains(rest))
    {
        return Ok(text.to_owned());
    }
    Err("must be 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit".to_owned())
}

/// The condition of a write.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConditionArgs {
    /// Only if the resource still has this entity tag, such as '"v3"'
    #[arg(long, value_name = "TAG")]
    pub(crate) if_match: Option<String>,
}

impl ConditionArgs {
    /// The header's value; a bare `v3` is put into quotes.
    pub(crate) fn tag(&self) -> Option<String> {
        self.if_match
            .as_ref()
            .map(|tag| if tag == "*" || tag.starts_with('"') { tag.clone() } else { format!("\"{tag}\"") })
    }
}

/// Waiting, for 15 minutes by default.
#[derive(Debug, Clone, Args)]
pub(crate) struct LongWaitArgs {
    /// Wait until it is done
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "15m",
        value_parser = crate::duration::parse)]
    pub(crate) wait: Option<Duration>,
}

/// Waiting, for 5 minutes by default.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShortWaitArgs {
    /// Wait until it is done
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "5m",
        value_parser = crate::duration::parse)]
    pub(crate) wait: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wait_takes_its_duration_after_an_equals_sign_only() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        let wait_of = |cli: Cli| match cli.command {
            Command::Agent(commands::agent::Command::Deploy { wait, .. }) => wait.wait,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait_of(parse("occ agent deploy a").unwrap()), None);
        assert_eq!(wait_of(parse("occ agent deploy a --wait").unwrap()), Some(Duration::from_secs(900)));
        assert_eq!(wait_of(parse("occ agent deploy --wait a").unwrap()), Some(Duration::from_secs(900)));
        assert_eq!(wait_of(parse("occ agent deploy a --wait=90s").unwrap()), Some(Duration::from_secs(90)));
        assert!(parse("occ agent deploy a --wait=soon").is_err());
    }

    #[test]
    fn later_commands_are_absent() {
        let names: Vec<String> =
            Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for later in ["login", "logout", "preset", "credential-source", "events", "backend"] {
            assert!(!names.contains(&later.to_owned()), "{later}");
        }
    }
}
