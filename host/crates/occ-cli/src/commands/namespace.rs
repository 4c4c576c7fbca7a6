//! `occ namespace`

use clap::Subcommand;
use occ_api::ids::NamespaceId;
use serde_json::json;

use crate::args::{ListArgs, LongWaitArgs, RepeatArgs, ShortWaitArgs};
use crate::client::Call;
use crate::failure::{Failure, Result};
use crate::names::{self, Named};
use crate::output::{View, at};
use crate::session::Session;
use crate::wait::{self, Deadline};

const VIEW: View = View {
    id: "/id",
    columns: &[at("ID", "/id"), at("NAME", "/name"), at("STATUS", "/status"), at("CREATED", "/createdAt")],
};

/// What can be done with Namespaces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Those that the credential may read
    List(ListArgs),
    /// Show one
    Get {
        /// Id or name
        namespace: String,
        #[command(flatten)]
        wait: LongWaitArgs,
    },
    /// Create one
    Create {
        /// 1 to 200 characters; never free again
        name: String,
        /// A namespace of the cluster that exists already
        #[arg(long, value_name = "NAME")]
        existing_namespace: Option<String>,
        #[command(flatten)]
        wait: LongWaitArgs,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// Delete one that is empty
    Delete {
        /// Id or name
        namespace: String,
        #[command(flatten)]
        wait: ShortWaitArgs,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::List(list) => {
            let items = session.api()?.list(&Call::get("/namespaces"), list.limit)?;
            session.print().list(&VIEW, &items)
        }
        Command::Get { namespace, wait } => {
            let id = id_of(session, &namespace)?;
            let found = match wait.wait {
                Some(whole) => wait::namespace_ready(session, &id, Deadline::after(whole))?,
                None => session.api()?.get(format!("/namespaces/{id}"))?,
            };
            session.print().resource(&VIEW, &found)
        }
        Command::Create { name, existing_namespace, wait, repeat } => {
            let mut body = json!({"name": name});
            if let (Some(existing), Some(body)) = (existing_namespace, body.as_object_mut()) {
                body.insert("existingNamespace".to_owned(), json!(existing));
            }
            let call = Call::post("/namespaces").body(body).repeatable(repeat.idempotency_key);
            let mut created = session.api()?.send(&call.read_back("occ namespace list"))?.data;
            if let Some(whole) = wait.wait {
                let id = NamespaceId::parse(super::text(&created, "/id"))
                    .map_err(|_| Failure::invalid_response("a Namespace has no id"))?;
                created = wait::namespace_ready(session, &id, Deadline::after(whole))?;
            }
            session.print().resource(&VIEW, &created)
        }
        Command::Delete { namespace, wait } => {
            let id = id_of(session, &namespace)?;
            let path = format!("/namespaces/{id}");
            let call = Call::delete(&path).read_back(format!("occ namespace get {id}"));
            session.api()?.send(&call)?;
            match wait.wait {
                Some(whole) => {
                    let resume = format!("occ wait namespace/{id} --for deleted");
                    wait::gone(session, &path, &format!("Namespace {id}"), &resume, Deadline::after(whole))?;
                    session.print().deleted("namespace", id.as_str())
                }
                None => session.print().deleting("namespace", id.as_str()),
            }
        }
    }
}

fn id_of(session: &Session, text: &str) -> Result<NamespaceId> {
    names::namespace(session, &Named::parse(text)?)
}
