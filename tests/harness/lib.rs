//! What the tests share: a private database, a host on a free port, doubles, patience.

pub mod database;
mod server;
pub mod wait;
