//! What other slices need when they make or remove resources: the principal of an Agent, and the
//! policy records that name exactly one resource.

use occ_api::ids::{AgentId, BindingId, IdentityId, NamespaceId};

use super::{Kind, store};
use crate::app::App;
use crate::db::PgConnection;
use crate::error::{Error, Result};

/// Makes the principal of a new Agent, in the transaction that inserts the Agent. It can hold
/// bindings and never a key.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn agent_principal_create(
    tx: &mut PgConnection,
    app: &App,
    namespace: &NamespaceId,
    agent: &AgentId,
) -> Result<IdentityId> {
    let id = IdentityId::from_uuid(app.ids.uuid());
    store::agent_principal_insert(tx, &id, namespace, agent).await?;
    Ok(id)
}

/// Removes every binding and Restriction that names exactly this resource, in the transaction that removes the
/// resource. The bindings' ids belong into the audit event of the deletion.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE`.
pub async fn exact_bindings_delete(tx: &mut PgConnection, kind: Kind, id: &str) -> Result<Vec<BindingId>> {
    store::exact_restrictions_delete(tx, kind.as_str(), id).await?;
    let ids = store::exact_bindings_delete(tx, kind.as_str(), id).await?;
    ids.iter()
        .map(|id| BindingId::parse(id).map_err(|_| Error::internal("a binding's id does not parse")))
        .collect()
}
