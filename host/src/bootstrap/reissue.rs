//! `bootstrap --reissue-key`: a new key for the bootstrap ServicePrincipal when the first was lost.

use super::error::BootstrapError;
use super::files::{Folder, Found, Record};
use super::inputs::{BootstrapConfig, Step};
use super::model::{self, Draw, NewKey};
use super::{inputs, settle, store};
use occ_api::ids::{IdentityId, InstallationId};

/// Longest request id, in characters.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// A request for a new key.
#[derive(Debug, Clone)]
pub struct Reissue {
    /// Names the request; a request that has committed is never repeated.
    pub request_id: String,
    /// Leave older keys of bootstrap valid.
    pub keep_old: bool,
}

/// What became of a request for a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reissued {
    /// The key file was written.
    Issued,
    /// The request had committed before; nothing was done.
    AlreadyIssued,
}

/// Issues a new key into the key file, which must not exist, and revokes the older ones.
///
/// # Errors
/// See [`BootstrapError`].
pub async fn reissue(config: &BootstrapConfig, request: &Reissue) -> Result<Reissued, BootstrapError> {
    let inputs = inputs::check(config)?;
    check_request_id(&request.request_id)?;
    let mut db = store::connect(config).await?;
    let installation = store::installation(&mut db).await?.ok_or_else(|| {
        BootstrapError::refused("BOOTSTRAP_ACCOUNT_MISSING", "there is no Installation; run bootstrap first")
    })?;
    let service_principal = store::verify(&mut db, &inputs.admin_email, &installation).await?;
    let pending = Folder::look(&inputs.folder)?;
    if let Some(attempt) = store::attempt_of_request(&mut db, &request.request_id).await? {
        if pending.is_some_and(|record| record.attempt_id == attempt) {
            Folder::open(&inputs.folder)?.finish()?;
        }
        tracing::info!(request_id = request.request_id, "installation.key-reissued");
        return Ok(Reissued::AlreadyIssued);
    }
    let folder = Folder::open(&inputs.folder)?;
    match pending {
        Some(record) if store::attempt_exists(&mut db, &record.attempt_id).await? => folder.finish()?,
        Some(record) => folder.discard(&record)?,
        None if matches!(folder.found()?, Found::UnreadableRecord) => folder.discard_record()?,
        None => {}
    }
    if folder.has(&inputs.key_name) {
        return Err(BootstrapError::output_exists(&inputs.key_name));
    }

    let draw = Draw { ids: &config.ids, now: config.clock.now() };
    let (attempt_id, audit_id) = (draw.id("bat_"), draw.audit_id());
    let key = NewKey::draw(&draw);
    let owner = IdentityId::parse(&service_principal).map_err(BootstrapError::internal)?;
    let installation_id = InstallationId::parse(&installation.id).map_err(BootstrapError::internal)?;
    let file = (inputs.key_name.clone(), key.file(&owner, &installation_id));
    let started_at = model::timestamp(draw.now);
    folder.write_record(&Record::new(
        &attempt_id,
        &installation_id,
        started_at,
        std::slice::from_ref(&file),
    ))?;
    config.passed(Step::RecordWritten)?;
    folder.write(&file.0, &file.1)?;
    config.passed(Step::KeyWritten)?;
    let attempt = store::Reissued {
        attempt_id: &attempt_id,
        request_id: &request.request_id,
        audit_id: &audit_id,
        service_principal_id: &service_principal,
    };
    let committed = store::reissue(&mut db, &attempt, &key, request.keep_old).await;
    settle(config, &attempt_id, committed).await?;
    config.passed(Step::Committed)?;
    folder.finish()?;
    tracing::info!(request_id = request.request_id, attempt_id, "installation.key-reissued");
    Ok(Reissued::Issued)
}

fn check_request_id(id: &str) -> Result<(), BootstrapError> {
    let mut bytes = id.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    if first && rest && id.len() <= REQUEST_ID_CHARS_MAX {
        return Ok(());
    }
    let rule = "must be 1 to 128 letters, digits and `._:-`, and begin with a letter or digit";
    Err(BootstrapError::Inputs {
        code: "REQUEST_ID_INVALID",
        problems: vec![crate::config::Problem { at: "--request-id".to_owned(), rule: rule.to_owned() }],
    })
}
