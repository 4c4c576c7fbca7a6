//! Documents of the shape that people write, and what is wrong with those that are refused.

use serde_json::{Value, json};

/// Where a document is refused, and the pointer that the answer must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is deployed.
    Accepted,
    /// `createConfiguration` refuses it.
    Create(&'static str),
    /// `deployAgent` refuses it.
    Deploy(&'static str),
}

/// A document that an embedded Agent runs.
pub(super) fn valid() -> Value {
    json!({
        "agents": {"defaults": {
            "skipBootstrap": true,
            "model": "openai/gamma",
            "models": {"openai/gamma": {"agentRuntime": {"id": "openclaw"}}}
        }},
        "models": {"providers": {"openai": {
            "baseUrl": "http://127.0.0.1:9/v1",
            "api": "openai-responses",
            "models": [{"id": "gamma", "name": "Gamma"}]
        }}}
    })
}

/// The valid document with one value put somewhere.
pub(super) fn with(pointer: &str, value: Value) -> Value {
    let mut document = valid();
    put(&mut document, pointer, value);
    document
}

/// Puts a value at a JSON Pointer; objects on the way are made.
pub(super) fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut at = document;
    for segment in pointer.trim_start_matches('/').split('/') {
        let key = segment.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut().unwrap().entry(key).or_insert(Value::Null);
    }
    *at = value;
}

/// Every rule that refuses a document, each broken alone.
pub(super) fn cases() -> Vec<(&'static str, Value, Verdict)> {
    let provider = "/models/providers/openai";
    let runtime = "/agents/defaults/models/openai~1gamma/agentRuntime/id";
    let mut mixed =
        with("/agents/defaults/model", json!({"primary": "openai/gamma", "fallbacks": ["side/delta"]}));
    put(&mut mixed, "/agents/defaults/models/side~1delta", json!({"agentRuntime": {"id": "codex"}}));
    put(
        &mut mixed,
        "/models/providers/side",
        json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-responses", "models": [{"id": "delta", "name": "Delta"}]}),
    );
    vec![
        ("valid", valid(), Verdict::Accepted),
        (
            "key by reference",
            with(
                &format!("{provider}/apiKey"),
                json!({"source": "env", "provider": "default", "id": "MODEL_KEY"}),
            ),
            Verdict::Accepted,
        ),
        ("bind of another platform", with("/gateway/bind", json!("lan")), Verdict::Accepted),
        (
            "literal key",
            with(&format!("{provider}/apiKey"), json!("sk-0123456789abcdef0123")),
            Verdict::Create("/values/models/providers/openai/apiKey"),
        ),
        (
            "credential header",
            with(&format!("{provider}/headers"), json!({"Authorization": "Bearer x"})),
            Verdict::Create("/values/models/providers/openai/headers/Authorization"),
        ),
        (
            "relative URL",
            with(&format!("{provider}/baseUrl"), json!("model.example.com/v1")),
            Verdict::Create("/values/models/providers/openai/baseUrl"),
        ),
        (
            "unknown API",
            with(&format!("{provider}/api"), json!("soap")),
            Verdict::Create("/values/models/providers/openai/api"),
        ),
        (
            "literal password",
            with("/gateway/auth/password", json!("correct horse")),
            Verdict::Create("/values/gateway/auth/password"),
        ),
        (
            "list of agents",
            with("/agents/list", json!([{"id": "a"}])),
            Verdict::Deploy("/values/agents/list"),
        ),
        ("codex in one process", with(runtime, json!("codex")), Verdict::Deploy("/executionMode")),
        (
            "unknown runtime",
            with(runtime, json!("abacus")),
            Verdict::Deploy("/values/agents/defaults/models/openai~1gamma/agentRuntime/id"),
        ),
        (
            "no runtime policy",
            with("/agents/defaults/models/openai~1gamma", json!({})),
            Verdict::Deploy("/values/agents/defaults/models"),
        ),
        (
            "open gateway",
            with("/gateway/auth/mode", json!("none")),
            Verdict::Deploy("/values/gateway/auth/mode"),
        ),
        ("two harnesses", mixed, Verdict::Deploy("/values/agents/defaults/model/fallbacks/0")),
    ]
}
