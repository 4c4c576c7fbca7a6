//! The API as a client sees it, on a real database and with real plugins.

mod agents;
mod configurations;
mod deploy;
mod documents;
mod lifecycle;
mod namespaces;
mod secrets;
mod support;
