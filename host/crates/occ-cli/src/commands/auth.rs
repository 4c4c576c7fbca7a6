//! `occ auth`: what the credential is, and what it or another principal may do.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::text;
use crate::client::Call;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Form, View, at};
use crate::session::Session;
use crate::settings;

/// Characters of a key that may be shown; the server lists keys by them.
const PREFIX_CHARS: usize = 12;

/// Every pair that some operation checks.
const PAIRS: [(&str, &[&str]); 9] = [
    ("installation", &["read", "administer"]),
    ("namespace", &["create", "read", "delete"]),
    ("configuration", &["create", "read", "update", "delete"]),
    ("preset", &["create", "read", "update", "delete"]),
    ("service_account", &["create", "read", "update", "delete"]),
    ("secret", &["create", "read", "update", "delete", "operate"]),
    ("credential_source", &["create", "read", "update", "delete", "operate"]),
    ("agent", &["create", "read", "update", "delete", "deploy", "operate", "administer", "read_logs"]),
    ("agent_revision", &["read"]),
];

const DECISION: View = View {
    id: "/resourceId",
    columns: &[
        at("ALLOWED", "/allowed"),
        at("ACTION", "/action"),
        at("KIND", "/resourceKind"),
        at("ID", "/resourceId"),
        at("NAMESPACE", "/namespaceId"),
        at("REASON", "/reason"),
    ],
};
const EXPLAINED: View = View {
    id: "/resourceId",
    columns: &[
        at("ALLOWED", "/allowed"),
        at("REASON", "/reason"),
        at("PRINCIPAL", "/principalId"),
        at("BINDINGS", "/evidence/bindingIds"),
        at("ROLES", "/evidence/roleIds"),
        at("GROUPS", "/evidence/groupIds"),
        at("RESTRICTIONS", "/evidence/restrictionIds"),
    ],
};
const STATUS: View = View {
    id: "/installationId",
    columns: &[
        at("SOURCE", "/source"),
        at("ORIGIN", "/origin"),
        at("KEY", "/keyPrefix"),
        at("EXPIRES", "/expiresAt"),
        at("NAMESPACE PIN", "/namespacePin"),
        at("INSTALLATION", "/installationId"),
    ],
};

/// What can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// May I? Exit 0 for yes, 3 for no
    CanI {
        #[command(flatten)]
        question: Question,
        /// Everything that can be allowed in the Namespace, one by one
        #[arg(long, conflicts_with_all = ["action", "kind", "id"])]
        list: bool,
    },
    /// The same with the records that decide it
    Explain {
        #[command(flatten)]
        question: Question,
    },
    /// Which credential is used, and whether the server accepts it
    Status,
}

/// One question.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Such as read, deploy, operate
    action: Option<String>,
    /// Such as agent, secret, namespace, installation
    kind: Option<String>,
    /// Id of the resource; by default the Namespace, or the Installation for its own kinds
    id: Option<String>,
    /// Ask about this principal instead; needs administer on the Installation
    #[arg(long = "as", value_name = "PRINCIPAL")]
    principal: Option<String>,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<ExitCode> {
    match command {
        Command::CanI { question, list: true } => list(session, question),
        Command::CanI { question, .. } => {
            let decision = ask(session, "can-i", question)?;
            session.print().resource(&DECISION, &decision)?;
            Ok(verdict(&decision))
        }
        Command::Explain { question } => {
            let decision = ask(session, "explain", question)?;
            session.print().resource(&EXPLAINED, &decision)?;
            Ok(verdict(&decision))
        }
        Command::Status => status(session),
    }
}

fn verdict(decision: &Value) -> ExitCode {
    match decision.get("allowed").and_then(Value::as_bool) {
        Some(true) => ExitCode::SUCCESS,
        _ => ExitCode::from(Exit::Denied.code()),
    }
}

/// One question as the API asks it.
struct Asked {
    action: String,
    kind: String,
    id: String,
    namespace: Option<String>,
}

impl Asked {
    fn of(session: &Session, action: &str, kind: &str, id: Option<&str>) -> Result<Self> {
        let on_installation = kind == "installation" || (kind == "namespace" && action == "create");
        let namespace = match (kind, id) {
            _ if on_installation => None,
            ("namespace", Some(id)) => Some(id.to_owned()),
            _ => Some(session.namespace()?.to_string()),
        };
        let id = match (id, &namespace) {
            (Some(id), _) => id.to_owned(),
            (None, Some(namespace)) => namespace.clone(),
            (None, None) => text(&session.api()?.get("/installation")?, "/id").to_owned(),
        };
        Ok(Self { action: action.to_owned(), kind: kind.to_owned(), id, namespace })
    }

    fn document(&self) -> Value {
        let mut check = Map::new();
        check.insert("action".to_owned(), json!(self.action));
        check.insert("resourceKind".to_owned(), json!(self.kind));
        check.insert("resourceId".to_owned(), json!(self.id));
        if let Some(namespace) = &self.namespace {
            check.insert("namespaceId".to_owned(), json!(namespace));
        }
        Value::Object(check)
    }
}

fn ask(session: &Session, route: &str, question: &Question) -> Result<Value> {
    let (Some(action), Some(kind)) = (&question.action, &question.kind) else {
        return Err(Failure::usage("an action and a kind are needed"));
    };
    let asked = Asked::of(session, action, kind, question.id.as_deref())?;
    let path = format!("/iam/{route}");
    match &question.principal {
        None => {
            let call = Call::get(path)
                .query("action", asked.action)
                .query("resourceKind", asked.kind)
                .query("resourceId", asked.id)
                .query_if("namespaceId", asked.namespace);
            Ok(session.api()?.send(&call)?.data)
        }
        Some(principal) => {
            let body = json!({"principalId": principal, "checks": [asked.document()]});
            let found = session.api()?.send(&Call::post(path).body(body))?.data;
            found.get(0).cloned().ok_or_else(|| Failure::invalid_response("a question has no answer"))
        }
    }
}

fn list(session: &Session, question: &Question) -> Result<ExitCode> {
    let installation = text(&session.api()?.get("/installation")?, "/id").to_owned();
    let mut checks = Vec::new();
    for (kind, actions) in PAIRS {
        for action in actions {
            let on_installation = kind == "installation" || (kind == "namespace" && *action == "create");
            let id = on_installation.then_some(installation.as_str());
            checks.push(Asked::of(session, action, kind, id)?.document());
        }
    }
    let mut body = json!({"checks": checks});
    if let (Some(principal), Some(body)) = (&question.principal, body.as_object_mut()) {
        body.insert("principalId".to_owned(), json!(principal));
    }
    let found = session.api()?.send(&Call::post("/iam/can-i").body(body))?.data;
    let Value::Array(decisions) = found else {
        return Err(Failure::invalid_response("the answers are no list"));
    };
    session.print().list(&DECISION, &decisions)?;
    Ok(ExitCode::SUCCESS)
}

fn status(session: &Session) -> Result<ExitCode> {
    let settled = session.settings()?;
    let origin = settled.origin()?;
    let key = settled.key()?;
    let mut shown = Map::new();
    let file = settled.key_file.as_ref();
    shown.insert("source".to_owned(), json!(file.map(|file| file.source.to_string())));
    shown.insert("keyFile".to_owned(), json!(file.map(|file| file.value.display().to_string())));
    shown.insert("origin".to_owned(), json!(origin.as_str()));
    shown.insert("keyPrefix".to_owned(), json!(key.chars().take(PREFIX_CHARS).collect::<String>()));
    let issued = file.and_then(|file| std::fs::read_to_string(&file.value).ok());
    let issued: Value = issued.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    for (name, pointer) in [("expiresAt", "/data/expiresAt"), ("namespacePin", "/data/namespaceId")] {
        if let Some(value) = issued.pointer(pointer) {
            shown.insert(name.to_owned(), value.clone());
        }
    }
    let installation = session.api()?.get("/installation");
    match &installation {
        Ok(installation) => {
            shown.insert("accepted".to_owned(), json!(true));
            shown.insert("installationId".to_owned(), json!(text(installation, "/id")));
        }
        // A key may be good and yet not be allowed to read the Installation.
        Err(failure) if failure.status() == Some(403) => {
            shown.insert("accepted".to_owned(), json!(true));
        }
        Err(_) => {}
    }
    match installation {
        Err(failure) if failure.status() != Some(403) => Err(failure),
        _ if session.form() == Form::Name => {
            session.print().document(&json!(origin.as_str())).map(|()| ExitCode::SUCCESS)
        }
        _ => session.print().resource(&STATUS, &Value::Object(shown)).map(|()| ExitCode::SUCCESS),
    }
}

/// The path of the key file, for `doctor`.
pub(super) fn key_file(session: &Session) -> Option<std::path::PathBuf> {
    session.settings().ok()?.key_file.as_ref().map(|file: &settings::Sourced<_>| file.value.clone())
}
