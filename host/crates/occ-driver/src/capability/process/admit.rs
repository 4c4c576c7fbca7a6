//! Which specs and commands are let in: pure, but for the look whether files exist.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use super::types::{EnvValue, ProcessError, ProcessGrant, ProcessRefusal, ProcessSpec};

/// Longest id, mount name or port name, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Most labels of a process.
const LABELS_MAX: usize = 32;
/// Longest label key or value, in bytes.
const LABEL_BYTES_MAX: usize = 253;
/// Most words of a command.
const COMMAND_WORDS_MAX: usize = 256;
/// Longest word of a command, path or environment value, in bytes.
const TEXT_BYTES_MAX: usize = 128 * 1024;
/// Most environment variables.
const ENV_MAX: usize = 256;
/// Most state and most scratch mounts.
const MOUNTS_MAX: usize = 16;
/// Most ports.
const PORTS_MAX: usize = 16;
/// Most files.
const FILES_MAX: usize = 64;
/// Contents of all files, in bytes.
const FILES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest grace, in seconds.
const GRACE_SECS_MAX: u32 = 3600;
/// Longest probe period or timeout, in seconds.
const PROBE_SECS_MAX: u32 = 300;

/// Names that make a granted program run other code than its own.
const ENV_REFUSED: [&str; 5] = ["NODE_OPTIONS", "NODE_PATH", "PATH", "ENV", "BASH_ENV"];
/// Names that begin so are refused, too: the dynamic linker's and our own marker.
const ENV_PREFIXES_REFUSED: [&str; 2] = ["LD_", "OCC_PROCESS_"];

/// A rule that a spec breaks. `rule` names it without any text of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken {
    /// For the host's log.
    pub(super) rule: &'static str,
    /// For the caller.
    pub(super) refusal: ProcessRefusal,
}

fn malformed(rule: &'static str, holds: bool) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { rule, refusal: ProcessRefusal::Malformed }) }
}

fn limit(rule: &'static str, holds: bool) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { rule, refusal: ProcessRefusal::Limit }) }
}

/// Checks a whole spec.
pub(super) fn check_spec(spec: &ProcessSpec) -> Result<(), Broken> {
    malformed("id: [A-Za-z0-9][A-Za-z0-9._-]*, 1..=128 bytes", is_name(&spec.id))?;
    check_labels(&spec.labels)?;
    limit("command: at most 256 words", spec.command.len() <= COMMAND_WORDS_MAX)?;
    malformed("command: not empty", !spec.command.is_empty())?;
    malformed("command: words without NUL, at most 128 KiB", spec.command.iter().all(|word| is_text(word)))?;
    check_mounts(spec)?;
    check_files(spec)?;
    check_ports(spec)?;
    check_env(spec)?;
    malformed("graceSeconds: at most 3600", spec.grace_seconds <= GRACE_SECS_MAX)
}

fn check_labels(labels: &[(String, String)]) -> Result<(), Broken> {
    limit("labels: at most 32", labels.len() <= LABELS_MAX)?;
    malformed("labels: each key once", all_differ(labels.iter().map(|(key, _)| key)))?;
    let fits = |text: &String| text.len() <= LABEL_BYTES_MAX;
    malformed("labels: at most 253 bytes", labels.iter().all(|(key, value)| fits(key) && fits(value)))
}

fn check_mounts(spec: &ProcessSpec) -> Result<(), Broken> {
    let counted = spec.state.len() <= MOUNTS_MAX && spec.scratch.len() <= MOUNTS_MAX;
    limit("state, scratch: at most 16 mounts", counted)?;
    let state = || spec.state.iter().map(|mount| &mount.name);
    let scratch = || spec.scratch.iter().map(|mount| &mount.name);
    malformed("mounts: names like an id's", state().chain(scratch()).all(|name| is_name(name)))?;
    malformed("mounts: each name once", all_differ(state()) && all_differ(scratch()))
}

fn check_files(spec: &ProcessSpec) -> Result<(), Broken> {
    limit("files: at most 64", spec.files.len() <= FILES_MAX)?;
    let bytes = spec.files.iter().fold(0_usize, |sum, file| sum.saturating_add(file.contents.len()));
    limit("files: at most 4 MiB together", bytes <= FILES_BYTES_MAX)?;
    malformed(
        "files: absolute paths without . and ..",
        spec.files.iter().all(|file| is_plain_path(&file.path)),
    )?;
    malformed("files: each path once", all_differ(spec.files.iter().map(|file| &file.path)))
}

fn check_ports(spec: &ProcessSpec) -> Result<(), Broken> {
    limit("ports: at most 16", spec.ports.len() <= PORTS_MAX)?;
    malformed("ports: names like an id's", spec.ports.iter().all(|port| is_name(&port.name)))?;
    malformed("ports: each name once", all_differ(spec.ports.iter().map(|port| &port.name)))?;
    let probe = &spec.readiness;
    malformed("readiness.port: one of the ports", spec.ports.iter().any(|port| port.name == probe.port))?;
    let path_is_plain = probe.path.starts_with('/') && probe.path.bytes().all(|byte| byte.is_ascii_graphic());
    malformed("readiness.path: begins with /, printable ASCII", path_is_plain && is_text(&probe.path))?;
    let seconds = 1..=PROBE_SECS_MAX;
    let timed = seconds.contains(&probe.period_seconds) && seconds.contains(&probe.timeout_seconds);
    malformed("readiness: period and timeout 1..=300 s", timed)
}

fn check_env(spec: &ProcessSpec) -> Result<(), Broken> {
    limit("env: at most 256", spec.env.len() <= ENV_MAX)?;
    malformed("env: each name once", all_differ(spec.env.iter().map(|var| &var.name)))?;
    for var in &spec.env {
        malformed("env: names [A-Za-z_][A-Za-z0-9_]*", is_env_name(&var.name))?;
        malformed("env: the name makes programs run other code", !is_refused_env(&var.name))?;
        let resolves = match &var.value {
            EnvValue::Literal(text) => is_text(text),
            EnvValue::Secret(id) => is_text(id) && !id.is_empty(),
            EnvValue::Generated(name) => is_name(name),
            EnvValue::RevisionId => false,
            EnvValue::FilePath(path) => spec.files.iter().any(|file| file.path == *path),
            EnvValue::StatePath(name) => spec.state.iter().any(|mount| mount.name == *name),
            EnvValue::ScratchPath(name) => spec.scratch.iter().any(|mount| mount.name == *name),
            EnvValue::PortNumber(name) => spec.ports.iter().any(|port| port.name == *name),
        };
        malformed("env: the value names something of the spec", resolves)?;
    }
    Ok(())
}

/// Does the command begin with a granted prefix, and are that prefix's files there?
pub(super) fn check_command(grant: &ProcessGrant, command: &[String]) -> Result<(), ProcessError> {
    if grant.commands().is_empty() {
        return Err(ProcessRefusal::NotGranted.into());
    }
    let prefix = grant.commands().iter().find(|prefix| command.starts_with(prefix));
    let Some((program, rest)) = prefix.and_then(|prefix| prefix.split_first()) else {
        return Err(ProcessRefusal::CommandNotAllowed.into());
    };
    if !is_executable(Path::new(program)) {
        return Err(ProcessError::CommandNotFound(program.clone()));
    }
    match rest.iter().find(|word| word.starts_with('/') && !Path::new(word).exists()) {
        Some(missing) => Err(ProcessError::CommandNotFound(missing.clone())),
        None => Ok(()),
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// May this text name a folder of ours?
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_text(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && !text.bytes().any(|byte| byte == 0)
}

fn is_env_name(name: &str) -> bool {
    name.len() <= LABEL_BYTES_MAX
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_refused_env(name: &str) -> bool {
    ENV_REFUSED.contains(&name) || ENV_PREFIXES_REFUSED.iter().any(|prefix| name.starts_with(prefix))
}

/// Absolute, with nothing in it that leads upwards.
fn is_plain_path(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    is_text(path)
        && parts.next() == Some(Component::RootDir)
        && Path::new(path).file_name().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn all_differ<'a>(mut names: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = BTreeSet::new();
    names.all(|name| seen.insert(name))
}

#[cfg(test)]
mod tests {
    use super::super::types::{EnvVar, File, HttpProbe, Port, StateMount};
    use super::*;

    fn spec() -> ProcessSpec {
        ProcessSpec {
            id: "agt_1.gateway".to_owned(),
            labels: vec![("agent".to_owned(), "agt_1".to_owned())],
            command: vec!["/bin/sh".to_owned(), "-c".to_owned(), "exit 0".to_owned()],
            env: Vec::new(),
            state: vec![StateMount { name: "home".to_owned(), path: "/home/node".to_owned() }],
            scratch: Vec::new(),
            files: vec![File { path: "/etc/app/app.json".to_owned(), contents: "{}".to_owned() }],
            ports: vec![Port { name: "gateway".to_owned(), number: 0 }],
            readiness: HttpProbe {
                path: "/readyz".to_owned(),
                port: "gateway".to_owned(),
                period_seconds: 5,
                timeout_seconds: 2,
            },
            grace_seconds: 10,
        }
    }

    fn with_env(name: &str, value: EnvValue) -> ProcessSpec {
        ProcessSpec { env: vec![EnvVar { name: name.to_owned(), value }], ..spec() }
    }

    fn refusal(spec: &ProcessSpec) -> Option<ProcessRefusal> {
        check_spec(spec).err().map(|broken| broken.refusal)
    }

    #[test]
    fn a_plain_spec_is_accepted() {
        assert_eq!(check_spec(&spec()), Ok(()));
    }

    #[test]
    fn ids_cannot_leave_the_folder() {
        for id in ["", "..", ".hidden", "a/b", "/abs", "a\0b", "ü"] {
            assert_eq!(
                refusal(&ProcessSpec { id: id.to_owned(), ..spec() }),
                Some(ProcessRefusal::Malformed),
                "{id:?}"
            );
        }
    }

    #[test]
    fn file_paths_cannot_leave_the_folder() {
        for path in ["relative", "/", "/../etc/passwd", "/a/../../b", "/a/\0"] {
            let files = vec![File { path: path.to_owned(), contents: String::new() }];
            assert_eq!(
                refusal(&ProcessSpec { files, ..spec() }),
                Some(ProcessRefusal::Malformed),
                "{path:?}"
            );
        }
    }

    #[test]
    fn names_that_run_other_code_are_refused() {
        for name in
            ["LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "PATH", "BASH_ENV", "ENV", "OCC_PROCESS_LAUNCH"]
        {
            let spec = with_env(name, EnvValue::Literal("x".to_owned()));
            assert_eq!(refusal(&spec), Some(ProcessRefusal::Malformed), "{name}");
        }
        assert_eq!(refusal(&with_env("NODE_ENV", EnvValue::Literal("x".to_owned()))), None);
    }

    #[test]
    fn values_must_name_something_of_the_spec() {
        let good = [
            EnvValue::FilePath("/etc/app/app.json".to_owned()),
            EnvValue::StatePath("home".to_owned()),
            EnvValue::PortNumber("gateway".to_owned()),
        ];
        for value in good {
            assert_eq!(refusal(&with_env("A", value)), None);
        }
        let bad = [
            EnvValue::FilePath("/etc/other".to_owned()),
            EnvValue::StatePath("other".to_owned()),
            EnvValue::ScratchPath("home".to_owned()),
            EnvValue::PortNumber("other".to_owned()),
            EnvValue::RevisionId,
        ];
        for value in bad {
            assert_eq!(refusal(&with_env("A", value)), Some(ProcessRefusal::Malformed));
        }
    }

    #[test]
    fn bounds_are_limits_and_not_malformed() {
        let files = vec![File { path: "/a".to_owned(), contents: "x".repeat(FILES_BYTES_MAX + 1) }];
        assert_eq!(refusal(&ProcessSpec { files, ..spec() }), Some(ProcessRefusal::Limit));
    }

    #[test]
    fn a_command_needs_a_whole_granted_prefix() {
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let grant = ProcessGrant::new(vec![words(&["/bin/sh", "-c"])]).unwrap();
        assert_eq!(check_command(&grant, &words(&["/bin/sh", "-c", "exit"])), Ok(()));
        for command in [&["/bin/sh"][..], &["/bin/sh", "-cx"], &["/bin/bash", "-c"], &[]] {
            let error = check_command(&grant, &words(command)).unwrap_err();
            assert_eq!(error, ProcessError::Refused(ProcessRefusal::CommandNotAllowed), "{command:?}");
        }
        let nothing = ProcessGrant::default();
        let error = check_command(&nothing, &words(&["/bin/sh"])).unwrap_err();
        assert_eq!(error, ProcessError::Refused(ProcessRefusal::NotGranted));
    }

    #[test]
    fn missing_files_of_the_prefix_are_named() {
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let grant =
            ProcessGrant::new(vec![words(&["/no/node", "x"]), words(&["/bin/sh", "/no/app.mjs"])]).unwrap();
        let error = check_command(&grant, &words(&["/no/node", "x"])).unwrap_err();
        assert_eq!(error, ProcessError::CommandNotFound("/no/node".to_owned()));
        let error = check_command(&grant, &words(&["/bin/sh", "/no/app.mjs", "run"])).unwrap_err();
        assert_eq!(error, ProcessError::CommandNotFound("/no/app.mjs".to_owned()));
    }

    #[test]
    fn a_grant_needs_absolute_programs() {
        assert!(ProcessGrant::new(vec![vec![]]).is_err());
        assert!(ProcessGrant::new(vec![vec!["node".to_owned()]]).is_err());
    }
}
