//! What the `process` capability takes and answers, in native terms.
//!
//! The shapes mirror `interface process` of the plugin contract; the adapter of a
//! contract version maps to and from them. [`ProcessSpec`] is also what
//! `process.json` keeps, so that a process can be started again after the host
//! itself was replaced. Secret values are never part of it: it names them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one environment variable is set to. Everything but `Literal` is filled in by
/// the host at the moment of spawning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvValue {
    /// The text itself.
    Literal(String),
    /// The value of the OCC Secret with this id.
    Secret(String),
    /// The credential of this name that the host generated for the agent.
    Generated(String),
    /// The id of the revision. Malformed here: the caller knows it and says it as a
    /// literal.
    RevisionId,
    /// Where the spec's file of this `path` is on this machine.
    FilePath(String),
    /// Where the state mount of this name is on this machine.
    StatePath(String),
    /// Where the scratch mount of this name is on this machine.
    ScratchPath(String),
    /// The port of this name, as it is bound, in decimal.
    PortNumber(String),
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// `[A-Za-z_][A-Za-z0-9_]*`; each name at most once.
    pub name: String,
    /// Where the value comes from.
    pub value: EnvValue,
}

/// A loopback port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Name by which the environment and the probe refer to it.
    pub name: String,
    /// In a spec: 0 lets the host draw a free port and keep it over restarts; any
    /// other number is taken as it is or fails with [`ProcessError::PortTaken`].
    /// In a status: the number that is bound.
    pub number: u16,
}

/// Storage that outlives every start; removed by `remove_state` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateMount {
    /// Folder below `state/`.
    pub name: String,
    /// Where a container would find it; not used on a machine.
    pub path: String,
}

/// Storage that is new at each start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScratchMount {
    /// Folder below `scratch/`.
    pub name: String,
    /// Where a container would find it; not used on a machine.
    pub path: String,
    /// Wish of the plan, in MiB; a plain folder cannot enforce it.
    pub size_mib: u32,
}

/// A read-only file that is there before the process starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Absolute path by which `EnvValue::FilePath` names it; on the machine it is
    /// found below `files/`.
    pub path: String,
    /// UTF-8 text.
    pub contents: String,
}

/// Ready means that this GET answers 200.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpProbe {
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Name of a port of the spec.
    pub port: String,
    /// Distance of two probes once the process is ready, in seconds.
    pub period_seconds: u32,
    /// After this a probe has failed, in seconds.
    pub timeout_seconds: u32,
}

/// One process as a compute driver wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSpec {
    /// Unique within the installation's process folder, `[A-Za-z0-9][A-Za-z0-9._-]*`;
    /// names the folder. An id that another tenant uses is refused.
    pub id: String,
    /// For `list`; each key at most once.
    pub labels: Vec<(String, String)>,
    /// A granted argv prefix and the arguments after it.
    pub command: Vec<String>,
    /// The whole environment, but for what the host always sets (see
    /// [`super::ProcessHostConfig::search_path`]).
    pub env: Vec<EnvVar>,
    /// Folders that are kept.
    pub state: Vec<StateMount>,
    /// Folders that are new at each start.
    pub scratch: Vec<ScratchMount>,
    /// Read-only files.
    pub files: Vec<File>,
    /// Loopback ports.
    pub ports: Vec<Port>,
    /// When the process counts as ready.
    pub readiness: HttpProbe,
    /// From SIGTERM to SIGKILL, in seconds.
    pub grace_seconds: u32,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessExit {
    /// Exit code; `None` with `signal` `None` means that nobody saw the end (the host
    /// was not there, or the process was adopted and is no child of this host).
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// When the end was seen, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What the supervisor knows of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Id of the spec.
    pub id: String,
    /// Labels of the newest spec.
    pub labels: Vec<(String, String)>,
    /// SHA-256 of the newest spec in hex; it names secrets, so it depends on no value.
    pub spec_digest: String,
    /// Names this very start; another after each start. Empty before the first.
    pub start_id: String,
    /// There is a live process, perhaps a stopping one.
    pub running: bool,
    /// Running, and the probe answers 200.
    pub ready: bool,
    /// A process of the newest spec was ready at some time.
    pub ready_once: bool,
    /// A stop was asked for and the process or its descendants still live.
    pub stopping: bool,
    /// A stop was asked for and no start since.
    pub stopped: bool,
    /// The supervisor has given up: exit code 78, or [`EXITS_MAX`] exits without a
    /// ready between. `stop` or another spec ends this.
    pub held: bool,
    /// The supervisor will start it again by itself (it waits for the back-off).
    pub restarting: bool,
    /// Restarts of the newest spec.
    pub restarts: u32,
    /// Exits of the newest spec since it was last ready.
    pub exits_since_ready: u32,
    /// The last end that was seen.
    pub last_exit: Option<ProcessExit>,
    /// Ports as they are bound on the machine.
    pub ports: Vec<Port>,
    /// When the present or last start began, in milliseconds since 1970; 0 before the
    /// first.
    pub started_at_ms: u64,
}

/// So many exits of one spec without a ready between are held.
pub const EXITS_MAX: u32 = 3;

/// One line of a process's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Time of the line in milliseconds since 1970. Always `None`: the process writes
    /// its file itself and nobody stamps the lines.
    pub time_ms: Option<u64>,
    /// Written to stderr. Always `false`: both streams append to one file.
    pub error_stream: bool,
    /// The line without its end; over-long lines are cut.
    pub text: String,
}

/// Why the supervisor refuses; nothing has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProcessRefusal {
    /// The Installation grants this plugin no processes, or this is not a development
    /// installation.
    #[error("processes are not granted")]
    NotGranted,
    /// The command begins with no granted prefix.
    #[error("the command is not granted")]
    CommandNotAllowed,
    /// The id belongs to another tenant, or the call is about none.
    #[error("the process belongs to another tenant")]
    OutsideTenant,
    /// A named bound of the supervisor.
    #[error("a limit of the supervisor is reached")]
    Limit,
    /// The entry was written by a newer claim.
    #[error("a newer claim has written this process")]
    Fenced,
    /// The work behind this call is no longer this worker's.
    #[error("the lease behind this call is lost")]
    LeaseLost,
    /// The spec breaks a rule of the contract; the host's log says which.
    #[error("the spec is malformed")]
    Malformed,
}

/// Why a call on a process did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    /// No such process.
    #[error("no such process")]
    NotFound,
    /// Granted, but this file of it is not on the machine.
    #[error("{0} is not an executable or is missing")]
    CommandNotFound(String),
    /// A stranger listens on a port that the spec fixes.
    #[error("port {0} is taken")]
    PortTaken(u16),
    /// A process of this entry is alive: of another spec, or stopping. Stop it and wait
    /// for its end.
    #[error("a process of this entry is alive")]
    InUse,
    /// No value for the environment variable of this name: its Secret is gone or not
    /// readable for this call.
    #[error("no value for {0}")]
    SecretUnavailable(String),
    /// Refused before any effect.
    #[error(transparent)]
    Refused(#[from] ProcessRefusal),
    /// Anything else, in one sentence without tenant data or values; worth a retry.
    #[error("{0}")]
    Failed(String),
}

/// Something that wakes waiting work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessChange {
    /// Id of the process.
    pub id: String,
    /// Namespace id of the tenant.
    pub tenant: String,
    /// Agent id of the call that started it.
    pub agent: Option<String>,
    /// Labels of the spec.
    pub labels: Vec<(String, String)>,
    /// What happened.
    pub kind: ChangeKind,
}

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The probe answered 200 for the first time since it last did not.
    Ready,
    /// The probe ceased to answer 200.
    Unready,
    /// The process ended; the supervisor starts it again after a back-off.
    Exited,
    /// The process ended and stays so until somebody acts.
    Held,
    /// A stop has come to its end.
    Stopped,
}

/// What one plugin may start, from the Installation's grant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessGrant {
    commands: Vec<Vec<String>>,
}

/// Why a grant cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// A prefix without a word in it would allow everything.
    #[error("process.commands[{0}] is empty; name an absolute program and its fixed arguments")]
    Empty(usize),
    /// A name that is looked up would mean another program in another folder.
    #[error("process.commands[{0}][0] is not an absolute path; name the program's file")]
    Relative(usize),
}

impl ProcessGrant {
    /// Takes the argv prefixes of a grant. No prefix at all grants nothing.
    pub fn new(commands: Vec<Vec<String>>) -> Result<Self, GrantError> {
        for (index, prefix) in commands.iter().enumerate() {
            let program = prefix.first().ok_or(GrantError::Empty(index))?;
            if !program.starts_with('/') {
                return Err(GrantError::Relative(index));
            }
        }
        Ok(Self { commands })
    }

    /// The argv prefixes.
    #[must_use]
    pub fn commands(&self) -> &[Vec<String>] {
        &self.commands
    }
}

/// The labels of a list request: a process matches when it carries each of them.
pub(super) fn labels_match(wanted: &[(String, String)], labels: &[(String, String)]) -> bool {
    let have: BTreeMap<&str, &str> =
        labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    wanted.iter().all(|(key, value)| have.get(key.as_str()) == Some(&value.as_str()))
}
