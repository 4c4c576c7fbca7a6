//! The plan of one configuration, field by field.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use harness_openclaw::resolve;
use occ_plugin_sdk::bindings::harness::{HarnessAuth, Refusal, Request};
use occ_plugin_sdk::bindings::workload::{Egress, EnvValue, ExecutionMode, Plan, Role};
use serde_json::{Value, json};

fn document() -> Value {
    json!({
        "agents": {"defaults": {"model": "openai/alpha", "models": {"openai/alpha": {"agentRuntime": {"id": "openclaw"}}}}},
    })
}

fn request(document: &Value) -> Request {
    Request {
        configuration: document.to_string(),
        mode: ExecutionMode::Embedded,
        auth: Some(HarnessAuth {
            method: "api_key".to_owned(),
            secret_id: Some("sec_model".to_owned()),
            source: None,
        }),
        secret_bindings: Vec::new(),
        platform: r#"{"bind":"loopback","gatewayPort":18789,"trustedProxies":[]}"#.to_owned(),
    }
}

fn environment(plan: &Plan) -> Vec<String> {
    let shown = |value: &EnvValue| match value {
        EnvValue::Literal(text) => format!("literal {text}"),
        EnvValue::Secret(id) => format!("secret {id}"),
        EnvValue::Generated(name) => format!("generated {name}"),
        EnvValue::RevisionId => "revision".to_owned(),
        EnvValue::FilePath(path) => format!("file {path}"),
        EnvValue::StatePath(name) => format!("state {name}"),
        EnvValue::ScratchPath(name) => format!("scratch {name}"),
        EnvValue::PortNumber(name) => format!("port {name}"),
    };
    plan.containers[0]
        .env
        .iter()
        .map(|variable| format!("{}={}", variable.name, shown(&variable.value)))
        .collect()
}

fn refused(request: &Request) -> Vec<String> {
    let (Refusal::Invalid(problems) | Refusal::Unsupported(problems)) = resolve(request).unwrap_err();
    problems.into_iter().map(|problem| problem.path).collect()
}

#[test]
fn the_plan_is_one_gateway_with_its_state_probe_and_grace() {
    let plan = resolve(&request(&document())).unwrap();
    let harness = &plan.harness;
    assert_eq!((harness.id.as_str(), harness.version.as_str()), ("openclaw", "1"));
    assert_eq!(harness.mode, ExecutionMode::Embedded);
    let [container] = plan.containers.as_slice() else { panic!("one container") };
    assert_eq!((container.role, container.image_slot.as_str()), (Role::Gateway, "gateway"));
    assert_eq!(container.args, ["gateway"]);
    assert_eq!(
        (container.readiness.path.as_str(), container.readiness.port.as_str()),
        ("/readyz", "gateway")
    );
    assert_eq!((container.ports[0].name.as_str(), container.ports[0].number), ("gateway", 18_789));
    assert_eq!((container.grace_seconds, container.egress), (330, Egress::PublicHttps));
    assert_eq!(container.state[0].name, "state");
    assert_eq!(
        environment(&plan),
        [
            "OPENCLAW_CONFIG_PATH=file /etc/openclaw/openclaw.json",
            "OPENCLAW_STATE_DIR=state state",
            "HOME=scratch home",
            "OPENCLAW_GATEWAY_PORT=port gateway",
            "OPENCLAW_GATEWAY_PASSWORD=generated gateway-password",
            "OPENAI_API_KEY=secret sec_model",
        ]
    );
    assert!(plan.warnings.is_empty());
}

#[test]
fn settings_of_the_gateway_are_replaced_with_a_warning_each() {
    let mut written = document();
    written["gateway"] = json!({
        "bind": "lan", "port": 18_789, "trustedProxies": ["10.0.0.1"], "customBindHost": "10.0.0.2",
        "auth": {"mode": "password", "allowTailscale": true, "rateLimit": {"maxAttempts": 3}},
        "controlUi": {"enabled": true},
    });
    let plan = resolve(&request(&written)).unwrap();
    let warned: Vec<_> = plan.warnings.iter().map(|warning| warning.data.as_deref().unwrap()).collect();
    assert_eq!(
        warned,
        [
            r#"{"path":"/gateway/bind"}"#,
            r#"{"path":"/gateway/trustedProxies"}"#,
            r#"{"path":"/gateway/customBindHost"}"#,
            r#"{"path":"/gateway/auth/allowTailscale"}"#,
        ]
    );
    let rendered: Value = serde_json::from_str(&plan.containers[0].files[0].contents).unwrap();
    assert_eq!(
        rendered["gateway"],
        json!({
            "mode": "local", "bind": "loopback", "port": 18_789, "trustedProxies": [],
            "auth": {
                "mode": "password",
                "password": {"source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD"},
                "rateLimit": {"maxAttempts": 3},
            },
            "controlUi": {"enabled": true},
        })
    );
}

#[test]
fn the_credential_reaches_the_name_that_the_provider_reads() {
    let mut asked = request(&json!({"agents": {"defaults": {"model": "anthropic/beta"}}}));
    let last = |request: &Request| environment(&resolve(request).unwrap()).pop().unwrap();
    assert_eq!(last(&asked), "ANTHROPIC_API_KEY=secret sec_model");
    let house = |key: Value| {
        let models = json!({"house/klein": {"agentRuntime": {"id": "openclaw"}}});
        json!({
            "agents": {"defaults": {"model": "house/klein", "models": models}},
            "models": {"providers": {"house": {"apiKey": key}}},
        })
    };
    asked.configuration =
        house(json!({"source": "env", "provider": "default", "id": "HOUSE_KEY"})).to_string();
    assert_eq!(last(&asked), "HOUSE_KEY=secret sec_model");
    assert!(resolve(&asked).unwrap().warnings.is_empty());
    asked.configuration = house(Value::Null).to_string();
    assert_eq!(refused(&asked), ["/configuration/models/providers/house/apiKey"]);
    asked.configuration =
        house(json!({"source": "env", "provider": "default", "id": "LD_PRELOAD"})).to_string();
    assert_eq!(refused(&asked), ["/configuration/models/providers/house/apiKey"]);
}

#[test]
fn a_variable_that_nothing_sets_is_a_warning() {
    let mut asked = request(&document());
    let mut written = document();
    written["models"] =
        json!({"providers": {"openai": {"apiKey": {"source": "env", "provider": "default", "id": "OTHER"}}}});
    asked.configuration = written.to_string();
    let warnings = resolve(&asked).unwrap().warnings;
    assert_eq!(warnings[0].data.as_deref(), Some(r#"{"name":"OTHER"}"#));
    asked.secret_bindings = vec![("OTHER".to_owned(), "sec_other".to_owned())];
    let plan = resolve(&asked).unwrap();
    assert!(plan.warnings.is_empty());
    assert_eq!(environment(&plan).pop().unwrap(), "OTHER=secret sec_other");
}

#[test]
fn bindings_cannot_take_the_platforms_names() {
    let mut asked = request(&document());
    for name in ["OPENCLAW_GATEWAY_PASSWORD", "HOME", "NODE_OPTIONS", "LD_PRELOAD", "OPENAI_API_KEY"] {
        asked.secret_bindings = vec![(name.to_owned(), "sec_1".to_owned())];
        assert_eq!(refused(&asked), [format!("/secretBindings/{name}")]);
    }
}

#[test]
fn only_ways_to_sign_in_that_work_embedded_are_served() {
    let mut asked = request(&document());
    asked.auth = None;
    assert_eq!(environment(&resolve(&asked).unwrap()).len(), 5);
    let auth = |method: &str, secret: Option<&str>| HarnessAuth {
        method: method.to_owned(),
        secret_id: secret.map(ToOwned::to_owned),
        source: None,
    };
    asked.auth = Some(auth("runtime", None));
    assert_eq!(environment(&resolve(&asked).unwrap()).len(), 5);
    asked.auth = Some(auth("api_key", None));
    assert_eq!(refused(&asked), ["/auth/source"]);
    asked.auth = Some(auth("oauth", Some("sec_1")));
    assert_eq!(refused(&asked), ["/auth/method"]);
}

#[test]
fn dedicated_agents_are_refused_by_their_mode() {
    let mut asked = request(&document());
    asked.mode = ExecutionMode::Dedicated;
    assert_eq!(refused(&asked), ["/mode"]);
}

#[test]
fn everything_wrong_is_named_at_once() {
    let mut written = document();
    written["gateway"] = json!({"auth": {"mode": "none", "token": "not-a-real-token"}});
    written["agents"]["list"] = json!([{}]);
    assert_eq!(
        refused(&request(&written)),
        [
            "/configuration/gateway/auth/token",
            "/configuration/gateway/auth/mode",
            "/configuration/agents/list"
        ]
    );
}

#[test]
fn what_is_no_document_is_refused() {
    for text in ["", "{", "[]", "null", "\"text\"", "7"] {
        let mut asked = request(&document());
        asked.configuration = text.to_owned();
        assert_eq!(refused(&asked), ["/configuration"], "{text}");
    }
}

#[test]
fn credentials_are_known_by_the_ending_of_their_name() {
    let mut written = document();
    written["channels"] = json!({"slack": {"enabled": false, "bot_token": "not-a-real-token"}});
    written["models"] = json!({"providers": {"openai": {
        "api-key": "not-a-real-key", "headers": {"X-Api-Key": "not-a-real-key", "X-Request-Id": "fine"},
    }}});
    assert_eq!(
        refused(&request(&written)),
        [
            "/configuration/channels/slack/bot_token",
            "/configuration/models/providers/openai/api-key",
            "/configuration/models/providers/openai/headers/X-Api-Key",
        ]
    );
}

#[test]
fn variables_and_blanks_are_no_literals() {
    let mut written = document();
    for value in ["", "  ", "${MY_KEY}"] {
        written["models"] =
            json!({"providers": {"openai": {"apiKey": value, "headers": {"Authorization": value}}}});
        assert!(resolve(&request(&written)).is_ok(), "{value:?}");
    }
    for value in ["${}", "x${MY_KEY}", "$MY_KEY"] {
        written["models"] = json!({"providers": {"openai": {"apiKey": value}}});
        assert_eq!(
            refused(&request(&written)),
            ["/configuration/models/providers/openai/apiKey"],
            "{value:?}"
        );
    }
}
