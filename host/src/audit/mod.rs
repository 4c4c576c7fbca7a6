//! Who did what: append-only events, written in the transaction of the change.
//!
//! - **A change and its event commit together**; a denial is appended on its own.
//! - **No event holds a value, a token, a body or text of a driver.** Details are a typed struct per action.
//! - An event is at most 8 KiB; evidence names at most [`EVIDENCE_IDS_MAX`] ids of each set and counts the rest.

mod event;
mod model;
pub(crate) mod routes;
mod store;

pub(crate) use event::evidence_wire;
pub use event::{EVIDENCE_IDS_MAX, Event, EventKind, KINDS, OUTCOMES, Outcome, Resource};

use occ_api::ids::AuditId;
use time::OffsetDateTime;

use crate::app::App;
use crate::db::PgConnection;
use crate::error::Result;

/// Appends one event inside the caller's transaction.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE` when the row cannot be written; the change must then not commit.
pub async fn record(tx: &mut PgConnection, app: &App, event: Event) -> Result<AuditId> {
    record_at(tx, AuditId::from_uuid(app.ids.uuid()), app.clock.now(), event).await
}

/// The same with the id and the time given, for processes without an [`App`].
///
/// # Errors
/// As [`record`].
pub async fn record_at(
    tx: &mut PgConnection,
    id: AuditId,
    at: OffsetDateTime,
    event: Event,
) -> Result<AuditId> {
    store::event_insert(tx, &id, at, &event).await?;
    Ok(id)
}

/// Appends the denials of a refused request on a connection of their own.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`; the refusal must then become 503.
pub(crate) async fn append_denials(app: &App, denials: Vec<Event>) -> Result<()> {
    if denials.is_empty() {
        return Ok(());
    }
    let mut tx = crate::db::begin(&app.db).await?;
    for denial in denials {
        record(&mut tx, app, denial).await?;
    }
    tx.commit().await
}
