//! Work on Namespaces.
//!
//! - `namespace.ensure`: authorise → `ensure-tenant` → status `ready`, all that commits in one transaction.
//! - `namespace.delete`: authorise → `delete-tenant` until gone → tombstone, policy removed with it.
//! - `namespace.observe`: `ensure-tenant` again, so that a boundary that somebody damaged stands.

use occ_api::error::ErrorCode;
use occ_api::ids::{IdentityId, NamespaceId};
use occ_api::types::NamespaceStatus;
use occ_queue::{Code, GiveUp, NewWork, Owner, Pass, Verdict};

use super::Namespace;
use crate::agents;
use crate::db::{self, PgConnection};
use crate::error::Error;
use crate::iam::{Access, Action, Iam, Scope};
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault, Subject};
use crate::worker::{Context, evidence, guard, store};

/// Makes a Namespace ready.
pub(crate) const ENSURE: &str = "namespace.ensure";
/// Removes an empty one.
pub(crate) const DELETE: &str = "namespace.delete";
/// Keeps its boundary.
pub(crate) const OBSERVE: &str = "namespace.observe";

/// What a pass about a Namespace begins with.
struct Target {
    id: NamespaceId,
    scope: Scope,
    namespace: Option<Namespace>,
}

/// `namespace.ensure`
pub(crate) async fn ensure(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    match make_ready(cx, pass).await {
        Err(Fault::Permanent { code, data }) => {
            let (target, _) = load(cx, pass).await?;
            let failed = Verdict::Fail { code, result: data.map(effect::result_of) };
            settle(cx, pass, &target, NamespaceStatus::Failed, failed).await
        }
        other => other,
    }
}

async fn make_ready(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let (target, namespace) = load(cx, pass).await?;
    if namespace.status != NamespaceStatus::Provisioning {
        return Ok(Verdict::complete("SUPERSEDED_TARGET"));
    }
    let mut accesses = vec![Access::namespaces(&cx.installation)];
    if namespace.existing_namespace.is_some() {
        accesses.push(Access::installation(Action::Administer, &cx.installation));
    }
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    guard::actor(cx, pass, &mut conn, "openclaw.namespaces.create", &accesses).await?;
    drop(conn);
    let tenant = namespace.to_driver();
    let run = || effect::change(cx, pass, subject(&target.id), Operation::EnsureTenant(&tenant));
    effect::step(cx, pass, "ensure-tenant", run).await?;
    settle(cx, pass, &target, NamespaceStatus::Ready, Verdict::complete("NAMESPACE_RECONCILED")).await
}

/// The Namespace could not be made ready in time: its status says so, in the row's last transaction.
pub(crate) async fn give_up_ensure(cx: &Context, pass: &Pass, why: &GiveUp) -> Result<Verdict, Fault> {
    let (target, _) = load(cx, pass).await?;
    let failed = Verdict::Fail { code: why.code.clone(), result: None };
    settle(cx, pass, &target, NamespaceStatus::Failed, failed).await
}

/// Moves the status of a Namespace that is still provisioning and ends the row, in one transaction.
async fn settle(
    cx: &Context,
    pass: &Pass,
    target: &Target,
    status: NamespaceStatus,
    verdict: Verdict,
) -> Result<Verdict, Fault> {
    let mut tx = db::begin(&cx.db).await?;
    let locked = super::lock(&mut tx, &target.id).await?;
    pass.guard_in(&mut tx).await?;
    if locked.is_none_or(|namespace| namespace.status != NamespaceStatus::Provisioning) {
        return Ok(Verdict::complete("SUPERSEDED_TARGET"));
    }
    super::status_set(&mut tx, &target.scope, status, cx.clock.now()).await?;
    let (done, transition) = pass.finish_in(&mut tx, verdict).await?;
    evidence::write(cx, &mut tx, &transition, None).await?;
    if status == NamespaceStatus::Ready {
        occ_queue::arm_upkeep(&mut tx, &observe_work(&target.id), agents::work::OBSERVE_EVERY).await?;
    }
    tx.commit().await?;
    Ok(Verdict::Done(done))
}

/// `namespace.delete`
pub(crate) async fn delete(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = find(cx, pass).await?;
    let Some(namespace) = &target.namespace else {
        // The tombstone was committed and its answer lost.
        return Ok(Verdict::complete("NAMESPACE_RECONCILED"));
    };
    if namespace.status != NamespaceStatus::Deleting {
        return Ok(Verdict::complete("SUPERSEDED_TARGET"));
    }
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    let access = [Access::namespace(Action::Delete, &target.id)];
    guard::actor(cx, pass, &mut conn, "openclaw.namespaces.delete", &access).await?;
    drop(conn);
    let tenant = namespace.to_driver();
    let run = || effect::change(cx, pass, subject(&target.id), Operation::DeleteTenant(&tenant));
    effect::step(cx, pass, "delete-tenant", run).await?;

    let mut tx = db::begin(&cx.db).await?;
    super::lock(&mut tx, &target.id).await?;
    pass.guard_in(&mut tx).await?;
    store::namespace_bury(&mut tx, &target.scope, cx.clock.now()).await?;
    let (done, transition) = pass.finish_in(&mut tx, Verdict::complete("NAMESPACE_RECONCILED")).await?;
    evidence::write(cx, &mut tx, &transition, None).await?;
    tx.commit().await?;
    Ok(Verdict::Done(done))
}

/// `namespace.observe`
pub(crate) async fn observe(cx: &Context, pass: &Pass) -> Result<Verdict, Fault> {
    let target = find(cx, pass).await?;
    let Some(namespace) = target.namespace.as_ref().filter(|found| found.status == NamespaceStatus::Ready)
    else {
        return Ok(Verdict::complete("SUPERSEDED_TARGET"));
    };
    let tenant = namespace.to_driver();
    let run = || effect::change(cx, pass, subject(&target.id), Operation::EnsureTenant(&tenant));
    match effect::step(cx, pass, "ensure-tenant", run).await {
        Ok(()) => Ok(agents::work::rest(cx, Code::new("OBSERVED_IN_ORDER"))),
        Err(Fault::Permanent { code, .. }) => Ok(agents::work::rest(cx, code)),
        Err(other) => Err(other),
    }
}

fn observe_work(id: &NamespaceId) -> NewWork {
    NewWork::upkeep(format!("namespace:{id}:observe"), OBSERVE, Owner::namespace(id.as_str()), "system")
}

fn subject(namespace: &NamespaceId) -> Subject<'_> {
    Subject { namespace, agent: None, revision: None }
}

/// The Namespace, which must live.
async fn load(cx: &Context, pass: &Pass) -> Result<(Target, Namespace), Fault> {
    let target = find(cx, pass).await?;
    match target.namespace.clone() {
        Some(namespace) => Ok((target, namespace)),
        None => Err(Fault::complete("SUPERSEDED_TARGET")),
    }
}

async fn find(cx: &Context, pass: &Pass) -> Result<Target, Fault> {
    let id: NamespaceId =
        db::id(&pass.claim().owner.namespace_id).map_err(|_| Fault::permanent("INVALID_TARGET"))?;
    let mut conn = cx.db.acquire().await.map_err(Error::from)?;
    let namespace = live(&mut conn, &id).await?;
    let scope = Iam::system_scope(&actor_or_nobody(cx, pass), &id);
    Ok(Target { id, scope, namespace })
}

async fn live(conn: &mut PgConnection, id: &NamespaceId) -> Result<Option<Namespace>, Error> {
    match super::get(conn, id).await {
        Ok(namespace) => Ok(Some(namespace)),
        Err(error) if error.api_code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whose name the statements carry; upkeep has no identity and decides nothing by it.
fn actor_or_nobody(cx: &Context, pass: &Pass) -> IdentityId {
    db::id(&pass.claim().actor_id).unwrap_or_else(|_| IdentityId::from_uuid(cx.ids.uuid()))
}
