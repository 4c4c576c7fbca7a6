//! Rules of Roles. Pure.

use std::collections::BTreeSet;

use occ_api::error::{FieldCode, FieldError};
use occ_api::types::{Permission, RoleCreate};

use crate::iam::access::{Pair, fits_namespace_role, is_checked};
use crate::iam::lock::Home;

/// The version of every Role.
pub(super) const VERSION: u64 = 1;

/// The permissions of a new Role, or every one at fault: a pair that no operation checks, that reaches out of the
/// Role's Namespace, or that repeats.
pub(super) fn pairs(body: &RoleCreate, home: &Home) -> Result<BTreeSet<Pair>, Vec<FieldError>> {
    let mut faults = Vec::new();
    let mut pairs = BTreeSet::new();
    for (index, permission) in body.permissions.iter().enumerate() {
        let accepted = pair(permission)
            .filter(|pair| *home == Home::Installation || fits_namespace_role(*pair))
            .is_some_and(|pair| pairs.insert(pair));
        if !accepted {
            faults.push(FieldError::new(format!("/permissions/{index}"), FieldCode::InvalidValue));
        }
    }
    if faults.is_empty() { Ok(pairs) } else { Err(faults) }
}

fn pair(permission: &Permission) -> Option<Pair> {
    let pair = (permission.action.parse().ok()?, permission.resource_kind.parse().ok()?);
    is_checked(pair).then_some(pair)
}

/// The wire form of permissions, in the order of the table of kinds and actions.
pub(super) fn permissions(pairs: &BTreeSet<Pair>) -> Vec<Permission> {
    let wire =
        |(action, kind): &Pair| Permission { action: action.to_string(), resource_kind: kind.to_string() };
    pairs.iter().map(wire).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(permissions: &[(&str, &str)]) -> RoleCreate {
        let permissions = permissions
            .iter()
            .map(|(action, kind)| Permission {
                action: (*action).to_owned(),
                resource_kind: (*kind).to_owned(),
            })
            .collect();
        RoleCreate { name: None, permissions }
    }

    fn faults(permissions: &[(&str, &str)], home: &Home) -> Vec<String> {
        pairs(&body(permissions), home).unwrap_err().into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn a_pair_that_no_operation_checks_is_named() {
        let asked =
            [("read", "agent"), ("deploy", "secret"), ("use", "agent"), ("read", "pod"), ("read", "agent")];
        assert_eq!(
            faults(&asked, &Home::Installation),
            ["/permissions/1", "/permissions/2", "/permissions/3", "/permissions/4"]
        );
    }

    #[test]
    fn a_role_of_a_namespace_cannot_reach_out_of_it() {
        let home = Home::Namespace("ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10".parse().unwrap());
        let asked = [
            ("read", "namespace"),
            ("create", "namespace"),
            ("administer", "installation"),
            ("create", "agent"),
        ];
        assert_eq!(faults(&asked, &home), ["/permissions/1", "/permissions/2"]);
        assert_eq!(pairs(&body(&asked), &Home::Installation).unwrap().len(), 4);
    }
}
