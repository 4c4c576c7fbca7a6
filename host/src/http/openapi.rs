//! `/openapi.json`, made from the table: what is not in the table is not in the document.

use std::sync::LazyLock;

use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::{Admission, Answer, BODY_DEPTH_MAX, Body, Operation};
use super::query::{Param, Rule};
use super::request::Request;
use super::respond::Reply;
use super::router;
use crate::app::App;
use crate::error::Result;

/// Version of the contract.
pub const CONTRACT_VERSION: &str = "0.1.0";

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| build(router::table()));

pub(super) async fn document(_: App, _: Request) -> Result<Reply> {
    Reply::bare(200, &*DOCUMENT)
}

/// The document of a table.
#[must_use]
pub fn build(table: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        "/components/schemas".clone_into(settings.definitions_path.to_mut());
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in table {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(operation.method.as_str().to_lowercase(), describe(operation, &mut generator));
        }
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Meta".to_owned(), meta());
    schemas.insert("Failure".to_owned(), failure());
    json!({
        "openapi": "3.1.0",
        "info": { "title": "OpenClaw Enterprise control plane", "version": CONTRACT_VERSION },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "serviceKey": { "type": "apiKey", "in": "header", "name": "x-api-key" } },
        },
    })
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut described = Map::new();
    described.insert("operationId".to_owned(), json!(operation.id));
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        described.insert("parameters".to_owned(), Value::Array(parameters));
    }
    if let Some(body) = body(operation, generator) {
        described.insert("requestBody".to_owned(), body);
    }
    described.insert("responses".to_owned(), responses(operation, generator));
    if operation.admission == Admission::Authenticated {
        described.insert("security".to_owned(), json!([{ "serviceKey": [] }]));
        described.insert("x-occ-permission".to_owned(), permissions(operation));
    } else {
        described.insert("security".to_owned(), json!([]));
    }
    if let Some(action) = operation.audit {
        described.insert("x-occ-audit".to_owned(), json!(action));
    }
    Value::Object(described)
}

fn permissions(operation: &Operation) -> Value {
    let checks = operation.checks.iter().map(|check| {
        json!({ "action": check.action.as_str(), "kind": check.kind.as_str(), "on": check.on.as_str() })
    });
    Value::Array(checks.collect())
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let of_path =
        operation.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = of_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(operation.query.iter().map(query_parameter));
    if operation.if_match {
        parameters.push(json!({ "name": "If-Match", "in": "header", "schema": { "type": "string" } }));
    }
    if operation.idempotent {
        let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$" });
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "schema": schema }));
    }
    parameters
}

fn query_parameter(param: &Param) -> Value {
    let schema = match param.rule {
        Rule::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Rule::Flag => json!({ "type": "boolean" }),
        Rule::OneOf(words) => json!({ "type": "string", "enum": words }),
        Rule::Text { max } => json!({ "type": "string", "minLength": 1, "maxLength": max }),
        Rule::Namespace => json!({ "type": "string" }),
        Rule::Time => json!({ "type": "string", "format": "date-time" }),
    };
    json!({ "name": param.name, "in": "query", "required": param.required, "schema": schema })
}

fn body(operation: &Operation, generator: &mut SchemaGenerator) -> Option<Value> {
    let schema = match operation.body {
        Body::None => return None,
        Body::EmptyObject => json!({ "type": "object", "additionalProperties": false }),
        Body::Json { schema, .. } => schema(generator).to_value(),
    };
    Some(json!({
        "required": true,
        "content": { "application/json": { "schema": schema } },
        "x-occ-bytes-max": operation.body_bytes_max(),
        "x-occ-depth-max": BODY_DEPTH_MAX,
    }))
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let success = match operation.answer {
        Answer::Nothing => json!({ "description": "Done." }),
        Answer::Bare(schema) => content(&schema(generator).to_value()),
        Answer::Data(schema) => content(&envelope(schema(generator).to_value())),
        Answer::List(schema) => {
            let items = schema(generator).to_value();
            content(&envelope(json!({ "type": "array", "items": items })))
        }
    };
    let mut responses = Map::new();
    responses.insert(operation.success.to_string(), success);
    if operation.admission == Admission::Authenticated {
        for status in failures(operation) {
            let failure = content(&json!({ "$ref": "#/components/schemas/Failure" }));
            responses.insert(status.to_string(), failure);
        }
    }
    if operation.id == "readiness" {
        let unready = responses.get("200").cloned().unwrap_or_default();
        responses.insert("503".to_owned(), unready);
    }
    Value::Object(responses)
}

fn failures(operation: &Operation) -> Vec<u16> {
    let mut failures = vec![400, 401, 403, 404, 413, 415, 500, 503];
    if operation.method != Method::GET {
        failures.push(409);
    }
    if operation.if_match {
        failures.push(412);
    }
    if operation.idempotent {
        failures.push(422);
    }
    failures.sort_unstable();
    failures
}

fn content(schema: &Value) -> Value {
    json!({ "description": "The answer.", "content": { "application/json": { "schema": schema } } })
}

fn envelope(data: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["data", "meta"],
        "properties": { "data": data, "meta": { "$ref": "#/components/schemas/Meta" } },
    })
}

fn meta() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["requestId"],
        "properties": {
            "requestId": { "type": "string" },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn failure() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["error", "meta"],
        "properties": {
            "error": {
                "type": "object",
                "additionalProperties": false,
                "required": ["code", "message"],
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string", "minLength": 1, "maxLength": 256 },
                    "details": {
                        "type": "array",
                        "maxItems": 32,
                        "items": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["path", "code"],
                            "properties": {
                                "path": { "type": "string", "maxLength": 512 },
                                "code": { "type": "string" },
                            },
                        },
                    },
                },
            },
            "meta": { "$ref": "#/components/schemas/Meta" },
        },
    })
}
