//! The one statement about deployments: a revision's work row, as its history.

use occ_api::ids::{AgentId, RevisionId};
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::model::{Deployment, WorkState};
use crate::db;
use crate::error::Result;
use crate::iam::Scope;

struct Row {
    id: String,
    namespace_id: String,
    agent_id: String,
    state: String,
    lease_live: bool,
    reason_code: Option<String>,
    result: Option<Value>,
    last_attempt_at: Option<OffsetDateTime>,
    available_at: OffsetDateTime,
}

/// The deployment of one revision; `None` when the Agent has no such revision.
pub(super) async fn deployment_get(
    conn: &mut PgConnection,
    scope: &Scope,
    agent: &AgentId,
    id: &RevisionId,
) -> Result<Option<Deployment>> {
    let row = sqlx::query_as!(
        Row,
        r#"select r.id, r.namespace_id, r.agent_id, w.state, coalesce(w.lease_until > now(), false) as "lease_live!",
                  w.reason_code, w.result, w.last_attempt_at, w.available_at
             from occ.agent_revisions r
             join occ.work w on w.namespace_id = r.namespace_id and w.agent_id = r.agent_id
                            and w.revision_id = r.id and w.kind = 'revision.reconcile'
            where r.namespace_id = $1 and r.agent_id = $2 and r.id = $3"#,
        scope.namespace()?.as_str(),
        agent.as_str(),
        id.as_str()
    )
    .fetch_optional(conn)
    .await?;
    row.map(Row::into_deployment).transpose()
}

impl Row {
    fn into_deployment(self) -> Result<Deployment> {
        Ok(Deployment {
            revision: db::id(&self.id)?,
            namespace: db::id(&self.namespace_id)?,
            agent: db::id(&self.agent_id)?,
            work: WorkState::from_columns(&self.state, self.lease_live)?,
            code: self.reason_code,
            result: self.result,
            last_attempt_at: self.last_attempt_at,
            next_attempt_at: self.available_at,
        })
    }
}
