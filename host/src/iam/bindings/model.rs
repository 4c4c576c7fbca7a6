//! Rules of AccessBindings. Pure.

use std::collections::BTreeSet;

use occ_api::error::{FieldCode, FieldError};
use occ_api::ids::NamespaceId;
use occ_api::types::AccessBindingCreate;

use crate::iam::access::{Action, Kind, Pair};
use crate::iam::coverage::{Grant, Reach};
use crate::iam::decide::Target;
use crate::iam::lock::Home;

/// The resource that a new binding is confined to; its kind must live at the binding's level.
pub(super) fn target(body: &AccessBindingCreate, home: &Home) -> Result<Option<Target>, Vec<FieldError>> {
    let (Some(kind), Some(id)) = (&body.resource_kind, &body.resource_id) else {
        return Ok(None);
    };
    match kind.parse::<Kind>() {
        Ok(kind) if (kind == Kind::Installation) == (*home == Home::Installation) => {
            Ok(Some(Target { kind, id: id.clone() }))
        }
        _ => Err(vec![FieldError::new("/resourceKind", FieldCode::InvalidValue)]),
    }
}

/// May a Role with these pairs be bound to the target? It has no `create` and something for the target's kind.
pub(super) fn role_fits(pairs: &BTreeSet<Pair>, target: Option<&Target>) -> bool {
    target.is_none_or(|target| {
        pairs.iter().all(|(action, _)| *action != Action::Create)
            && pairs.iter().any(|(_, kind)| *kind == target.kind)
    })
}

/// What a binding grants.
pub(super) fn grants(
    pairs: &BTreeSet<Pair>,
    namespace: Option<NamespaceId>,
    target: Option<&Target>,
) -> Vec<Grant> {
    let reach = Reach::new(namespace, target.cloned());
    pairs
        .iter()
        .filter(|(_, kind)| target.is_none_or(|target| target.kind == *kind))
        .map(|&(action, kind)| Grant { action, kind, reach: reach.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use occ_api::types::SubjectKind;

    use super::*;

    const NS: &str = "ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";

    fn body(kind: Option<&str>, id: Option<&str>) -> AccessBindingCreate {
        AccessBindingCreate {
            subject_kind: SubjectKind::Identity,
            subject_id: "spn_1".to_owned(),
            role_id: "role_1".parse().unwrap(),
            resource_kind: kind.map(str::to_owned),
            resource_id: id.map(str::to_owned),
        }
    }

    #[test]
    fn a_target_lives_at_the_level_of_its_binding() {
        let inside = Home::Namespace(NS.parse().unwrap());
        assert_eq!(target(&body(None, None), &inside), Ok(None));
        let agent = target(&body(Some("agent"), Some("agt_1")), &inside).unwrap();
        assert_eq!(agent, Some(Target { kind: Kind::Agent, id: "agt_1".to_owned() }));
        let wrong = Err(vec![FieldError::new("/resourceKind", FieldCode::InvalidValue)]);
        assert_eq!(target(&body(Some("installation"), Some("ins_1")), &inside), wrong);
        assert_eq!(target(&body(Some("agent"), Some("agt_1")), &Home::Installation), wrong);
        assert_eq!(target(&body(Some("pod"), Some("x")), &inside), wrong);
        assert!(target(&body(Some("installation"), Some("ins_1")), &Home::Installation).unwrap().is_some());
    }

    #[test]
    fn an_exact_binding_grants_only_what_its_target_can_have() {
        let agent = Target { kind: Kind::Agent, id: "agt_1".to_owned() };
        let read = BTreeSet::from([(Action::Read, Kind::Agent), (Action::Read, Kind::Secret)]);
        assert!(role_fits(&read, Some(&agent)));
        assert_eq!(grants(&read, Some(NS.parse().unwrap()), Some(&agent)).len(), 1);
        assert_eq!(grants(&read, Some(NS.parse().unwrap()), None).len(), 2);
        let revision = BTreeSet::from([(Action::Read, Kind::AgentRevision)]);
        assert!(!role_fits(&revision, Some(&agent)), "it would be silently useless");
        let create = BTreeSet::from([(Action::Read, Kind::Agent), (Action::Create, Kind::Agent)]);
        assert!(!role_fits(&create, Some(&agent)));
        assert!(role_fits(&create, None));
    }
}
