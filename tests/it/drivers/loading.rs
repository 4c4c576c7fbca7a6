//! Loading: what is refused before anything runs, and what a warm cache saves.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use occ_driver::Kind;
use occ_driver::bundle::BundleError;
use occ_driver::cache::{Cache, CacheError};
use occ_driver::capability::GrantProblem;
use occ_driver::conformance;
use occ_driver::digest;
use occ_driver::inspect::InspectError;
use occ_driver::load::{LoadError, Selection};
use serde_json::json;

use super::rig::{bundled, component, library, load, load_from, selection, services, services_with};

/// A bundle of one plugin called `null`, next to nothing else.
fn bundle(folder: &Path, id: &str, bytes: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    let manifest = json!({"schema": 1, "name": "test", "version": "1", "plugins": [{
        "id": id, "kind": "compute", "version": "0.1.0", "contract": "0.1",
        "file": "plugin.wasm", "sha256": digest::sha256(bytes),
    }]});
    std::fs::write(folder.join("bundle.json"), manifest.to_string()).unwrap();
    std::fs::write(folder.join("plugin.wasm"), bytes).unwrap();
}

/// Every occurrence of a text, replaced by one of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        bytes[at + found..at + found + to.len()].copy_from_slice(to.as_bytes());
        at += found + to.len();
    }
    bytes
}

#[tokio::test]
async fn bad_components_are_refused_and_named_and_others_go_on() {
    let parent = tempfile::tempdir().unwrap();
    let null = component("null");
    let module = b"\0asm\x01\0\0\0".to_vec();
    let foreign = b"\0asm\x0d\0\x01\0".to_vec();
    let newer = replaced(&null, "@0.1.0", "@0.9.0");
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("truncated", null[..null.len() / 2].to_vec(), "is no WebAssembly component"),
        ("random", vec![0xA5; 4_096], "is no WebAssembly component"),
        ("empty", Vec::new(), "is no WebAssembly component"),
        ("module", module, "wasm32-wasip2"),
        ("foreign", foreign, "component of another world"),
        ("newer", newer, "was built for occ:plugin@0.9.0; this host offers 0.1"),
    ];
    for (id, bytes, _) in &cases {
        bundle(&parent.path().join(id), id, bytes);
    }
    bundle(&parent.path().join("good"), "good", &null);
    let (services, library) = (services(), library(parent.path()));
    let selection = selection(Kind::Compute, json!({}));
    for (id, _, wanted) in cases {
        let error = load_from(&services, &library, id, &selection).await.unwrap_err();
        assert!(matches!(error, LoadError::Inspect { .. }), "{id}: {error}");
        let text = error.to_string();
        assert!(text.contains(wanted) && text.contains(&format!("{id}/plugin.wasm")), "{id}: {text}");
    }
    let good = load_from(&services, &library, "good", &selection).await.unwrap();
    assert_eq!(good.identity().id, "good");
}

#[tokio::test]
async fn an_oversized_file_is_refused_unread() {
    let parent = tempfile::tempdir().unwrap();
    bundle(&parent.path().join("huge"), "huge", b"");
    let file = std::fs::File::create(parent.path().join("huge/plugin.wasm")).unwrap();
    file.set_len(33 * 1024 * 1024).unwrap();
    let selection = selection(Kind::Compute, json!({}));
    let error = load_from(&services(), &library(parent.path()), "huge", &selection).await.unwrap_err();
    assert!(
        matches!(&error, LoadError::Bundle(BundleError::Unreadable { at, why }) if at.ends_with("huge/plugin.wasm") && why.contains("too large")),
        "{error}"
    );
}

#[tokio::test]
async fn a_wrong_digest_is_refused_before_the_bytes_are_read() {
    let parent = tempfile::tempdir().unwrap();
    bundle(&parent.path().join("null"), "null", &component("null"));
    std::fs::write(parent.path().join("null/plugin.wasm"), b"another").unwrap();
    let selection = selection(Kind::Compute, json!({}));
    let error = load_from(&services(), &library(parent.path()), "null", &selection).await.unwrap_err();
    assert!(
        matches!(&error, LoadError::Bundle(BundleError::Digest { file, .. }) if file == "plugin.wasm"),
        "{error}"
    );
}

#[tokio::test]
async fn what_was_not_selected_is_refused() {
    let services = services();
    let null = selection(Kind::Harness, json!({}));
    let error = load(&services, "null", &null).await.unwrap_err();
    assert_eq!(error.to_string(), "is a compute, the Installation selects a harness");
    let pinned = Selection { version: Some("7.0.0".to_owned()), ..selection(Kind::Compute, json!({})) };
    let error = load(&services, "null", &pinned).await.unwrap_err();
    assert!(error.to_string().ends_with("selects version 7.0.0"), "{error}");
    let error =
        load(&services, "null", &selection(Kind::Compute, json!({"password": "hunter2"}))).await.unwrap_err();
    assert!(matches!(error, LoadError::Settings(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let settings = json!({"commands": {"gateway": ["/bin/true"]}});
    let error = load(&services, "compute-local", &selection(Kind::Compute, settings)).await.unwrap_err();
    assert!(
        matches!(&error, LoadError::Grants(problems) if problems == &[GrantProblem::Missing("process")]),
        "{error}"
    );
}

#[tokio::test]
async fn a_warm_cache_compiles_nothing_and_a_damaged_one_compiles_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("compiled");
    let selection = selection(Kind::Compute, json!({}));
    let compiled = async || {
        let services = services_with(Some(Cache::open(&folder).unwrap()));
        let plugin = load(&services, "null", &selection).await.unwrap();
        plugin.info().origin.compiled
    };
    assert!(compiled().await);
    assert!(!compiled().await);
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&file, b"damaged").unwrap();
    assert!(compiled().await);
    assert!(!compiled().await);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Cache::open(&folder).unwrap_err();
    assert!(matches!(&error, CacheError::Loose { mode: 0o755, .. }), "{error}");
    assert!(error.to_string().contains(folder.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_version_this_host_does_not_speak_is_explained() {
    let bytes = replaced(&component("null"), "@0.1.0", "@0.9.0");
    let header = occ_driver::inspect::Header::read(&bytes).unwrap();
    let error = header.accept(Kind::Compute, &bytes).unwrap_err();
    let InspectError::OtherVersion { built, offered, .. } = &error else { panic!("{error}") };
    assert_eq!((built.as_str(), offered.as_str()), ("0.9.0", "0.1"));
    let harness = component("harness-openclaw");
    let header = occ_driver::inspect::Header::read(&harness).unwrap();
    let error = header.accept(Kind::Compute, &harness).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("is no compute-driver") && text.contains("compute.platform"), "{text}");
}

#[tokio::test]
async fn the_suite_passes_right_drivers_and_names_what_a_wrong_one_breaks() {
    let services = services();
    for (file, kind) in [
        ("null.wasm", Kind::Compute),
        ("compute_local.wasm", Kind::Compute),
        ("harness_openclaw.wasm", Kind::Harness),
    ] {
        let report = Box::pin(conformance::run(&services, &bundled().join(file), kind, None)).await;
        assert!(report.passed(), "{}", report.table());
    }
    let faulty = bundled().join("faulty.wasm");
    let report = Box::pin(conformance::run(&services, &faulty, Kind::Compute, None)).await;
    let failed: Vec<&str> = report.failed().map(|check| check.name).collect();
    for name in ["plan-is-checked", "deploy-converges", "stop-keeps-state", "destroy-removes-state"] {
        assert!(failed.contains(&name), "{}", report.table());
    }
    let passed = report.checks.len() - failed.len();
    assert!(passed > 0, "it describes itself well:\n{}", report.table());
}
