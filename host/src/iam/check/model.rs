//! From questions on the wire to decisions, and back. Pure.

use occ_api::error::{FieldCode, FieldError};
use occ_api::ids::IdentityId;
use occ_api::types::{self, Check};

use crate::audit::evidence_wire;
use crate::iam::access::Access;
use crate::iam::decide::Decision;

/// Most ids of one set of evidence in an explanation.
const EVIDENCE_IDS_MAX: usize = 1_000;

/// The question as IAM asks it, or the fields at fault below `at`.
pub(super) fn access(question: &Check, at: &str) -> Result<Access, Vec<FieldError>> {
    let action = question.action.parse();
    let kind = question.resource_kind.parse();
    let (Ok(action), Ok(kind)) = (action, kind) else {
        let action_fault =
            action.is_err().then(|| FieldError::new(format!("{at}/action"), FieldCode::InvalidValue));
        let kind_fault =
            kind.is_err().then(|| FieldError::new(format!("{at}/resourceKind"), FieldCode::InvalidValue));
        return Err(action_fault.into_iter().chain(kind_fault).collect());
    };
    let namespace = question.namespace_id.clone();
    let access = Access { action, kind, id: question.resource_id.clone(), namespace };
    if access.is_well_formed() {
        return Ok(access);
    }
    let code = if question.namespace_id.is_some() { FieldCode::InvalidValue } else { FieldCode::Required };
    Err(vec![FieldError::new(format!("{at}/namespaceId"), code)])
}

/// The answer of can-i.
pub(super) fn answer(access: &Access, decision: &Decision) -> types::Decision {
    types::Decision {
        allowed: decision.allowed,
        action: access.action.to_string(),
        resource_kind: access.kind.to_string(),
        resource_id: access.id.clone(),
        namespace_id: access.namespace.clone(),
        principal_id: None,
        reason: None,
        evidence: None,
    }
}

/// The answer of explain.
pub(super) fn explanation(principal: &IdentityId, access: &Access, decision: &Decision) -> types::Decision {
    let evidence = evidence_wire(&decision.evidence, EVIDENCE_IDS_MAX);
    types::Decision {
        principal_id: Some(principal.clone()),
        reason: Some(decision.reason.to_string()),
        evidence: Some(types::Evidence {
            // Evidence is about the principal that was asked for, also when it does not exist.
            identity_id: principal.to_string(),
            group_ids: evidence.group_ids,
            binding_ids: evidence.binding_ids,
            role_ids: evidence.role_ids,
            restriction_ids: evidence.restriction_ids,
            truncated: evidence.truncated,
        }),
        ..answer(access, decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(action: &str, kind: &str, id: &str, namespace: Option<&str>) -> Check {
        Check {
            action: action.to_owned(),
            resource_kind: kind.to_owned(),
            resource_id: id.to_owned(),
            namespace_id: namespace.map(|namespace| namespace.parse().unwrap()),
        }
    }

    #[test]
    fn a_question_names_its_scope() {
        let ns = "ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";
        assert!(access(&question("read", "agent", "agt_1", Some(ns)), "").is_ok());
        assert!(access(&question("administer", "installation", "ins_1", None), "").is_ok());
        let fault = |question: Check| access(&question, "/checks/3").unwrap_err();
        assert_eq!(
            fault(question("read", "agent", "agt_1", None)),
            [FieldError::new("/checks/3/namespaceId", FieldCode::Required)]
        );
        assert_eq!(
            fault(question("read", "namespace", "ns_other", Some(ns))),
            [FieldError::new("/checks/3/namespaceId", FieldCode::InvalidValue)]
        );
        let codes: Vec<String> =
            fault(question("eat", "pod", "x", None)).into_iter().map(|fault| fault.path).collect();
        assert_eq!(codes, ["/checks/3/action", "/checks/3/resourceKind"]);
    }
}
