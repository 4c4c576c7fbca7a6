//! Which resources of a list a caller may see, as sets that one SQL condition applies.
//!
//! **The filter equals deciding item by item.** A resource of kind `namespace` is its own Namespace.

use std::collections::BTreeSet;

use occ_api::ids::NamespaceId;

use super::access::{Action, Kind};
use super::decide::{BindingRow, IdentityKind, PrincipalRows, RestrictionRow};

/// The visible part of a list.
///
/// In one Namespace: `($all or id = any($only)) and not (id = any($except))`. Across Namespaces
/// also `namespace_id = any($within)` beside `$all`, and `not (namespace_id = any($except_within))`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    /// Everything, less the exceptions.
    pub all: bool,
    /// These ids.
    pub only: Vec<String>,
    /// Never these ids.
    pub except: Vec<String>,
    /// Everything in these Namespaces; filled in lists across Namespaces only.
    pub within: Vec<String>,
    /// Nothing in these Namespaces; filled in lists across Namespaces only.
    pub except_within: Vec<String>,
}

impl Visible {
    /// Is one resource in?
    #[must_use]
    pub fn shows(&self, namespace: &str, id: &str) -> bool {
        let has = |set: &[String], wanted: &str| set.iter().any(|member| member == wanted);
        (self.all || has(&self.within, namespace) || has(&self.only, id))
            && !has(&self.except, id)
            && !has(&self.except_within, namespace)
    }
}

/// The filter of one principal for (action, kind), in one Namespace or across all.
#[must_use]
pub fn visible(rows: &PrincipalRows, action: Action, kind: Kind, namespace: Option<&NamespaceId>) -> Visible {
    let Some(identity) = rows.identity.as_ref().filter(|identity| !identity.disabled) else {
        return Visible::default();
    };
    let home = identity.namespace.as_ref();
    if let (Some(home), Some(namespace)) = (home, namespace)
        && home != namespace
    {
        return Visible::default();
    }
    let mut sets = Sets::default();
    let matching = rows.bindings.iter().filter(|binding| {
        (binding.group.is_none() || identity.kind == IdentityKind::Principal)
            && binding.pairs.contains(&(action, kind))
            && agrees(binding.namespace.as_ref(), namespace)
            && agrees(binding.role_namespace.as_ref(), namespace)
            && agrees(binding.namespace.as_ref(), home)
            && agrees(binding.role_namespace.as_ref(), home)
            && agrees(binding.role_namespace.as_ref(), binding.namespace.as_ref())
    });
    for binding in matching {
        sets.grant(binding, kind, namespace.or(home), namespace.is_some());
    }
    let denying = rows.restrictions.iter().filter(|restriction| {
        restriction.action == action
            && restriction.kind == kind
            && agrees(restriction.namespace.as_ref(), namespace)
    });
    for restriction in denying {
        sets.deny(restriction, namespace.is_some());
    }
    sets.into_visible(kind)
}

/// Two scopes agree when one is open or both are equal.
fn agrees(left: Option<&NamespaceId>, right: Option<&NamespaceId>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left == right,
        _ => true,
    }
}

#[derive(Default)]
struct Sets {
    all: bool,
    nothing: bool,
    only: BTreeSet<String>,
    except: BTreeSet<String>,
    within: BTreeSet<String>,
    except_within: BTreeSet<String>,
}

impl Sets {
    fn grant(&mut self, binding: &BindingRow, kind: Kind, scope: Option<&NamespaceId>, one_namespace: bool) {
        if let Some(target) = &binding.target {
            if target.kind == kind {
                self.only.insert(target.id.clone());
            }
            return;
        }
        // A Role of a Namespace in a wider binding still grants inside that Namespace alone.
        let reach = binding.namespace.as_ref().or(binding.role_namespace.as_ref()).or(scope);
        match reach {
            Some(namespace) if !one_namespace => {
                self.within.insert(namespace.to_string());
            }
            _ => self.all = true,
        }
    }

    fn deny(&mut self, restriction: &RestrictionRow, one_namespace: bool) {
        match (&restriction.resource_id, &restriction.namespace) {
            // Ids are unique in the Installation, so the Namespace adds nothing.
            (Some(id), _) => {
                self.except.insert(id.clone());
            }
            (None, Some(namespace)) if !one_namespace => {
                self.except_within.insert(namespace.to_string());
            }
            (None, _) => self.nothing = true,
        }
    }

    fn into_visible(mut self, kind: Kind) -> Visible {
        if self.nothing {
            return Visible::default();
        }
        if kind == Kind::Namespace {
            self.only.append(&mut self.within);
            self.except.append(&mut self.except_within);
        }
        Visible {
            all: self.all,
            only: self.only.into_iter().collect(),
            except: self.except.into_iter().collect(),
            within: self.within.into_iter().collect(),
            except_within: self.except_within.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
