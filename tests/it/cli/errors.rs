//! The error form in text and JSON, and the exit code of each row of its table.

use serde_json::{Value, json};

use super::fake::{Fake, Reply};
use super::run::Person;
use super::{AGENT, NAMESPACE, PRINCIPAL, SECRET};

#[test]
fn cli_error_form_in_text_and_json() {
    let body = json!({"error": {"code": "INVALID_REQUEST", "message": "The request is invalid: name is required.",
        "details": [{"path": "/name", "code": "REQUIRED"}]}, "meta": {"requestId": "req_7"}});
    let fake = Fake::always(Reply::raw(400, body.to_string()));
    let person = Person::new();
    let file = person.write("a.yaml", "configurationId: cfg_1\n");
    let line = format!("agent create -n {NAMESPACE} -f {}", file.display());
    let ran = person.at(&fake.url, &line).exits(2);
    insta::assert_snapshot!(ran.stderr, @r"
    error: 400 INVALID_REQUEST: The request is invalid: name is required.
      /name REQUIRED
      request req_7
    ");
    assert_eq!(ran.stdout, "");
    let ran = person.at(&fake.url, &format!("{line} -o json")).exits(2);
    let printed: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(
        printed,
        json!({"error": {"status": 400, "code": "INVALID_REQUEST", "message": "The request is invalid: name is required.",
            "details": [{"path": "/name", "code": "REQUIRED"}], "requestId": "req_7"}})
    );
    let ran = person.at(&fake.url, &format!("{line} -o yaml")).exits(2);
    assert!(
        ran.stderr.starts_with("error:\n") && ran.stderr.contains("code: INVALID_REQUEST"),
        "{}",
        ran.stderr
    );
}

#[test]
fn cli_exit_code_of_each_status() {
    let person = Person::new();
    for (status, code) in
        [(400, 2), (401, 3), (403, 3), (404, 4), (409, 5), (412, 5), (422, 5), (500, 1), (501, 1), (504, 1)]
    {
        let fake = Fake::always(Reply::error(status, "SOME_CODE", "Some text."));
        let ran = person.at(&fake.url, "installation get").exits(code);
        assert!(ran.stderr.starts_with(&format!("error: {status} SOME_CODE: Some text.")), "{}", ran.stderr);
    }
}

#[test]
fn cli_usage_errors_come_before_any_request() {
    let fake = Fake::always(Reply::data(200, &json!([])));
    let person = Person::new();
    for line in [
        "agent".to_owned(),
        "agent lst".to_owned(),
        format!("agent get {NAMESPACE} -n {NAMESPACE}"),
        format!("agent get {AGENT} -n {AGENT}"),
        format!("configuration get cfg_1 -n {NAMESPACE}"),
        format!("agent create -n {NAMESPACE} -f missing.yaml"),
        "agent list".to_owned(),
        "namespace list --timeout-seconds 0".to_owned(),
        "namespace list --limit 0".to_owned(),
        "namespace list -o text".to_owned(),
        format!("agent logs {AGENT} -n {NAMESPACE}"),
        format!("agent logs {AGENT} -n {NAMESPACE} --source gateway --follow --previous"),
        format!("wait agent/{AGENT} --for ready -n {NAMESPACE}"),
        "api GET //evil.example.com".to_owned(),
        format!("secret create --name x -n {NAMESPACE}"),
        "namespace create x --idempotency-key -".to_owned(),
    ] {
        let ran = person.at(&fake.url, &line).exits(2);
        assert!(ran.stderr.contains("error: ") || line == "agent", "{line}: {}", ran.stderr);
    }
    assert!(fake.asked().is_empty(), "{:?}", fake.asked());
}

#[test]
fn cli_without_url_or_credential_the_way_out_is_named() {
    let person = Person::new();
    let ran = person.bare("namespace list").exits(2);
    assert!(ran.stderr.contains("--url") && ran.stderr.contains("OCC_URL"), "{}", ran.stderr);
    let ran = person.bare("namespace list --url http://127.0.0.1:9").exits(3);
    assert!(ran.stderr.contains("--service-key-file"), "{}", ran.stderr);
    let ran = person.at("http://127.0.0.1:9/path", "namespace list").exits(2);
    assert!(ran.stderr.contains("must not have a path"), "{}", ran.stderr);
    // A port that nobody listens on.
    person.at("http://127.0.0.1:9", "namespace list").exits(1);
}

#[test]
fn cli_usage_error_in_the_form_that_was_asked_for() {
    let ran = Person::new().bare("agent lst -o json").exits(2);
    let printed: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(printed["error"]["code"], "USAGE");
    assert!(printed["error"].get("status").is_none());
}

#[test]
fn cli_deploy_that_lacks_a_binding_prints_it_as_the_next_command() {
    let refusal = format!("The Agent's principal {PRINCIPAL} lacks operate on Secret {SECRET}.");
    let fake = Fake::start(move |asked, _| {
        if asked.target.ends_with("/deploy") {
            Reply::error(403, "FORBIDDEN", &refusal)
        } else {
            let role =
                json!({"id": "role_7", "permissions": [{"action": "operate", "resourceKind": "secret"}]});
            Reply::page(&json!([role]), None)
        }
    });
    let ran = Person::new().at(&fake.url, &format!("agent deploy {AGENT} -n {NAMESPACE}")).exits(3);
    for line in [
        format!("occ iam access-binding create --namespace {NAMESPACE} -f -\n"),
        format!(r#""subjectId":"{PRINCIPAL}""#),
        r#""roleId":"role_7""#.to_owned(),
        format!(r#""resourceId":"{SECRET}""#),
    ] {
        assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
    }
}
