//! What people and operators see of plugins: the API, the metrics and `occ-host plugin`.

use std::process::{Command, Output};

use occ_tests::environment::binaries;
use occ_tests::host::Host;
use serde_json::{Value, json};

use super::rig::{bundled, component};

fn plugin(words: &[&str]) -> Output {
    let mut command = Command::new(binaries().unwrap().join("occ-host"));
    command.arg("plugin").args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn the_api_shows_what_is_loaded() {
    let host = Host::start().await.unwrap();
    let answer = host.get("/plugins").await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let plugins = answer.data().as_array().unwrap();
    let ids: Vec<&Value> = plugins.iter().map(|plugin| &plugin["id"]).collect();
    assert_eq!(ids, [&json!("compute-local"), &json!("harness-openclaw")]);
    let one = host.get("/plugins/compute-local").await.unwrap();
    let plugin = one.data();
    assert_eq!(plugin["contract"], "occ:plugin@0.1.0");
    assert_eq!(plugin["state"], "loaded");
    assert_eq!(plugin["breaker"], "closed");
    assert_eq!(plugin["capabilities"]["requested"], json!(["process"]));
    assert_eq!(plugin["capabilities"]["granted"], json!(["log", "settings", "process"]));
    assert!(plugin["calls"]["count"].as_u64().is_some_and(|calls| calls > 0), "{plugin}");
    let first = host.get("/plugins?limit=1").await.unwrap();
    assert_eq!(first.data().as_array().map(Vec::len), Some(1), "{}", first.body);
    assert_eq!(host.get("/plugins/none").await.unwrap().status, 404);
    let metrics = host.app.metrics.scrape(&host.app.db).unwrap();
    for line in [
        "occ_plugin_calls_total{plugin=\"compute-local\",operation=\"describe\",outcome=\"ok\"",
        "occ_plugin_call_duration_seconds_bucket{",
        "occ_plugin_loaded{plugin=\"harness-openclaw\",version=\"0.1.0\"",
    ] {
        // The registry's own label comes first.
        let line = line.split_once('{').map_or(line, |(_, labels)| labels);
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    host.end().await.unwrap();
}

#[test]
fn inspect_tells_what_a_file_is_and_why_it_is_refused() {
    for file in ["compute_local.wasm", "null.wasm", "faulty.wasm"] {
        let path = bundled().join(file);
        let output = plugin(&["inspect", path.to_str().unwrap()]);
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{printed}{}", text(&output.stderr));
        for line in ["world         compute-driver", "contract      occ:plugin@0.1.0", "accepted      yes"] {
            assert!(printed.contains(line), "{line} is not in:\n{printed}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.wasm");
    std::fs::write(&cut, &component("null")[..1_000]).unwrap();
    let output = plugin(&["inspect", cut.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("accepted      no: "), "{}", text(&output.stdout));
    let absent = plugin(&["inspect", "/nowhere.wasm"]);
    assert_eq!(absent.status.code(), Some(2));
}

#[test]
fn test_exits_by_what_it_found_and_writes_junit() {
    let folder = tempfile::tempdir().unwrap();
    let junit = folder.path().join("report.xml");
    let run = |file: &str| {
        let path = bundled().join(file);
        plugin(&["test", path.to_str().unwrap(), "--kind", "compute", "--junit", junit.to_str().unwrap()])
    };
    for file in ["compute_local.wasm", "null.wasm"] {
        let output = run(file);
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        assert!(std::fs::read_to_string(&junit).unwrap().contains("failures=\"0\""));
    }
    let output = run("faulty.wasm");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("FAIL  stop-keeps-state"), "{}", text(&output.stdout));
    assert!(std::fs::read_to_string(&junit).unwrap().contains("<failure message="));
}
