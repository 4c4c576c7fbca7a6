//! Asks the compute what runs, and reads one source of one instance.

use std::time::Duration;

use occ_api::error::ErrorCode;
use occ_api::ids::RevisionId;
use occ_api::time::Timestamp;
use occ_api::types::{self, LogRecord, LogStream, RuntimePod, RuntimeSource, RuntimeSourcePod};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::cursor::Cursor;
use super::lines::{self, Gap, Level, Line, Page, Record, Withheld};
use crate::app::App;
use crate::drivers::CallContext;
use crate::drivers::types::{self as driver, LogRequest, Role};
use crate::error::{Error, Result};
use crate::http::Request;
use crate::namespaces;
use crate::revisions::Revision;

/// Most instances that are shown.
const PODS_MAX: usize = 16;
/// Time for one call of the compute.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How long lines of a container are kept.
const RETENTION: &str = "Until the instance is replaced.";

/// What is asked of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) source: String,
    pub(super) pod: Option<String>,
    pub(super) previous: bool,
    pub(super) tail_lines: u32,
    pub(super) since_seconds: Option<u32>,
    pub(super) least: Option<Level>,
    pub(super) download: bool,
}

impl View {
    /// Reads the query; its single values were checked already.
    pub(super) fn of(rq: &Request) -> Result<Self> {
        let number = |name: &str| rq.query(name).and_then(|value| value.parse::<u32>().ok());
        let download = rq.flag("download");
        if download && rq.query("cursor").is_some() {
            return Err(Error::invalid_field("/cursor", occ_api::error::FieldCode::InvalidValue));
        }
        let tail_lines =
            if download { lines::LINES_MAX } else { number("tailLines").unwrap_or(lines::LINES_DEFAULT) };
        Ok(Self {
            source: rq.query("source").unwrap_or_default().to_owned(),
            pod: rq.query("pod").map(str::to_owned),
            previous: rq.flag("previous"),
            tail_lines,
            since_seconds: number("sinceSeconds"),
            least: rq.query("minLevel").and_then(Level::parse),
            download,
        })
    }

    /// What a cursor is bound to: everything that decides which lines belong to the view.
    pub(super) fn text(&self) -> String {
        format!(
            "{}|{}|{}|{:?}",
            self.source,
            self.pod.as_deref().unwrap_or_default(),
            self.previous,
            self.least
        )
    }
}

/// What the compute says about a revision.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub(super) struct Instances {
    #[serde(default)]
    pub(super) pods: Vec<RuntimePod>,
    pub(super) endpoints: Option<Vec<types::RuntimeEndpoint>>,
}

/// Asks the compute what runs of a revision.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE` when it does not answer.
pub(super) async fn instances(app: &App, revision: &Revision) -> Result<Instances> {
    let document =
        app.drivers.compute.runtime(&context(app, "runtime", revision), &subject(app, revision).await?).await;
    let document = document
        .map_err(|error| Error::unavailable("The runtime cannot be looked at now.").caused_by(error))?;
    let mut instances: Instances = serde_json::from_value(document).map_err(|error| {
        Error::unavailable("The compute plugin's answer cannot be read.").caused_by(error)
    })?;
    instances.pods.truncate(PODS_MAX);
    Ok(instances)
}

impl Instances {
    /// The resource as clients see it.
    pub(super) fn into_wire(self, revision: &RevisionId, at: OffsetDateTime) -> types::Runtime {
        let sources = self.sources();
        types::Runtime {
            revision_id: revision.clone(),
            observed_at: Timestamp::from(at),
            pods: self.pods,
            endpoints: self.endpoints,
            sources,
        }
    }

    /// One source for each role that runs; the gateway's is always named.
    fn sources(&self) -> Vec<RuntimeSource> {
        let of_role = |role: &str| -> Vec<RuntimeSourcePod> {
            let pods = self.pods.iter().filter(|pod| pod.role == role);
            pods.filter_map(|pod| pod.containers.first().map(|container| source_pod(pod, container)))
                .collect()
        };
        ["gateway", "agent"]
            .into_iter()
            .map(|role| (role, of_role(role)))
            .filter(|(role, pods)| *role == "gateway" || !pods.is_empty())
            .map(|(role, pods)| RuntimeSource {
                id: role.to_owned(),
                kind: "container".to_owned(),
                available: !pods.is_empty(),
                unavailable_code: pods.is_empty().then(|| "NO_POD".to_owned()),
                pods,
                retention: RETENTION.to_owned(),
            })
            .collect()
    }

    /// The instance that a view is about; none when nothing of the source runs.
    ///
    /// # Errors
    /// `RUNTIME_LOGS_POD_INVALID` for a name that is not of this revision.
    fn pick(&self, view: &View) -> Result<Option<&RuntimePod>> {
        let mut pods = self.pods.iter().filter(|pod| pod.role == view.source);
        match &view.pod {
            None => Ok(pods.next()),
            Some(name) => pods.find(|pod| pod.name == *name).map(Some).ok_or_else(|| {
                Error::new(ErrorCode::RuntimeLogsPodInvalid, "The named instance does not run this revision.")
            }),
        }
    }
}

fn source_pod(pod: &RuntimePod, container: &types::RuntimeContainer) -> RuntimeSourcePod {
    RuntimeSourcePod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        container: container.name.clone(),
        restart_count: container.restart_count,
    }
}

/// One read of a log.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) page: Page,
    stream: Option<RuntimeSourcePod>,
    cursor: Option<String>,
}

/// Reads what the view asks for, from the cursor on when there is one.
///
/// # Errors
/// The `RUNTIME_LOGS_*` codes of the contract.
pub(super) async fn read(
    app: &App,
    rq: &Request,
    revision: &Revision,
    view: &View,
    cursor: Option<&Cursor>,
) -> Result<Reading> {
    let _place = app.log_reads.place().ok_or_else(|| {
        Error::new(ErrorCode::RuntimeLogsUnavailable, "Too many logs are being read at once: try again.")
    })?;
    let role = role_of(view)?;
    let instances = instances(app, revision).await.map_err(|error| {
        Error::new(ErrorCode::RuntimeLogsUnavailable, "The runtime does not answer now.").caused_by(error)
    })?;
    let Some(pod) = instances.pick(view)? else {
        return Err(Error::new(ErrorCode::RuntimeLogsSourceUnavailable, "Nothing of this source runs."));
    };
    let stream = pod.containers.first().map(|container| source_pod(pod, container));
    let request = LogRequest {
        role,
        previous: view.previous,
        tail_lines: if cursor.is_some() { lines::LINES_MAX } else { view.tail_lines },
        since_seconds: view.since_seconds.filter(|_| cursor.is_none()),
    };
    let raw = app
        .drivers
        .compute
        .read_logs(&context(app, "read-logs", revision), &subject(app, revision).await?, &request)
        .await;
    let raw = raw.map_err(|error| {
        Error::new(ErrorCode::RuntimeLogsUnavailable, "The logs cannot be read now.").caused_by(error)
    })?;
    let instance = stream.as_ref().map(|stream| (stream.uid.clone(), stream.restart_count));
    let (fresh, gap) = fresh(&raw, instance.as_ref(), cursor);
    let anchor = lines::anchor(&raw);
    let next = Cursor {
        principal: rq.caller.identity.to_string(),
        revision: revision.id.to_string(),
        view: view.text(),
        instance,
        digest: anchor.digest,
        lines: anchor.lines,
    };
    Ok(Reading {
        page: lines::page(fresh, view.least, gap),
        stream,
        // What ended before does not grow.
        cursor: (!view.previous).then(|| next.seal(&app.auth_key)).flatten(),
    })
}

/// The lines that the cursor has not seen, and whether some may be missing before them.
fn fresh<'a>(
    raw: &'a [driver::LogLine],
    instance: Option<&(String, u32)>,
    cursor: Option<&Cursor>,
) -> (&'a [driver::LogLine], Option<Gap>) {
    let Some(cursor) = cursor else { return (raw, None) };
    if cursor.instance.as_ref() != instance {
        return (raw, Some(Gap::StreamReplaced));
    }
    match lines::after(raw, &cursor.anchor()) {
        Some(fresh) => (fresh, None),
        None => (raw, Some(Gap::WindowExceeded)),
    }
}

/// What a look is about: a read, which carries no fence and may never write.
fn context(app: &App, operation: &'static str, revision: &Revision) -> CallContext {
    CallContext {
        plugin: app.drivers.compute.identity().id.clone(),
        operation,
        tenant: Some(revision.namespace.to_string()),
        agent: Some(revision.agent.to_string()),
        revision: Some(revision.id.to_string()),
        work_key: None,
        epoch: 0,
        deadline: Instant::now() + CALL_MAX,
    }
}

async fn subject(app: &App, revision: &Revision) -> Result<driver::Revision> {
    let mut conn = app.db.acquire().await?;
    let namespace = namespaces::get(&mut conn, &revision.namespace).await?;
    Ok(revision.to_driver(&namespace, Vec::new()))
}

/// Which part of the workload a source is.
fn role_of(view: &View) -> Result<Role> {
    match view.source.as_str() {
        "gateway" => Ok(Role::Gateway),
        "agent" => Ok(Role::Agent),
        _ if view.pod.is_some() || view.previous => Err(Error::new(
            ErrorCode::RuntimeLogsPodInvalid,
            "The sandbox source has neither instances nor a previous one.",
        )),
        _ => Err(Error::new(ErrorCode::RuntimeLogsSourceUnavailable, "This revision has no sandbox.")),
    }
}

impl Reading {
    /// The page as clients see it.
    pub(super) fn to_wire(&self, revision: &RevisionId, view: &View, at: OffsetDateTime) -> types::LogPage {
        types::LogPage {
            revision_id: revision.clone(),
            source: view.source.clone(),
            stream: self.stream.as_ref().map(|stream| LogStream {
                source: view.source.clone(),
                pod: Some(stream.name.clone()),
                pod_uid: Some(stream.uid.clone()),
                container: Some(stream.container.clone()),
                restart_count: Some(stream.restart_count),
            }),
            observed_at: Timestamp::from(at),
            records: self.page.records.iter().map(record_wire).collect(),
            withheld: self.page.withheld,
            truncated: self.page.truncated,
            cursor: self.cursor.clone(),
        }
    }

    /// The messages alone, one a line, for a download.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for record in &self.page.records {
            if let Record::Line(line) = record {
                for part in [line.time.as_deref(), Some(line.message.as_str())].into_iter().flatten() {
                    text.push_str(part);
                    text.push(' ');
                }
                text.pop();
                text.push('\n');
            }
        }
        text
    }
}

fn record_wire(record: &Record) -> LogRecord {
    match record {
        Record::Line(line) => LogRecord::Line(line_wire(line)),
        Record::Gap(Gap::StreamReplaced) => LogRecord::gap(
            "stream_replaced",
            "The instance was started again; previous=true shows the end of the one before.",
        ),
        Record::Gap(Gap::WindowExceeded) => {
            LogRecord::gap("window_exceeded", "More was written than one read can show: read more often.")
        }
        Record::Gap(Gap::Truncated) => {
            LogRecord::gap("truncated", "The answer was full: ask for fewer lines.")
        }
        Record::Withheld { count, reason } => LogRecord::withheld(
            *count,
            match reason {
                Withheld::UnrecognisedStructured => "unrecognised_structured",
                Withheld::Oversized => "oversized",
                Withheld::Malformed => "malformed",
            },
        ),
    }
}

fn line_wire(line: &Line) -> types::LogLine {
    types::LogLine {
        time: line.time.clone(),
        stream: if line.error_stream { "stderr" } else { "stdout" }.to_owned(),
        content_class: "operational".to_owned(),
        kind: if line.structured { "openclaw" } else { "text" }.to_owned(),
        level: match line.level {
            Some(Level::Debug) => "debug",
            Some(Level::Info) => "info",
            Some(Level::Warn) => "warn",
            Some(Level::Error) => "error",
            None => "unknown",
        }
        .to_owned(),
        message: line.message.clone(),
        subsystem: line.subsystem.clone(),
        truncated: line.truncated.then_some(true),
    }
}
