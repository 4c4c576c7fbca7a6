//! For authors of plugins: look at a component, test a component. Needs no configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use occ_driver::engine::{Engine, EngineOptions};
use occ_driver::examine::{self, Examination};
use occ_driver::load::Services;
use serde_json::Value;

pub use occ_driver::Kind;
pub use occ_driver::conformance::Report;

use crate::clock::Clock;

/// Calls that the suite makes at a time: one, and one that is being cut off.
const CALLS_MAX: u32 = 8;

fn engine() -> Result<Engine, String> {
    let options = EngineOptions { calls_max: CALLS_MAX, ..EngineOptions::default() };
    Engine::new(options).map_err(|error| error.to_string())
}

/// What a file is, and whether this host would accept it.
///
/// # Errors
/// When the file cannot be read.
pub async fn inspect(file: &Path, kind: Option<Kind>) -> Result<Examination, String> {
    let (engine, file) = (engine()?, file.to_owned());
    let examined = tokio::task::spawn_blocking(move || examine::examine(&engine, &file, kind)).await;
    examined.map_err(|error| error.to_string())?
}

/// Versions of the contract that this host offers.
#[must_use]
pub fn contracts_offered() -> String {
    examine::offered()
}

/// Runs the conformance suite.
///
/// # Errors
/// When there is no engine on this machine.
pub async fn test(file: &Path, kind: Kind, settings: Option<&Value>) -> Result<Report, String> {
    let clock = Clock::system();
    let services = Services {
        engine: engine()?,
        cache: None,
        processes: None,
        now: Arc::new(move || {
            Duration::try_from(clock.now() - time::OffsetDateTime::UNIX_EPOCH).unwrap_or_default()
        }),
        development: true,
    };
    Ok(Box::pin(occ_driver::conformance::run(&services, file, kind, settings)).await)
}
