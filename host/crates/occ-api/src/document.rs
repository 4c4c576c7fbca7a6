//! What is checked of a Configuration's `values` when it is stored. Whether a harness can serve
//! the document is decided at deploy.

use serde_json::{Map, Value};

use crate::error::{FieldCode, FieldError, pointer_segment};

/// Provider dialects that OpenClaw 2026.9 knows (`openclaw config schema`).
pub const PROVIDER_APIS: [&str; 11] = [
    "anthropic-messages",
    "azure-openai-responses",
    "bedrock-converse-stream",
    "github-copilot",
    "google-generative-ai",
    "google-vertex",
    "ollama",
    "openai-chatgpt-responses",
    "openai-completions",
    "openai-responses",
    "pi-messages",
];
/// Beginnings of environment names that the platform keeps for itself; compared without case.
const RESERVED_PREFIXES: [&str; 17] = [
    "OPENCLAW_",
    "CODEX_",
    "OCC_",
    "KUBERNETES_",
    "APP_SERVER_",
    "NODE_",
    "LD_",
    "DYLD_",
    "PYTHON",
    "SSL_",
    "TLS_",
    "NPM_",
    "PNPM_",
    "OTEL_",
    "OPENAI_",
    "ANTHROPIC_",
    "BASH_FUNC_",
];
/// Environment names that the platform keeps for itself; compared without case.
const RESERVED: [&str; 20] = [
    "KUBECONFIG",
    "LOG_FORMAT",
    "RUST_LOG",
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "IFS",
    "TMPDIR",
    "TMP",
    "TEMP",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "PWD",
    "HOSTNAME",
];
/// Longest environment name.
const ENV_NAME_CHARS_MAX: usize = 253;
/// Headers, and endings of headers, that carry a credential; compared without case, `-` and `_`.
const CREDENTIAL_HEADERS: [&str; 8] =
    ["authorization", "apikey", "token", "secret", "cookie", "password", "credential", "credentials"];
/// Members that carry a credential wherever a provider has them; compared without case, `-` and `_`.
const CREDENTIAL_MEMBERS: [&str; 6] =
    ["apikey", "token", "accesstoken", "password", "secret", "clientsecret"];

/// May a Secret be bound under this environment name?
#[must_use]
pub fn is_free_destination(env_name: &str) -> bool {
    let mut characters = env_name.chars();
    let first = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let upper = env_name.to_ascii_uppercase();
    first
        && env_name.len() <= ENV_NAME_CHARS_MAX
        && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_')
        && !RESERVED_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        && !RESERVED.contains(&upper.as_str())
}

/// Checks a document; pointers begin with `/values`.
#[must_use]
pub fn check(values: &Value) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if values.get("auth").is_some_and(|auth| !is_empty(auth)) {
        faults.push(FieldError::new("/values/auth", FieldCode::InvalidValue));
    }
    if let Some(providers) = values.pointer("/models/providers").and_then(Value::as_object) {
        for (name, provider) in providers {
            check_provider(
                provider,
                &format!("/values/models/providers/{}", pointer_segment(name)),
                &mut faults,
            );
        }
    }
    for member in ["password", "token"] {
        let pointer = format!("/gateway/auth/{member}");
        if values.pointer(&pointer).is_some_and(is_literal) {
            faults.push(FieldError::new(format!("/values{pointer}"), FieldCode::InvalidValue));
        }
    }
    if let Some(env) = values.get("env").and_then(Value::as_object) {
        check_env(env, "/values/env", &mut faults);
    }
    faults
}

fn check_provider(provider: &Value, at: &str, faults: &mut Vec<FieldError>) {
    let Some(provider) = provider.as_object() else {
        return;
    };
    match provider.get("baseUrl").map(|url| (url.as_str(), url)) {
        None => {}
        Some((Some(url), _)) if is_reference(url) || is_web_url(url) => {}
        Some((Some(_), _)) => faults.push(FieldError::new(format!("{at}/baseUrl"), FieldCode::InvalidValue)),
        Some((None, _)) => faults.push(FieldError::new(format!("{at}/baseUrl"), FieldCode::InvalidType)),
    }
    check_api(provider, at, faults);
    for (index, model) in provider.get("models").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Some(model) = model.as_object() {
            let at = format!("{at}/models/{index}");
            check_api(model, &at, faults);
            check_headers(model, &at, faults);
        }
    }
    check_headers(provider, at, faults);
    for member in provider.keys().filter(|member| CREDENTIAL_MEMBERS.contains(&plain(member).as_str())) {
        if provider.get(member).is_some_and(is_literal) {
            faults
                .push(FieldError::new(format!("{at}/{}", pointer_segment(member)), FieldCode::InvalidValue));
        }
    }
    if let Some(request) = provider.get("request") {
        check_request(request, &format!("{at}/request"), faults);
    }
}

/// `request` overrides how a provider is called: its headers and its `auth` carry credentials too.
fn check_request(request: &Value, at: &str, faults: &mut Vec<FieldError>) {
    let Some(request) = request.as_object() else {
        return;
    };
    check_headers(request, at, faults);
    for (member, value) in request.get("auth").and_then(Value::as_object).into_iter().flatten() {
        let carries = CREDENTIAL_MEMBERS.contains(&plain(member).as_str()) || member == "value";
        if carries && is_literal(value) {
            faults.push(FieldError::new(
                format!("{at}/auth/{}", pointer_segment(member)),
                FieldCode::InvalidValue,
            ));
        }
    }
}

fn check_api(object: &Map<String, Value>, at: &str, faults: &mut Vec<FieldError>) {
    let Some(api) = object.get("api") else { return };
    match api.as_str() {
        Some(api) if is_reference(api) || PROVIDER_APIS.contains(&api) => {}
        Some(_) => faults.push(FieldError::new(format!("{at}/api"), FieldCode::InvalidValue)),
        None => faults.push(FieldError::new(format!("{at}/api"), FieldCode::InvalidType)),
    }
}

fn check_headers(object: &Map<String, Value>, at: &str, faults: &mut Vec<FieldError>) {
    for (name, value) in object.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let plain = plain(name);
        if CREDENTIAL_HEADERS.iter().any(|header| plain.ends_with(header)) && is_literal(value) {
            faults.push(FieldError::new(
                format!("{at}/headers/{}", pointer_segment(name)),
                FieldCode::InvalidValue,
            ));
        }
    }
}

/// Model credentials in the document's own environment.
fn check_env(env: &Map<String, Value>, at: &str, faults: &mut Vec<FieldError>) {
    for (name, value) in env {
        let upper = name.to_ascii_uppercase();
        let path = format!("{at}/{}", pointer_segment(name));
        if ["OPENAI_", "ANTHROPIC_", "CODEX_"].iter().any(|prefix| upper.starts_with(prefix))
            && is_literal(value)
        {
            faults.push(FieldError::new(path, FieldCode::InvalidValue));
        } else if let Some(nested) = value.as_object() {
            check_env(nested, &path, faults);
        }
    }
}

/// A text that is neither blank nor a `${VAR}` reference.
fn is_literal(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !is_reference(text))
}

fn is_reference(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || (text.starts_with("${") && text.find('}') == Some(text.len() - 1))
}

fn is_web_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !authority.is_empty()
            && !authority.contains('@')
            && !text.chars().any(|character| character.is_whitespace() || character.is_control())
    })
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn plain(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(values: &Value) -> Vec<String> {
        check(values).into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn references_pass_and_literals_do_not() {
        let reference = json!({"source": "env", "provider": "default", "id": "KEY"});
        let document = |key: &Value| json!({"models": {"providers": {"a/b": {"apiKey": key, "baseUrl": "https://m.example/v1"}}}});
        assert!(paths(&document(&reference)).is_empty());
        assert!(paths(&document(&json!("${KEY}"))).is_empty());
        assert!(paths(&document(&json!(" "))).is_empty());
        assert_eq!(paths(&document(&json!("k-1"))), ["/values/models/providers/a~1b/apiKey"]);
        assert_eq!(paths(&document(&json!("${A}${B}"))), ["/values/models/providers/a~1b/apiKey"]);
    }

    #[test]
    fn credentials_are_found_where_a_provider_takes_them() {
        let document = json!({
            "auth": {"profiles": {}},
            "env": {"vars": {"OPENAI_API_KEY": "k"}},
            "gateway": {"auth": {"token": "t", "password": "p"}},
            "models": {"providers": {"p": {
                "baseUrl": "models.example/v1",
                "api": "smoke-signals",
                "headers": {"X-Api-Key": "k", "X-Trace": "on"},
                "request": {"headers": {"Proxy-Authorization": "k"}, "auth": {"mode": "header", "value": "k"}}
            }}}
        });
        assert_eq!(
            paths(&document),
            [
                "/values/auth",
                "/values/models/providers/p/baseUrl",
                "/values/models/providers/p/api",
                "/values/models/providers/p/headers/X-Api-Key",
                "/values/models/providers/p/request/headers/Proxy-Authorization",
                "/values/models/providers/p/request/auth/value",
                "/values/gateway/auth/password",
                "/values/gateway/auth/token",
                "/values/env/vars/OPENAI_API_KEY",
            ]
        );
    }

    #[test]
    fn reserved_destinations_are_compared_without_case() {
        assert!(is_free_destination("SLACK_BOT_TOKEN") && is_free_destination("_x"));
        for reserved in [
            "openclaw_x",
            "Path",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "1A",
            "A-B",
            "",
            "http_proxy",
            &"A".repeat(254),
        ] {
            assert!(!is_free_destination(reserved), "{reserved}");
        }
    }
}
