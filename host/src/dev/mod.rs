//! `occ-host dev`: a whole installation on one machine, for development.
//!
//! A private PostgreSQL, migrations, bootstrap, the Installation YAML, API and worker in one
//! process, and a demo agent on the real OpenClaw. Every step prints a line; the end prints what
//! to type next.
//!
//! ```text
//! up: folder ─► postgres ─► migrate ─► bootstrap ─► openclaw ─► installation.yaml ─► host ─► demo
//! down: host ─► agents ─► postgres
//! ```
//!
//! The host runs as a process of its own (`occ-host dev host`), so that it can be restarted alone:
//! agents go on and the next host adopts them.

mod command;
mod demo;
mod echo;
mod exec;
mod folder;
mod host;
mod installation;
mod openclaw;
mod postgres;

use std::collections::BTreeMap;

pub use command::Command;

/// Port of the API in a folder that has drawn none yet.
pub const API_PORT: u16 = 7480;

/// The one home of output: a line for the person at the terminal.
#[expect(clippy::print_stderr, reason = "the command's own output")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// What was asked for: lines on stdout.
#[expect(clippy::print_stdout, reason = "the command's own output")]
fn print(line: &str) {
    println!("{line}");
}

/// The environment of the person at the terminal; product processes get only what `dev` gives them.
#[expect(clippy::disallowed_methods, reason = "the environment of an interactive command")]
fn variables() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
