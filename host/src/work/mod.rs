//! Durable work as callers see it: list, look, retry.
//!
//! **Work is visible to whoever may read its owner**: its revision, else its Agent, else its Namespace. A retry
//! needs the permission of the work's own operation, checked anew, and keeps the actor that asked for the work.

mod model;
pub(crate) mod routes;
mod store;

pub(crate) use model::STATES;
