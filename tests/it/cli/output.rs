//! Forms of output, lists over pages, hostile names, help and completion.

use serde_json::json;

use super::fake::{Fake, Reply};
use super::run::Person;
use super::{AGENT, NAMESPACE, SECRET};

#[test]
fn cli_list_follows_pages_and_limit_stops_early() {
    let fake = Fake::start(|asked, _| {
        if asked.target.contains("cursor=c%2F1") {
            Reply::page(&json!([{"id": "ns_3", "name": "c"}]), None)
        } else {
            Reply::page(&json!([{"id": "ns_1", "name": "a"}, {"id": "ns_2", "name": "b"}]), Some("c/1"))
        }
    });
    let person = Person::new();
    assert_eq!(person.at(&fake.url, "namespace list -o name").exits(0).stdout, "ns_1\nns_2\nns_3\n");
    assert_eq!(person.at(&fake.url, "namespace list -o name --limit 1").exits(0).stdout, "ns_1\n");
    let targets: Vec<String> = fake.asked().iter().map(|asked| asked.target.clone()).collect();
    assert_eq!(
        targets,
        ["/namespaces?limit=100", "/namespaces?limit=100&cursor=c%2F1", "/namespaces?limit=1"]
    );
}

#[test]
fn cli_forms_of_one_resource() {
    let agent = json!({"id": AGENT, "name": "concierge", "status": "active", "desiredRuntimeState": "running",
        "activeRevisionId": "rev_1", "configurationId": "cfg_1", "backendId": null, "new": {"field": 1}});
    let data = agent.clone();
    let fake = Fake::start(move |_, _| Reply::data(200, &data));
    let person = Person::new();
    let line = format!("agent get {AGENT} -n {NAMESPACE}");
    insta::assert_snapshot!(person.at(&fake.url, &line).exits(0).stdout, @r"
    ID                                         NAME        STATUS   RUNTIME   ACTIVE REVISION   CONFIGURATION
    agt_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904   concierge   active   running   rev_1             cfg_1
    ");
    let printed = person.at(&fake.url, &format!("{line} -o json")).exits(0);
    assert_eq!(printed.json(), agent);
    let yaml = person.at(&fake.url, &format!("{line} -o yaml")).exits(0).stdout;
    assert!(yaml.contains("backendId: null\nnew:\n  field: 1\n"), "{yaml}");
    assert_eq!(person.at(&fake.url, &format!("{line} -o name")).exits(0).stdout, format!("{AGENT}\n"));
}

#[test]
fn cli_hostile_names_stay_in_their_cell() {
    let name = "\u{202e}evil\u{1b}[2J\nrow";
    let fake = Fake::start(move |_, _| Reply::page(&json!([{"id": SECRET, "name": name}]), None));
    let person = Person::new();
    let line = format!("secret list -n {NAMESPACE}");
    let table = person.at(&fake.url, &line).exits(0).stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains(r#""\u{202e}evil\u{1b}[2J\nrow""#), "{table}");
    assert_eq!(person.at(&fake.url, &format!("{line} -o json")).exits(0).json()[0]["name"], name);
}

#[test]
fn cli_name_is_found_and_must_be_unique() {
    let fake = Fake::start(|asked, _| {
        if asked.target.contains("/agents?") {
            let twin = "agt_00000000-0000-4000-8000-000000000000";
            Reply::page(
                &json!([{"id": AGENT, "name": "one"}, {"id": AGENT, "name": "two"}, {"id": twin, "name": "two"}]),
                None,
            )
        } else {
            Reply::data(200, &json!({"id": AGENT}))
        }
    });
    let person = Person::new();
    let get = |name: &str| person.at(&fake.url, &format!("agent get {name} -n {NAMESPACE} -o name"));
    assert_eq!(get("one").exits(0).stdout, format!("{AGENT}\n"));
    assert!(get("two").exits(4).stderr.contains("more than one"));
    assert!(get("One").exits(4).stderr.contains("occ agent list"));
}

#[test]
fn cli_secret_value_comes_from_a_file_and_is_not_printed() {
    let fake = Fake::always(Reply::data(201, &json!({"id": SECRET, "name": "openai"})));
    let person = Person::new();
    let file = person.write("value", "sk-canary\n");
    let line = format!("secret create --name openai --value-file {} -n {NAMESPACE}", file.display());
    let ran = person.at(&fake.url, &line).exits(0);
    assert_eq!(fake.only().body, json!({"name": "openai", "value": "sk-canary"}).to_string());
    assert!(!ran.stdout.contains("sk-") && !ran.stderr.contains("sk-"));
    let ran =
        person.fed(&fake.url, &format!("secret create --name openai --value-file - -n {NAMESPACE}"), "sk-2");
    ran.exits(0);
    assert_eq!(fake.asked()[1].body, json!({"name": "openai", "value": "sk-2"}).to_string());
}

#[test]
fn cli_documents_from_standard_input_in_yaml_and_json() {
    let fake = Fake::always(Reply::data(201, &json!({"id": "role_1"})));
    let person = Person::new();
    let expected = json!({"name": "x", "permissions": [{"action": "operate", "resourceKind": "secret"}]});
    let line = format!("iam role create -f - -n {NAMESPACE} -o name");
    for input in [
        expected.to_string(),
        "name: x\npermissions:\n- {action: operate, resourceKind: secret}\n".to_owned(),
    ] {
        assert_eq!(person.fed(&fake.url, &line, &input).exits(0).stdout, "role_1\n");
    }
    for asked in fake.asked() {
        assert_eq!(asked.body, expected.to_string());
        assert_eq!(asked.header("content-type"), Some("application/json"));
    }
    assert!(
        person.fed(&fake.url, &line, "{\"name\": 1, \"name\": 2}").exits(2).stderr.contains("standard input")
    );
}

#[test]
fn cli_help_version_and_completion_need_nothing() {
    let person = Person::new();
    let help = person.bare("--help").exits(0).stdout;
    assert!(help.contains("agent") && help.contains("OCC_URL") && !help.contains("login"), "{help}");
    assert!(person.bare("agent create --help").exits(0).stdout.contains("configurationId: cfg_"));
    assert_eq!(person.bare("--version").exits(0).stdout, format!("occ {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(person.bare(&format!("completion {shell}")).exits(0).stdout.contains("occ"), "{shell}");
    }
    let fake =
        Fake::always(Reply::raw(200, json!({"openapi": "3.1.0", "info": {"version": "0.1.0"}}).to_string()));
    let version = person.bare(&format!("version --server --url {}", fake.url)).exits(0).stdout;
    assert!(version.ends_with("server 0.1.0\n"), "{version}");
    assert_eq!(fake.only().header("x-api-key"), None);
}

#[test]
fn cli_api_sends_any_request_and_prints_its_data() {
    let fake = Fake::always(Reply::data(200, &json!({"id": "x"})));
    let person = Person::new();
    let ran = person.at(&fake.url, "api GET /work --query state=queued --query agentId=a/b").exits(0);
    assert_eq!(ran.json(), json!({"id": "x"}));
    assert_eq!(fake.only().line(), "GET /work?state=queued&agentId=a%2Fb");
    assert_eq!(fake.only().header("content-type"), None);
}
