//! What the audit log keeps of the worker: one row for each transition, in its transaction.

use occ_api::ids::{AuditId, NamespaceId, RevisionId};
use occ_queue::{Claim, Code, Outcome, Transition};
use serde::Serialize;

use super::Context;
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection};
use crate::error::Result;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    attempt: i32,
    epoch: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_revision_id: Option<&'a str>,
}

/// Writes the evidence of one transition. `other` is the revision that was left or restored.
pub(crate) async fn write(
    cx: &Context,
    conn: &mut PgConnection,
    transition: &Transition,
    other: Option<&str>,
) -> Result<()> {
    let code = transition.code.as_ref().map_or("HANDED_OVER", |code| code.as_str());
    let outcome = match transition.outcome {
        Outcome::Success | Outcome::Pending => audit::Outcome::Success,
        Outcome::Retry | Outcome::Permanent | Outcome::ClaimLost | Outcome::Error => audit::Outcome::Failure,
    };
    let namespace: NamespaceId = db::id(&transition.owner.namespace_id)?;
    let resource = match &transition.owner.agent_id {
        Some(agent) => Resource::in_namespace("agent", agent, &namespace),
        None => Resource::in_namespace("namespace", &namespace, &namespace),
    };
    let action = action_of(&transition.kind, code);
    let event = Event::reconcile(&transition.actor_id, action, resource, outcome, code, &transition.key)
        .details(&Details {
            attempt: transition.attempt,
            epoch: transition.epoch,
            step: transition.step.as_deref(),
            revision_id: transition.owner.revision_id.as_deref(),
            other_revision_id: other,
        })?;
    append(cx, conn, event).await
}

/// A row turned round: the pointer goes back to `previous`.
pub(crate) async fn rolled_back(
    cx: &Context,
    conn: &mut PgConnection,
    claim: &Claim,
    cause: &Code,
    previous: &RevisionId,
) -> Result<()> {
    let namespace: NamespaceId = db::id(&claim.owner.namespace_id)?;
    let agent = claim.owner.agent_id.as_deref().unwrap_or_default();
    let resource = Resource::in_namespace("agent", agent, &namespace);
    let action = "openclaw.agents.lifecycle.rollback";
    let event =
        Event::reconcile("system", action, resource, audit::Outcome::Success, cause.as_str(), &claim.key)
            .details(&Details {
                attempt: claim.attempt,
                epoch: claim.epoch,
                step: Some("revert"),
                revision_id: claim.owner.revision_id.as_deref(),
                other_revision_id: Some(previous.as_str()),
            })?;
    append(cx, conn, event).await
}

/// Appends an event inside the caller's transaction.
pub(crate) async fn append(cx: &Context, conn: &mut PgConnection, event: Event) -> Result<()> {
    audit::record_at(conn, AuditId::from_uuid(cx.ids.uuid()), cx.clock.now(), event).await?;
    Ok(())
}

/// What a transition meant for the resource; most are only about the work itself.
fn action_of(kind: &str, code: &str) -> &'static str {
    match (kind, code) {
        (_, "REVISION_ACTIVATED" | "REVISION_ALREADY_ACTIVE") => "openclaw.agents.lifecycle.activate",
        (_, "REVISION_SUPERSEDED") => "openclaw.agents.lifecycle.supersede",
        (_, "ACTIVATION_ROLLED_BACK" | "ACTIVATION_ROLLBACK_FAILED") => "openclaw.agents.lifecycle.rollback",
        (_, "AGENT_STOPPED" | "AGENT_ALREADY_STOPPED" | "STOP_SUPERSEDED") => {
            "openclaw.agents.lifecycle.stop"
        }
        (_, "DRIFT_REPAIRED") => "openclaw.agents.lifecycle.repair",
        ("namespace.ensure", "NAMESPACE_RECONCILED") => "openclaw.namespaces.lifecycle.ensure",
        ("namespace.delete", "NAMESPACE_RECONCILED") => "openclaw.namespaces.lifecycle.delete",
        _ => "openclaw.work.reconcile",
    }
}
