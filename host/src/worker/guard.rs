//! May the actor still? Decided anew at every pass, over rows loaded anew.
//!
//! **A denial is permanent and audited; an authority out of reach is a retry, never an allow.**
//! Rollback and upkeep ask about the Agent's own principal alone: a colleague who leaves must not
//! stop self-healing.

use occ_api::ids::{AgentId, IdentityId, NamespaceId, SecretId};
use occ_queue::{Claim, Pass};

use super::effect::Fault;
use super::{Context, evidence};
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection};
use crate::error::Error;
use crate::iam::decide::decide;
use crate::iam::{Access, Action, Decision, Kind, Reason};
use crate::revisions::Snapshot;

/// Demands permissions of whoever asked for the work. `action` names the operation in the audit log.
pub(crate) async fn actor(
    cx: &Context,
    pass: &Pass,
    conn: &mut PgConnection,
    action: &'static str,
    accesses: &[Access],
) -> Result<(), Fault> {
    let identity: IdentityId =
        db::id(&pass.claim().actor_id).map_err(|_| Fault::permanent("ACTOR_REVOKED"))?;
    demand(cx, pass, conn, &identity, action, accesses).await
}

/// Demands what a revision needs, of its actor and of the Agent's principal.
pub(crate) async fn revision(
    cx: &Context,
    pass: &Pass,
    conn: &mut PgConnection,
    namespace: &NamespaceId,
    agent: &AgentId,
    snapshot: &Snapshot,
) -> Result<(), Fault> {
    let mut accesses = vec![
        Access::item(Action::Deploy, Kind::Agent, namespace, agent),
        Access::item(Action::Read, Kind::Configuration, namespace, &snapshot.configuration.id),
    ];
    accesses.extend(snapshot.secret_ids().iter().map(|id| operate(namespace, id)));
    actor(cx, pass, conn, "openclaw.agents.deploy", &accesses).await?;
    principal(cx, pass, conn, namespace, agent, snapshot).await
}

/// Demands what the Agent's own principal needs to run a revision.
pub(crate) async fn principal(
    cx: &Context,
    pass: &Pass,
    conn: &mut PgConnection,
    namespace: &NamespaceId,
    agent: &AgentId,
    snapshot: &Snapshot,
) -> Result<(), Fault> {
    let rows = cx.iam.load(conn, &snapshot.principal_id, Some(namespace)).await?;
    let belongs = rows.identity.as_ref().is_some_and(|identity| {
        identity.agent.as_ref() == Some(agent) && identity.namespace.as_ref() == Some(namespace)
    });
    if !belongs {
        return Err(Fault::permanent("ACTOR_REVOKED"));
    }
    let accesses: Vec<Access> = snapshot.secret_ids().iter().map(|id| operate(namespace, id)).collect();
    demand(cx, pass, conn, &snapshot.principal_id, "openclaw.agents.deploy", &accesses).await
}

fn operate(namespace: &NamespaceId, secret: &SecretId) -> Access {
    Access::item(Action::Operate, Kind::Secret, namespace, secret)
}

async fn demand(
    cx: &Context,
    pass: &Pass,
    conn: &mut PgConnection,
    identity: &IdentityId,
    action: &'static str,
    accesses: &[Access],
) -> Result<(), Fault> {
    let namespace = accesses.first().and_then(|access| access.namespace.as_ref());
    let rows = cx.iam.load(conn, identity, namespace).await?;
    for access in accesses {
        let decision = decide(&rows, access);
        if !decision.allowed {
            denied(cx, pass.claim(), conn, identity, action, access, &decision).await?;
            return Err(match decision.reason {
                Reason::UnknownIdentity => Fault::permanent("ACTOR_REVOKED"),
                _ => Fault::permanent("AUTHORIZATION_DENIED"),
            });
        }
    }
    Ok(())
}

/// The denial is written before the row fails: a crash in between repeats it, and loses none.
async fn denied(
    cx: &Context,
    claim: &Claim,
    conn: &mut PgConnection,
    identity: &IdentityId,
    action: &'static str,
    access: &Access,
    decision: &Decision,
) -> Result<(), Error> {
    let namespace: NamespaceId = db::id(&claim.owner.namespace_id)?;
    let resource = match &claim.owner.agent_id {
        Some(agent) => Resource::in_namespace("agent", agent, &namespace),
        None => Resource::in_namespace("namespace", &namespace, &namespace),
    };
    let code = decision.reason.as_str();
    let event = Event::reconcile(identity, action, resource, audit::Outcome::Denied, code, &claim.key)
        .decided(access, decision);
    evidence::append(cx, conn, event).await
}
