//! From a spec to a running process.
//!
//! **A secret value lives here for the time of one spawn**: it is asked for, put into
//! the child's environment and dropped.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use zeroize::Zeroizing;

use super::folder::Folder;
use super::output;
use super::record::{Launch, MARKER_NAME, Record};
use super::types::{EnvValue, EnvVar, Port, ProcessError, ProcessRefusal};
use crate::call::{AuthorityError, CallAuthority, CallContext, SecretRef, SecurityEvent};

/// Longest wait for one secret value.
const SECRET_WAIT: Duration = Duration::from_secs(10);

/// The child's environment; values are wiped when dropped.
type Environment = Vec<(String, Zeroizing<String>)>;

/// Fills in everything that only this machine and this moment know.
pub(super) async fn resolve_environment(
    cx: &CallContext,
    authority: &dyn CallAuthority,
    folder: &Folder,
    record: &Record,
) -> Result<Environment, ProcessError> {
    let mut environment = Vec::with_capacity(record.spec.env.len());
    for EnvVar { name, value } in &record.spec.env {
        let value = match value {
            EnvValue::Literal(text) => text.clone().into(),
            EnvValue::Secret(id) => secret(cx, authority, name, SecretRef::Secret(id.clone())).await?,
            EnvValue::Generated(credential) => {
                secret(cx, authority, name, SecretRef::Generated(credential.clone())).await?
            }
            EnvValue::RevisionId => return Err(ProcessRefusal::Malformed.into()),
            EnvValue::FilePath(path) => folder.file(path).display().to_string().into(),
            EnvValue::StatePath(mount) => folder.state(mount).display().to_string().into(),
            EnvValue::ScratchPath(mount) => folder.scratch(mount).display().to_string().into(),
            EnvValue::PortNumber(port) => bound(&record.ports, port)?.to_string().into(),
        };
        environment.push((name.clone(), value));
    }
    Ok(environment)
}

fn bound(ports: &[Port], name: &str) -> Result<u16, ProcessError> {
    let port = ports.iter().find(|port| port.name == name);
    Ok(port.ok_or(ProcessRefusal::Malformed)?.number)
}

async fn secret(
    cx: &CallContext,
    authority: &dyn CallAuthority,
    variable: &str,
    secret: SecretRef,
) -> Result<Zeroizing<String>, ProcessError> {
    let answer = tokio::time::timeout(SECRET_WAIT, authority.secret_value(cx, &secret)).await;
    match answer.unwrap_or(Err(AuthorityError::Unavailable)) {
        Ok(value) => Ok(Zeroizing::new(value.expose().to_owned())),
        Err(AuthorityError::Unavailable) => {
            Err(ProcessError::Failed("the secret store does not answer".to_owned()))
        }
        Err(AuthorityError::Missing) => Err(ProcessError::SecretUnavailable(variable.to_owned())),
        Err(AuthorityError::OutsideTenant) => {
            let (SecretRef::Secret(asked) | SecretRef::Generated(asked)) = secret;
            authority.security_event(cx, outside_tenant(asked)).await;
            Err(ProcessRefusal::OutsideTenant.into())
        }
    }
}

/// The audit fact of a tenant's reach for what is another's.
pub(super) fn outside_tenant(asked: String) -> SecurityEvent {
    SecurityEvent { code: "OUTSIDE_TENANT", capability: "process", asked }
}

/// Spawns the process in a group of its own, with nothing inherited but its output.
///
/// Blocks for the time of the spawn (the standard library waits until the new program
/// has begun).
pub(super) fn spawn(
    folder: &Folder,
    record: &Record,
    launch: &Launch,
    environment: Environment,
    search_path: &str,
) -> Result<Child, ProcessError> {
    let spec = &record.spec;
    let (program, arguments) = spec.command.split_first().ok_or(ProcessRefusal::Malformed)?;
    let opened = output::open(&folder.output(), &folder.previous_output());
    let (out, err) = opened.map_err(|error| failed("the output cannot be opened", &error))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", search_path).env(MARKER_NAME, &launch.id);
    for (name, value) in &environment {
        command.env(name, value.as_str());
    }
    command.current_dir(folder.working(spec)).process_group(0).kill_on_drop(false);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
            ProcessError::CommandNotFound(program.clone())
        }
        _ => failed("the process cannot be started", &error),
    })
}

/// An error of the system as one of ours: the kind only, whose text holds no value.
pub(super) fn failed(what: &str, error: &std::io::Error) -> ProcessError {
    ProcessError::Failed(format!("{what}: {}", error.kind()))
}
