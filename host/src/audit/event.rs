//! The content of an event. Pure.

use std::collections::BTreeSet;
use std::fmt;

use occ_api::ids::{NamespaceId, RequestId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::iam::decide::Evidence;
use crate::iam::{Access, Caller, Decision, Scope};

/// Most ids of one set of evidence in an event; the rest is counted.
pub const EVIDENCE_IDS_MAX: usize = 16;

/// The words of [`EventKind`].
pub const KINDS: &[&str] = &["bootstrap", "mutation", "authorization_denial", "access", "reconcile"];
/// The words of [`Outcome`].
pub const OUTCOMES: &[&str] = &["success", "denied", "failure"];
/// Actor of what no caller asked for.
const SYSTEM: &str = "system";

/// What sort of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Made by `bootstrap`.
    Bootstrap,
    /// A caller changed something.
    Mutation,
    /// Something was refused.
    AuthorizationDenial,
    /// Content was looked at.
    Access,
    /// The worker went from one state to another.
    Reconcile,
}

impl EventKind {
    /// The word on the wire and in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Mutation => "mutation",
            Self::AuthorizationDenial => "authorization_denial",
            Self::Access => "access",
            Self::Reconcile => "reconcile",
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect.
    Success,
    /// It was not allowed.
    Denied,
    /// It did not work.
    Failure,
}

impl Outcome {
    /// The word on the wire and in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Denied => "denied",
            Self::Failure => "failure",
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Kind, such as `agent`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its Namespace; the event's Namespace is the same.
    pub namespace: Option<NamespaceId>,
}

impl Resource {
    /// A resource of a Namespace.
    #[must_use]
    pub fn in_namespace(kind: &'static str, id: impl fmt::Display, namespace: &NamespaceId) -> Self {
        Self { kind, id: id.to_string(), namespace: Some(namespace.clone()) }
    }

    /// A resource of the Installation.
    #[must_use]
    pub fn of_installation(kind: &'static str, id: impl fmt::Display) -> Self {
        Self { kind, id: id.to_string(), namespace: None }
    }
}

/// One event before it has an id and a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub(super) kind: EventKind,
    pub(super) actor_id: String,
    pub(super) actor: Value,
    pub(super) action: String,
    pub(super) resource: Resource,
    pub(super) outcome: Outcome,
    pub(super) request_id: Option<String>,
    pub(super) decision: Option<Value>,
    pub(super) reason_code: Option<String>,
    pub(super) work_key: Option<String>,
    pub(super) details: Option<Value>,
}

impl Event {
    /// A change that a caller made; committed together with it. `action` is prefixed `openclaw.`.
    #[must_use]
    pub fn mutation(caller: &Caller, scope: &Scope, action: &'static str, resource: Resource) -> Self {
        Self::of_caller(
            EventKind::Mutation,
            caller,
            scope.access(),
            scope.decision(),
            action.to_owned(),
            resource,
        )
    }

    /// A look at content: logs, the audit log itself.
    #[must_use]
    pub fn access(caller: &Caller, scope: &Scope, action: &'static str, resource: Resource) -> Self {
        Self::of_caller(
            EventKind::Access,
            caller,
            scope.access(),
            scope.decision(),
            action.to_owned(),
            resource,
        )
    }

    /// A refusal of what a caller asked for.
    #[must_use]
    pub fn denial(caller: &Caller, access: &Access, decision: &Decision) -> Self {
        let action = match caller.audit_action {
            Some(action) => action.to_owned(),
            None => format!("openclaw.{}.{}", access.kind, access.action),
        };
        let resource = Resource {
            kind: access.kind.as_str(),
            id: access.id.clone(),
            namespace: access.namespace.clone(),
        };
        let event =
            Self::of_caller(EventKind::AuthorizationDenial, caller, access, decision, action, resource);
        Self { outcome: Outcome::Denied, reason_code: Some(decision.reason.to_string()), ..event }
    }

    /// A transition that the worker made. `actor_id` is the identity that asked for the work, or `system`.
    #[must_use]
    pub fn reconcile(
        actor_id: impl fmt::Display,
        action: &'static str,
        resource: Resource,
        outcome: Outcome,
        code: &str,
        work_key: &str,
    ) -> Self {
        let kind = match outcome {
            Outcome::Denied => EventKind::AuthorizationDenial,
            Outcome::Success | Outcome::Failure => EventKind::Reconcile,
        };
        let actor_id = actor_id.to_string();
        Self {
            kind,
            actor: json!({ "principalId": actor_id }),
            actor_id,
            action: action.to_owned(),
            resource,
            outcome,
            request_id: None,
            decision: None,
            reason_code: Some(code.to_owned()),
            work_key: Some(work_key.to_owned()),
            details: None,
        }
    }

    /// A plugin was refused what it may not reach. The host itself is the actor.
    #[must_use]
    pub fn security(action: &'static str, resource: Resource, code: &str) -> Self {
        Self {
            kind: EventKind::AuthorizationDenial,
            actor_id: SYSTEM.to_owned(),
            actor: json!({ "principalId": SYSTEM }),
            action: action.to_owned(),
            resource,
            outcome: Outcome::Denied,
            request_id: None,
            decision: None,
            reason_code: Some(code.to_owned()),
            work_key: None,
            details: None,
        }
    }

    /// A step of `bootstrap`.
    #[must_use]
    pub fn bootstrap(actor_id: impl fmt::Display, action: &'static str, resource: Resource) -> Self {
        let actor_id = actor_id.to_string();
        Self {
            kind: EventKind::Bootstrap,
            actor: json!({ "principalId": actor_id }),
            actor_id,
            action: action.to_owned(),
            resource,
            outcome: Outcome::Success,
            request_id: None,
            decision: None,
            reason_code: None,
            work_key: None,
            details: None,
        }
    }

    /// Adds the details of the action: a struct of its own, serialised as an object.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the struct is not an object.
    pub fn details(mut self, details: &impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(details)
            .map_err(|error| Error::internal("audit details cannot be written").caused_by(error))?;
        if !value.is_object() {
            return Err(Error::internal("audit details are not an object"));
        }
        self.details = Some(value);
        Ok(self)
    }

    /// Adds the decision that allowed or stopped the worker.
    #[must_use]
    pub fn decided(mut self, access: &Access, decision: &Decision) -> Self {
        self.decision = Some(decision_json(&self.actor_id, access, decision));
        self
    }

    /// Adds the code of the result.
    #[must_use]
    pub fn reason(mut self, code: &str) -> Self {
        self.reason_code = Some(code.to_owned());
        self
    }

    /// Adds the work that the event belongs to.
    #[must_use]
    pub fn work(mut self, key: &str) -> Self {
        self.work_key = Some(key.to_owned());
        self
    }

    /// Adds the request that caused it.
    #[must_use]
    pub fn request(mut self, id: &RequestId) -> Self {
        self.request_id = Some(id.to_string());
        self
    }

    fn of_caller(
        kind: EventKind,
        caller: &Caller,
        access: &Access,
        decision: &Decision,
        action: String,
        resource: Resource,
    ) -> Self {
        let actor_id = caller.identity.to_string();
        let actor = match &caller.key {
            Some(key) => json!({ "principalId": actor_id, "serviceKeyId": key }),
            None => json!({ "principalId": actor_id }),
        };
        Self {
            kind,
            decision: Some(decision_json(&actor_id, access, decision)),
            actor_id,
            actor,
            action,
            resource,
            outcome: Outcome::Success,
            request_id: Some(caller.request_id.to_string()),
            reason_code: None,
            work_key: None,
            details: None,
        }
    }
}

/// Evidence on the wire: sorted ids, cut at a bound, with the full counts when something was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvidenceWire {
    /// The identity that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_id: Option<String>,
    pub(crate) group_ids: Vec<String>,
    pub(crate) binding_ids: Vec<String>,
    pub(crate) role_ids: Vec<String>,
    pub(crate) restriction_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<EvidenceCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) truncated: Option<bool>,
}

/// How many rows mattered, when not all are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvidenceCounts {
    groups: usize,
    bindings: usize,
    roles: usize,
    restrictions: usize,
}

/// Evidence with at most `ids_max` ids a set.
pub(crate) fn evidence_wire(evidence: &Evidence, ids_max: usize) -> EvidenceWire {
    let counts = EvidenceCounts {
        groups: evidence.groups.len(),
        bindings: evidence.bindings.len(),
        roles: evidence.roles.len(),
        restrictions: evidence.restrictions.len(),
    };
    let cut = [counts.groups, counts.bindings, counts.roles, counts.restrictions]
        .iter()
        .any(|count| *count > ids_max);
    EvidenceWire {
        identity_id: evidence.identity.as_ref().map(ToString::to_string),
        group_ids: first_ids(&evidence.groups, ids_max),
        binding_ids: first_ids(&evidence.bindings, ids_max),
        role_ids: first_ids(&evidence.roles, ids_max),
        restriction_ids: first_ids(&evidence.restrictions, ids_max),
        counts: cut.then_some(counts),
        truncated: cut.then_some(true),
    }
}

fn first_ids<T: fmt::Display>(ids: &BTreeSet<T>, ids_max: usize) -> Vec<String> {
    ids.iter().take(ids_max).map(ToString::to_string).collect()
}

fn decision_json(principal: &str, access: &Access, decision: &Decision) -> Value {
    let evidence = evidence_wire(&decision.evidence, EVIDENCE_IDS_MAX);
    let mut resource = json!({ "kind": access.kind.as_str(), "id": access.id });
    if let (Some(namespace), Some(object)) = (&access.namespace, resource.as_object_mut()) {
        object.insert("namespaceId".to_owned(), json!(namespace));
    }
    json!({
        "principalId": principal,
        "action": access.action.as_str(),
        "resource": resource,
        "evidence": evidence,
        "reason": decision.reason.as_str(),
    })
}
