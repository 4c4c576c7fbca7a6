//! Changes outside wake the work that waits for them: a local process that turned ready or exited,
//! so that readiness costs no poll interval.

use occ_queue::Hints;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::db::PgPool;
use crate::error::{Error, Result};
use crate::shutdown::Shutdown;

/// Wakes a lane for each change until shutdown. `lane_of` says whose it is; none is nobody's.
pub fn wake_on_changes<T>(
    db: PgPool,
    hints: Hints,
    mut changes: broadcast::Receiver<T>,
    lane_of: impl Fn(&T) -> Option<String> + Send + 'static,
    shutdown: &Shutdown,
) where
    T: Clone + Send + 'static,
{
    let stop = shutdown.token().clone();
    shutdown.spawn(async move {
        loop {
            let change = tokio::select! {
                () = stop.cancelled() => return,
                change = changes.recv() => change,
            };
            match change {
                Ok(change) => {
                    let Some(lane) = lane_of(&change) else { continue };
                    if let Err(error) = wake(&db, &hints, &lane).await {
                        tracing::warn!(event = "reconcile.wake-failed", error = error.internal_text());
                    }
                }
                // What was missed is found by the cadence of each row.
                Err(RecvError::Lagged(missed)) => tracing::warn!(event = "reconcile.changes-missed", missed),
                Err(RecvError::Closed) => return,
            }
        }
    });
}

async fn wake(db: &PgPool, hints: &Hints, lane: &str) -> Result<()> {
    let mut conn = db.acquire().await?;
    let woken = occ_queue::wake(&mut conn, lane)
        .await
        .map_err(|error| Error::unavailable("The queue's database did not answer.").caused_by(error))?;
    if woken > 0 {
        hints.hint();
    }
    Ok(())
}
