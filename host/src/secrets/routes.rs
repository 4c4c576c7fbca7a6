//! Handlers of Secrets.

use occ_api::ids::{BindingId, NamespaceId, SecretId};
use occ_api::types::{self, SecretCreate, SecretUpdate};
use serde::Serialize;

use super::model::{NewSecret, Secret, State};
use super::store;
use crate::app::App;
use crate::audit::{self, Event, Resource};
use crate::db::{self, PgConnection};
use crate::error::{Error, Result};
use crate::http::{Once, Reply, Request, sort_time};
use crate::iam::{self, Access, Action, Kind, Scope};
use crate::namespaces;

/// References that one look at consumers examines.
const CONSUMERS_MAX: usize = 50;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    binding_ids: Vec<BindingId>,
}

#[derive(Serialize)]
struct Rotated {
    version: u64,
}

/// `GET /namespaces/{namespaceId}/secrets`
pub(crate) async fn list(app: App, rq: Request) -> Result<Reply> {
    let namespace = rq.namespace()?;
    let scope = app.iam.require(&app, &rq.caller, &Access::namespace(Action::Read, &namespace)).await?;
    let visible = app.iam.visible(&app, &rq.caller, Action::Read, Kind::Secret, Some(&namespace)).await?;
    let page = rq.page()?;
    let mut conn = app.db.acquire().await?;
    namespaces::get(&mut conn, &namespace).await?;
    let after = (page.after_time()?, page.after_id());
    let rows = store::secret_page(&mut conn, &scope, &visible, after, page.fetch()).await?;
    page.reply(rows, |row| (sort_time(row.created_at), row.id.to_string()), |row| row.to_wire())
}

/// `GET /namespaces/{namespaceId}/secrets/{secretId}`
pub(crate) async fn get(app: App, rq: Request) -> Result<Reply> {
    let (namespace, id) = (rq.namespace()?, rq.path::<SecretId>("secretId")?);
    let access = Access::item(Action::Read, Kind::Secret, &namespace, &id);
    let scope = app.iam.require(&app, &rq.caller, &access).await?;
    let mut conn = app.db.acquire().await?;
    let secret = store::secret_get(&mut conn, &scope, &id).await?.ok_or_else(Error::not_found)?;
    let consumers = consumers(&app, &rq, &mut conn, &scope, &id).await?;
    Ok(Reply::ok(&secret.to_wire_with(consumers))?.etag(secret.version))
}

/// Who uses the Secret: at most 50 references by kind and id; those that the caller may not read
/// are counted alone.
async fn consumers(
    app: &App,
    rq: &Request,
    conn: &mut PgConnection,
    scope: &Scope,
    id: &SecretId,
) -> Result<types::SecretConsumers> {
    let namespace = scope.namespace()?;
    let fetch = i64::try_from(CONSUMERS_MAX).unwrap_or(i64::MAX).saturating_add(1);
    let mut agents = store::using_agents(conn, scope, id, fetch).await?;
    let mut configurations = store::binding_configurations(conn, scope, id, fetch).await?;
    let truncated = agents.len() + configurations.len() > CONSUMERS_MAX;
    agents.truncate(CONSUMERS_MAX);
    configurations.truncate(CONSUMERS_MAX - agents.len());
    let examined = agents.len() + configurations.len();
    let readable = app.iam.visible(app, &rq.caller, Action::Read, Kind::Agent, Some(namespace)).await?;
    agents.retain(|agent| readable.shows(namespace.as_str(), agent.as_str()));
    let readable = app.iam.visible(app, &rq.caller, Action::Read, Kind::Configuration, Some(namespace)).await?;
    configurations.retain(|configuration| readable.shows(namespace.as_str(), configuration.as_str()));
    let unreadable = u64::try_from(examined - agents.len() - configurations.len()).unwrap_or(u64::MAX);
    Ok(types::SecretConsumers {
        agents,
        configurations,
        credential_sources: Vec::new(),
        provisioning_requests: Vec::new(),
        unreadable,
        truncated,
    })
}
