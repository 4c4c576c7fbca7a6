//! What plugins may reach: each capability is a module with native types, enforced
//! here whatever the component does.

pub mod process;
