//! A deletion that is asked for again: of a Namespace or of an Agent.
//!
//! **While a deletion is unfinished only its initiator may repeat it.** Once the initiator has
//! lost the right, another permitted caller takes it over, and that is audited.

use occ_api::ids::IdentityId;
use occ_queue::State;

use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, Tx};
use crate::error::{Error, Result};
use crate::http::Request;
use crate::iam::decide::{Decision, Reason};
use crate::iam::{Access, Scope};

/// Repeats the deletion whose work has this key. Work that still runs is left alone; failed work
/// is queued again.
///
/// # Errors
/// `FORBIDDEN`, named, when another actor's deletion is not this caller's to repeat.
pub async fn repeat_deletion(app: &App, rq: &Request, tx: &mut Tx, scope: &Scope, key: &str) -> Result<()> {
    let work = occ_queue::find(tx, key).await?.ok_or_else(|| Error::internal("a deletion has no work"))?;
    let actor: IdentityId = db::id(&work.actor_id)?;
    let own = actor == rq.caller.identity;
    if !own && app.iam.holds(tx, &actor, scope.access()).await?.allowed {
        let refused = Decision::refused(Reason::NotCovered);
        let message = "The deletion was asked for by another actor, who alone may repeat it.";
        return Err(app.iam.refuse_naming(&rq.caller, scope.access(), refused, message));
    }
    if work.state != State::FailedPermanent {
        return Ok(());
    }
    if own {
        occ_queue::reset(tx, key, None).await?;
        let access: &Access = scope.access();
        let resource = Resource::in_namespace(access.kind.as_str(), &access.id, scope.namespace()?);
        let event = Event::mutation(&rq.caller, scope, "openclaw.work.retry", resource).work(key);
        audit::record(tx, app, event).await?;
    } else {
        store::work_take_over(tx, key, &rq.caller.identity, &rq.caller.request_id).await?;
    }
    Ok(())
}
