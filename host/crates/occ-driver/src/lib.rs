//! Runs plugins: WebAssembly components in a sandbox, with limits, grants and capabilities.
//!
//! Modules in reading order:
//!
//! - [`types`], [`error`], [`call`]: what the host says and hears.
//! - [`compute`], [`harness`]: a loaded plugin, one module a kind.
//! - [`capability`]: what plugins may reach, enforced whatever they do.

pub mod call;
pub mod capability;
pub mod compute;
pub mod error;
pub mod harness;
pub mod types;

pub use compute::Compute;
pub use error::{CallResult, DriverError, Limit, Unavailable};
pub use harness::Harness;
