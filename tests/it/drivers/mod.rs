//! Plugins and capabilities on real parts.

mod calls;
mod commands;
mod loading;
mod process;
mod rig;
mod secrets;
