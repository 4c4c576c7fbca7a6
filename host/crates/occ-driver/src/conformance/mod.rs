//! Does a component keep the contract? The suite needs no source and no language: it calls
//! the component through the same path as the host, against doubles of the capabilities.
//!
//! Each check has a stable name, gets a fresh plugin with fresh doubles, and says in one
//! sentence what it found. `plugin test` prints the report.

mod compute;
mod double;
mod fixture;
mod general;
mod harness;
mod report;
mod subject;

use std::path::Path;
use std::time::Instant;

use futures_util::future::BoxFuture;
use serde_json::Value;

pub use double::FakeSupervisor;
pub use report::{Check, Outcome, Report};

use crate::abi::Kind;
use crate::bundle::read_file;
use crate::inspect::COMPONENT_BYTES_MAX;
use crate::load::{Prepared, Services};
use subject::Subject;

/// What one check found: `Err` with one sentence when the component fails it.
type Finding = Result<(), String>;
/// A named check.
type Named = (&'static str, fn(&Subject) -> BoxFuture<'_, Finding>);

/// Runs every check for a component of this kind. Without settings it takes the first
/// example of the component's settings schema, else `{}`.
pub async fn run(services: &Services, file: &Path, kind: Kind, settings: Option<&Value>) -> Report {
    let mut report = Report::new(file, kind);
    let started = Instant::now();
    let prepared = prepare(services, file, kind).await;
    let prepared = match prepared {
        Ok(prepared) => {
            report.add("component-fits-the-world", started, Ok(()));
            prepared
        }
        Err(why) => {
            report.add("component-fits-the-world", started, Err(why));
            return report;
        }
    };
    let started = Instant::now();
    let subject = match Subject::new(services, prepared, settings).await {
        Ok(subject) => subject,
        Err(why) => {
            report.add("describes-itself", started, Err(why));
            return report;
        }
    };
    report.add("describes-itself", started, Ok(()));
    let checks: &[&[Named]] = match kind {
        Kind::Compute => &[general::CHECKS, compute::CHECKS],
        Kind::Harness => &[general::CHECKS, harness::CHECKS],
        Kind::Backend | Kind::Repo => &[general::CHECKS],
    };
    for (name, check) in checks.iter().copied().flatten() {
        let started = Instant::now();
        let finding = check(&subject).await;
        report.add(name, started, finding);
    }
    report
}

async fn prepare(services: &Services, file: &Path, kind: Kind) -> Result<Prepared, String> {
    let (engine, cache, file) = (services.engine.clone(), services.cache.clone(), file.to_owned());
    let prepared = tokio::task::spawn_blocking(move || {
        let bytes = read_file(&file, COMPONENT_BYTES_MAX).map_err(|error| error.to_string())?;
        let name = file.display().to_string();
        Prepared::new(&engine, cache.as_ref(), kind, &name, &bytes).map_err(|error| error.to_string())
    });
    prepared.await.map_err(|error| error.to_string())?
}
