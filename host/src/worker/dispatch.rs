//! From a row's kind to the steps of its slice.

use occ_queue::{Claim, GiveUp, Handler, Pass, QueueError, Transition, Verdict};
use tokio::time::Instant;

use super::effect::Fault;
use super::{Context, evidence};
use crate::db::PgConnection;
use crate::{agents, namespaces, revisions};

/// Every kind that this binary knows. A row of another kind is left to a newer one.
const KINDS: [&str; 7] = [
    namespaces::work::ENSURE,
    namespaces::work::DELETE,
    namespaces::work::OBSERVE,
    revisions::work::RECONCILE,
    agents::work::STOP,
    agents::work::DELETE,
    agents::work::OBSERVE,
];

/// The product's work.
#[derive(Debug)]
pub(super) struct Jobs {
    context: Context,
}

impl Jobs {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }
}

impl Handler for Jobs {
    fn kinds(&self) -> &[&'static str] {
        &KINDS
    }

    async fn run(&self, pass: &Pass) -> Verdict {
        let cx = &self.context;
        let done = match pass.claim().kind.as_str() {
            namespaces::work::ENSURE => Box::pin(namespaces::work::ensure(cx, pass)).await,
            namespaces::work::DELETE => Box::pin(namespaces::work::delete(cx, pass)).await,
            namespaces::work::OBSERVE => Box::pin(namespaces::work::observe(cx, pass)).await,
            revisions::work::RECONCILE => Box::pin(revisions::work::reconcile(cx, pass)).await,
            agents::work::STOP => Box::pin(agents::work::stop(cx, pass)).await,
            agents::work::DELETE => Box::pin(agents::work::delete(cx, pass)).await,
            agents::work::OBSERVE => Box::pin(agents::work::observe(cx, pass)).await,
            _ => Ok(Verdict::fail("INVALID_TARGET")),
        };
        match done {
            // Upkeep never ends: it rests and comes again.
            Err(Fault::Permanent { code, .. }) if pass.claim().upkeep => agents::work::rest(cx, code),
            done => done.unwrap_or_else(Verdict::from),
        }
    }

    async fn give_up(&self, pass: &Pass, why: GiveUp) -> Verdict {
        let cx = &self.context;
        let done = match pass.claim().kind.as_str() {
            namespaces::work::ENSURE => Box::pin(namespaces::work::give_up_ensure(cx, pass, &why)).await,
            revisions::work::RECONCILE => Box::pin(revisions::work::give_up(cx, pass, &why)).await,
            _ if pass.claim().upkeep => Ok(agents::work::rest(cx, why.code)),
            _ => Ok(Verdict::Fail { code: why.code, result: None }),
        };
        done.unwrap_or_else(Verdict::from)
    }

    fn records(&self) -> bool {
        true
    }

    async fn record(&self, conn: &mut PgConnection, transition: &Transition) -> Result<(), QueueError> {
        evidence::write(&self.context, conn, transition, None)
            .await
            .map_err(|error| QueueError::Record { key: transition.key.clone(), why: error.to_string() })
    }

    fn renewed(&self, claim: &Claim, abort_at: Instant) {
        if let Some(leases) = &self.context.leases {
            leases(claim, Some(abort_at));
        }
    }

    fn ended(&self, claim: &Claim) {
        if let Some(leases) = &self.context.leases {
            leases(claim, None);
        }
    }
}
