use serde_json::json;

use super::*;

fn deployment(work: WorkState, code: Option<&str>) -> Deployment {
    Deployment {
        revision: "rev_00000000-0000-4000-8000-000000000000".parse().unwrap(),
        namespace: "ns_00000000-0000-4000-8000-000000000000".parse().unwrap(),
        agent: "agt_00000000-0000-4000-8000-000000000000".parse().unwrap(),
        work,
        code: code.map(str::to_owned),
        result: None,
        last_attempt_at: Some(OffsetDateTime::UNIX_EPOCH),
        next_attempt_at: OffsetDateTime::UNIX_EPOCH,
    }
}

fn declared(code: &str) -> Option<String> {
    (code == "REVISION_CRASHING").then(|| "It ends again and again.".to_owned())
}

#[test]
fn only_an_activated_revision_succeeded() {
    let cases = [
        (WorkState::Queued, None, DeploymentStatus::Queued),
        (WorkState::Claimed, Some("REVISION_INCOMPLETE"), DeploymentStatus::Running),
        (WorkState::Succeeded, Some("REVISION_ACTIVATED"), DeploymentStatus::Succeeded),
        (WorkState::Succeeded, Some("REVISION_ALREADY_ACTIVE"), DeploymentStatus::Succeeded),
        (WorkState::Succeeded, Some("REVISION_SUPERSEDED"), DeploymentStatus::Failed),
        (WorkState::Succeeded, Some("REVISION_STOPPED"), DeploymentStatus::Failed),
        (WorkState::FailedPermanent, Some("ACTIVATION_ROLLED_BACK"), DeploymentStatus::Failed),
    ];
    for (work, code, status) in cases {
        let wire = deployment(work, code).to_wire(declared);
        assert_eq!(wire.status, status, "{code:?}");
        let pending = matches!(status, DeploymentStatus::Queued | DeploymentStatus::Running);
        assert_eq!(wire.progress.is_some(), pending, "{code:?}");
        assert_eq!(wire.error.is_some(), status == DeploymentStatus::Failed, "{code:?}");
    }
}

#[test]
fn an_attempt_shows_declared_codes_alone() {
    let attempt = |code: &str| {
        let wire = deployment(WorkState::Queued, Some(code)).to_wire(declared);
        wire.progress.and_then(|progress| progress.last_attempt).unwrap()
    };
    assert_eq!(attempt("REVISION_CRASHING").message, "It ends again and again.");
    assert_eq!(attempt("REVISION_INCOMPLETE").code, "REVISION_INCOMPLETE");
    let unknown = attempt("SOMETHING_PRIVATE");
    assert_eq!(unknown.code, "RECONCILIATION_PENDING");
    assert!(!unknown.message.is_empty());
}

#[test]
fn a_failure_keeps_its_data() {
    let mut failed = deployment(WorkState::FailedPermanent, Some("ACTIVATION_ROLLED_BACK"));
    failed.result = Some(json!({"cause": "CONVERGENCE_DEADLINE_EXCEEDED"}));
    let error = failed.to_wire(declared).error.unwrap();
    assert_eq!(error.data, failed.result);
    assert!(!error.message.is_empty());
}

#[test]
fn a_lapsed_lease_reads_as_queued() {
    assert_eq!(WorkState::from_columns("claimed", false).unwrap(), WorkState::Queued);
    assert_eq!(WorkState::from_columns("claimed", true).unwrap(), WorkState::Claimed);
    assert!(WorkState::from_columns("unheard", true).is_err());
}
