//! Putting work in, inside the transaction of the change that needs it.

use std::time::Duration;

use sqlx::PgConnection;

use crate::{Enqueued, NewWork, QueueError, WorkRow};

fn not_built<T>() -> Result<T, QueueError> {
    Err(QueueError::Database(sqlx::Error::Configuration(
        "the queue's tables are not there yet".into(),
    )))
}

/// Enqueues work on the caller's transaction; the row exists exactly if the
/// transaction commits. Locks the lane until then. After the commit call
/// [`Hints::hint`](crate::Hints::hint); without it a worker sees the row within one poll.
///
/// # Errors
/// The database refused or did not answer.
#[expect(clippy::unused_async, reason = "the statement follows with the tables")]
pub async fn enqueue(_conn: &mut PgConnection, _work: &NewWork) -> Result<Enqueued, QueueError> {
    not_built()
}

/// Makes sure that an upkeep row runs within `after`: a new row, a terminal one
/// queued again, a queued one moved forward, a claimed one run once more.
///
/// Call it in a short transaction of its own: it may touch a claimed row.
///
/// # Errors
/// The database refused or did not answer.
#[expect(clippy::unused_async, reason = "the statement follows with the tables")]
pub async fn arm_upkeep(
    _conn: &mut PgConnection,
    _work: &NewWork,
    _after: Duration,
) -> Result<(), QueueError> {
    not_built()
}

/// Reads one row.
///
/// # Errors
/// The database refused or did not answer, or the row is of a newer version.
#[expect(clippy::unused_async, reason = "the statement follows with the tables")]
pub async fn find(_conn: &mut PgConnection, _key: &str) -> Result<Option<WorkRow>, QueueError> {
    not_built()
}

/// A user's retry: a permanently failed row is queued again with attempt 0 and
/// a fresh deadline, if it has one. Its phase and step stay, its code and result go.
/// False when the row is not there or not permanently failed.
///
/// # Errors
/// The database refused or did not answer.
#[expect(clippy::unused_async, reason = "the statement follows with the tables")]
pub async fn reset(
    _conn: &mut PgConnection,
    _key: &str,
    _deadline: Option<Duration>,
) -> Result<bool, QueueError> {
    not_built()
}

/// Something outside changed: the rows of the lane that wait for it are due
/// now. Rows in back-off after an error are left alone. Returns how many woke;
/// hint the workers when it is not 0.
///
/// # Errors
/// The database refused or did not answer.
#[expect(clippy::unused_async, reason = "the statement follows with the tables")]
pub async fn wake(_conn: &mut PgConnection, _lane: &str) -> Result<u64, QueueError> {
    not_built()
}
