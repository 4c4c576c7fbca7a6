//! Deployments: the history of a revision's work, as clients follow it.
//!
//! **Derived, never stored**: a later deployment cannot rewrite an earlier record, because the
//! record is the earlier revision's own work row.

mod model;
pub(crate) mod routes;
mod store;

pub use model::{Deployment, WorkState};
