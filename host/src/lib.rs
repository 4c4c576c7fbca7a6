//! The control plane for OpenClaw agents, as a library of the one binary `occ-host`.
//!
//! Modules in reading order:
//!
//! - `app`: what every handler and step holds; nothing global.
//! - `http`: the whole API in one table; admission, extraction, answers.
//! - `iam`: who calls and what they may do; makes every `iam::Scope`.
//! - slices, one folder a resource: `installation`, `namespaces`, `configurations`, `secrets`,
//!   `agents`, `revisions`, `deployments`, `runtime`, `plugins`, `audit`, `work`.
//! - `drivers`: the selected plugins behind one façade per kind.
//! - `secret_store`: where secret values live; nothing else reads them.
//! - `worker` and `reconcile`: what happens after an answer was sent.
//! - `migrate`, `bootstrap`, `dev`: before anything is served.
//! - `config`, `db`, `error`, `clock`, `ids`, `shutdown`, `telemetry`: the ground.

pub mod agents;
pub mod app;
pub mod audit;
pub mod bootstrap;
pub mod clock;
pub mod command;
pub mod config;
pub mod configurations;
pub mod db;
pub mod deployments;
pub mod dev;
pub mod drivers;
pub mod error;
pub mod http;
pub mod iam;
pub mod ids;
pub mod installation;
pub mod migrate;
pub mod namespaces;
pub mod plugins;
pub mod reconcile;
pub mod revisions;
pub mod runtime;
pub mod secret_store;
pub mod secrets;
pub mod serve;
pub mod shutdown;
pub mod telemetry;
pub mod work;
pub mod worker;
