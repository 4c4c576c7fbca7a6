//! `occ service-key create`: the file first, and no key that is not kept.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::fake::{Fake, Reply};
use super::run::{Person, Ran};
use super::{NAMESPACE, PRINCIPAL};

fn issuing() -> Fake {
    Fake::start(|asked, _| match asked.method.as_str() {
        "POST" => Reply::data(
            201,
            &json!({"id": "key_1", "name": "ci", "servicePrincipalId": PRINCIPAL, "key": "occ_issued"}),
        ),
        _ => Reply::data(200, &json!({"id": "key_1", "revoked": true})),
    })
}

fn line(person: &Person, url: &str, out: &str) -> String {
    format!(
        "service-key create --service-principal {PRINCIPAL} --name ci --out {out} --expires-in-days 2 -n {NAMESPACE} \
         --url {url} --service-key-file {}",
        person.path("key.json").display()
    )
}

#[test]
fn cli_key_is_kept_private_and_never_printed() {
    let (fake, person) = (issuing(), Person::new());
    let mut command = person.command_after("umask 000", &line(&person, &fake.url, "new.json"));
    let ran = Ran::of(&command.output().unwrap()).exits(0);
    assert!(!ran.stdout.contains("occ_issued") && !ran.stderr.contains("occ_issued"), "{ran:?}");
    let body: serde_json::Value = serde_json::from_str(&fake.only().body).unwrap();
    assert_eq!(
        body,
        json!({"servicePrincipalId": PRINCIPAL, "namespaceId": NAMESPACE, "name": "ci", "expiresIn": 172_800})
    );
    let path = person.path("new.json");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // The new file is a key file.
    person
        .bare(&format!("installation get --url {} --service-key-file {}", fake.url, path.display()))
        .exits(0);
    assert_eq!(fake.asked()[1].header("x-api-key"), Some("occ_issued"));
}

#[test]
fn cli_key_is_not_asked_for_when_the_file_exists() {
    let (fake, person) = (issuing(), Person::new());
    person.write("old.json", "{}");
    person.bare(&line(&person, &fake.url, "old.json")).exits(2);
    assert!(fake.asked().is_empty());
    assert_eq!(std::fs::read_to_string(person.path("old.json")).unwrap(), "{}");
}

#[test]
fn cli_key_that_cannot_be_kept_is_revoked() {
    let (fake, person) = (issuing(), Person::new());
    // No file may grow: what a full disk does, without one.
    let mut command =
        person.command_after("trap '' XFSZ; ulimit -f 0", &line(&person, &fake.url, "new.json"));
    let ran = Ran::of(&command.output().unwrap()).exits(1);
    assert!(ran.stderr.contains("key key_1 was revoked"), "{}", ran.stderr);
    let lines: Vec<String> = fake.asked().iter().map(super::fake::Asked::line).collect();
    assert_eq!(lines, ["POST /api/auth/service-keys", "DELETE /api/auth/service-keys/key_1"]);
    assert!(!person.path("new.json").exists());
}

#[test]
fn cli_key_refused_leaves_no_file() {
    let person = Person::new();
    let fake = Fake::always(Reply::error(403, "FORBIDDEN", "The request is forbidden."));
    person.bare(&line(&person, &fake.url, "new.json")).exits(3);
    assert!(!person.path("new.json").exists());
}
