//! What bootstrap is told, and every rule it must keep before anything is opened.

use std::path::{Path, PathBuf};

use occ_api::name::is_name;

use super::error::BootstrapError;
use crate::clock::Clock;
use crate::config::{Problem, Secret};
use crate::ids::Ids;

/// Shortest authentication secret, in bytes.
const AUTH_SECRET_BYTES_MIN: usize = 32;
/// Longest e-mail address, in characters.
const EMAIL_CHARS_MAX: usize = 320;

/// What bootstrap needs to know.
#[derive(Debug, Clone)]
pub struct BootstrapConfig {
    /// `postgres://occ_app@…`; must lead to the server itself, not to a pooler.
    pub database_url: Secret,
    /// Only checked here: processes that start later need it.
    pub auth_secret: Secret,
    /// Origin of the API; only checked here.
    pub base_url: String,
    /// E-mail address of the first administrator; trimmed and lower-cased.
    pub admin_email: String,
    /// Display name of the Installation.
    pub installation_name: String,
    /// Where the first administrator's password goes; absolute.
    pub password_file: PathBuf,
    /// Where the first service key goes; absolute, in the same folder.
    pub service_key_file: PathBuf,
    /// Time of the attempt and of the key's life.
    pub clock: Clock,
    /// Draws ids, password and key.
    pub ids: Ids,
    /// For tests: end after this step as a crash would.
    pub stop_after: Option<Step>,
}

/// Points between which a run may be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The attempt record is on disk.
    RecordWritten,
    /// The password file is on disk.
    PasswordWritten,
    /// The key file is on disk.
    KeyWritten,
    /// The transaction is committed.
    Committed,
}

impl BootstrapConfig {
    /// Ends the run here when a test asked for it.
    pub(super) fn passed(&self, step: Step) -> Result<(), BootstrapError> {
        if self.stop_after == Some(step) { Err(BootstrapError::Stopped) } else { Ok(()) }
    }
}

/// Checked inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inputs {
    pub(super) admin_email: String,
    pub(super) installation_name: String,
    pub(super) folder: PathBuf,
    pub(super) password_name: String,
    pub(super) key_name: String,
}

/// Checks every input; all faults are reported together, under the code of the first.
pub(super) fn check(config: &BootstrapConfig) -> Result<Inputs, BootstrapError> {
    let mut faults: Vec<(&'static str, Problem)> = Vec::new();
    let mut fault = |code, at: &str, rule: &str| {
        faults.push((code, Problem { at: at.to_owned(), rule: rule.to_owned() }))
    };
    if !is_name(&config.installation_name) {
        let rule = "must have 1 to 200 characters, no white space around it and no control characters";
        fault("INSTALLATION_NAME_INVALID", "OCC_BOOTSTRAP_INSTALLATION_NAME", rule);
    }
    let admin_email = config.admin_email.trim().to_lowercase();
    if !is_email(&admin_email) {
        let rule = "must be an e-mail address: one `@`, a domain with a dot, at most 320 characters";
        fault("ADMIN_EMAIL_INVALID", "OCC_BOOTSTRAP_ADMIN_EMAIL", rule);
    }
    if config.auth_secret.expose().len() < AUTH_SECRET_BYTES_MIN {
        fault("AUTH_SECRET_INVALID", "OCC_AUTH_SECRET", "must have at least 32 bytes");
    }
    if !is_origin(&config.base_url) {
        let rule = "must be an http or https origin without path, query or user";
        fault("AUTH_BASE_URL_INVALID", "OCC_AUTH_BASE_URL", rule);
    }
    let url = config.database_url.expose();
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        fault("DATABASE_CONFIGURATION_INVALID", "OCC_DATABASE_URL", "must be a URL of scheme postgres");
    }
    let (password, key) = (split(&config.password_file), split(&config.service_key_file));
    if password.is_none() {
        fault("BOOTSTRAP_PATH_INVALID", "OCC_BOOTSTRAP_PASSWORD_FILE", "must be an absolute path of a file");
    }
    if key.is_none() {
        fault(
            "BOOTSTRAP_PATH_INVALID",
            "OCC_BOOTSTRAP_SERVICE_KEY_FILE",
            "must be an absolute path of a file",
        );
    }
    if let (Some((password_folder, password_name)), Some((key_folder, key_name))) = (&password, &key) {
        let reserved = [super::files::PENDING, super::files::FINISHED];
        if password_folder != key_folder || password_name == key_name {
            let rule = "must lie in the folder of OCC_BOOTSTRAP_PASSWORD_FILE, under another name";
            fault("BOOTSTRAP_PATH_INVALID", "OCC_BOOTSTRAP_SERVICE_KEY_FILE", rule);
        } else if reserved.contains(&password_name.as_str()) || reserved.contains(&key_name.as_str()) {
            let rule = "must not take the name of the attempt record";
            fault("BOOTSTRAP_PATH_INVALID", "OCC_BOOTSTRAP_PASSWORD_FILE", rule);
        }
    }
    match (faults.first(), password, key) {
        (None, Some((folder, password_name)), Some((_, key_name))) => {
            let installation_name = config.installation_name.clone();
            Ok(Inputs { admin_email, installation_name, folder, password_name, key_name })
        }
        (first, _, _) => Err(BootstrapError::Inputs {
            code: first.map_or("BOOTSTRAP_PATH_INVALID", |(code, _)| code),
            problems: faults.into_iter().map(|(_, problem)| problem).collect(),
        }),
    }
}

fn split(path: &Path) -> Option<(PathBuf, String)> {
    let name = path.file_name()?.to_str()?.to_owned();
    let plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    (path.is_absolute() && plain).then(|| path.parent().map(|folder| (folder.to_owned(), name)))?
}

fn is_email(email: &str) -> bool {
    let Some((local, domain)) = email.split_once('@') else {
        return false;
    };
    let dotted = domain.split('.').count() > 1 && domain.split('.').all(|label| !label.is_empty());
    !local.is_empty()
        && dotted
        && !domain.contains('@')
        && !email.contains(|c: char| c.is_whitespace() || c.is_control())
        && email.chars().count() <= EMAIL_CHARS_MAX
}

fn is_origin(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']))
}
