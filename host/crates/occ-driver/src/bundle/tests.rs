use std::io::Write;

use serde_json::{Value, json};

use super::*;

fn manifest(id: &str, bytes: &[u8]) -> Value {
    json!({"schema": 1, "name": "test", "version": "1", "plugins": [{
        "id": id, "kind": "compute", "version": "0.1.0", "contract": "0.1",
        "file": "plugin.wasm", "sha256": digest::sha256(bytes),
    }]})
}

fn folder(parent: &Path, name: &str, manifest: &Value, bytes: &[u8]) -> PathBuf {
    let folder = parent.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bundle.json"), manifest.to_string()).unwrap();
    std::fs::write(folder.join("plugin.wasm"), bytes).unwrap();
    folder
}

fn archive(path: &Path, files: &[(&str, &[u8])]) {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    let bytes = tar.into_inner().unwrap().finish().unwrap();
    std::fs::File::create(path).unwrap().write_all(&bytes).unwrap();
}

fn search(path: &Path, policy: &TrustPolicy) -> Result<Library, BundleError> {
    Library::search(&[SearchFolder { path: path.to_owned(), of_image: false, required: true }], policy)
}

fn allow() -> TrustPolicy {
    TrustPolicy { allow_unsigned: true, ..TrustPolicy::default() }
}

#[test]
fn a_changed_file_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let folder = folder(parent.path(), "one", &manifest("null", b"component"), b"component");
    let library = search(&folder, &allow()).unwrap();
    assert_eq!(library.find("null").unwrap().bytes().unwrap(), b"component");
    std::fs::write(folder.join("plugin.wasm"), b"komponent").unwrap();
    let error = library.find("null").unwrap().bytes().unwrap_err();
    assert!(
        matches!(&error, BundleError::Digest { found, .. } if *found == digest::sha256(b"komponent")),
        "{error}"
    );
}

#[test]
fn what_nothing_vouches_for_is_refused_and_others_go_on() {
    let parent = tempfile::tempdir().unwrap();
    let document = manifest("null", b"1");
    folder(parent.path(), "one", &document, b"1");
    folder(parent.path(), "two", &manifest("other", b"2"), b"2");
    let pinned = TrustPolicy::new(
        &[format!("sha256:{}", digest::sha256(document.to_string().as_bytes()))],
        &[],
        false,
    );
    let library = search(parent.path(), &pinned.unwrap()).unwrap();
    assert_eq!(library.find("null").unwrap().standing(), Standing::Pinned);
    assert!(library.find("other").is_none());
    assert!(matches!(library.refused(), [BundleError::Untrusted { at, .. }] if at.ends_with("two")));
    assert_eq!(TrustPolicy::new(&[], &["PEM".to_owned()], false), Err(vec![trust::PolicyProblem::Keys]));
}

#[test]
fn one_id_comes_once() {
    let parent = tempfile::tempdir().unwrap();
    folder(parent.path(), "one", &manifest("null", b"1"), b"1");
    folder(parent.path(), "same", &manifest("null", b"1"), b"1");
    assert_eq!(search(parent.path(), &allow()).unwrap().find("null").unwrap().bytes().unwrap(), b"1");
    folder(parent.path(), "two", &manifest("null", b"2"), b"2");
    let error = search(parent.path(), &allow()).unwrap_err();
    assert!(matches!(&error, BundleError::Duplicate { id, .. } if id == "null"), "{error}");
}

#[test]
fn archives_hold_plain_files_only() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("bundle.tar.gz");
    let document = manifest("null", b"component").to_string();
    archive(&path, &[("bundle.json", document.as_bytes()), ("plugin.wasm", b"component")]);
    let library = search(&path, &allow()).unwrap();
    assert_eq!(library.find("null").unwrap().bytes().unwrap(), b"component");
    archive(&path, &[("bundle.json", document.as_bytes()), ("deep/plugin.wasm", b"component")]);
    let library = search(&path, &allow()).unwrap();
    assert!(matches!(library.refused(), [BundleError::Archive { .. }]), "{:?}", library.refused());
    std::fs::write(&path, b"junk").unwrap();
    assert!(matches!(search(&path, &allow()).unwrap().refused(), [BundleError::Archive { .. }]));
}

#[test]
fn a_named_place_must_exist_and_oci_is_not_offered() {
    let parent = tempfile::tempdir().unwrap();
    assert!(matches!(search(&parent.path().join("no"), &allow()), Err(BundleError::Unreadable { .. })));
    let oci = search(Path::new("oci://host/name@sha256:00"), &allow()).unwrap_err();
    assert!(matches!(oci, BundleError::Oci(_)));
    let implied = SearchFolder { path: parent.path().join("no"), of_image: true, required: false };
    assert!(Library::search(&[implied], &TrustPolicy::default()).unwrap().plugins().next().is_none());
}
