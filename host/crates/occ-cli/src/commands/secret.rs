//! `occ secret`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_api::ids::SecretId;
use serde_json::{Value, json};

use crate::args::{ConditionArgs, ListArgs, RepeatArgs};
use crate::client::Call;
use crate::failure::Result;
use crate::output::{View, at, cell};
use crate::session::Session;
use crate::{input, names};

const VIEW: View = View { id: "/id", columns: &[at("ID", "/id"), at("NAME", "/name")] };
const DETAILS: View =
    View { id: "/id", columns: &[at("ID", "/id"), at("NAME", "/name"), cell("CONSUMERS", consumers)] };

/// What can be done with Secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create one from a file with `name` and `value`, or from a name and a file with the value
    #[command(after_help = "A minimal document:\n\nname: openai\nvalue: sk-...\n")]
    Create {
        /// Its name, 1 to 200 characters
        #[arg(long, requires = "value_file", required_unless_present = "file", conflicts_with = "file")]
        name: Option<String>,
        #[command(flatten)]
        value: ValueArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Those that the credential may read
    List(ListArgs),
    /// Show one and who uses it; the value is never shown
    Get {
        /// Id or name
        secret: String,
    },
    /// Give it another value
    Update {
        /// Id or name
        secret: String,
        #[command(flatten)]
        value: ValueArgs,
        #[command(flatten)]
        condition: ConditionArgs,
    },
    /// Delete one that nothing uses
    Delete {
        /// Id or name
        secret: String,
        #[command(flatten)]
        condition: ConditionArgs,
    },
}

/// Where the value comes from; never from the command line itself.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ValueArgs {
    /// JSON or YAML; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// File that holds the value and nothing else; one line break at its end is left out; - is standard input
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
}

impl ValueArgs {
    fn body(&self, name: Option<&str>) -> Result<Value> {
        match (&self.file, &self.value_file) {
            (Some(file), _) => input::document(file),
            (None, Some(file)) => {
                let value = input::secret_value(file)?;
                Ok(match name {
                    Some(name) => json!({"name": name, "value": value}),
                    None => json!({"value": value}),
                })
            }
            (None, None) => Ok(Value::Null),
        }
    }
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create { name, value, repeat } => {
            let body = value.body(name.as_deref())?;
            let call = Call::post(session.in_namespace("secrets")?).body(body);
            let call = call.repeatable(repeat.idempotency_key).read_back("occ secret list");
            session.print().resource(&VIEW, &session.api()?.send(&call)?.data)
        }
        Command::List(list) => {
            let items = session.api()?.list(&Call::get(session.in_namespace("secrets")?), list.limit)?;
            session.print().list(&VIEW, &items)
        }
        Command::Get { secret } => {
            let id = names::secret(session, &secret)?;
            session.print().resource(&DETAILS, &session.api()?.get(path(session, &id)?)?)
        }
        Command::Update { secret, value, condition } => {
            let body = value.body(None)?;
            let id = names::secret(session, &secret)?;
            let call = Call::patch(path(session, &id)?, body).if_match(condition.tag());
            session
                .print()
                .resource(&VIEW, &session.api()?.send(&call.read_back(format!("occ secret get {id}")))?.data)
        }
        Command::Delete { secret, condition } => {
            let id = names::secret(session, &secret)?;
            let call = Call::delete(path(session, &id)?).if_match(condition.tag());
            session.api()?.send(&call.read_back(format!("occ secret get {id}")))?;
            session.print().deleted("secret", id.as_str())
        }
    }
}

fn path(session: &Session, id: &SecretId) -> Result<String> {
    session.in_namespace(&format!("secrets/{id}"))
}

/// Ids of those who use a Secret, and how many the caller may not see.
fn consumers(secret: &Value) -> String {
    let ids =
        ["agents", "configurations", "credentialSources", "provisioningRequests"].iter().flat_map(|kind| {
            let found = secret.pointer(&format!("/consumers/{kind}")).and_then(Value::as_array);
            found.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
        });
    let mut parts: Vec<String> = ids.collect();
    match secret.pointer("/consumers/unreadable").and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(count) => parts.push(format!("{count} unreadable")),
    }
    if secret.pointer("/consumers/truncated").and_then(Value::as_bool) == Some(true) {
        parts.push("more".to_owned());
    }
    parts.join(", ")
}
