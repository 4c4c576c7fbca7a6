//! Work on the wire, and which permission its retry needs. Pure.

use std::collections::BTreeSet;

use occ_api::ids::{AgentId, ConfigurationId, IdentityId, InstallationId, NamespaceId, RevisionId, SecretId};
use occ_api::types::WorkItem;
use time::OffsetDateTime;

use crate::iam::{Access, Action, Kind, Visible};

/// The words of the states of work.
pub(crate) const STATES: &[&str] = &["queued", "claimed", "succeeded", "failed_permanent"];
/// The state that a retry starts from.
pub(super) const FAILED: &str = "failed_permanent";
/// The code of work that was undone.
pub(super) const ROLLED_BACK: &str = "ACTIVATION_ROLLED_BACK";

/// One row of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) kind: String,
    pub(super) namespace: NamespaceId,
    pub(super) agent: Option<AgentId>,
    pub(super) revision: Option<RevisionId>,
    pub(super) actor: Option<IdentityId>,
    pub(super) upkeep: bool,
    pub(super) state: String,
    pub(super) phase: String,
    pub(super) step: Option<String>,
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    pub(super) passes: u32,
    pub(super) code: Option<String>,
    pub(super) available_at: OffsetDateTime,
    pub(super) deadline_at: Option<OffsetDateTime>,
    pub(super) last_attempt_at: Option<OffsetDateTime>,
    pub(super) created_at: OffsetDateTime,
    pub(super) completed_at: Option<OffsetDateTime>,
}

/// What a caller may see of work, by the kind of its owner.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) namespaces: Visible,
    pub(super) agents: Visible,
    pub(super) revisions: Visible,
}

/// What kind of work it is, as far as a retry cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    NamespaceEnsure,
    NamespaceDelete,
    AgentStop,
    AgentDelete,
    RevisionReconcile,
    Upkeep,
}

impl Row {
    pub(super) fn to_wire(&self) -> WorkItem {
        WorkItem {
            key: self.key.clone(),
            kind: self.kind.clone(),
            namespace_id: self.namespace.clone(),
            agent_id: self.agent.clone(),
            revision_id: self.revision.clone(),
            state: self.state.clone(),
            phase: self.phase.clone(),
            step: self.step.clone(),
            attempt: self.attempt,
            attempts_max: self.attempts_max,
            passes: self.passes,
            code: self.code.clone(),
            available_at: self.available_at.into(),
            deadline_at: self.deadline_at.map(Into::into),
            last_attempt_at: self.last_attempt_at.map(Into::into),
            created_at: self.created_at.into(),
            completed_at: self.completed_at.map(Into::into),
        }
    }

    /// Read on the owner: who may do that may see the work.
    pub(super) fn sight(&self) -> Access {
        match (&self.revision, &self.agent) {
            (Some(revision), _) => Access::item(Action::Read, Kind::AgentRevision, &self.namespace, revision),
            (None, Some(agent)) => Access::item(Action::Read, Kind::Agent, &self.namespace, agent),
            (None, None) => Access::namespace(Action::Read, &self.namespace),
        }
    }

    /// Nothing for a kind that this binary does not know.
    pub(super) fn task(&self) -> Option<Task> {
        match self.kind.as_str() {
            _ if self.upkeep => Some(Task::Upkeep),
            "namespace.ensure" => Some(Task::NamespaceEnsure),
            "namespace.delete" => Some(Task::NamespaceDelete),
            "agent.stop" => Some(Task::AgentStop),
            "agent.delete" => Some(Task::AgentDelete),
            "revision.reconcile" => Some(Task::RevisionReconcile),
            _ => None,
        }
    }

    /// The permission of the work's own operation.
    pub(super) fn permission(&self, task: Task, installation: &InstallationId) -> Access {
        let on_agent = |action| match &self.agent {
            Some(agent) => Access::item(action, Kind::Agent, &self.namespace, agent),
            // Upkeep of a Namespace has no action of its own.
            None => Access::installation(Action::Administer, installation),
        };
        match task {
            Task::NamespaceEnsure => Access::namespaces(installation),
            Task::NamespaceDelete => Access::namespace(Action::Delete, &self.namespace),
            Task::AgentDelete => on_agent(Action::Delete),
            Task::AgentStop | Task::Upkeep => on_agent(Action::Operate),
            Task::RevisionReconcile => on_agent(Action::Deploy),
        }
    }
}

/// What deploying the same snapshot needs beyond deploy itself.
pub(super) fn freeze_accesses(
    namespace: &NamespaceId,
    configuration: &ConfigurationId,
    secrets: &BTreeSet<SecretId>,
) -> Vec<Access> {
    let read = Access::item(Action::Read, Kind::Configuration, namespace, configuration);
    let operate = secrets.iter().map(|id| Access::item(Action::Operate, Kind::Secret, namespace, id));
    std::iter::once(read).chain(operate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: &str = "ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10";
    const AGENT: &str = "agt_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b11";
    const REVISION: &str = "rev_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b12";
    const INSTALLATION: &str = "ins_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b13";

    fn row(kind: &str, agent: Option<&str>, revision: Option<&str>) -> Row {
        let at = OffsetDateTime::UNIX_EPOCH;
        Row {
            key: "k".to_owned(),
            kind: kind.to_owned(),
            namespace: NS.parse().unwrap(),
            agent: agent.map(|id| id.parse().unwrap()),
            revision: revision.map(|id| id.parse().unwrap()),
            actor: None,
            upkeep: kind.ends_with(".observe"),
            state: FAILED.to_owned(),
            phase: "forward".to_owned(),
            step: None,
            attempt: 5,
            attempts_max: 5,
            passes: 7,
            code: Some("LEASE_EXPIRED".to_owned()),
            available_at: at,
            deadline_at: None,
            last_attempt_at: None,
            created_at: at,
            completed_at: Some(at),
        }
    }

    #[test]
    fn each_kind_has_the_permission_of_its_operation() {
        let cases = [
            (row("namespace.ensure", None, None), Action::Create, Kind::Namespace, INSTALLATION),
            (row("namespace.delete", None, None), Action::Delete, Kind::Namespace, NS),
            (row("agent.stop", Some(AGENT), None), Action::Operate, Kind::Agent, AGENT),
            (row("agent.delete", Some(AGENT), None), Action::Delete, Kind::Agent, AGENT),
            (row("revision.reconcile", Some(AGENT), Some(REVISION)), Action::Deploy, Kind::Agent, AGENT),
            (row("agent.observe", Some(AGENT), None), Action::Operate, Kind::Agent, AGENT),
            (row("namespace.observe", None, None), Action::Administer, Kind::Installation, INSTALLATION),
        ];
        for (row, action, kind, id) in cases {
            let access = row.permission(row.task().unwrap(), &INSTALLATION.parse().unwrap());
            assert_eq!((access.action, access.kind, access.id.as_str()), (action, kind, id), "{}", row.kind);
            assert!(access.is_well_formed(), "{}", row.kind);
        }
        assert_eq!(row("backup.run", None, None).task(), None);
    }

    #[test]
    fn work_is_seen_through_its_owner() {
        let kind = |row: Row| row.sight().kind;
        assert_eq!(kind(row("revision.reconcile", Some(AGENT), Some(REVISION))), Kind::AgentRevision);
        assert_eq!(kind(row("agent.stop", Some(AGENT), None)), Kind::Agent);
        assert_eq!(kind(row("namespace.ensure", None, None)), Kind::Namespace);
    }
}
