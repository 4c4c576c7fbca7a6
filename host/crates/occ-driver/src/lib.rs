//! Runs plugins: WebAssembly components in a sandbox, with limits, grants and capabilities.

pub mod call;
pub mod capability;
