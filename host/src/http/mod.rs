//! The HTTP API: the whole of it in one table, the order of checks, answers.
//!
//! Reading order: [`router`] (the table), [`operation`] (a row), `admission` (rows 1 to 8 of the order of
//! checks, and what happens around a handler), [`request`] (what a handler gets), [`respond`] (what it answers),
//! [`page`], [`etag`], [`idempotency`], [`openapi`], [`health`], [`metrics`], [`server`].
//!
//! - **No handler runs before rows 1 to 8 have passed**; a handler decodes the body (row 9), asks `iam`
//!   (rows 10 and 11), and only then looks anything up.
//! - **Every error leaves through one mapping**, and no cause of an error reaches a client.

mod admission;
mod body;
mod credential;
pub mod etag;
pub mod health;
pub mod idempotency;
pub mod metrics;
mod network;
pub mod openapi;
pub mod operation;
pub mod page;
mod path;
mod query;
pub mod request;
pub mod respond;
pub mod router;
pub mod server;
mod store;

pub use axum::Router;
pub use etag::IfMatch;
pub use idempotency::{Once, Token};
pub use page::{PageRequest, sort_time};
pub use query::{Param, Rule};
pub use request::Request;
pub use respond::Reply;
