//! Hints: NOTIFY tells workers to look now. Losing one costs a poll interval.

use std::{sync::Arc, time::Duration};

use sqlx::{PgPool, postgres::PgListener};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::settings::HINT_INTERVAL;

/// Channel that workers listen on. Its payload is always empty.
const CHANNEL: &str = "occ_work";
/// Rest between two attempts to reach the server, from and up to.
const RECONNECT_MIN: Duration = Duration::from_millis(250);
const RECONNECT_MAX: Duration = Duration::from_secs(5);

/// Tells workers that something may be due. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hints {
    count: Arc<watch::Sender<u64>>,
}

impl Default for Hints {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }
}

impl Hints {
    /// Tells every worker to look now. Call it after the commit, never inside a
    /// transaction: NOTIFY there makes commits wait for each other.
    pub fn hint(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What a worker in this process waits on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Sends the hints of this process to the others, at most one per 50 ms,
    /// until shutdown. Without it they reach only workers in this process.
    pub async fn run(self, pool: PgPool, shutdown: CancellationToken) {
        let mut hints = self.count.subscribe();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = hints.changed() => if changed.is_err() { return },
            }
            let sent = sqlx::query!("select pg_notify($1, '')", CHANNEL).execute(&pool).await;
            if let Err(error) = sent {
                tracing::warn!(event = "queue.hint-failed", %error);
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(HINT_INTERVAL) => {}
            }
        }
    }
}

/// Hears hints of other processes and passes them on. `registered` fires at the
/// first registration; after each reconnect it hints once, for what was missed.
pub(crate) async fn listen(pool: PgPool, hints: Hints, registered: oneshot::Sender<()>) {
    let mut registered = Some(registered);
    let mut rest = RECONNECT_MIN;
    loop {
        match register(&pool).await {
            Ok(mut listener) => {
                rest = RECONNECT_MIN;
                if let Some(registered) = registered.take() {
                    registered.send(()).unwrap_or(());
                }
                hints.hint();
                let error = hear(&mut listener, &hints).await;
                tracing::warn!(event = "queue.listener-lost", %error);
            }
            Err(error) => tracing::warn!(event = "queue.listener-unavailable", %error),
        }
        tokio::time::sleep(rest).await;
        rest = (rest * 2).min(RECONNECT_MAX);
    }
}

async fn register(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

async fn hear(listener: &mut PgListener, hints: &Hints) -> sqlx::Error {
    loop {
        match listener.try_recv().await {
            // None: the connection was lost and is there again.
            Ok(Some(_) | None) => {
                while listener.next_buffered().is_some() {}
                hints.hint();
            }
            Err(error) => return error,
        }
    }
}
