//! `occ configuration`

use std::io::Write as _;

use clap::Subcommand;
use occ_api::ids::ConfigurationId;
use serde_json::{Map, Value};

use crate::args::{ConditionArgs, FileArgs, ListArgs, RepeatArgs};
use crate::client::{Answer, Call};
use crate::failure::{Exit, Failure, Result};
use crate::output::{self, View, at};
use crate::session::Session;
use crate::{input, names, process};

const VIEW: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("KIND", "/kind"),
        at("GENERATION", "/generation"),
        at("CREATED", "/createdAt"),
    ],
};

const EXAMPLE: &str = "A minimal document:\n\n\
    kind: agent\n\
    values:\n  \
      agents:\n    \
        defaults:\n      \
          skipBootstrap: true\n      \
          model: openai/gpt-5\n      \
          models:\n        \
            openai/gpt-5:\n          \
              agentRuntime: { id: openclaw }\n";

/// What can be done with Configurations.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Those that the credential may read, without their documents
    List(ListArgs),
    /// Create one from a file
    #[command(after_help = EXAMPLE)]
    Create {
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Show one; json and yaml have the document
    Get {
        /// Its id
        configuration: String,
    },
    /// Replace the document: `values`, and `secretBindings` if given
    Update {
        /// Its id
        configuration: String,
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        condition: ConditionArgs,
    },
    /// Change the document in an editor
    Edit {
        /// Its id
        configuration: String,
    },
    /// Delete one that no Agent uses
    Delete {
        /// Its id
        configuration: String,
        #[command(flatten)]
        condition: ConditionArgs,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::List(list) => {
            let items =
                session.api()?.list(&Call::get(session.in_namespace("configurations")?), list.limit)?;
            session.print().list(&VIEW, &items)
        }
        Command::Create { file, repeat } => {
            let body = input::document(&file.file)?;
            let call = Call::post(session.in_namespace("configurations")?).body(body);
            let call = call.repeatable(repeat.idempotency_key).read_back("occ configuration list");
            session.print().resource(&VIEW, &session.api()?.send(&call)?.data)
        }
        Command::Get { configuration } => {
            let id = names::id(&configuration)?;
            session.print().resource(&VIEW, &read(session, &id)?.data)
        }
        Command::Update { configuration, file, condition } => {
            let id = names::id(&configuration)?;
            let body = input::document(&file.file)?;
            session.print().resource(&VIEW, &write(session, &id, body, condition.tag())?)
        }
        Command::Edit { configuration } => edit(session, &names::id(&configuration)?),
        Command::Delete { configuration, condition } => {
            let id: ConfigurationId = names::id(&configuration)?;
            let call = Call::delete(path(session, &id)?).if_match(condition.tag());
            session.api()?.send(&call.read_back(format!("occ configuration get {id}")))?;
            session.print().deleted("configuration", id.as_str())
        }
    }
}

fn path(session: &Session, id: &ConfigurationId) -> Result<String> {
    session.in_namespace(&format!("configurations/{id}"))
}

fn read(session: &Session, id: &ConfigurationId) -> Result<Answer> {
    session.api()?.send(&Call::get(path(session, id)?))
}

fn write(session: &Session, id: &ConfigurationId, body: Value, tag: Option<String>) -> Result<Value> {
    let call = Call::patch(path(session, id)?, body).if_match(tag);
    Ok(session.api()?.send(&call.read_back(format!("occ configuration get {id} -o yaml")))?.data)
}

/// Shows the document in an editor and sends what was changed, unless somebody else changed it meanwhile.
fn edit(session: &Session, id: &ConfigurationId) -> Result<()> {
    let found = read(session, id)?;
    let editable: Map<String, Value> = ["values", "secretBindings"]
        .into_iter()
        .filter_map(|member| Some((member.to_owned(), found.data.get(member)?.clone())))
        .collect();
    let before = Value::Object(editable);
    let failed =
        |error: std::io::Error| Failure::local(Exit::Failed, "FILE", format!("temporary file: {error}"));
    // Temporary files are made with mode 0600.
    let mut file = tempfile::Builder::new().prefix("occ-").suffix(".yaml").tempfile().map_err(failed)?;
    file.write_all(output::yaml(&before)?.as_bytes()).map_err(failed)?;
    process::edit(&session.environment, file.path())?;
    let sent = input::document(file.path()).and_then(|after| {
        if after == before {
            return Ok(None);
        }
        write(session, id, after, found.etag.clone()).map(Some)
    });
    match sent {
        Ok(Some(written)) => session.print().resource(&VIEW, &written),
        Ok(None) => {
            output::notice("Nothing was changed.");
            Ok(())
        }
        Err(failure) => match file.keep() {
            Ok((_, kept)) => Err(failure.hint(format!("what you wrote is kept in {}", kept.display()))),
            Err(_) => Err(failure),
        },
    }
}
