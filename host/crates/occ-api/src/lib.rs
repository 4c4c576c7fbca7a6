//! What client and server agree on: typed ids, error codes, timestamps.

pub mod error;
pub mod ids;
pub mod time;
