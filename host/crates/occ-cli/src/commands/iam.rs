//! `occ iam`: Roles, AccessBindings and ServicePrincipals, of a Namespace or of the Installation.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::args::{FileArgs, ListArgs, RepeatArgs};
use crate::client::{Call, segment};
use crate::failure::Result;
use crate::input;
use crate::output::{View, at, cell};
use crate::session::Session;

const ROLE: View =
    View { id: "/id", columns: &[at("ID", "/id"), at("NAME", "/name"), cell("PERMISSIONS", permissions)] };
const BINDING: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("SUBJECT KIND", "/subjectKind"),
        at("SUBJECT", "/subjectId"),
        at("ROLE", "/roleId"),
        at("RESOURCE KIND", "/resourceKind"),
        at("RESOURCE", "/resourceId"),
    ],
};
const PRINCIPAL: View = View { id: "/id", columns: &[at("ID", "/id"), at("NAMESPACE", "/namespaceId")] };

/// What can be done with policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Roles: sets of permissions
    #[command(subcommand)]
    Role(RoleCommand),
    /// Access bindings: who has a Role, on what
    #[command(subcommand)]
    AccessBinding(BindingCommand),
    /// Service principals: identities of programs
    #[command(subcommand)]
    ServicePrincipal(PrincipalCommand),
}

/// On which level.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LevelArgs {
    /// The Installation's own records instead of the Namespace's
    #[arg(long)]
    installation: bool,
}

/// What can be done with Roles.
#[derive(Debug, Subcommand)]
pub(crate) enum RoleCommand {
    /// All of them
    List {
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one
    Get {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
    /// Create one from a file
    #[command(after_help = "A minimal document:\n\n\
        name: Secret user\npermissions:\n- action: operate\n  resourceKind: secret\n")]
    Create {
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Delete one that no binding names
    Delete {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
}

/// What can be done with AccessBindings.
#[derive(Debug, Subcommand)]
pub(crate) enum BindingCommand {
    /// All of them
    List {
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one
    Get {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
    /// Create one from a file
    #[command(
        after_help = "A minimal document; without resourceKind and resourceId it is Namespace-wide:\n\n\
        subjectKind: identity\nsubjectId: spn_...\nroleId: role_...\nresourceKind: secret\nresourceId: sec_...\n"
    )]
    Create {
        #[command(flatten)]
        file: FileArgs,
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Delete one
    Delete {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
}

/// What can be done with ServicePrincipals.
#[derive(Debug, Subcommand)]
pub(crate) enum PrincipalCommand {
    /// All of them but those that belong to Agents
    List {
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show one
    Get {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
    /// Create one
    Create {
        #[command(flatten)]
        level: LevelArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Delete one, its keys and bindings
    Delete {
        /// Its id
        id: String,
        #[command(flatten)]
        level: LevelArgs,
    },
}

/// A kind of policy record.
struct Records {
    noun: &'static str,
    collection: &'static str,
    view: &'static View,
}

const ROLES: Records = Records { noun: "role", collection: "roles", view: &ROLE };
const BINDINGS: Records = Records { noun: "access-binding", collection: "access-bindings", view: &BINDING };
const PRINCIPALS: Records =
    Records { noun: "service-principal", collection: "service-principals", view: &PRINCIPAL };

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Role(command) => match command {
            RoleCommand::List { level, list } => ROLES.list(session, level, list),
            RoleCommand::Get { id, level } => ROLES.get(session, level, &id),
            RoleCommand::Create { file, level, repeat } => {
                ROLES.create(session, level, input::document(&file.file)?, repeat)
            }
            RoleCommand::Delete { id, level } => ROLES.delete(session, level, &id),
        },
        Command::AccessBinding(command) => match command {
            BindingCommand::List { level, list } => BINDINGS.list(session, level, list),
            BindingCommand::Get { id, level } => BINDINGS.get(session, level, &id),
            BindingCommand::Create { file, level, repeat } => {
                BINDINGS.create(session, level, input::document(&file.file)?, repeat)
            }
            BindingCommand::Delete { id, level } => BINDINGS.delete(session, level, &id),
        },
        Command::ServicePrincipal(command) => match command {
            PrincipalCommand::List { level, list } => PRINCIPALS.list(session, level, list),
            PrincipalCommand::Get { id, level } => PRINCIPALS.get(session, level, &id),
            PrincipalCommand::Create { level, repeat } => {
                PRINCIPALS.create(session, level, json!({}), repeat)
            }
            PrincipalCommand::Delete { id, level } => PRINCIPALS.delete(session, level, &id),
        },
    }
}

impl Records {
    fn path(&self, session: &Session, level: LevelArgs) -> Result<String> {
        let collection = format!("iam/{}", self.collection);
        if level.installation { Ok(format!("/{collection}")) } else { session.in_namespace(&collection) }
    }

    fn item(&self, session: &Session, level: LevelArgs, id: &str) -> Result<String> {
        Ok(format!("{}/{}", self.path(session, level)?, segment(id)))
    }

    fn list(&self, session: &Session, level: LevelArgs, list: ListArgs) -> Result<()> {
        let items = session.api()?.list(&Call::get(self.path(session, level)?), list.limit)?;
        session.print().list(self.view, &items)
    }

    fn get(&self, session: &Session, level: LevelArgs, id: &str) -> Result<()> {
        session.print().resource(self.view, &session.api()?.get(self.item(session, level, id)?)?)
    }

    fn create(&self, session: &Session, level: LevelArgs, body: Value, repeat: RepeatArgs) -> Result<()> {
        let call = Call::post(self.path(session, level)?).body(body).repeatable(repeat.idempotency_key);
        let call = call.read_back(format!("occ iam {} list", self.noun));
        session.print().resource(self.view, &session.api()?.send(&call)?.data)
    }

    fn delete(&self, session: &Session, level: LevelArgs, id: &str) -> Result<()> {
        let call = Call::delete(self.item(session, level, id)?);
        session.api()?.send(&call.read_back(format!(
            "occ iam {} get {}",
            self.noun,
            crate::output::cell_text(id)
        )))?;
        session.print().deleted(self.noun, id)
    }
}

/// `operate secret, read agent`
fn permissions(role: &Value) -> String {
    let pairs = role.get("permissions").and_then(Value::as_array).into_iter().flatten();
    let shown =
        pairs.map(|pair| format!("{} {}", super::text(pair, "/action"), super::text(pair, "/resourceKind")));
    shown.collect::<Vec<_>>().join(", ")
}
