//! The transaction of a handler or a step: begun and committed in plain sight.

use std::ops::{Deref, DerefMut};

use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use crate::error::Error;

/// One READ COMMITTED transaction. Dropped without commit, it rolls back.
#[derive(Debug)]
pub struct Tx {
    inner: Transaction<'static, Postgres>,
}

/// Begins a transaction.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE` when no connection is to be had.
pub async fn begin(pool: &PgPool) -> Result<Tx, Error> {
    Ok(Tx { inner: pool.begin().await? })
}

impl Tx {
    /// Commits. A lost answer is an error whose text tells the caller to read before repeating.
    ///
    /// # Errors
    /// What a deferred constraint says, else `DEPENDENCY_UNAVAILABLE` with the outcome unknown.
    pub async fn commit(self) -> Result<(), Error> {
        self.inner.commit().await.map_err(|error| match error.as_database_error() {
            Some(_) => Error::from(error),
            None => Error::commit_unknown().caused_by(error),
        })
    }

    /// Rolls back now rather than at drop.
    ///
    /// # Errors
    /// When the connection is gone; the server has then rolled back by itself.
    pub async fn rollback(self) -> Result<(), Error> {
        Ok(self.inner.rollback().await?)
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}
