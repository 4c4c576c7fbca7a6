//! Handlers of can-i and explain.

use std::sync::Arc;

use occ_api::error::FieldError;
use occ_api::ids::{IdentityId, NamespaceId};
use occ_api::types::{self, CanIMany, Check};

use super::model;
use crate::app::App;
use crate::error::{Error, Result};
use crate::http::{Reply, Request};
use crate::iam::decide::{Decision, PrincipalRows, Reason, decide};
use crate::iam::{Access, Action};

/// `GET /iam/can-i`
pub(crate) async fn can_i(app: App, rq: Request) -> Result<Reply> {
    let (access, rows) = about_caller(&app, &rq).await?;
    Reply::ok(&model::answer(&access, &decide(&rows, &access)))
}

/// `GET /iam/explain`
pub(crate) async fn explain(app: App, rq: Request) -> Result<Reply> {
    let (access, rows) = about_caller(&app, &rq).await?;
    Reply::ok(&model::explanation(&rq.caller.identity, &access, &decide(&rows, &access)))
}

/// `POST /iam/can-i`
pub(crate) async fn can_i_many(app: App, rq: Request) -> Result<Reply> {
    let asked = Asked::read(&app, &rq).await?;
    let answer = |access: &Access| model::answer(access, &decide(&asked.rows, access));
    let answers: Vec<types::Decision> = asked.accesses.iter().map(answer).collect();
    Reply::ok(&answers)
}

/// `POST /iam/explain`
pub(crate) async fn explain_many(app: App, rq: Request) -> Result<Reply> {
    let asked = Asked::read(&app, &rq).await?;
    let explain =
        |access: &Access| model::explanation(&asked.principal, access, &decide(&asked.rows, access));
    let explanations: Vec<types::Decision> = asked.accesses.iter().map(explain).collect();
    Reply::ok(&explanations)
}

async fn about_caller(app: &App, rq: &Request) -> Result<(Access, Arc<PrincipalRows>)> {
    let text = |name: &str| rq.query(name).unwrap_or_default().to_owned();
    let question = Check {
        action: text("action"),
        resource_kind: text("resourceKind"),
        resource_id: text("resourceId"),
        namespace_id: rq.query("namespaceId").and_then(|id| NamespaceId::parse(id).ok()),
    };
    let access = model::access(&question, "").map_err(Error::invalid)?;
    confine(app, rq, std::slice::from_ref(&access))?;
    let rows = app.iam.rows(app, &rq.caller, access.namespace.as_ref()).await?;
    Ok((access, rows))
}

/// A key of a Namespace asks about that Namespace alone.
fn confine(app: &App, rq: &Request, accesses: &[Access]) -> Result<()> {
    let Some(scope) = &rq.caller.key_scope else {
        return Ok(());
    };
    match accesses.iter().find(|access| access.namespace.as_ref() != Some(scope)) {
        Some(outside) => Err(app.iam.refuse(&rq.caller, outside, Decision::refused(Reason::KeyScope))),
        None => Ok(()),
    }
}

struct Asked {
    principal: IdentityId,
    rows: Arc<PrincipalRows>,
    accesses: Vec<Access>,
}

impl Asked {
    async fn read(app: &App, rq: &Request) -> Result<Self> {
        let body: CanIMany = rq.body()?;
        let accesses = accesses(&body.checks)?;
        confine(app, rq, &accesses)?;
        let other = body.principal_id.filter(|id| *id != rq.caller.identity);
        let Some(principal) = other else {
            let rows = app.iam.rows(app, &rq.caller, None).await?;
            return Ok(Self { principal: rq.caller.identity.clone(), rows, accesses });
        };
        let administer = Access::installation(Action::Administer, &app.installation);
        app.iam.require(app, &rq.caller, &administer).await?;
        let mut conn = app.db.acquire().await?;
        let rows = app.iam.load(&mut conn, &principal, None).await?;
        if rows.identity.is_none() {
            return Err(Error::not_found());
        }
        Ok(Self { principal, rows: Arc::new(rows), accesses })
    }
}

fn accesses(checks: &[Check]) -> Result<Vec<Access>> {
    let mut faults: Vec<FieldError> = Vec::new();
    let mut accesses = Vec::new();
    for (index, question) in checks.iter().enumerate() {
        match model::access(question, &format!("/checks/{index}")) {
            Ok(access) => accesses.push(access),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(accesses) } else { Err(Error::invalid(faults)) }
}
