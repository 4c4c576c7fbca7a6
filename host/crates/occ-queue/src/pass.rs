//! What a handler sees of its claim, and what it answers.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Claim, Code, Outcome, QueueError, Transition,
    finish::{Finish, finish_in},
    lease::Lease,
    schedule::{self, Random},
    settings::EFFECT_MAX,
};

/// When a deferred row is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    /// By age: a fortieth of it, between 0.25 s and 5 s; without a deadline
    /// every 30 s after 15 min. ± 10 %.
    Readiness,
    /// After this long, ± 10 %.
    After(Duration),
    /// As soon as the lane is free.
    Now,
}

/// What a pass decided.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// Target reached, or superseded.
    Complete {
        /// Reason code of success.
        code: Code,
        /// Closed document for clients, an object of at most 16 KiB.
        result: Option<serde_json::Value>,
        /// Upkeep only: queue the row again after this long.
        again_in: Option<Duration>,
    },
    /// Not ready yet, or a dependency is down: the attempt is refunded.
    Defer {
        /// Reason code of waiting.
        code: Code,
        /// When to look again.
        cadence: Cadence,
        /// True when a dependency did not answer: its code survives the deadline.
        outage: bool,
    },
    /// An error that may go away: the attempt is spent, back-off.
    Retry {
        /// Reason code of the error.
        code: Code,
    },
    /// No later pass can succeed.
    Fail {
        /// Reason code of the failure.
        code: Code,
        /// Closed document for clients, an object of at most 16 KiB.
        result: Option<serde_json::Value>,
    },
    /// From [`Handler::give_up`](crate::Handler::give_up): one more attempt,
    /// at once. The code stays in the row's cause, so that it is given once.
    Extra {
        /// Reason code of the extra attempt.
        code: Code,
    },
    /// Stopped at a step boundary so that another worker goes on at once.
    HandOver,
    /// The lease is gone: nothing is written.
    Lost,
    /// Ended already, in the handler's own transaction.
    Done(Done),
}

impl Verdict {
    /// Completes with a code alone.
    #[must_use]
    pub const fn complete(code: &'static str) -> Self {
        Self::Complete { code: Code::new(code), result: None, again_in: None }
    }

    /// Waits at the readiness cadence.
    #[must_use]
    pub const fn defer(code: &'static str) -> Self {
        Self::Defer { code: Code::new(code), cadence: Cadence::Readiness, outage: false }
    }

    /// Tries again after back-off.
    #[must_use]
    pub const fn retry(code: &'static str) -> Self {
        Self::Retry { code: Code::new(code) }
    }

    /// Fails for good with a code alone.
    #[must_use]
    pub const fn fail(code: &'static str) -> Self {
        Self::Fail { code: Code::new(code), result: None }
    }
}

/// Proof that a claim was ended inside the handler's own, committed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) code: Option<Code>,
}

impl Done {
    /// The row itself is gone: the handler's transaction removed it.
    #[must_use]
    pub const fn removed(code: &'static str) -> Self {
        Self { outcome: Outcome::Success, code: Some(Code::new(code)) }
    }
}

/// Why a row is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveUp {
    /// What a plain failure would carry: `LEASE_EXPIRED`, `MAX_ATTEMPTS_EXHAUSTED`,
    /// `CONVERGENCE_DEADLINE_EXCEEDED` or the code of a dependency that is down.
    pub code: Code,
    /// True past the deadline, false when the attempts are used up.
    pub deadline: bool,
}

/// Why a pass ends between two steps. `?` it up to the verdict.
#[derive(Debug)]
pub enum Stop {
    /// The lease is gone.
    Lost,
    /// The worker drains; the last step is committed.
    HandOver,
    /// The database refused or did not answer.
    Database(QueueError),
}

impl From<QueueError> for Stop {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::LostLease { .. } => Self::Lost,
            other => Self::Database(other),
        }
    }
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Lost => Self::Lost,
            Stop::HandOver => Self::HandOver,
            Stop::Database(error) => {
                tracing::warn!(event = "queue.pass-database", %error);
                Self::retry("DEPENDENCY_UNAVAILABLE")
            }
        }
    }
}

/// One run of a handler under one claim.
pub struct Pass {
    claim: Claim,
    pub(crate) lease: Lease,
    draining: CancellationToken,
    begun: AtomicBool,
    /// An effect was begun and not ended: its request may still be in flight.
    open: AtomicBool,
    state: Mutex<Progress>,
    random: Random,
}

/// What the pass itself changed since the claim.
#[derive(Debug)]
struct Progress {
    step: Option<String>,
    deadline: Option<Instant>,
    /// Age of the phase is counted from here; earlier by what it had at the claim.
    since: Instant,
}

/// One external call. Dropped without [`end`](Self::end), it counts as cut: the
/// lane is held until the lease is over, and the next claim writes objects anew.
#[derive(Debug)]
pub struct Effect<'a> {
    pass: &'a Pass,
}

impl Effect<'_> {
    /// The call answered, whatever it said: nothing of it is in flight.
    pub fn end(self) {
        self.pass.open.store(false, Ordering::Relaxed);
    }
}

impl Pass {
    pub(crate) fn new(
        claim: Claim,
        pool: PgPool,
        lease: Duration,
        draining: CancellationToken,
        random: Random,
    ) -> Self {
        let lease = Lease::new(pool, claim.key.clone(), claim.token, lease, claim.claimed_at);
        let since = claim.claimed_at.checked_sub(claim.age).unwrap_or(claim.claimed_at);
        let state = Mutex::new(Progress { step: claim.step.clone(), deadline: claim.deadline, since });
        Self {
            claim,
            lease,
            draining,
            begun: AtomicBool::new(false),
            open: AtomicBool::new(false),
            state,
            random,
        }
    }

    /// The row as it stood when it was claimed.
    #[must_use]
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// True when a user's row of the same lane waits: finish the current call,
    /// read what is wanted now, and step aside.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.lease.interrupted()
    }

    /// When every call of this pass must have ended, by our monotonic clock.
    #[must_use]
    pub fn abort_at(&self) -> Instant {
        self.lease.abort_at()
    }

    /// True when waiting any longer is pointless: the deadline has passed.
    #[must_use]
    pub fn past_deadline(&self) -> bool {
        self.progress(|state| state.deadline.is_some_and(|deadline| Instant::now() >= deadline))
    }

    /// Last committed step, of this pass or an earlier one.
    #[must_use]
    pub fn step(&self) -> Option<String> {
        self.progress(|state| state.step.clone())
    }

    /// Renews the lease before an external call and marks the claim as begun.
    ///
    /// # Errors
    /// [`Stop`] when the lease is gone, the worker drains, or the database does not answer.
    pub async fn begin_effect(&self) -> Result<Effect<'_>, Stop> {
        if self.draining.is_cancelled() {
            return Err(Stop::HandOver);
        }
        self.begun.store(true, Ordering::Relaxed);
        self.lease.renew(true, None).await?;
        self.open.store(true, Ordering::Relaxed);
        Ok(Effect { pass: self })
    }

    /// Longest time one external request of this pass may take: 10 s, or what is left of the lease.
    #[must_use]
    pub fn effect_time(&self) -> Duration {
        EFFECT_MAX.min(self.abort_at().saturating_duration_since(Instant::now()))
    }

    /// Commits a step under the lease, and renews it.
    ///
    /// # Errors
    /// [`Stop`], with the step committed when it says `HandOver`.
    pub async fn advance(&self, step: &'static str) -> Result<(), Stop> {
        self.lease.renew(false, Some(step)).await?;
        self.progress(|state| state.step = Some(step.to_owned()));
        if self.draining.is_cancelled() { Err(Stop::HandOver) } else { Ok(()) }
    }

    /// Locks lane and row in the caller's transaction and proves that the lease
    /// is live. Lock the domain row first; commit soon.
    ///
    /// # Errors
    /// [`QueueError::LostLease`] when the claim is not ours any more.
    pub async fn guard_in(&self, conn: &mut PgConnection) -> Result<(), QueueError> {
        let live = sqlx::query_scalar!(
            r#"select occ.work_guard($1, $2, $3) as "live!""#,
            self.claim.lane(),
            self.claim.key,
            self.claim.token
        )
        .fetch_one(conn)
        .await?;
        if live { Ok(()) } else { Err(QueueError::LostLease { key: self.claim.key.clone() }) }
    }

    /// Commits a step that moves the world, with the predecessor to go back to
    /// and a fresh deadline. Call [`guard_in`](Self::guard_in) first.
    ///
    /// # Errors
    /// The database refused or did not answer.
    pub async fn publish_in(
        &self,
        conn: &mut PgConnection,
        step: &'static str,
        previous_revision_id: Option<&str>,
        deadline: Duration,
    ) -> Result<(), QueueError> {
        sqlx::query!(
            "update occ.work
                set step = $3, previous_revision_id = $4,
                    deadline_at = clock_timestamp() + make_interval(secs => $5)
              where key = $1 and lease_token = $2",
            self.claim.key,
            self.claim.token,
            step,
            previous_revision_id,
            deadline.as_secs_f64(),
        )
        .execute(conn)
        .await?;
        self.restarted(step, deadline);
        Ok(())
    }

    /// Turns the row round: phase rollback with its cause and where it goes back
    /// to, attempt 0 and a fresh deadline. Call [`guard_in`](Self::guard_in) first.
    ///
    /// # Errors
    /// The database refused or did not answer.
    pub async fn turn_in(
        &self,
        conn: &mut PgConnection,
        step: &'static str,
        previous_revision_id: Option<&str>,
        cause: &Code,
        deadline: Duration,
    ) -> Result<(), QueueError> {
        sqlx::query!(
            "update occ.work
                set phase = 'rollback', step = $3, previous_revision_id = $4, cause_code = $5, attempt = 0,
                    deadline_at = clock_timestamp() + make_interval(secs => $6)
              where key = $1 and lease_token = $2",
            self.claim.key,
            self.claim.token,
            step,
            previous_revision_id,
            cause.as_str(),
            deadline.as_secs_f64(),
        )
        .execute(conn)
        .await?;
        self.restarted(step, deadline);
        Ok(())
    }

    /// Ends the claim inside the caller's transaction. Write the evidence of the
    /// returned transition there too, commit, and answer [`Verdict::Done`].
    ///
    /// # Errors
    /// [`QueueError::LostLease`] when the claim is not ours any more.
    pub async fn finish_in(
        &self,
        conn: &mut PgConnection,
        verdict: Verdict,
    ) -> Result<(Done, Transition), QueueError> {
        let finish = self.finish(verdict).ok_or(QueueError::Ending)?;
        let (outcome, code) = (finish.transition.outcome, finish.transition.code.clone());
        if finish_in(conn, std::slice::from_ref(&finish)).await?.is_empty() {
            return Err(QueueError::LostLease { key: self.claim.key.clone() });
        }
        Ok((Done { outcome, code }, finish.transition))
    }

    /// What a verdict means for the table; none when there is nothing to write.
    pub(crate) fn finish(&self, verdict: Verdict) -> Option<Finish> {
        let random = (self.random)();
        let (word, outcome, code, delay, result) = match verdict {
            Verdict::Complete { code, result, again_in } => {
                let again_in = again_in.filter(|_| self.claim.upkeep);
                ("complete", Outcome::Success, Some(code), again_in, result)
            }
            Verdict::Defer { code, cadence, .. } => {
                ("defer", Outcome::Pending, Some(code), Some(self.rest(cadence, random)), None)
            }
            Verdict::Retry { code } => {
                let delay = schedule::backoff(self.claim.attempt, random);
                ("retry", Outcome::Retry, Some(code), Some(delay), None)
            }
            Verdict::Fail { code, result } => ("fail", Outcome::Permanent, Some(code), None, result),
            Verdict::Extra { code } => ("extra", Outcome::Retry, Some(code), None, None),
            Verdict::HandOver => ("hand_over", Outcome::Pending, None, None, None),
            Verdict::Lost | Verdict::Done(_) => return None,
        };
        let step = self.step();
        let changed = word != "hand_over"
            && (word != "defer"
                || code.as_ref().map(Code::as_str) != self.claim.code.as_deref()
                || step != self.claim.step);
        let claim = &self.claim;
        Some(Finish {
            token: claim.token,
            verdict: word,
            delay,
            result,
            hold: if self.open.load(Ordering::Relaxed) { self.lease.left() } else { Duration::ZERO },
            transition: Transition {
                key: claim.key.clone(),
                kind: claim.kind.clone(),
                owner: claim.owner.clone(),
                actor_id: claim.actor_id.clone(),
                outcome,
                code,
                step,
                attempt: claim.attempt,
                attempts_max: claim.attempts_max,
                epoch: claim.epoch,
                changed,
            },
        })
    }

    pub(crate) fn begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    fn rest(&self, cadence: Cadence, random: f64) -> Duration {
        match cadence {
            Cadence::Now => Duration::ZERO,
            Cadence::After(rest) => schedule::jitter(rest, random),
            Cadence::Readiness => {
                let (since, deadline) = self.progress(|state| (state.since, state.deadline));
                schedule::readiness(
                    Instant::now().saturating_duration_since(since),
                    deadline.is_some(),
                    random,
                )
            }
        }
    }

    fn restarted(&self, step: &'static str, deadline: Duration) {
        let now = Instant::now();
        self.progress(|state| {
            *state = Progress { step: Some(step.to_owned()), deadline: Some(now + deadline), since: now }
        });
    }

    fn progress<T>(&self, look: impl FnOnce(&mut Progress) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("claim", &self.claim).field("lease", &self.lease).finish_non_exhaustive()
    }
}
