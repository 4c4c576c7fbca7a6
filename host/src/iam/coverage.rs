//! Coverage: a caller may change what another holds only within what the caller holds.
//!
//! Coverage is not authorisation: Restrictions are ignored here and applied there.

use occ_api::ids::NamespaceId;

use super::access::{Action, Kind};
use super::decide::{BindingRow, IdentityKind, PrincipalRows, Target};

/// Where a grant holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Everywhere.
    Installation,
    /// In one Namespace.
    Namespace(NamespaceId),
    /// On one resource, in its Namespace unless it is the Installation.
    Exact(Option<NamespaceId>, Target),
}

impl Reach {
    /// The reach of a binding or a Restriction by its columns.
    #[must_use]
    pub fn new(namespace: Option<NamespaceId>, target: Option<Target>) -> Self {
        match (namespace, target) {
            (namespace, Some(target)) => Self::Exact(namespace, target),
            (Some(namespace), None) => Self::Namespace(namespace),
            (None, None) => Self::Installation,
        }
    }

    /// Is `narrower` the same reach or inside of this one?
    #[must_use]
    pub fn contains(&self, narrower: &Self) -> bool {
        match (self, narrower) {
            (Self::Installation, _) => true,
            (Self::Namespace(own), Self::Namespace(other) | Self::Exact(Some(other), _)) => own == other,
            (Self::Exact(..), Self::Exact(..)) => self == narrower,
            _ => false,
        }
    }
}

/// One permission at one reach.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What may be done.
    pub action: Action,
    /// To which kind.
    pub kind: Kind,
    /// Where.
    pub reach: Reach,
}

impl Grant {
    /// Does holding this cover handing out or taking away `other`?
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let logs_by_administer =
            self.kind == Kind::Agent && self.action == Action::Administer && other.action == Action::ReadLogs;
        self.kind == other.kind
            && (self.action == other.action || logs_by_administer)
            && self.reach.contains(&other.reach)
    }
}

/// Every grant in the rows of one principal; an exact binding grants pairs of its target's kind only.
#[must_use]
pub fn grants(rows: &PrincipalRows) -> Vec<Grant> {
    let Some(identity) = rows.identity.as_ref().filter(|identity| !identity.disabled) else {
        return Vec::new();
    };
    let counting = rows
        .bindings
        .iter()
        .filter(|binding| binding.group.is_none() || identity.kind == IdentityKind::Principal);
    counting.flat_map(binding_grants).collect()
}

/// The grants of one binding.
pub fn binding_grants(binding: &BindingRow) -> impl Iterator<Item = Grant> {
    let namespace = binding.namespace.clone().or_else(|| binding.role_namespace.clone());
    let reach = Reach::new(namespace, binding.target.clone());
    binding
        .pairs
        .iter()
        .filter(|(_, kind)| binding.target.as_ref().is_none_or(|target| target.kind == *kind))
        .map(move |&(action, kind)| Grant { action, kind, reach: reach.clone() })
}

/// The first grant of `target` that no grant of `caller` covers.
#[must_use]
pub fn uncovered<'a>(caller: &[Grant], target: &'a [Grant]) -> Option<&'a Grant> {
    target.iter().find(|wanted| !caller.iter().any(|held| held.covers(wanted)))
}

#[cfg(test)]
mod tests;
