//! What runs now: instances, endpoints, log lines. Nothing is stored; the compute plugin is asked.
//!
//! - **A view of logs is audited before the first line is read**; when the event cannot be
//!   written, nothing is shown.
//! - **Only recognised lines leave**, see `lines`.

mod cursor;
mod limit;
mod lines;
pub(crate) mod routes;
mod view;

pub use limit::LogReads;
