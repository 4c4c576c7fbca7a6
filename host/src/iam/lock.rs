//! Where a policy record lives, and the locks that a change of policy takes before it reads.
//!
//! Installation level: the `installation` row for update. In a Namespace: the `installation` row for share,
//! then the `namespaces` row for update. No IAM row is ever locked.

use occ_api::ids::NamespaceId;

use super::access::{Access, Action};
use super::store;
use crate::app::App;
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::http::Request;

/// The level of a policy record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Home {
    /// Of the whole Installation.
    Installation,
    /// Of one Namespace.
    Namespace(NamespaceId),
}

impl Home {
    /// Read from the path: with or without a Namespace.
    pub(super) fn of(request: &Request) -> Result<Self> {
        if request.operation.path.contains("{namespaceId}") {
            Ok(Self::Namespace(request.namespace()?))
        } else {
            Ok(Self::Installation)
        }
    }

    /// From the column of a record.
    pub(super) fn from_column(namespace: Option<NamespaceId>) -> Self {
        namespace.map_or(Self::Installation, Self::Namespace)
    }

    /// The column of a record.
    pub(super) fn namespace(&self) -> Option<&NamespaceId> {
        match self {
            Self::Installation => None,
            Self::Namespace(namespace) => Some(namespace),
        }
    }

    /// What every policy operation needs: administer on the Installation, and read on the Namespace of the path.
    pub(super) fn accesses(&self, app: &App) -> Vec<Access> {
        let mut accesses = vec![Access::installation(Action::Administer, &app.installation)];
        accesses.extend(self.namespace().map(|namespace| Access::namespace(Action::Read, namespace)));
        accesses
    }

    /// Takes the locks of a change at this level.
    ///
    /// # Errors
    /// `NOT_FOUND` when the Namespace is absent; `RESOURCE_CONFLICT` when something is to be made in a
    /// Namespace that failed or is being deleted.
    pub(super) async fn lock(&self, tx: &mut Tx, makes: bool) -> Result<()> {
        let Self::Namespace(namespace) = self else {
            return store::installation_lock(tx).await;
        };
        store::installation_share(tx).await?;
        let status = store::namespace_lock(tx, namespace).await?.ok_or_else(Error::not_found)?;
        if makes && matches!(status.as_str(), "failed" | "deleting") {
            return Err(Error::conflict(format!("The Namespace is {status}: nothing can be made in it.")));
        }
        Ok(())
    }
}
