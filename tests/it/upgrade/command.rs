//! `occ-host migrate` as an operator or the chart runs it: exit codes and the record of `--check`.

use std::process::{Command, Output};

use occ_host::migrate;
use occ_tests::database::Database;
use occ_tests::environment;
use serde_json::Value;

use super::execute;

fn run(url: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(environment::binaries().unwrap().join("occ-host"));
    command.arg("migrate").args(arguments).env_clear();
    if let Some(url) = url {
        command.env("OCC_MIGRATION_DATABASE_URL", url);
    }
    command.output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The one line that says how it went.
fn record(output: &Output) -> Value {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    let line = text
        .lines()
        .rfind(|line| line.contains("migration."))
        .unwrap_or_else(|| panic!("no record in {text:?}"));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[tokio::test]
async fn a_database_goes_from_empty_to_current() {
    let database = Database::empty().await.unwrap();
    let url = database.url("occ_migrator");
    let checked = run(Some(&url), &["--check", "--json"]);
    assert_eq!((code(&checked), record(&checked)["state"].as_str()), (0, Some("empty")));
    assert_eq!(code(&run(Some(&url), &["--check", "--require-current"])), 1);

    let migrated = run(Some(&url), &[]);
    assert_eq!((code(&migrated), record(&migrated)["event"].as_str()), (0, Some("migration.completed")));

    let checked = run(Some(&url), &["--check", "--require-current", "--json"]);
    let record = record(&checked);
    assert_eq!((code(&checked), record["state"].as_str()), (0, Some("current")));
    assert_eq!(record["version"], migrate::expected_version());
    assert_eq!(record["pending"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn each_failure_has_its_exit_status_and_names_its_code() {
    let database = Database::new().await.unwrap();
    let url = database.url("occ_migrator");
    let mut db = database.connect("occ_migrator").await.unwrap();
    execute(&mut db, "update occ_migrations.receipts set success = false").await.unwrap();
    let refused = run(Some(&url), &[]);
    let said = record(&refused);
    assert_eq!((code(&refused), said["code"].as_str()), (3, Some("MIGRATION_HISTORY_UNSUPPORTED")));
    assert_eq!(said["reason"], "receipt-unfinished");

    let absent = run(Some("postgres://occ_migrator:hunter2@127.0.0.1:1/occ"), &[]);
    assert_eq!((code(&absent), record(&absent)["code"].as_str()), (1, Some("PERSISTENCE_UNAVAILABLE")));
    assert!(!String::from_utf8_lossy(&absent.stderr).contains("hunter2"));

    assert_eq!(code(&run(None, &[])), 2);
    assert_eq!(code(&run(Some("mysql://x"), &[])), 2);
    assert_eq!(code(&run(Some(&url), &["--require-current"])), 2);
}
