//! Creates the Installation: its first administrator, its first key, its first Namespace.
//!
//! A run writes two files, then commits one transaction that makes them mean something:
//!
//! ```text
//! checked ─► record written ─► password written ─► key written ─► committed ─► record renamed
//! ```
//!
//! **A crash anywhere leaves something the next run can judge**: the attempt record names the files with their
//! digests before they exist, and the database says whether the attempt's transaction committed. Files of an
//! attempt that did not are worthless and are removed; anything else in the folder is never touched.
//! **One run at a time**: the advisory lock (5194563, 2) is held from the first look at the database to the end.

mod command;
mod error;
mod files;
mod inputs;
mod model;
mod reissue;
mod store;
#[cfg(test)]
mod tests;

use std::time::Duration;

use sqlx::PgConnection;

pub use command::Command;
pub use error::BootstrapError;
pub use inputs::{BootstrapConfig, Step};
pub use model::Names;
pub use reissue::{Reissue, Reissued, reissue};

use error::Fault;
use files::{Folder, Found, Record};
use model::{Draw, NewKey, Seed};

/// How long the outcome of a COMMIT whose answer was lost is asked for.
const OUTCOME_WAIT: Duration = Duration::from_secs(30);
/// Time between two of these questions.
const OUTCOME_PAUSE: Duration = Duration::from_millis(500);

/// How a run ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// This run, or an earlier one that it finished, created the Installation.
    Bootstrapped,
    /// The Installation was there and is as it should be; no key, file or Namespace was made.
    AlreadyBootstrapped,
}

/// A run that ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrapped {
    /// What this run did.
    pub outcome: Outcome,
    /// Id of the Installation.
    pub installation_id: String,
}

/// Bootstraps, finishes an interrupted run, or verifies.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn run(config: &BootstrapConfig) -> Result<Bootstrapped, BootstrapError> {
    let inputs = inputs::check(config)?;
    let mut db = store::connect(config).await?;
    let done = locked(&mut db, config, &inputs).await?;
    let event = match done.outcome {
        Outcome::Bootstrapped => "installation.bootstrapped",
        Outcome::AlreadyBootstrapped => "installation.already-bootstrapped",
    };
    tracing::info!(installation_id = done.installation_id, "{event}");
    Ok(done)
}

async fn locked(
    db: &mut PgConnection,
    config: &BootstrapConfig,
    inputs: &inputs::Inputs,
) -> Result<Bootstrapped, BootstrapError> {
    match store::installation(db).await? {
        None => fresh(db, config, inputs).await,
        Some(installation) => {
            let record = Folder::look(&inputs.folder)?;
            match record {
                Some(record) if record.attempt_id == installation.attempt_id => {
                    Folder::open(&inputs.folder)?.finish()?;
                    return Ok(Bootstrapped {
                        outcome: Outcome::Bootstrapped,
                        installation_id: installation.id,
                    });
                }
                Some(record) if store::attempt_exists(db, &record.attempt_id).await? => {
                    // A reissue that committed and was cut off before its rename.
                    Folder::open(&inputs.folder)?.finish()?;
                }
                Some(record) => {
                    Folder::open(&inputs.folder)?.discard(&record)?;
                    tracing::warn!(
                        attempt_id = record.attempt_id,
                        "installation.bootstrap-attempt-discarded"
                    );
                }
                None => {}
            }
            store::verify(db, &inputs.admin_email, &installation).await?;
            Ok(Bootstrapped { outcome: Outcome::AlreadyBootstrapped, installation_id: installation.id })
        }
    }
}

/// Nothing was committed yet: files, then the transaction.
async fn fresh(
    db: &mut PgConnection,
    config: &BootstrapConfig,
    inputs: &inputs::Inputs,
) -> Result<Bootstrapped, BootstrapError> {
    let folder = Folder::open(&inputs.folder)?;
    match folder.found()? {
        Found::Nothing => {}
        Found::Attempt(record) => folder.discard(&record)?,
        Found::UnreadableRecord => folder.discard_record()?,
        Found::Foreign(name) => return Err(BootstrapError::output_exists(&name)),
    }
    // A record's files may be gone while other files are there.
    if let Found::Foreign(name) = folder.found()? {
        return Err(BootstrapError::output_exists(&name));
    }

    let draw = Draw { ids: &config.ids, now: config.clock.now() };
    let seed = Seed::draw(&draw, &inputs.installation_name, &inputs.admin_email)?;
    let key = NewKey::draw(&draw);
    let password_file = (inputs.password_name.clone(), seed.password_file());
    let key_file = (inputs.key_name.clone(), key.file(&seed.service_principal_id, &seed.installation_id));
    let record = Record::new(
        &seed.attempt_id,
        &seed.installation_id,
        model::timestamp(draw.now),
        &[password_file.clone(), key_file.clone()],
    );
    folder.write_record(&record)?;
    config.passed(Step::RecordWritten)?;
    folder.write(&password_file.0, &password_file.1)?;
    config.passed(Step::PasswordWritten)?;
    folder.write(&key_file.0, &key_file.1)?;
    config.passed(Step::KeyWritten)?;

    let committed = store::seed(db, &seed, &key).await;
    settle(config, &seed.attempt_id, committed).await?;
    config.passed(Step::Committed)?;
    folder.finish()?;
    Ok(Bootstrapped { outcome: Outcome::Bootstrapped, installation_id: seed.installation_id.to_string() })
}

/// Resolves a COMMIT whose answer was lost, by a new connection that takes the lock before it reads.
async fn settle(
    config: &BootstrapConfig,
    attempt_id: &str,
    committed: Result<(), store::CommitError>,
) -> Result<(), BootstrapError> {
    let cause = match committed {
        Ok(()) => return Ok(()),
        Err(store::CommitError::Refused(error)) => return Err(error),
        Err(store::CommitError::Lost(error)) => error,
    };
    tracing::warn!(cause = %cause, "the answer to COMMIT was lost");
    let until = tokio::time::Instant::now() + OUTCOME_WAIT;
    loop {
        if let Ok(mut db) = store::connect(config).await {
            match store::attempt_exists(&mut db, attempt_id).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(BootstrapError::failed(Fault::Database(cause))),
                Err(_) => {}
            }
        }
        if tokio::time::Instant::now() >= until {
            return Err(BootstrapError::CommitOutcomeUnknown { attempt_id: attempt_id.to_owned() });
        }
        tokio::time::sleep(OUTCOME_PAUSE).await;
    }
}
