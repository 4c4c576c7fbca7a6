//! What the tests share: a private database, a host on a free port, doubles, patience.

pub mod database;
pub mod dev;
pub mod environment;
pub mod host;
pub mod process;
pub mod proxy;
mod server;
pub mod terminal;
pub mod wait;
