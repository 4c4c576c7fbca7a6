//! One call of the compute under the claim's lease, and what its answer means for the row.

use std::future::Future;
use std::time::Duration;

use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use occ_queue::{Cadence, Code, Pass, QueueError, Stop, Verdict};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Context;
use super::compute::Operation;
use super::injector::{self, Point, When};
use crate::drivers::types::{Failure, Observation, Outage, Progress, Reason, Revision};
use crate::drivers::{CallContext, CallResult, DriverError};
use crate::error::Error;

/// Longest call that the worker asks for; the plugin's own limits are shorter.
const CALL_MAX: Duration = Duration::from_secs(60);
/// Longest rest that a plugin or a breaker may ask for.
const REST_MAX: Duration = Duration::from_secs(60);

/// Why a pass does not go on to its next step.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Not ready yet, or a dependency is down.
    Wait { code: Code, outage: bool, cadence: Cadence },
    /// An error that may go away.
    Retry(Code),
    /// Nothing but a new revision or an operator helps.
    Permanent { code: Code, data: Option<Value> },
    /// The pass is over, with this verdict.
    End(Verdict),
}

impl Fault {
    /// Waits at the readiness cadence.
    pub(crate) const fn wait(code: &'static str) -> Self {
        Self::Wait { code: Code::new(code), outage: false, cadence: Cadence::Readiness }
    }

    /// Steps aside so that another row of the lane goes first.
    pub(crate) const fn step_aside(code: &'static str) -> Self {
        Self::Wait { code: Code::new(code), outage: false, cadence: Cadence::Now }
    }

    pub(crate) const fn retry(code: &'static str) -> Self {
        Self::Retry(Code::new(code))
    }

    pub(crate) const fn permanent(code: &'static str) -> Self {
        Self::Permanent { code: Code::new(code), data: None }
    }

    pub(crate) const fn complete(code: &'static str) -> Self {
        Self::End(Verdict::complete(code))
    }
}

impl From<Fault> for Verdict {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Wait { code, outage, cadence } => Self::Defer { code, cadence, outage },
            Fault::Retry(code) => Self::Retry { code },
            Fault::Permanent { code, data } => Self::Fail { code, result: data.map(result_of) },
            Fault::End(verdict) => verdict,
        }
    }
}

/// A plugin's document about its code, as the result of the row: an object always.
pub(crate) fn result_of(data: Value) -> Value {
    if data.is_object() { data } else { json!({ "detail": data }) }
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        Self::End(stop.into())
    }
}

impl From<QueueError> for Fault {
    fn from(error: QueueError) -> Self {
        Stop::from(error).into()
    }
}

/// Our own storage does not answer, or answers nonsense: never a verdict about the domain.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        tracing::warn!(event = "worker.step-failed", ?error);
        Self::retry("DEPENDENCY_UNAVAILABLE")
    }
}

/// What a call is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) namespace: &'a NamespaceId,
    pub(crate) agent: Option<&'a AgentId>,
    pub(crate) revision: Option<&'a RevisionId>,
}

/// Makes one call that may change the world. Fails unless everything stands.
pub(crate) async fn change(
    cx: &Context,
    pass: &Pass,
    subject: Subject<'_>,
    operation: Operation<'_>,
) -> Result<(), Fault> {
    let effect = pass.begin_effect().await?;
    renewed(cx, pass);
    let call = call_context(pass, subject);
    let answer = cx.compute.run(&call, operation).await;
    // A call that passed its deadline may have a request in flight: the lane is held for it.
    if !matches!(answer, Err(DriverError::Deadline { .. })) {
        effect.end();
    }
    match judge(answer)? {
        Progress::Done => Ok(()),
        Progress::Waiting(reason) => {
            let code = Code::parse(&reason.code).unwrap_or(Code::new("RECONCILIATION_PENDING"));
            Err(Fault::Wait { code, outage: false, cadence: Cadence::Readiness })
        }
    }
}

/// Looks at a revision.
pub(crate) async fn look(
    cx: &Context,
    pass: &Pass,
    subject: Subject<'_>,
    revision: &Revision,
) -> Result<Observation, Fault> {
    let effect = pass.begin_effect().await?;
    renewed(cx, pass);
    let answer = cx.compute.observe(&call_context(pass, subject), revision).await;
    effect.end();
    judge(answer)
}

fn renewed(cx: &Context, pass: &Pass) {
    if let Some(leases) = &cx.leases {
        leases(pass.claim(), Some(pass.abort_at()));
    }
}

fn call_context(pass: &Pass, subject: Subject<'_>) -> CallContext {
    let claim = pass.claim();
    let epoch = u64::try_from(claim.epoch).unwrap_or(0);
    let call = CallContext::work(subject.namespace.as_str(), &claim.key, epoch, Instant::now() + CALL_MAX);
    match subject.agent {
        Some(agent) => call.about(agent.as_str(), subject.revision.map(|id| id.as_str())),
        None => call,
    }
}

fn judge<T>(answer: CallResult<T>) -> Result<T, Fault> {
    let error = match answer {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    tracing::info!(event = "worker.call-failed", code = error.code(), %error);
    Err(match error {
        DriverError::Failure(Failure::Outage(outage)) => outage_fault(&outage),
        DriverError::Failure(Failure::Retry(reason)) => retry_fault(&reason),
        DriverError::Failure(Failure::Permanent(reason)) => permanent_fault(reason),
        DriverError::Unavailable { retry_after, .. } => {
            let cadence = Cadence::After(retry_after.min(REST_MAX));
            Fault::Wait { code: Code::new("DRIVER_UNAVAILABLE"), outage: true, cadence }
        }
        other => Fault::Retry(Code::parse(other.code()).unwrap_or(Code::new("DRIVER_TRAPPED"))),
    })
}

fn outage_fault(outage: &Outage) -> Fault {
    let code = match outage.dependency.as_str() {
        "kubernetes-api" => Code::new("KUBERNETES_API_UNAVAILABLE"),
        _ => Code::new("DEPENDENCY_UNAVAILABLE"),
    };
    let cadence = match outage.retry_after_ms {
        Some(ms) => Cadence::After(Duration::from_millis(u64::from(ms)).min(REST_MAX)),
        None => Cadence::Readiness,
    };
    Fault::Wait { code, outage: true, cadence }
}

fn retry_fault(reason: &Reason) -> Fault {
    match reason.code.as_str() {
        // Somebody with a newer claim wrote there, or our lease lapsed: nothing more is ours to write.
        "FENCED" | "LEASE_LOST" => Fault::End(Verdict::Lost),
        code => Fault::Retry(Code::parse(code).unwrap_or(Code::new("INVALID_DRIVER_OBSERVATION"))),
    }
}

fn permanent_fault(reason: Reason) -> Fault {
    match Code::parse(&reason.code) {
        Some(code) => Fault::Permanent { code, data: reason.data },
        None => Fault::retry("INVALID_DRIVER_OBSERVATION"),
    }
}

/// Runs one named step, with the faults that a test injects around it.
pub(crate) async fn step<T, F, Run>(
    cx: &Context,
    pass: &Pass,
    name: &'static str,
    run: Run,
) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
    Run: Fn() -> F,
{
    let repeat = injected(cx, pass, name, When::Before).await?;
    let mut done = run().await?;
    if repeat {
        done = run().await?;
    }
    injected(cx, pass, name, When::After).await?;
    Ok(done)
}

/// True when the step shall run twice.
async fn injected(cx: &Context, pass: &Pass, step: &'static str, when: When) -> Result<bool, Fault> {
    let Some(injector) = &cx.injector else {
        return Ok(false);
    };
    match injector.at(Point { key: &pass.claim().key, step, when }) {
        injector::Fault::None => Ok(false),
        injector::Fault::Repeat => Ok(true),
        injector::Fault::Error => Err(Fault::retry("DEPENDENCY_UNAVAILABLE")),
        injector::Fault::Crash => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::types::OutageKind;

    fn verdict(error: DriverError) -> Verdict {
        judge::<Progress>(Err(error)).map_or_else(Verdict::from, |_| Verdict::complete("UNEXPECTED"))
    }

    fn reason(code: &str) -> Reason {
        Reason {
            code: code.to_owned(),
            message: "Text of a plugin.".to_owned(),
            data: Some(json!({ "exitCode": 78 })),
        }
    }

    fn outage(dependency: &str, retry_after_ms: Option<u32>) -> DriverError {
        let kind = OutageKind::Throttled;
        DriverError::Failure(Failure::Outage(Outage {
            dependency: dependency.to_owned(),
            kind,
            retry_after_ms,
        }))
    }

    fn deferred(code: &'static str, cadence: Cadence) -> Verdict {
        Verdict::Defer { code: Code::new(code), cadence, outage: true }
    }

    #[test]
    fn an_outage_waits_and_a_hasty_plugin_is_bounded() {
        assert_eq!(
            verdict(outage("kubernetes-api", None)),
            deferred("KUBERNETES_API_UNAVAILABLE", Cadence::Readiness)
        );
        let soon = Cadence::After(Duration::from_millis(1_500));
        assert_eq!(verdict(outage("provider", Some(1_500))), deferred("DEPENDENCY_UNAVAILABLE", soon));
        let hour = outage("provider", Some(3_600_000));
        assert_eq!(verdict(hour), deferred("DEPENDENCY_UNAVAILABLE", Cadence::After(REST_MAX)));
    }

    #[test]
    fn faults_of_a_plugin_are_tried_again() {
        assert_eq!(verdict(DriverError::Trap("unreachable".to_owned())), Verdict::retry("DRIVER_TRAPPED"));
        assert_eq!(
            verdict(DriverError::Contract("too long".to_owned())),
            Verdict::retry("INVALID_DRIVER_OBSERVATION")
        );
        let late = DriverError::Deadline { after_ms: 1, max_ms: 1 };
        assert_eq!(verdict(late), Verdict::retry("DRIVER_LIMIT_EXCEEDED"));
    }

    #[test]
    fn a_plugin_names_its_reasons_and_decides_nothing() {
        let retry = DriverError::Failure(Failure::Retry(reason("RUNTIME_LOGIN_FAILED")));
        assert_eq!(verdict(retry), Verdict::retry("RUNTIME_LOGIN_FAILED"));
        let permanent = DriverError::Failure(Failure::Permanent(reason("IMAGE_GONE")));
        let result = Some(json!({ "exitCode": 78 }));
        assert_eq!(verdict(permanent), Verdict::Fail { code: Code::new("IMAGE_GONE"), result });
        for bad in [Failure::Retry(reason("not a code")), Failure::Permanent(reason(""))] {
            assert_eq!(verdict(DriverError::Failure(bad)), Verdict::retry("INVALID_DRIVER_OBSERVATION"));
        }
    }

    #[test]
    fn whoever_is_fenced_writes_nothing_more() {
        for code in ["FENCED", "LEASE_LOST"] {
            assert_eq!(verdict(DriverError::Failure(Failure::Retry(reason(code)))), Verdict::Lost);
        }
    }
}
