//! Runs plugins: WebAssembly components in a sandbox, with limits, grants and capabilities.
//!
//! Modules in reading order:
//!
//! - [`types`], [`error`], [`call`]: what the host says and hears.
//! - [`compute`], [`harness`]: a loaded plugin, one module a kind; [`plugin`] is the one
//!   path on which each call goes.
//! - [`load`]: from a bundle's entry to a plugin, step by step; [`bundle`] finds and trusts,
//!   [`inspect`] reads bytes, [`cache`] keeps compiled code.
//! - [`engine`], [`limits`], [`stats`], [`breaker`]: what keeps a bad plugin harmless.
//! - [`abi`]: one adapter for each version of the contract.
//! - [`examine`], [`conformance`]: what a component is, and whether it keeps the contract.
//! - [`capability`]: what plugins may reach, enforced whatever they do.

pub mod abi;
pub mod breaker;
pub mod bundle;
pub mod cache;
pub mod call;
pub mod capability;
pub mod compute;
pub mod conformance;
pub mod digest;
pub mod engine;
pub mod error;
pub mod examine;
pub mod harness;
pub mod inspect;
pub mod limits;
pub mod load;
pub mod plugin;
mod state;
pub mod stats;
pub mod types;
mod verify;

pub use abi::Kind;
pub use compute::Compute;
pub use error::{CallResult, DriverError, Limit, Unavailable};
pub use harness::Harness;
