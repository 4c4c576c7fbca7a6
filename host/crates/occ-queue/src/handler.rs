//! What the queue asks of the program that uses it.

use std::future::Future;

use sqlx::PgConnection;
use tokio::time::Instant;

use crate::{Claim, GiveUp, Pass, QueueError, Transition, Verdict};

/// Does the work. One value serves every pass of a worker, many at once.
pub trait Handler: Send + Sync + 'static {
    /// Kinds that this program knows. Rows of others are left to newer programs.
    fn kinds(&self) -> &[&'static str];

    /// One pass: look at the live state, do what is missing, say what is next.
    /// It may be dropped at any await; every external step may run twice.
    /// **It never sleeps and never waits for readiness**: it defers.
    fn run(&self, pass: &Pass) -> impl Future<Output = Verdict> + Send;

    /// The terminal hook: attempts are used up (then no effect may begin), or a
    /// `Defer` came past the deadline. By default the row fails with the code.
    fn give_up(&self, _pass: &Pass, why: GiveUp) -> impl Future<Output = Verdict> + Send {
        async move { Verdict::Fail { code: why.code, result: None } }
    }

    /// True when [`record`](Self::record) wants to see transitions; it costs a
    /// transaction around each batch of them.
    fn records(&self) -> bool {
        false
    }

    /// Writes the evidence of one transition, in its transaction.
    fn record(
        &self,
        _conn: &mut PgConnection,
        _transition: &Transition,
    ) -> impl Future<Output = Result<(), QueueError>> + Send {
        async { Ok(()) }
    }

    /// A renewal of the claim was confirmed (the claim itself is the first):
    /// effects may run until then.
    fn renewed(&self, _claim: &Claim, _abort_at: Instant) {}

    /// The pass is over: nothing may run under its claim any more.
    fn ended(&self, _claim: &Claim) {}
}
