//! The decision: pure, over the rows of one principal. No clock, no I/O, no knowledge of
//! whether the resource exists.
//!
//! **A Restriction wins over any grant, and evidence names every row that mattered.**

use std::collections::BTreeSet;
use std::fmt;

use occ_api::ids::{AgentId, BindingId, GroupId, IdentityId, NamespaceId, RoleId};

use super::access::{Access, Action, Kind, Pair};

/// What one query knows about a principal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrincipalRows {
    /// The identity; absent when it does not exist.
    pub identity: Option<IdentityRow>,
    /// Bindings of the identity and of its Groups.
    pub bindings: Vec<BindingRow>,
    /// Restrictions about the identity and about everybody.
    pub restrictions: Vec<RestrictionRow>,
}

/// A human or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityKind {
    /// A human; Groups count for it.
    Principal,
    /// Automation, or the principal of an Agent.
    ServicePrincipal,
}

/// One identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRow {
    /// Its id.
    pub id: IdentityId,
    /// Human or program.
    pub kind: IdentityKind,
    /// Its Namespace; absent for an Installation-level identity.
    pub namespace: Option<NamespaceId>,
    /// The Agent it belongs to.
    pub agent: Option<AgentId>,
    /// The user behind it is disabled.
    pub disabled: bool,
}

/// One resource that a binding or a Restriction names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its id.
    pub id: String,
}

/// A binding with the permissions of its Role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingRow {
    /// Its id.
    pub id: BindingId,
    /// Absent: the whole Installation.
    pub namespace: Option<NamespaceId>,
    /// The Group through which it reaches the identity.
    pub group: Option<GroupId>,
    /// Present: that resource alone.
    pub target: Option<Target>,
    /// Its Role.
    pub role: RoleId,
    /// The Role's Namespace.
    pub role_namespace: Option<NamespaceId>,
    /// The Role's permissions.
    pub pairs: BTreeSet<Pair>,
}

/// A denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestrictionRow {
    /// Its id.
    pub id: String,
    /// Absent: everywhere.
    pub namespace: Option<NamespaceId>,
    /// What is denied.
    pub action: Action,
    /// On which kind.
    pub kind: Kind,
    /// Absent: every resource of the kind.
    pub resource_id: Option<String>,
}

/// Why a decision came out as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Granted.
    Allowed,
    /// No binding matches.
    NoGrant,
    /// A Restriction matches.
    Restricted,
    /// No such identity, or a disabled one.
    UnknownIdentity,
    /// The identity belongs to another Namespace.
    OutOfScope,
    /// The key belongs to another Namespace or the route to the Installation.
    KeyScope,
    /// The caller does not hold what it would hand out or take away.
    NotCovered,
    /// The request does not name its scope.
    InvalidRequest,
}

impl Reason {
    /// The code on the wire and in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "ALLOWED",
            Self::NoGrant => "NO_GRANT",
            Self::Restricted => "RESTRICTED",
            Self::UnknownIdentity => "UNKNOWN_IDENTITY",
            Self::OutOfScope => "OUT_OF_SCOPE",
            Self::KeyScope => "KEY_SCOPE",
            Self::NotCovered => "NOT_COVERED",
            Self::InvalidRequest => "INVALID_REQUEST",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Every row that mattered, sorted and without repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The identity that was found.
    pub identity: Option<IdentityId>,
    /// Groups through which a matching binding came.
    pub groups: BTreeSet<GroupId>,
    /// Matching bindings.
    pub bindings: BTreeSet<BindingId>,
    /// Their Roles.
    pub roles: BTreeSet<RoleId>,
    /// Matching Restrictions.
    pub restrictions: BTreeSet<String>,
}

/// The answer to one [`Access`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// May it be done?
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// On what grounds.
    pub evidence: Evidence,
}

impl Decision {
    /// A refusal without matching rows.
    #[must_use]
    pub fn refused(reason: Reason) -> Self {
        Self { allowed: false, reason, evidence: Evidence::default() }
    }
}

/// Decides one request.
#[must_use]
pub fn decide(rows: &PrincipalRows, request: &Access) -> Decision {
    if !request.is_well_formed() {
        return Decision::refused(Reason::InvalidRequest);
    }
    let Some(identity) = rows.identity.as_ref().filter(|identity| !identity.disabled) else {
        return Decision::refused(Reason::UnknownIdentity);
    };
    let mut evidence = Evidence { identity: Some(identity.id.clone()), ..Evidence::default() };
    if identity.namespace.is_some() && identity.namespace != request.namespace {
        return Decision { allowed: false, reason: Reason::OutOfScope, evidence };
    }
    for binding in rows.bindings.iter().filter(|binding| grants(identity, binding, request)) {
        evidence.bindings.insert(binding.id.clone());
        evidence.roles.insert(binding.role.clone());
        evidence.groups.extend(binding.group.clone());
    }
    for restriction in rows.restrictions.iter().filter(|restriction| denies(restriction, request)) {
        evidence.restrictions.insert(restriction.id.clone());
    }
    let reason = match (evidence.bindings.is_empty(), evidence.restrictions.is_empty()) {
        (true, _) => Reason::NoGrant,
        (false, false) => Reason::Restricted,
        (false, true) => Reason::Allowed,
    };
    Decision { allowed: reason == Reason::Allowed, reason, evidence }
}

fn grants(identity: &IdentityRow, binding: &BindingRow, request: &Access) -> bool {
    let counts = binding.group.is_none() || identity.kind == IdentityKind::Principal;
    let target_fits =
        binding.target.as_ref().is_none_or(|target| target.kind == request.kind && target.id == request.id);
    counts
        && target_fits
        && absent_or_equal(binding.namespace.as_ref(), request.namespace.as_ref())
        && absent_or_equal(binding.role_namespace.as_ref(), request.namespace.as_ref())
        && binding.pairs.contains(&(request.action, request.kind))
}

fn denies(restriction: &RestrictionRow, request: &Access) -> bool {
    restriction.action == request.action
        && restriction.kind == request.kind
        && absent_or_equal(restriction.namespace.as_ref(), request.namespace.as_ref())
        && restriction.resource_id.as_ref().is_none_or(|id| *id == request.id)
}

fn absent_or_equal(scope: Option<&NamespaceId>, requested: Option<&NamespaceId>) -> bool {
    scope.is_none() || scope == requested
}

#[cfg(test)]
mod tests;
