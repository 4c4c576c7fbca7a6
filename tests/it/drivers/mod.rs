//! Plugins and capabilities on real parts.

mod calls;
mod loading;
mod process;
mod rig;
mod secrets;
