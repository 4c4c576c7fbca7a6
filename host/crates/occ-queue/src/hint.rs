//! Hints: NOTIFY tells workers to look now. Losing one costs a poll interval.

use std::sync::Arc;

use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::settings::HINT_INTERVAL;

/// Channel that workers listen on. Its payload is always empty.
pub const CHANNEL: &str = "occ_work";

/// Tells workers that something may be due. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    remote: Arc<Notify>,
    local: Arc<Notify>,
}

impl Hints {
    /// Tells every worker to look now. Call it after the commit, never inside a
    /// transaction: NOTIFY there makes commits wait for each other.
    pub fn hint(&self) {
        self.local.notify_one();
        self.remote.notify_one();
    }

    /// What a worker in this process waits on.
    pub(crate) fn local(&self) -> Arc<Notify> {
        Arc::clone(&self.local)
    }

    /// Sends the hints of this process, at most one per 50 ms, until shutdown.
    /// Without it hints reach only a worker in the same process.
    pub async fn run(self, pool: PgPool, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.remote.notified() => {}
            }
            if let Err(error) = sqlx::query!("select pg_notify($1, '')", CHANNEL)
                .execute(&pool)
                .await
            {
                tracing::warn!(event = "queue.hint-failed", %error);
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(HINT_INTERVAL) => {}
            }
        }
    }
}
