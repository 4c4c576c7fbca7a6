//! What runs of a revision, and its logs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::RevisionId;
use crate::time::Timestamp;

/// What runs of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Runtime {
    /// The revision.
    pub revision_id: RevisionId,
    /// When it was looked at.
    pub observed_at: Timestamp,
    /// Instances, at most 16.
    pub pods: Vec<RuntimePod>,
    /// Present on computes that publish addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<RuntimeEndpoint>>,
    /// Log sources, at most 4.
    pub sources: Vec<RuntimeSource>,
}

/// One instance: a Pod, or a local process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimePod {
    /// `gateway` or `agent`.
    pub role: String,
    /// `control` or `execution`.
    pub cluster: String,
    /// Name; of a local process the Agent's id.
    pub name: String,
    /// Unique for each start.
    pub uid: String,
    /// As Kubernetes says it.
    pub phase: String,
    /// Does it serve?
    pub ready: bool,
    /// When it was made; null when unknown.
    pub created_at: Option<String>,
    /// Its containers, at most 16.
    pub containers: Vec<RuntimeContainer>,
    /// Its events, at most 100.
    pub events: Vec<RuntimeEvent>,
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeContainer {
    /// Name.
    pub name: String,
    /// `waiting`, `running`, `terminated` or `unknown`.
    pub state: String,
    /// Null when there is none.
    pub reason: Option<String>,
    /// Does it serve?
    pub ready: bool,
    /// Starts after the first.
    pub restart_count: u32,
    /// Null before it started.
    pub started_at: Option<String>,
    /// Null when it never ended.
    pub last_termination: Option<RuntimeTermination>,
}

/// How a container ended the last time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeTermination {
    /// Null when unknown.
    pub reason: Option<String>,
    /// Null when unknown.
    pub exit_code: Option<i32>,
    /// Null when unknown.
    pub finished_at: Option<String>,
}

/// One event of a Pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeEvent {
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// Null when it is about the Pod.
    pub container: Option<String>,
    /// Reason.
    pub reason: String,
    /// Text, at most 2,048 characters.
    pub message: String,
    /// How often.
    pub count: u32,
    /// When last.
    pub last_observed_at: Option<String>,
}

/// An address at which a runtime answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeEndpoint {
    /// `gateway`.
    pub name: String,
    /// Where.
    pub url: String,
}

/// One source of logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSource {
    /// `gateway`, `agent` or `sandbox`.
    pub id: String,
    /// `container`.
    pub kind: String,
    /// Its instances.
    pub pods: Vec<RuntimeSourcePod>,
    /// Can it be read?
    pub available: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_code: Option<String>,
    /// How long lines are kept.
    pub retention: String,
}

/// One instance of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSourcePod {
    /// Name.
    pub name: String,
    /// Unique for each start.
    pub uid: String,
    /// Container.
    pub container: String,
    /// Starts after the first.
    pub restart_count: u32,
}

/// A page of log records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPage {
    /// The revision.
    pub revision_id: RevisionId,
    /// The source.
    pub source: String,
    /// Null when nothing of the source runs.
    pub stream: Option<LogStream>,
    /// When it was read.
    pub observed_at: Timestamp,
    /// At most 1,100.
    pub records: Vec<LogRecord>,
    /// Lines that were not shown.
    pub withheld: u32,
    /// True when the answer was full.
    pub truncated: bool,
    /// Null when the view cannot be continued.
    pub cursor: Option<String>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogStream {
    /// The source.
    pub source: String,
    /// Name of the instance.
    pub pod: Option<String>,
    /// Its id.
    pub pod_uid: Option<String>,
    /// Its container.
    pub container: Option<String>,
    /// Starts after the first.
    pub restart_count: Option<u32>,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LogRecord {
    /// A line.
    Line(LogLine),
    /// Lines are missing here.
    #[serde(rename_all = "camelCase")]
    Gap {
        /// Always `gap`.
        #[serde(default = "gap")]
        kind: String,
        /// Why.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// Lines were kept back.
    #[serde(rename_all = "camelCase")]
    Withheld {
        /// Always `withheld`.
        #[serde(default = "withheld")]
        kind: String,
        /// How many.
        count: u32,
        /// Why.
        reason: String,
    },
}

impl LogRecord {
    /// A gap.
    #[must_use]
    pub fn gap(reason: &str, remedy: &str) -> Self {
        Self::Gap { kind: gap(), reason: reason.to_owned(), remedy: remedy.to_owned() }
    }

    /// Lines that were kept back.
    #[must_use]
    pub fn withheld(count: u32, reason: &str) -> Self {
        Self::Withheld { kind: withheld(), count, reason: reason.to_owned() }
    }
}

fn gap() -> String {
    "gap".to_owned()
}

fn withheld() -> String {
    "withheld".to_owned()
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// With up to nine digits; null when the source has none.
    pub time: Option<String>,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// `operational`.
    pub content_class: String,
    /// `openclaw` or `text`.
    pub kind: String,
    /// `debug`, `info`, `warn`, `error` or `unknown`.
    pub level: String,
    /// The text.
    pub message: String,
    /// Part of the runtime that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subsystem: Option<String>,
    /// True when the text was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}
