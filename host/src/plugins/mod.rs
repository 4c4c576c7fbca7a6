//! The loaded plugins: what runs, from where, with which rights, and how it does. Read only:
//! the Installation YAML decides what is loaded. `command` is for authors of plugins.

mod command;
mod model;
pub(crate) mod routes;

pub use command::Command;
