//! `occ service-key`

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::text;
use crate::args::{ListArgs, RepeatArgs};
use crate::client::{Call, segment};
use crate::failure::{Exit, Failure, Result};
use crate::output::{self, View, at};
use crate::session::Session;

const SECS_PER_DAY: u64 = 86_400;
const ROUTE: &str = "/api/auth/service-keys";
const VIEW: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("NAME", "/name"),
        at("PREFIX", "/prefix"),
        at("PRINCIPAL", "/servicePrincipalId"),
        at("NAMESPACE", "/namespaceId"),
        at("EXPIRES", "/expiresAt"),
        at("LAST USED", "/lastUsedAt"),
        at("REVOKED", "/revokedAt"),
    ],
};
const ISSUED: View = View {
    id: "/id",
    columns: &[
        at("ID", "/id"),
        at("NAME", "/name"),
        at("PRINCIPAL", "/servicePrincipalId"),
        at("EXPIRES", "/expiresAt"),
    ],
};

/// What can be done with service keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Issue one into a new file; --namespace is its scope. The key is shown nowhere
    Create {
        /// Whose key
        #[arg(long, value_name = "PRINCIPAL")]
        service_principal: String,
        /// 1 to 32 characters
        #[arg(long)]
        name: String,
        /// File that must not exist yet; mode 0600
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// 1 to 365; 30 by default
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=365))]
        expires_in_days: Option<u64>,
        #[command(flatten)]
        repeat: RepeatArgs,
    },
    /// All keys, without their values
    List {
        /// Of one principal
        #[arg(long, value_name = "PRINCIPAL")]
        service_principal: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// End one at once
    Revoke {
        /// Its id
        id: String,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create { service_principal, name, out, expires_in_days, repeat } => {
            let mut body = Map::new();
            body.insert("servicePrincipalId".to_owned(), json!(service_principal));
            if let Some(namespace) = scope(session)? {
                body.insert("namespaceId".to_owned(), json!(namespace));
            }
            body.insert("name".to_owned(), json!(name));
            if let Some(days) = expires_in_days {
                body.insert("expiresIn".to_owned(), json!(days * SECS_PER_DAY));
            }
            session.api()?;
            issue(session, Value::Object(body), &out, repeat)
        }
        Command::List { service_principal, list } => {
            let call = Call::get(ROUTE).query_if("servicePrincipalId", service_principal);
            session.print().list(&VIEW, &session.api()?.list(&call, list.limit)?)
        }
        Command::Revoke { id } => {
            revoke(session, &id)?;
            session.print().deleted("service-key", &id)
        }
    }
}

/// The scope of a new key: a Namespace that was asked for here, not one that a context happens to name.
fn scope(session: &Session) -> Result<Option<String>> {
    if session.global.namespace.is_none() && session.environment.namespace.is_none() {
        return Ok(None);
    }
    Ok(session.namespace_if_named()?.map(ToString::to_string))
}

/// Opens the file first: a key that cannot be kept is not asked for, and one that was not kept is revoked.
fn issue(session: &Session, body: Value, out: &Path, repeat: RepeatArgs) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    let file = file.map_err(|error| Failure::file(out, &error))?;
    let call = Call::post(ROUTE).body(body).repeatable(repeat.idempotency_key);
    let answer = match session.api()?.send(&call.read_back("occ service-key list")) {
        Ok(answer) => answer,
        Err(failure) => {
            // Nothing was written; an empty file would only be in the way.
            let _ = std::fs::remove_file(out);
            return Err(failure);
        }
    };
    let id = text(&answer.data, "/id").to_owned();
    if let Err(error) = keep(file, &answer.envelope) {
        let _ = std::fs::remove_file(out);
        let failure = Failure::local(Exit::Failed, "FILE", format!("{}: {error}", out.display()));
        return Err(match revoke(session, &id) {
            Ok(()) => failure.hint(format!("key {id} was revoked")),
            Err(_) => failure.hint(format!("key {id} was not kept; revoke it: occ service-key revoke {id}")),
        });
    }
    let mut shown = answer.data;
    if let Some(members) = shown.as_object_mut() {
        members.remove("key");
    }
    session.print().resource(&ISSUED, &shown)?;
    output::notice(&format!("the key is in {}", out.display()));
    Ok(())
}

fn keep(mut file: File, envelope: &Value) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(envelope)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn revoke(session: &Session, id: &str) -> Result<()> {
    let call = Call::delete(format!("{ROUTE}/{}", segment(id))).read_back("occ service-key list");
    session.api()?.send(&call).map(|_| ())
}
