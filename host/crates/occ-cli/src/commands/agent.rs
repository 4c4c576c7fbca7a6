//! `occ agent`

use clap::Subcommand;
use occ_api::ids::{AgentId, RevisionId};
use serde_json::{Value, json};

use super::{logs, runtime, text};
use crate::args::{ConditionArgs, FileArgs, ListArgs, LongWaitArgs, RepeatArgs, ShortWaitArgs};
use crate::client::Call;
use crate::failure::{Exit, Failure, Result};
use crate::output::{self, View, at};
use crate::session::Session;
use crate::wait::{self, Deadline};
use crate::{input, names};

mod refused;
pub(super) mod revisions;

const VIEW: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("NAME", "/name"),
        at("STATUS", "/status"),
        at("RUNTIME", "/desiredRuntimeState"),
        at("ACTIVE REVISION", "/activeRevisionId"),
        at("CONFIGURATION", "/configurationId"),
    ],
};
const REVISION: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("REVISION", "/revision"),
        at("AGENT", "/agentId"),
        at("CONFIGURATION", "/configurationId"),
    ],
};
const DEPLOYMENT: View = View {
    id: "/deploymentId",
    columns: &[
        at("ID", "/deploymentId"),
        at("STATUS", "/status"),
        at("LAST CODE", "/progress/lastAttempt/code"),
        at("NEXT ATTEMPT", "/progress/nextAttemptAt"),
        at("ERROR", "/error/code"),
        at("MESSAGE", "/error/message"),
    ],
};

/// What can be done with Agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create one from a file; it runs once it is deployed
    #[command(after_help = "A minimal document:\n\n\
        name: concierge\nconfigurationId: cfg_...\nharnessAuth:\n  method: api_key\n  \
        source: { kind: secret, namespaceId: ns_..., id: sec_... }\n")]
    Create {
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Those that the credential may read
    List(ListArgs),
    /// Show one
    Get {
        /// Id or name
        agent: String,
    },
    /// Change its draft; running revisions stay as they are
    Update {
        /// Id or name
        agent: String,
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        condition: ConditionArgs,
    },
    /// Stop and delete it
    Delete {
        /// Id or name
        agent: String,
        #[command(flatten)]
        wait: ShortWaitArgs,
        #[command(flatten)]
        condition: ConditionArgs,
    },
    /// Freeze the draft into a new revision and run it
    Deploy {
        /// Id or name
        agent: String,
        /// Check everything, store and start nothing
        #[arg(long, conflicts_with = "wait")]
        dry_run: bool,
        #[command(flatten)]
        wait: LongWaitArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Stop what runs; the Agent stays
    Stop {
        /// Id or name
        agent: String,
        #[command(flatten)]
        wait: ShortWaitArgs,
    },
    /// Run an earlier revision again, as a new one
    Rollback {
        /// Id or name
        agent: String,
        /// Id of the revision to repeat; by default the newest one that served before
        #[arg(long, value_name = "REVISION")]
        revision: Option<String>,
        #[command(flatten)]
        wait: LongWaitArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Its revisions, newest first; * marks the active one
    Revisions {
        /// Id or name
        agent: String,
        #[command(flatten)]
        list: ListArgs,
    },
    /// How a deployment stands
    DeploymentStatus {
        /// Id or name
        agent: String,
        /// Id or number of the revision; by default the newest
        revision: Option<String>,
        #[command(flatten)]
        wait: LongWaitArgs,
    },
    /// What runs: instances, endpoints, sources of logs
    Runtime {
        /// Id or name
        agent: String,
        /// Id of the revision
        #[arg(long, value_name = "REVISION")]
        revision: Option<String>,
    },
    /// Lines of a log
    Logs(logs::Logs),
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create { file, repeat } => create(session, &file, repeat),
        Command::List(list) => {
            let items = session.api()?.list(&Call::get(session.in_namespace("agents")?), list.limit)?;
            session.print().list(&VIEW, &items)
        }
        Command::Get { agent } => {
            let id = names::agent(session, &agent)?;
            session.print().resource(&VIEW, &session.api()?.get(path(session, &id)?)?)
        }
        Command::Update { agent, file, condition } => update(session, &agent, &file, &condition),
        Command::Delete { agent, wait, condition } => delete(session, &agent, &wait, &condition),
        Command::Deploy { agent, dry_run, wait, repeat } => {
            let id = names::agent(session, &agent)?;
            if dry_run {
                return preview(session, &id);
            }
            let call = Call::post(format!("{}/deploy", path(session, &id)?));
            start(session, &id, call, &wait, repeat)
        }
        Command::Stop { agent, wait } => stop(session, &agent, &wait),
        Command::Rollback { agent, revision, wait, repeat } => {
            rollback(session, &agent, revision.as_deref(), &wait, repeat)
        }
        Command::Revisions { agent, list } => {
            revisions::list(session, &names::agent(session, &agent)?, list.limit)
        }
        Command::DeploymentStatus { agent, revision, wait } => {
            status(session, &agent, revision.as_deref(), &wait)
        }
        Command::Runtime { agent, revision } => runtime::show(session, &agent, revision.as_deref()),
        Command::Logs(command) => logs::run(session, &command),
    }
}

/// Path of an Agent.
pub(super) fn path(session: &Session, id: &AgentId) -> Result<String> {
    session.in_namespace(&format!("agents/{id}"))
}

fn create(session: &Session, file: &FileArgs, repeat: RepeatArgs) -> Result<()> {
    let body = input::document(&file.file)?;
    let call = Call::post(session.in_namespace("agents")?).body(body);
    let call = call.repeatable(repeat.idempotency_key).read_back("occ agent list");
    session.print().resource(&VIEW, &session.api()?.send(&call)?.data)
}

fn update(session: &Session, agent: &str, file: &FileArgs, condition: &ConditionArgs) -> Result<()> {
    let body = input::document(&file.file)?;
    let id = names::agent(session, agent)?;
    let call = Call::patch(path(session, &id)?, body).if_match(condition.tag());
    let call = call.read_back(format!("occ agent get {id}"));
    session.print().resource(&VIEW, &session.api()?.send(&call)?.data)
}

fn rollback(
    session: &Session,
    agent: &str,
    revision: Option<&str>,
    wait: &LongWaitArgs,
    repeat: RepeatArgs,
) -> Result<()> {
    let revision: Option<RevisionId> = revision.map(names::id).transpose()?;
    let id = names::agent(session, agent)?;
    let body = revision.map_or_else(|| json!({}), |revision| json!({"revisionId": revision}));
    let call = Call::post(format!("{}/rollback", path(session, &id)?)).body(body);
    start(session, &id, call, wait, repeat)
}

/// Deploys or rolls back: prints the new revision, then waits for it if that was asked for.
fn start(
    session: &Session,
    agent: &AgentId,
    call: Call,
    wait: &LongWaitArgs,
    repeat: RepeatArgs,
) -> Result<()> {
    let call = call.repeatable(repeat.idempotency_key).read_back(format!("occ agent revisions {agent}"));
    let revision = session.api()?.send(&call).map_err(|failure| refused::explain(session, failure))?.data;
    session.print().resource(&REVISION, &revision)?;
    let id = RevisionId::parse(text(&revision, "/id"))
        .map_err(|_| Failure::invalid_response("a revision has no id"))?;
    match wait.wait {
        Some(whole) => wait::deployment(session, agent, &id, Deadline::after(whole)),
        None => {
            output::notice(&format!("queued; see: occ agent deployment-status {agent} {id} --wait"));
            Ok(())
        }
    }
}

fn preview(session: &Session, agent: &AgentId) -> Result<()> {
    const PREVIEW: View = View {
        id: "/revision/agentId",
        columns: &[
            at("REVISION", "/revision/revision"),
            at("AGENT", "/revision/agentId"),
            at("CONFIGURATION", "/revision/configurationId"),
            at("HARNESS", "/revision/harness/id"),
            at("COMPUTE", "/revision/compute/implementation"),
            at("NOT CHECKED", "/notChecked"),
        ],
    };
    // Nothing is stored, so nothing can happen twice.
    let call = Call::post(format!("{}/deploy", path(session, agent)?)).query("dryRun", "true");
    let preview = session.api()?.send(&call).map_err(|failure| refused::explain(session, failure))?.data;
    session.print().resource(&PREVIEW, &preview)
}

fn stop(session: &Session, agent: &str, wait: &ShortWaitArgs) -> Result<()> {
    let id = names::agent(session, agent)?;
    let call = Call::post(format!("{}/stop", path(session, &id)?)).read_back(format!("occ agent get {id}"));
    let mut stopping = session.api()?.send(&call)?.data;
    if let Some(whole) = wait.wait {
        stopping = wait::stopped(session, &id, Deadline::after(whole))?;
    }
    session.print().resource(&VIEW, &stopping)?;
    output::notice(&format!("start it again with: occ agent deploy {id}{}", session.namespace_flag()));
    Ok(())
}

fn delete(session: &Session, agent: &str, wait: &ShortWaitArgs, condition: &ConditionArgs) -> Result<()> {
    let id = names::agent(session, agent)?;
    let path = path(session, &id)?;
    let call = Call::delete(&path).if_match(condition.tag()).read_back(format!("occ agent get {id}"));
    session.api()?.send(&call)?;
    let Some(whole) = wait.wait else {
        return session.print().deleting("agent", id.as_str());
    };
    let resume = format!("occ wait agent/{id} --for deleted{}", session.namespace_flag());
    wait::gone(session, &path, &format!("Agent {id}"), &resume, Deadline::after(whole))?;
    session.print().deleted("agent", id.as_str())
}

fn status(session: &Session, agent: &str, revision: Option<&str>, wait: &LongWaitArgs) -> Result<()> {
    let number = revision.map(|revision| revision.parse::<u64>());
    let given: Option<RevisionId> = match (revision, &number) {
        (Some(text), Some(Err(_))) => Some(names::id(text)?),
        _ => None,
    };
    let agent = names::agent(session, agent)?;
    let id = match (given, number) {
        (Some(id), _) => id,
        (None, Some(Ok(number))) => revisions::numbered(session, &agent, number)?,
        (None, _) => revisions::newest(session, &agent)?,
    };
    let waited = wait.wait.map(|whole| wait::deployment(session, &agent, &id, Deadline::after(whole)));
    if let Some(Err(failure)) = &waited
        && failure.exit() == Exit::TimedOut
    {
        return Err(failure.clone());
    }
    let deployment = session.api()?.get(format!("{}/deployments/{id}", path(session, &agent)?))?;
    session.print().resource(&DEPLOYMENT, &deployment)?;
    waited.unwrap_or(Ok(()))
}

/// The number of a revision, 0 when it has none.
fn number_of(revision: &Value) -> u64 {
    revision.get("revision").and_then(Value::as_u64).unwrap_or_default()
}
