//! `/healthz` says that the process runs, `/readyz` that it can do its work.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::request::Request;
use super::respond::Reply;
use crate::app::App;
use crate::error::Result;
use crate::migrate::SchemaState;

/// Longest wait for the database's answer.
pub const DATABASE_MAX: Duration = Duration::from_secs(2);

/// The body of `/healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// Always `ok`.
    pub status: Word,
}

/// The body of `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    /// `ready` or `unavailable`.
    pub status: Word,
    /// Only while unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
}

/// What readiness depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Checks {
    /// The database answers in time.
    pub database: Word,
    /// The schema has the version that this binary expects.
    pub migrations: Word,
    /// The selected plugins are loaded; a process without them does not get as far as answering.
    pub plugins: Word,
}

/// The words of health answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Works.
    Ok,
    /// Does not work.
    Failed,
    /// Everything works.
    Ready,
    /// Something does not work.
    Unavailable,
}

pub(super) async fn health(_: App, _: Request) -> Result<Reply> {
    Reply::bare(200, &Health { status: Word::Ok })
}

pub(super) async fn readiness(app: App, _: Request) -> Result<Reply> {
    let checks = checks(&app).await;
    let works = [checks.database, checks.migrations, checks.plugins].iter().all(|word| *word == Word::Ok);
    if works && !app.shutdown.begun() {
        return Reply::bare(200, &Readiness { status: Word::Ready, checks: None });
    }
    Reply::bare(503, &Readiness { status: Word::Unavailable, checks: Some(checks) })
}

async fn checks(app: &App) -> Checks {
    let schema = tokio::time::timeout(DATABASE_MAX, async {
        let mut conn = app.db.acquire().await?;
        SchemaState::read(&mut conn).await
    });
    let (database, migrations) = match schema.await {
        Ok(Ok(schema)) => (true, schema.is_some_and(|schema| schema.serves_this_binary())),
        Ok(Err(_)) | Err(_) => (false, false),
    };
    Checks { database: word(database), migrations: word(migrations), plugins: word(true) }
}

fn word(works: bool) -> Word {
    if works { Word::Ok } else { Word::Failed }
}
