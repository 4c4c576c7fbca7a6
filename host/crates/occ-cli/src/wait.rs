//! Waiting for a state: deployments and Namespaces by the server's long poll, the rest by reading each
//! second. Progress goes to standard error, only when it changes.

use std::time::{Duration, Instant};

use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use serde_json::Value;

use crate::client::Call;
use crate::failure::{Exit, Failure, Result};
use crate::output::notice;
use crate::session::Session;

/// Longest that the server is asked to hold an answer back.
const HELD_MAX: Duration = Duration::from_secs(30);
/// Time for an answer that is asked for just before the deadline.
const GRACE: Duration = Duration::from_secs(5);
/// Pause between reads that the server does not hold back.
const PAUSE: Duration = Duration::from_secs(1);
/// The same with a server that knows no `?wait=`.
const PAUSE_WITHOUT_WAIT: Duration = Duration::from_secs(2);

/// A moment after which waiting ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    /// From now on.
    pub(crate) fn after(whole: Duration) -> Self {
        Self { at: Instant::now() + whole, whole }
    }

    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    fn is_over(self) -> bool {
        self.left().is_zero()
    }

    /// The failure of a wait that took too long.
    fn passed(self, what: &str, resume: &str) -> Failure {
        let message = format!("{what} after {} s", self.whole.as_secs());
        Failure::local(Exit::TimedOut, "DEADLINE", message).hint(format!("wait on with: {resume}"))
    }
}

/// Reads until `settled` says that the value is final.
///
/// # Errors
/// The deadline; failures other than a lost connection.
fn until<T>(
    session: &Session,
    deadline: Deadline,
    path: &str,
    long_poll: bool,
    mut settled: impl FnMut(Result<Value>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut held = long_poll;
    let between = if long_poll { PAUSE_WITHOUT_WAIT } else { PAUSE };
    let mut lost = false;
    loop {
        let begun = Instant::now();
        let call = Call::get(path).within(deadline.left() + GRACE);
        let call = if held { call.held(HELD_MAX.min(deadline.left())) } else { call };
        let mut pause = between;
        match session.api()?.send(&call) {
            Err(failure) if held && failure.status() == Some(400) => {
                // A server that does not know the parameter.
                held = false;
                continue;
            }
            Err(failure) if failure.is_connection() || failure.status() == Some(503) => {
                if !lost {
                    notice(&format!("notice: {}; trying again", failure.message()));
                    lost = true;
                }
                pause = PAUSE;
            }
            Err(failure) if failure.status() == Some(429) => {
                pause = Duration::from_secs(failure.retry_after_secs().unwrap_or(1)).max(PAUSE);
            }
            outcome => {
                lost = false;
                if let Some(done) = settled(outcome.map(|answer| answer.data))? {
                    return Ok(Some(done));
                }
                if held {
                    // A held answer took its time; one that came at once must not be asked for at once.
                    pause = PAUSE.saturating_sub(begun.elapsed());
                }
            }
        }
        if deadline.is_over() {
            return Ok(None);
        }
        std::thread::sleep(pause.min(deadline.left()));
    }
}

/// Waits until a deployment has ended.
///
/// # Errors
/// It failed: exit 1 with its code. The deadline: exit 6.
pub(crate) fn deployment(
    session: &Session,
    agent: &AgentId,
    revision: &RevisionId,
    deadline: Deadline,
) -> Result<()> {
    let path = session.in_namespace(&format!("agents/{agent}/deployments/{revision}"))?;
    let mut shown: Option<String> = None;
    let ended = until(session, deadline, &path, true, |read| {
        let deployment = read?;
        match text(&deployment, "/status") {
            "succeeded" | "failed" => return Ok(Some(deployment)),
            _ => {}
        }
        let code = text(&deployment, "/progress/lastAttempt/code").to_owned();
        if !code.is_empty() && shown.as_ref() != Some(&code) {
            notice(&format!(
                "{}: {code} {}",
                text(&deployment, "/status"),
                text(&deployment, "/progress/lastAttempt/message")
            ));
            shown = Some(code);
        }
        Ok(None)
    })?;
    let Some(ended) = ended else {
        let resume =
            format!("occ agent deployment-status {agent} {revision} --wait{}", session.namespace_flag());
        return Err(deadline.passed(&format!("deployment {revision} has not ended"), &resume));
    };
    if text(&ended, "/status") == "succeeded" {
        return Ok(());
    }
    Err(failed(session, agent, revision, &ended))
}

/// The failure that a failed deployment stands for.
pub(crate) fn failed(
    session: &Session,
    agent: &AgentId,
    revision: &RevisionId,
    deployment: &Value,
) -> Failure {
    let code = text(deployment, "/error/code");
    let mut message = text(deployment, "/error/message").to_owned();
    if let Some(cause) = deployment.pointer("/error/data/cause") {
        let cause = cause.as_str().map_or_else(|| cause.to_string(), str::to_owned);
        message.push_str(&format!(" Cause: {cause}"));
    }
    let failure = Failure::local(Exit::Failed, code, message).with_code_shown();
    let flag = session.namespace_flag();
    let restored =
        deployment.pointer("/error/data/restoredRevisionId").and_then(Value::as_str).map(str::to_owned);
    let failure = match restored.or_else(|| serving(session, agent)) {
        Some(serving) if serving != revision.as_str() => {
            failure.hint(format!("revision {serving} is the active one"))
        }
        _ => failure,
    };
    failure.hint(format!("occ agent logs {agent} --source gateway --revision {revision}{flag}"))
}

fn serving(session: &Session, agent: &AgentId) -> Option<String> {
    let path = session.in_namespace(&format!("agents/{agent}")).ok()?;
    let agent = session.api().ok()?.get(path).ok()?;
    agent.get("activeRevisionId").and_then(Value::as_str).map(str::to_owned)
}

/// Waits until a Namespace is ready.
///
/// # Errors
/// It failed, is being deleted, or the deadline passed.
pub(crate) fn namespace_ready(session: &Session, id: &NamespaceId, deadline: Deadline) -> Result<Value> {
    let ended = until(session, deadline, &format!("/namespaces/{id}"), true, |read| {
        let namespace = read?;
        Ok((text(&namespace, "/status") != "provisioning").then_some(namespace))
    })?;
    let resume = format!("occ namespace get {id} --wait");
    let namespace = ended.ok_or_else(|| deadline.passed(&format!("Namespace {id} is not ready"), &resume))?;
    match text(&namespace, "/status") {
        "ready" => Ok(namespace),
        status => {
            Err(Failure::local(Exit::Failed, "NAMESPACE_NOT_READY", format!("Namespace {id} is {status}"))
                .hint("occ work list --state failed_permanent"))
        }
    }
}

/// Waits until a resource cannot be found any more.
///
/// # Errors
/// The deadline.
pub(crate) fn gone(
    session: &Session,
    path: &str,
    what: &str,
    resume: &str,
    deadline: Deadline,
) -> Result<()> {
    until(session, deadline, path, false, |read| match read {
        Ok(_) => Ok(None),
        Err(failure) if failure.status() == Some(404) => Ok(Some(())),
        Err(failure) => Err(failure),
    })?
    .ok_or_else(|| deadline.passed(&format!("{what} is not gone"), resume))
}

/// Waits until an Agent has no runtime.
///
/// # Errors
/// It was deployed again meanwhile, or the deadline passed.
pub(crate) fn stopped(session: &Session, agent: &AgentId, deadline: Deadline) -> Result<Value> {
    let path = session.in_namespace(&format!("agents/{agent}"))?;
    let ended = until(session, deadline, &path, false, |read| {
        let found = read?;
        if text(&found, "/desiredRuntimeState") != "stopped" {
            return Err(Failure::local(
                Exit::Failed,
                "STOP_SUPERSEDED",
                format!("Agent {agent} was deployed again"),
            ));
        }
        Ok(found.get("activeRevisionId").is_none_or(Value::is_null).then_some(found))
    })?;
    let resume = format!("occ wait agent/{agent} --for stopped{}", session.namespace_flag());
    ended.ok_or_else(|| deadline.passed(&format!("Agent {agent} has not stopped"), &resume))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
