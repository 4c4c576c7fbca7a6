//! Contexts as files, precedence through the whole program, and where a key may go.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::fake::{Fake, Reply};
use super::run::{Person, Ran};
use super::{KEY, NAMESPACE};

fn set(person: &Person, name: &str, url: &str) {
    let key = person.path("key.json");
    person
        .bare(&format!("context set {name} --url {url} -n {NAMESPACE} --service-key-file {}", key.display()))
        .exits(0);
}

#[test]
fn cli_context_is_saved_used_shown_and_deleted() {
    let fake = Fake::always(Reply::page(&json!([]), None));
    let person = Person::new();
    set(&person, "dev", &fake.url);
    set(&person, "other", "https://occ.example.com");
    // The first one became the current one.
    let ran = person.bare("agent list").exits(0);
    assert_eq!(ran.stdout, "No resources found.\n");
    assert!(fake.only().target.starts_with(&format!("/namespaces/{NAMESPACE}/agents?")));
    let shown = person.bare("context show -o json").exits(0).json();
    assert_eq!(shown["name"], "dev");
    assert_eq!(shown["serviceKeyFile"], person.path("key.json").display().to_string());
    person.bare("context use other").exits(0);
    assert_eq!(person.bare("context list -o name").exits(0).stdout, "dev\nother\n");
    assert_eq!(person.bare("context show -o json").exits(0).json()["name"], "other");
    person.bare("context delete other").exits(0);
    person.bare("context use other").exits(4);
    person.bare("agent list").exits(2);
    for (path, mode) in [(".config/occ", 0o700), (".config/occ/config.yaml", 0o600)] {
        let found = std::fs::metadata(person.path(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path}");
    }
}

#[test]
fn cli_context_file_holds_no_secret_and_must_be_private() {
    let person = Person::new();
    set(&person, "dev", "http://127.0.0.1:9");
    let path = person.path(".config/occ/config.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("canary"), "{text}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let ran = person.bare("context list").exits(2);
    assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
}

#[test]
fn cli_precedence_flag_environment_named_current() {
    let servers: Vec<Fake> = (0..4).map(|_| Fake::always(Reply::page(&json!([]), None))).collect();
    let [flag, variable, named, current] = servers.as_slice() else { unreachable!() };
    let person = Person::new();
    set(&person, "current", &current.url);
    set(&person, "named", &named.url);
    let run = |line: &str, variables: &[(&str, &str)]| {
        let mut command = person.command(line);
        command.env("OCC_SERVICE_KEY_FILE", person.path("key.json")).envs(variables.iter().copied());
        Ran::of(&command.output().unwrap()).exits(0);
        servers.iter().map(|server| server.asked().len()).collect::<Vec<_>>()
    };
    let all = [("OCC_URL", variable.url.as_str()), ("OCC_CONTEXT", "named")];
    assert_eq!(run(&format!("namespace list --url {}", flag.url), &all), [1, 0, 0, 0]);
    assert_eq!(run("namespace list", &all), [1, 1, 0, 0]);
    assert_eq!(run("namespace list", &all[1..]), [1, 1, 1, 0]);
    assert_eq!(run("namespace list --context current", &all[1..]), [1, 1, 1, 1]);
    assert_eq!(run("namespace list", &[]), [1, 1, 1, 2]);
}

#[test]
fn cli_key_of_a_context_never_goes_to_another_origin() {
    let own = Fake::always(Reply::data(200, &json!({"id": "ins_1"})));
    let foreign = Fake::always(Reply::data(200, &json!({"id": "ins_1"})));
    let person = Person::new();
    set(&person, "dev", &own.url);
    person.bare("installation get").exits(0);
    assert_eq!(own.only().header("x-api-key"), Some(KEY));
    person.bare(&format!("installation get --url {}", foreign.url)).exits(3);
    let mut command = person.command("installation get");
    Ran::of(&command.env("OCC_URL", &foreign.url).output().unwrap()).exits(3);
    assert!(foreign.asked().is_empty(), "{:?}", foreign.asked());
}
