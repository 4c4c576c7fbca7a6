//! `occ agent runtime`, and which revision is looked at when none is named.

use occ_api::ids::{AgentId, RevisionId};
use serde_json::Value;

use super::agent::{self, revisions};
use super::text;
use crate::failure::Result;
use crate::names;
use crate::output::{View, at, cell, notice};
use crate::session::Session;

/// Newer revisions that are examined at most.
const PROBES_MAX: usize = 3;

const VIEW: View = View {
    id: "/uid",
    columns: &[
        at("POD", "/name"),
        at("ROLE", "/role"),
        at("PHASE", "/phase"),
        at("READY", "/ready"),
        cell("RESTARTS", restarts),
        cell("LAST EXIT", last_exit),
        at("STARTED", "/containers/0/startedAt"),
    ],
};
const ENDPOINTS: View = View { id: "/name", columns: &[at("ENDPOINT", "/name"), at("URL", "/url")] };

/// Prints what runs.
pub(super) fn show(session: &Session, agent: &str, revision: Option<&str>) -> Result<()> {
    let given: Option<RevisionId> = revision.map(names::id).transpose()?;
    let agent = names::agent(session, agent)?;
    let revision = match given {
        Some(revision) => revision,
        None => choose(session, &agent)?,
    };
    let runtime = read(session, &agent, &revision)?;
    let print = session.print();
    if print.form() == crate::output::Form::Name {
        return print.list(&VIEW, items(&runtime, "pods"));
    }
    if print.form().is_machine() {
        return print.document(&runtime);
    }
    print.list(&VIEW, items(&runtime, "pods"))?;
    let endpoints = items(&runtime, "endpoints");
    if !endpoints.is_empty() {
        print.list(&ENDPOINTS, endpoints)?;
    }
    for pod in items(&runtime, "pods") {
        for event in items(pod, "events").iter().filter(|event| text(event, "/type") == "Warning") {
            notice(&format!(
                "{}: {} {}",
                text(pod, "/name"),
                text(event, "/reason"),
                text(event, "/message")
            ));
        }
    }
    Ok(())
}

/// A revision newer than the active one that has Pods, else the active one, else the newest; says which.
pub(super) fn choose(session: &Session, agent: &AgentId) -> Result<RevisionId> {
    let current = session.api()?.get(agent::path(session, agent)?)?;
    let active = text(&current, "/activeRevisionId").to_owned();
    let found = revisions::all(session, agent, None)?;
    let newer: Vec<&Value> = found.iter().take_while(|revision| text(revision, "/id") != active).collect();
    for revision in newer.iter().take(if active.is_empty() { 0 } else { PROBES_MAX }) {
        let id = revisions::id_of(revision)?;
        match read(session, agent, &id) {
            Ok(runtime) if !items(&runtime, "pods").is_empty() => {
                return Ok(announced(revision, "newer than the active one", id));
            }
            Err(failure) if failure.status() == Some(403) => {
                notice(&format!("notice: revision {} is newer and was not examined", shown(revision)));
                break;
            }
            _ => {}
        }
    }
    match found.iter().find(|revision| text(revision, "/id") == active) {
        Some(revision) => Ok(announced(revision, "the active one", revisions::id_of(revision)?)),
        None => {
            let newest = found.first().ok_or_else(|| revisions::never_deployed(agent))?;
            Ok(announced(newest, "the newest one", revisions::id_of(newest)?))
        }
    }
}

fn announced(revision: &Value, which: &str, id: RevisionId) -> RevisionId {
    notice(&format!("revision {} ({which})", shown(revision)));
    id
}

fn shown(revision: &Value) -> String {
    format!("{} {}", revision.get("revision").unwrap_or(&Value::Null), text(revision, "/id"))
}

fn read(session: &Session, agent: &AgentId, revision: &RevisionId) -> Result<Value> {
    session.api()?.get(format!("{}/deployments/{revision}/runtime", agent::path(session, agent)?))
}

fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn restarts(pod: &Value) -> String {
    let counts =
        items(pod, "containers").iter().filter_map(|container| container.get("restartCount")?.as_u64());
    counts.sum::<u64>().to_string()
}

fn last_exit(pod: &Value) -> String {
    let ended = items(pod, "containers").iter().find_map(|container| {
        let ended = container.get("lastTermination").filter(|ended| !ended.is_null())?;
        let code = ended.get("exitCode").map(Value::to_string).unwrap_or_default();
        Some(format!("{code} {}", text(ended, "/reason")).trim().to_owned())
    });
    ended.unwrap_or_default()
}
