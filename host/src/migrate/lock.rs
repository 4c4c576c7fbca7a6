//! Step 3: one migrator at a time, on a connection that stays with one server process.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use super::error::{MigrateError, Reason};
use super::verify::scalar;

/// Time between two tries.
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Takes the migration lock of this database; the connection's end releases it.
///
/// # Errors
/// [`MigrateError::LockTimeout`] after `wait`; `connection-pooled` when the lock is not with this connection.
pub(super) async fn take(db: &mut PgConnection, wait: Duration) -> Result<(), MigrateError> {
    let give_up = Instant::now() + wait;
    while !try_take(db).await? {
        if Instant::now() >= give_up {
            return Err(MigrateError::LockTimeout { wait_secs: wait.as_secs() });
        }
        sleep(TRY_EVERY).await;
    }
    let process = backend(db).await?;
    if process == backend(db).await? && holder(db).await? == Some(process) {
        return Ok(());
    }
    Err(MigrateError::refused(
        Reason::ConnectionPooled,
        "the connection is served by changing server processes, so a lock has no owner; \
         point the migrator's URL at the server, not at a pooler",
    ))
}

async fn try_take(db: &mut PgConnection) -> Result<bool, MigrateError> {
    scalar(db, "select pg_catalog.pg_try_advisory_lock(5194563, 1)").await
}

async fn backend(db: &mut PgConnection) -> Result<i32, MigrateError> {
    scalar(db, "select pg_catalog.pg_backend_pid()").await
}

/// Server process that holds the lock. A lock on two integers has `objsubid` 2.
async fn holder(db: &mut PgConnection) -> Result<Option<i32>, MigrateError> {
    let statement = "
        select max(pid) from pg_catalog.pg_locks
         where locktype = 'advisory' and granted and classid = 5194563 and objid = 1 and objsubid = 2
           and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())";
    scalar(db, statement).await
}
