//! Reason codes of work and deployments: code, class, and the one text that clients see.

/// How a reason ends or does not end the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The work is done.
    Success,
    /// It waits; the attempt is refunded.
    Pending,
    /// It is tried again; the attempt is spent.
    Retry,
    /// No later pass can succeed.
    Permanent,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// Stable code.
    pub code: &'static str,
    /// What it means for the work.
    pub class: Class,
    /// One sentence.
    pub text: &'static str,
}

/// The reason of a code; `None` for codes that only a plugin knows.
#[must_use]
pub fn find(code: &str) -> Option<&'static Reason> {
    TABLE.iter().find(|reason| reason.code == code)
}

macro_rules! table {
    ($($class:ident { $($code:literal => $text:literal,)* })*) => {
        /// Every reason that the host itself declares.
        pub const TABLE: &[Reason] = &[$($(Reason { code: $code, class: Class::$class, text: $text },)*)*];
    };
}

table! {
    Success {
        "REVISION_ACTIVATED" => "The revision serves.",
        "REVISION_ALREADY_ACTIVE" => "The revision was serving already.",
        "REVISION_SUPERSEDED" => "A newer revision was deployed.",
        "REVISION_STOPPED" => "The Agent was stopped before the revision served.",
        "AGENT_STOPPED" => "The Agent is stopped.",
        "AGENT_ALREADY_STOPPED" => "The Agent was stopped already.",
        "STOP_SUPERSEDED" => "The Agent was deployed again.",
        "AGENT_DELETED" => "The Agent is deleted.",
        "NAMESPACE_RECONCILED" => "The Namespace is as it should be.",
        "SUPERSEDED_TARGET" => "The Namespace is heading elsewhere.",
        "OBSERVED_IN_ORDER" => "The runtime is as it should be.",
        "DRIFT_REPAIRED" => "The runtime was brought back to its revision.",
        "LEASE_GIVEN_BACK" => "The worker gave the work back.",
    }
    Pending {
        "NAMESPACE_INCOMPLETE" => "The Namespace's boundary is not complete yet.",
        "REVISION_INCOMPLETE" => "The runtime is not ready yet.",
        "REVISION_UNSCHEDULABLE" => "The runtime has no place to run yet.",
        "REVISION_FINALIZATION_INCOMPLETE" => "The revision is being put into service.",
        "STOP_INCOMPLETE" => "The runtime has not ended yet.",
        "CREDENTIALS_PENDING" => "Generated credentials are being removed.",
        "DELETION_INCOMPLETE" => "What the Agent owned is being removed.",
        "KUBERNETES_API_UNAVAILABLE" => "The cluster does not answer.",
        "AGENT_GATEWAY_UNAVAILABLE" => "The gateway does not answer yet.",
        "DRIVER_UNAVAILABLE" => "The compute plugin is not available now.",
        "DEPENDENCY_DOWN" => "A dependency does not answer.",
        "RECONCILIATION_PENDING" => "The work is being done.",
    }
    Retry {
        "DEPENDENCY_UNAVAILABLE" => "A dependency failed; the work is tried again.",
        "ACTIVE_REVISION_CHANGED" => "Another revision became active meanwhile.",
        "DRIVER_TRAPPED" => "The compute plugin failed.",
        "DRIVER_LIMIT_EXCEEDED" => "The compute plugin passed one of its limits.",
        "INVALID_DRIVER_OBSERVATION" => "The compute plugin's answer cannot be used.",
        "WORKER_PANIC" => "The worker failed.",
        "LEASE_EXPIRED" => "The worker was lost before the work was done.",
        "FENCED" => "A newer pass has taken over.",
        "ACTIVE_REVISION_RECOVERY" => "The active revision is being recovered.",
    }
    Permanent {
        "INVALID_TARGET" => "The work does not name a known target.",
        "INVALID_REVISION_OWNER" => "The revision does not belong to this Agent.",
        "NAMESPACE_NOT_READY" => "The Namespace is not ready.",
        "COMPUTE_DRIVER_MISMATCH" => "The selected compute plugin does not accept this revision; deploy again.",
        "HARNESS_DESCRIPTOR_MISMATCH" => "The revision's harness is no longer approved; deploy again.",
        "ACTOR_REVOKED" => "The caller who asked for this no longer exists.",
        "AUTHORIZATION_DENIED" => "The caller who asked for this, or the Agent's principal, lost a grant that it needs.",
        "SECRET_BINDING_UNAVAILABLE" => "A Secret of the revision is gone.",
        "INVALID_ADMITTED_REVISION" => "The frozen revision is damaged.",
        "CONVERGENCE_DEADLINE_EXCEEDED" => "The runtime did not become ready in time.",
        "MAX_ATTEMPTS_EXHAUSTED" => "Every attempt failed.",
        "OWNERSHIP_CONFLICT" => "An object of that name belongs to somebody else.",
        "ACTIVATION_ROLLED_BACK" => "The revision could not be put into service; its predecessor serves again.",
        "ACTIVATION_ROLLBACK_FAILED" => "Neither the revision nor its predecessor could be put into service; repair goes on.",
        "RUNTIME_AUTHENTICATION_FAILED" => "The model refused the credential.",
        "RUNTIME_CPU_STARVED" => "The runtime got too little CPU to start.",
        "RUNTIME_MODEL_PROBE_TIMEOUT" => "The model did not answer the start-up probe in time.",
        "RUNTIME_MODEL_PROBE_FAILED" => "The model refused the start-up probe.",
        "RUNTIME_LOGIN_FAILED" => "The runtime could not log in.",
        "RUNTIME_STARTUP_FAILED" => "The runtime cannot start; its log says why.",
        "RUNTIME_PORT_TAKEN" => "The runtime's fixed port is taken by another program.",
        "RUNTIME_COMMAND_MISSING" => "The runtime's program is not installed.",
        "DRIVER_REFUSED" => "The compute plugin refused the revision.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_texts_fit() {
        let mut codes: Vec<&str> = TABLE.iter().map(|reason| reason.code).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
        for reason in TABLE {
            assert!(reason.text.ends_with('.') && reason.text.chars().count() <= 120, "{}", reason.code);
        }
        assert_eq!(find("REVISION_ACTIVATED").map(|reason| reason.class), Some(Class::Success));
        assert_eq!(find("NOBODY_KNOWS"), None);
    }
}
