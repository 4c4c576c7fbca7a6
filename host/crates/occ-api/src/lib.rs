//! What client and server agree on, and nothing else: typed ids, names, timestamps, wire types,
//! error and reason codes, and the strict reader of JSON.
//!
//! **No network, no database, no runtime in here.**

pub mod document;
pub mod error;
pub mod ids;
pub mod json;
pub mod name;
pub mod reason;
pub mod time;
pub mod types;
