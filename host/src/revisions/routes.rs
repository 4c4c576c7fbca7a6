//! Handlers of deploy, rollback and revisions.

use occ_api::ids::RevisionId;
use occ_api::types::RollbackRequest;

use super::freeze::{self, Ask, Wanted};
use super::{commit, store};
use crate::agents;
use crate::app::App;
use crate::error::Result;
use crate::http::{Once, Reply, Request};
use crate::iam::{Access, Action, Kind};

/// Times that a freeze starts over when its inputs changed.
const TRIES_MAX: usize = 3;

/// `POST /namespaces/{namespaceId}/agents/{agentId}/deploy`
pub(crate) async fn deploy(app: App, rq: Request) -> Result<Reply> {
    let mut ask = Ask::new(&rq, Wanted::Draft)?;
    if rq.flag("dryRun") {
        let inputs = freeze::read(&app, &rq, &mut ask).await?;
        let decided = freeze::decide(&app, &rq, &ask, inputs).await?;
        return Reply::ok(&freeze::preview(&decided));
    }
    freeze_and_commit(&app, &rq, ask).await
}

/// `POST /namespaces/{namespaceId}/agents/{agentId}/rollback`
pub(crate) async fn rollback(app: App, rq: Request) -> Result<Reply> {
    let body: RollbackRequest = rq.body()?;
    let ask = Ask::new(&rq, Wanted::Earlier(body.revision_id))?;
    freeze_and_commit(&app, &rq, ask).await
}

async fn freeze_and_commit(app: &App, rq: &Request, mut ask: Ask) -> Result<Reply> {
    let mut inputs = freeze::read(app, rq, &mut ask).await?;
    let token = match rq.once(app).await? {
        Once::Replay(reply) => return Ok(reply),
        Once::New(token) => token,
    };
    for left in (0..TRIES_MAX).rev() {
        let decided = freeze::decide(app, rq, &ask, inputs).await?;
        commit::ensure_credentials(app, rq, &ask, &decided).await?;
        if let Some(reply) = commit::commit(app, rq, &ask, &decided, &token).await? {
            return Ok(reply);
        }
        if left == 0 {
            break;
        }
        inputs = freeze::read(app, rq, &mut ask).await?;
    }
    Err(commit::inputs_moved())
}

/// `GET /namespaces/{namespaceId}/agents/{agentId}/revisions`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let (namespace, agent) = (rq.namespace()?, rq.agent()?);
    let access = Access::item(Action::Read, Kind::Agent, &namespace, &agent);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let visible =
        app.iam.visible(&app, &rq.caller, Action::Read, Kind::AgentRevision, Some(&namespace)).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    agents::get(&mut conn, &scope, &agent).await?;
    let rows =
        store::revision_page(&mut conn, &scope, &agent, &visible, page.after_number()?, page.fetch()).await?;
    page.reply(rows, |row| (row.number.to_string(), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}/agents/{agentId}/revisions/{revisionId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, agent, id) = (rq.namespace()?, rq.agent()?, rq.path::<RevisionId>("revisionId")?);
    let access = Access::item(Action::Read, Kind::AgentRevision, &namespace, &id);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let mut conn = app.db.acquire().await?;
    Reply::ok(&super::get(&mut conn, &scope, &agent, &id).await?.to_wire())
}
