//! Revisions of an Agent, with how each deployment stands.

use std::thread;

use occ_api::ids::{AgentId, RevisionId};
use serde_json::{Value, json};

use super::{number_of, path};
use crate::client::Call;
use crate::commands::text;
use crate::failure::{Exit, Failure, Result};
use crate::output::{View, at, cell};
use crate::session::Session;

/// Reads at once.
const READS_MAX: usize = 4;

const VIEW: View =
    View {
        id: "/id",
        columns: &[
            cell("", |revision| {
                if revision.get("active") == Some(&json!(true)) { "*".to_owned() } else { " ".to_owned() }
            }),
            at("REVISION", "/revision"),
            at("ID", "/id"),
            at("STATUS", "/status"),
            at("CONFIGURATION", "/configurationId"),
            at("GENERATION", "/configurationGeneration"),
            at("ROLLBACK OF", "/rollbackOf"),
            at("CREATED", "/createdAt"),
        ],
    };

/// Prints them; the table has the status of each and marks the active one.
pub(super) fn list(session: &Session, agent: &AgentId, limit: Option<usize>) -> Result<()> {
    let found = all(session, agent, limit)?;
    if session.print().form().is_machine() || session.form() == crate::output::Form::Name {
        return session.print().list(&VIEW, &found);
    }
    let active = session.api()?.get(path(session, agent)?)?;
    let active = text(&active, "/activeRevisionId").to_owned();
    let statuses = statuses(session, agent, &found)?;
    let rows: Vec<Value> = found
        .into_iter()
        .zip(statuses)
        .map(|(mut revision, status)| {
            let is_active = !active.is_empty() && text(&revision, "/id") == active;
            if let Some(members) = revision.as_object_mut() {
                members.insert("status".to_owned(), json!(status));
                members.insert("active".to_owned(), json!(is_active));
            }
            revision
        })
        .collect();
    session.print().list(&VIEW, &rows)
}

/// The newest revision.
///
/// # Errors
/// The Agent was never deployed.
pub(in crate::commands) fn newest(session: &Session, agent: &AgentId) -> Result<RevisionId> {
    let found = all(session, agent, Some(1))?;
    let newest = found.iter().max_by_key(|revision| number_of(revision));
    id_of(newest.ok_or_else(|| never_deployed(agent))?)
}

/// A revision by its number.
///
/// # Errors
/// There is none.
pub(super) fn numbered(session: &Session, agent: &AgentId, number: u64) -> Result<RevisionId> {
    let found = all(session, agent, None)?;
    let revision = found.iter().find(|revision| number_of(revision) == number);
    id_of(revision.ok_or_else(|| {
        Failure::local(Exit::NotFound, "NO_SUCH_REVISION", format!("Agent {agent} has no revision {number}"))
            .hint(format!("occ agent revisions {agent}"))
    })?)
}

/// All revisions, newest first.
pub(in crate::commands) fn all(
    session: &Session,
    agent: &AgentId,
    limit: Option<usize>,
) -> Result<Vec<Value>> {
    session.api()?.list(&Call::get(format!("{}/revisions", path(session, agent)?)), limit)
}

/// The id of a revision.
pub(in crate::commands) fn id_of(revision: &Value) -> Result<RevisionId> {
    RevisionId::parse(text(revision, "/id")).map_err(|_| Failure::invalid_response("a revision has no id"))
}

/// The failure when there is nothing to look at.
pub(in crate::commands) fn never_deployed(agent: &AgentId) -> Failure {
    Failure::local(Exit::NotFound, "NEVER_DEPLOYED", format!("Agent {agent} was never deployed"))
        .hint(format!("occ agent deploy {agent} --wait"))
}

/// The status of each deployment; `-` for one that cannot be read.
fn statuses(session: &Session, agent: &AgentId, revisions: &[Value]) -> Result<Vec<String>> {
    let (api, base) = (session.api()?, path(session, agent)?);
    let read = |revision: &Value| {
        let deployment = api.get(format!("{base}/deployments/{}", text(revision, "/id")));
        deployment.map_or_else(|_| "-".to_owned(), |deployment| text(&deployment, "/status").to_owned())
    };
    let share = revisions.len().div_ceil(READS_MAX).max(1);
    let read = &read;
    let shares = thread::scope(|scope| {
        let readers: Vec<_> = revisions
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(read).collect::<Vec<String>>()))
            .collect();
        readers.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut all = Vec::with_capacity(revisions.len());
    for share in shares {
        all.extend(
            share
                .map_err(|_| Failure::local(Exit::Failed, "INTERNAL", "a reader of statuses ended early"))?,
        );
    }
    Ok(all)
}
