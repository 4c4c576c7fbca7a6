//! The shape of a stored event on the wire. Pure.

use occ_api::types::AuditEvent;
use serde_json::{Map, Value, json};

use super::store::EventRow;
use crate::app::App;

/// A stored event on the wire.
pub(super) fn to_wire(app: &App, row: EventRow) -> AuditEvent {
    let mut authorization = row.decision;
    let reason =
        authorization.as_mut().and_then(Value::as_object_mut).and_then(|object| object.remove("reason"));
    let mut resource = json!({ "kind": row.resource_kind, "id": row.resource_id });
    if let (Some(namespace), Some(object)) = (&row.namespace_id, resource.as_object_mut()) {
        object.insert("namespaceId".to_owned(), json!(namespace));
    }
    AuditEvent {
        schema_version: 1,
        id: row.id,
        installation_id: app.installation.to_string(),
        namespace_id: row.namespace_id,
        occurred_at: row.occurred_at.into(),
        source: "occ".to_owned(),
        kind: row.kind,
        actor_id: row.actor_id,
        actor: row.actor,
        action: row.action,
        resource,
        outcome: row.outcome,
        request_id: row.request_id,
        iam_driver_id: "native".to_owned(),
        authorization,
        decision_reason: reason.and_then(|reason| reason.as_str().map(str::to_owned)),
        reason_code: row.reason_code,
        work_key: row.work_key,
        details: Some(row.details.unwrap_or_else(|| Value::Object(Map::new()))),
    }
}
