//! What every change of policy has in common: permission, coverage, the last administrator.

use occ_api::error::ErrorCode;

use super::access::{Access, Action};
use super::coverage::{self, Grant};
use super::decide::{Decision, PrincipalRows, Reason};
use super::lock::Home;
use super::{Scope, store};
use crate::app::App;
use crate::db::{PgConnection, Tx};
use crate::error::{Error, Result};
use crate::http::Request;

/// Rows of one principal and Namespace that a decision may have to read.
pub(super) const ROWS_PER_PRINCIPAL_MAX: i64 = 10_000;

/// Demands the permission of a policy operation, and for a record of a Namespace that it exists.
pub(super) async fn require(app: &App, request: &Request, home: &Home) -> Result<Scope> {
    let scope = app.iam.require_all(app, &request.caller, &home.accesses(app)).await?;
    if let Some(namespace) = home.namespace() {
        let mut conn = app.db.acquire().await?;
        if !store::namespace_exists(&mut conn, namespace).await? {
            return Err(Error::not_found());
        }
    }
    Ok(scope)
}

/// Decides again after the locks of a change.
pub(super) async fn decide_again(app: &App, tx: &mut Tx, request: &Request, home: &Home) -> Result<Scope> {
    app.iam.decide_again(tx, &request.caller, &home.accesses(app)).await
}

/// Refuses a change of grants that the caller does not hold itself; `what` names the target in the answer.
pub(super) async fn cover(
    app: &App,
    tx: &mut PgConnection,
    request: &Request,
    target: &[Grant],
    what: &str,
) -> Result<()> {
    let rows: PrincipalRows = app.iam.load(tx, &request.caller.identity, None).await?;
    let Some(missing) = coverage::uncovered(&coverage::grants(&rows), target) else {
        return Ok(());
    };
    let access = Access::installation(Action::Administer, &app.installation);
    let mut decision = Decision::refused(Reason::NotCovered);
    decision.evidence.identity = Some(request.caller.identity.clone());
    let message =
        format!("The caller does not hold {} on {}, which {what} grants.", missing.action, missing.kind);
    Err(app.iam.refuse_naming(&request.caller, &access, decision, &message))
}

/// After a removal at Installation level: somebody must still be able to administer it.
pub(super) async fn keep_administrator(tx: &mut PgConnection, home: &Home) -> Result<()> {
    if *home == Home::Installation && !store::administrator_remains(tx).await? {
        return Err(Error::new(
            ErrorCode::LastAdministrator,
            "The change would leave nobody who may administer the Installation.",
        ));
    }
    Ok(())
}
