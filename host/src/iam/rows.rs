//! From the rows of the one query to typed rows. Pure.
//!
//! **A row that breaks a rule is skipped and reported; it changes no decision about anyone else.**
//! A Restriction with an unreadable scope still denies the action, kind and id that it names.

use std::collections::BTreeSet;

use occ_api::ids::{AgentId, BindingId, GroupId, IdentityId, NamespaceId, RoleId};

use super::access::{Action, Kind, Pair, fits_namespace_role, is_checked};
use super::decide::{BindingRow, IdentityKind, IdentityRow, PrincipalRows, RestrictionRow, Target};

/// One row of the query, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RawRow {
    pub(super) record: String,
    pub(super) id: String,
    pub(super) namespace_id: Option<String>,
    /// A binding's Group; an identity's Agent.
    pub(super) group_id: Option<String>,
    /// A binding's or Restriction's kind; an identity's own kind.
    pub(super) resource_kind: Option<String>,
    /// A binding's or Restriction's resource; the time since when an identity is disabled.
    pub(super) resource_id: Option<String>,
    pub(super) role_id: Option<String>,
    pub(super) role_namespace_id: Option<String>,
    /// `action kind`.
    pub(super) pairs: Vec<String>,
}

/// A row that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidRow {
    pub(super) record: &'static str,
    pub(super) id: String,
}

/// Reads the rows of one principal.
pub(super) fn parse(raw: Vec<RawRow>) -> (PrincipalRows, Vec<InvalidRow>) {
    let mut rows = PrincipalRows::default();
    let mut invalid = Vec::new();
    for row in raw {
        let (record, taken) = match row.record.as_str() {
            "binding" => ("binding", binding(&row).map(|binding| rows.bindings.push(binding))),
            "restriction" => ("restriction", restriction(&row).map(|deny| rows.restrictions.push(deny))),
            _ => ("identity", identity(&row).map(|identity| rows.identity = Some(identity))),
        };
        if taken.is_none() {
            invalid.push(InvalidRow { record, id: row.id });
        }
    }
    (rows, invalid)
}

/// An absent text is an absent value; a present one must parse.
fn optional<T: std::str::FromStr>(text: Option<&String>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}

fn binding(row: &RawRow) -> Option<BindingRow> {
    let namespace = optional::<NamespaceId>(row.namespace_id.as_ref())?;
    let role_namespace = optional::<NamespaceId>(row.role_namespace_id.as_ref())?;
    let target = target(row)?;
    let pairs = row.pairs.iter().filter_map(|pair| pair_of(pair)).collect::<BTreeSet<Pair>>();
    let role_fits = role_namespace.is_none()
        || (role_namespace == namespace && pairs.iter().all(|pair| fits_namespace_role(*pair)));
    let target_fits = target.as_ref().is_none_or(|target| {
        (target.kind == Kind::Installation) == namespace.is_none()
            && pairs.iter().all(|(action, _)| *action != Action::Create)
    });
    if !(role_fits && target_fits) {
        return None;
    }
    Some(BindingRow {
        id: BindingId::parse(&row.id).ok()?,
        namespace,
        group: optional::<GroupId>(row.group_id.as_ref())?,
        target,
        role: RoleId::parse(row.role_id.as_deref()?).ok()?,
        role_namespace,
        pairs,
    })
}

/// Both columns or neither, and a kind that exists.
fn target(row: &RawRow) -> Option<Option<Target>> {
    match (&row.resource_kind, &row.resource_id) {
        (None, None) => Some(None),
        (Some(kind), Some(id)) => Some(Some(Target { kind: kind.parse().ok()?, id: id.clone() })),
        _ => None,
    }
}

/// A pair that no operation checks can only fail to match, so it is left out.
fn pair_of(text: &str) -> Option<Pair> {
    let (action, kind) = text.split_once(' ')?;
    let pair = (action.parse().ok()?, kind.parse().ok()?);
    is_checked(pair).then_some(pair)
}

fn restriction(row: &RawRow) -> Option<RestrictionRow> {
    let (action, kind) = row.pairs.first()?.split_once(' ')?;
    Some(RestrictionRow {
        id: row.id.clone(),
        // An unreadable scope must not let anything through: it denies wherever the rest matches.
        namespace: optional::<NamespaceId>(row.namespace_id.as_ref()).flatten(),
        action: action.parse().ok()?,
        kind: kind.parse().ok()?,
        resource_id: row.resource_id.clone(),
    })
}

fn identity(row: &RawRow) -> Option<IdentityRow> {
    let kind = match row.resource_kind.as_deref()? {
        "principal" => IdentityKind::Principal,
        "service_principal" => IdentityKind::ServicePrincipal,
        _ => return None,
    };
    Some(IdentityRow {
        id: IdentityId::parse(&row.id).ok()?,
        kind,
        namespace: optional::<NamespaceId>(row.namespace_id.as_ref())?,
        agent: optional::<AgentId>(row.group_id.as_ref())?,
        disabled: row.resource_id.is_some(),
    })
}

#[cfg(test)]
mod tests;
