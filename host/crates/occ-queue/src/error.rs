//! What can go wrong between the queue and its database.

/// An error of the queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// PostgreSQL refused or did not answer.
    #[error("the queue's database: {0}")]
    Database(#[from] sqlx::Error),
    /// The claim is no longer ours: its lease lapsed, or the row is gone.
    /// Nothing was written.
    #[error("the lease on {key} was lost")]
    LostLease {
        /// The row's key.
        key: String,
    },
    /// A row holds what this version cannot read.
    #[error("row {key} has an unknown {column}")]
    UnknownValue {
        /// The row's key.
        key: String,
        /// The column that holds it.
        column: &'static str,
    },
    /// The handler could not write its evidence; the transition did not happen.
    #[error("the evidence of {key} could not be written: {why}")]
    Record {
        /// The row's key.
        key: String,
        /// What the handler said.
        why: String,
    },
    /// The batch that should have committed this claim's end is gone.
    #[error("the worker is ending")]
    Ending,
}
