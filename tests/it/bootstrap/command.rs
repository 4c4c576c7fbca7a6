//! `occ-host bootstrap` as an operator or the chart runs it: exit codes, and what its log says.

use std::process::{Command, Output};

use occ_tests::environment;
use serde_json::Value;

use super::{FINISHED, KEY, PASSWORD, Scene};

fn run(scene: &Scene, change: impl FnOnce(&mut Command), arguments: &[&str]) -> Output {
    let mut command = Command::new(environment::binaries().unwrap().join("occ-host"));
    command.arg("bootstrap").args(arguments).env_clear();
    command.envs([
        ("OCC_MODE", "development"),
        ("OCC_AUTH_BASE_URL", "http://127.0.0.1:3000"),
        ("OCC_BOOTSTRAP_ADMIN_EMAIL", "admin@example.org"),
        ("OCC_BOOTSTRAP_INSTALLATION_NAME", "Test"),
    ]);
    command.env("OCC_AUTH_SECRET", "s".repeat(32));
    command.env("OCC_DATABASE_URL", scene.database.url("occ_app"));
    command.env("OCC_BOOTSTRAP_PASSWORD_FILE", scene.path(PASSWORD));
    command.env("OCC_BOOTSTRAP_SERVICE_KEY_FILE", scene.path(KEY));
    change(&mut command);
    command.output().unwrap()
}

/// Exit code, event and code of the last line of the log.
fn said(output: &Output) -> (i32, String, Option<String>) {
    let text = String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let field = |name: &str| line[name].as_str().map(str::to_owned);
    (output.status.code().unwrap(), field("event").unwrap(), field("code"))
}

#[tokio::test]
async fn the_command_bootstraps_verifies_and_reissues() {
    let mut scene = Scene::new().await;
    let same = |_: &mut Command| {};
    let first = run(&scene, same, &[]);
    assert_eq!(said(&first), (0, "installation.bootstrapped".to_owned(), None));
    scene.is_whole().await;
    let log = String::from_utf8([&first.stdout[..], &first.stderr[..]].concat()).unwrap();
    let password = std::fs::read_to_string(scene.path(PASSWORD)).unwrap();
    assert!(!log.contains(password.trim()) && !log.contains(scene.key()["data"]["key"].as_str().unwrap()));

    assert_eq!(said(&run(&scene, same, &[])), (0, "installation.already-bootstrapped".to_owned(), None));
    let again = said(&run(&scene, same, &["--reissue-key", "--request-id", "r1"]));
    assert_eq!(
        again,
        (3, "installation.bootstrap-failed".to_owned(), Some("BOOTSTRAP_OUTPUT_EXISTS".to_owned()))
    );
    std::fs::remove_file(scene.path(KEY)).unwrap();
    let reissued = said(&run(&scene, same, &["--reissue-key", "--request-id", "r1"]));
    assert_eq!(reissued, (0, "installation.key-reissued".to_owned(), None));
    assert!(scene.key_opens().await);
    assert_eq!(scene.names(), [FINISHED, PASSWORD, KEY]);
}

#[tokio::test]
async fn wrong_inputs_end_with_two_and_touch_nothing() {
    let scene = Scene::new().await;
    let cases: [(&str, &str, &str); 5] = [
        ("OCC_BOOTSTRAP_ADMIN_EMAIL", "nobody", "ADMIN_EMAIL_INVALID"),
        ("OCC_BOOTSTRAP_INSTALLATION_NAME", "", "INSTALLATION_NAME_INVALID"),
        ("OCC_AUTH_SECRET", "short", "AUTH_SECRET_INVALID"),
        ("OCC_AUTH_BASE_URL", "http://127.0.0.1/x", "AUTH_BASE_URL_INVALID"),
        ("OCC_BOOTSTRAP_SERVICE_KEY_FILE", "relative", "BOOTSTRAP_PATH_INVALID"),
    ];
    for (name, value, code) in cases {
        let change = |command: &mut Command| {
            command.env(name, value);
        };
        let expected = (2, "installation.bootstrap-failed".to_owned(), Some(code.to_owned()));
        assert_eq!(said(&run(&scene, change, &[])), expected, "{name}");
    }
    assert_eq!(scene.names(), Vec::<String>::new());
}
