//! Plugins and capabilities on real parts.

mod process;
mod secrets;
