//! One claim from start to end: the handler's future beside its heartbeat, its
//! abort instant and the drain; then the commit of what it decided.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use sqlx::PgPool;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    Code, GiveUp, Handler, Outcome, QueueError, Settings, Stats, Verdict, finish::Finisher, pass::Pass,
    schedule::Random,
};

/// Rest between two tries to write a transition or to renew, inside the lease.
const RETRY_REST: Duration = Duration::from_millis(100);

/// What every pass of one worker shares.
pub(crate) struct Context<H> {
    pub(crate) pool: PgPool,
    pub(crate) leases: PgPool,
    pub(crate) handler: Arc<H>,
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) stats: Arc<Stats>,
    /// No effect may begin any more; steps hand over.
    pub(crate) draining: CancellationToken,
    /// The drain bound passed: drop what still runs.
    pub(crate) drop_at_drain: CancellationToken,
}

impl<H> std::fmt::Debug for Context<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("settings", &self.settings).finish_non_exhaustive()
    }
}

pub(super) async fn run_pass<H: Handler>(context: &Context<H>, finisher: &Finisher, pass: Pass) {
    let began = Instant::now();
    context.handler.renewed(pass.claim(), pass.abort_at());
    let verdict = Box::pin(decide(context, &pass)).await;
    context.handler.ended(pass.claim());
    let outcome = Box::pin(end(finisher, &pass, verdict)).await;
    let kind = &pass.claim().kind;
    tracing::debug!(event = "queue.pass", kind, outcome = outcome.as_str(), attempt = pass.claim().attempt);
    context.stats.passed(kind, outcome, began.elapsed());
}

/// Runs the handler until it decides, or until the claim or the worker ends first.
async fn decide<H: Handler>(context: &Context<H>, pass: &Pass) -> Verdict {
    let work = Box::pin(AssertUnwindSafe(drive(context.handler.as_ref(), pass)).catch_unwind());
    tokio::select! {
        biased;
        verdict = work => verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
            tracing::error!(event = "queue.pass-panicked", key = pass.claim().key, panic = text);
            Verdict::retry("WORKER_PANIC")
        }),
        () = heartbeat(context, pass) => Verdict::Lost,
        () = abort(pass) => Verdict::Lost,
        () = drained(context, pass) => Verdict::HandOver,
    }
}

async fn drive<H: Handler>(handler: &H, pass: &Pass) -> Verdict {
    if pass.claim().settling() {
        return handler.give_up(pass, GiveUp { code: pass.claim().settle_code(), deadline: false }).await;
    }
    match handler.run(pass).await {
        Verdict::Defer { code, outage, .. } if pass.past_deadline() => {
            let code = if outage { code } else { Code::new("CONVERGENCE_DEADLINE_EXCEEDED") };
            handler.give_up(pass, GiveUp { code, deadline: true }).await
        }
        verdict => verdict,
    }
}

/// Renews each third of the lease. Returns only when the lease is lost.
async fn heartbeat<H: Handler>(context: &Context<H>, pass: &Pass) {
    loop {
        let due = pass.lease.renew_at();
        sleep_until(due).await;
        if pass.lease.renew_at() > due {
            // An effect or a step renewed it meanwhile.
            context.handler.renewed(pass.claim(), pass.abort_at());
            continue;
        }
        match pass.lease.renew(false, None).await {
            Ok(()) => {
                context.stats.observed();
                context.handler.renewed(pass.claim(), pass.abort_at());
            }
            Err(QueueError::LostLease { key }) => {
                tracing::warn!(event = "queue.lease-lost", key);
                return;
            }
            Err(error) => {
                tracing::warn!(event = "queue.renewal-failed", %error);
                sleep(RETRY_REST.min(pass.lease.length() / 10)).await;
            }
        }
    }
}

/// Returns when no renewal was confirmed in time.
async fn abort(pass: &Pass) {
    loop {
        let at = pass.abort_at();
        sleep_until(at).await;
        if pass.abort_at() <= at {
            tracing::warn!(event = "queue.lease-aborted", key = pass.claim().key);
            return;
        }
    }
}

/// Returns when a drain wants the pass dropped: at once if nothing outside has begun.
async fn drained<H: Handler>(context: &Context<H>, pass: &Pass) {
    context.draining.cancelled().await;
    if pass.begun() {
        context.drop_at_drain.cancelled().await;
    }
}

/// Commits the verdict, again and again while the lease lives.
async fn end(finisher: &Finisher, pass: &Pass, verdict: Verdict) -> Outcome {
    if let Verdict::Done(done) = &verdict {
        finisher.forgotten();
        return done.outcome;
    }
    let Some(finish) = pass.finish(verdict) else {
        finisher.forgotten();
        return Outcome::ClaimLost;
    };
    let outcome = finish.transition.outcome;
    finisher.forgotten();
    let until = Instant::now() + pass.lease.left();
    let mut written = timeout_at(until, finisher.finish(finish.clone())).await;
    while let Ok(Err(error)) = &written {
        tracing::warn!(event = "queue.finish-failed", key = pass.claim().key, %error);
        if matches!(error, QueueError::Ending) || Instant::now() + RETRY_REST >= until {
            break;
        }
        sleep(RETRY_REST).await;
        written = timeout_at(until, finisher.finish(finish.clone())).await;
    }
    match written {
        Ok(Ok(true)) => outcome,
        Ok(Ok(false)) => Outcome::ClaimLost,
        Ok(Err(_)) | Err(_) => {
            tracing::error!(event = "queue.end-not-written", key = pass.claim().key);
            Outcome::Error
        }
    }
}
