//! Inputs, seed and folder, without a database.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use time::macros::datetime;

use super::files::{FINISHED, Folder, Found, PENDING, Record};
use super::model::{Draw, NewKey, Seed, permissions};
use super::{BootstrapConfig, BootstrapError, inputs};
use crate::clock::Clock;
use crate::config::Secret;
use crate::ids::Ids;

fn config() -> BootstrapConfig {
    BootstrapConfig {
        database_url: Secret::new("postgres://occ_app@localhost/occ".to_owned()),
        auth_secret: Secret::new("s".repeat(32)),
        base_url: "https://occ.example".to_owned(),
        admin_email: " Admin@Example.ORG ".to_owned(),
        installation_name: "Example".to_owned(),
        password_file: PathBuf::from("/out/password"),
        service_key_file: PathBuf::from("/out/key.json"),
        clock: Clock::system(),
        ids: Ids::seeded(1),
        stop_after: None,
    }
}

fn code(change: impl FnOnce(&mut BootstrapConfig)) -> &'static str {
    let mut config = config();
    change(&mut config);
    inputs::check(&config).unwrap_err().code()
}

#[test]
fn good_inputs_are_normalised() {
    let inputs = inputs::check(&config()).unwrap();
    assert_eq!(inputs.admin_email, "admin@example.org");
    assert_eq!(inputs.folder, PathBuf::from("/out"));
    assert_eq!((inputs.password_name.as_str(), inputs.key_name.as_str()), ("password", "key.json"));
}

#[test]
fn each_wrong_input_has_its_code() {
    assert_eq!(code(|config| config.installation_name = " x".to_owned()), "INSTALLATION_NAME_INVALID");
    assert_eq!(code(|config| config.installation_name = "x".repeat(201)), "INSTALLATION_NAME_INVALID");
    assert_eq!(code(|config| config.installation_name = "a\u{85}b".to_owned()), "INSTALLATION_NAME_INVALID");
    for email in ["", "a", "a@b", "@b.c", "a@b@c.d", "a b@c.d", "a@b..c"] {
        assert_eq!(code(|config| config.admin_email = email.to_owned()), "ADMIN_EMAIL_INVALID", "{email}");
    }
    assert_eq!(code(|config| config.auth_secret = Secret::new("s".repeat(31))), "AUTH_SECRET_INVALID");
    assert_eq!(code(|config| config.base_url = "https://occ.example/".to_owned()), "AUTH_BASE_URL_INVALID");
    let url = |config: &mut BootstrapConfig| config.database_url = Secret::new("mysql://x".to_owned());
    assert_eq!(code(url), "DATABASE_CONFIGURATION_INVALID");
    for path in
        ["key.json", "/other/key.json", "/out/password", "/out/bootstrap-attempt.json", "/out/../out/key"]
    {
        assert_eq!(
            code(|config| config.service_key_file = PathBuf::from(path)),
            "BOOTSTRAP_PATH_INVALID",
            "{path}"
        );
    }
}

#[test]
fn all_faults_are_reported_together() {
    let mut config = config();
    config.admin_email = String::new();
    config.base_url = String::new();
    let BootstrapError::Inputs { code, problems } = inputs::check(&config).unwrap_err() else {
        panic!("not inputs")
    };
    assert_eq!(code, "ADMIN_EMAIL_INVALID");
    let at: Vec<&str> = problems.iter().map(|problem| problem.at.as_str()).collect();
    assert_eq!(at, ["OCC_BOOTSTRAP_ADMIN_EMAIL", "OCC_AUTH_BASE_URL"]);
}

#[test]
fn the_seeded_role_has_35_pairs_without_read_logs() {
    let pairs: Vec<_> = permissions().collect();
    assert_eq!(pairs.len(), 35);
    assert!(!pairs.iter().any(|(action, _)| *action == "read_logs"));
    assert!(pairs.contains(&("administer", "installation")));
}

#[test]
fn password_and_key_have_their_forms() {
    let ids = Ids::seeded(7);
    let draw = Draw { ids: &ids, now: datetime!(2026-03-02 10:03:00.123456 UTC) };
    let seed = Seed::draw(&draw, "Example", "admin@example.org").unwrap();
    assert_eq!(seed.password_file().len(), 44);
    assert!(seed.password_hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", seed.password_hash);

    let key = NewKey::draw(&draw);
    let file = key.file(&seed.service_principal_id, &seed.installation_id);
    assert!(file.ends_with("}\n") && file.lines().count() == 1);
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["data"]["expiresAt"], "2026-04-01T10:03:00.123Z");
    assert_eq!(file["data"]["name"], "bootstrap-admin");
    assert_eq!(file["meta"]["installationId"], seed.installation_id.as_str());
    let secret = file["data"]["key"].as_str().unwrap();
    assert_eq!((secret.len(), &secret[..12]), (47, key.prefix()));
    assert_eq!(file["data"].as_object().unwrap().len(), 5);
}

struct Scene {
    temp: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { temp }
    }

    fn folder(&self) -> Folder {
        Folder::open(self.temp.path()).unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.temp.path().join(name), text).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.temp.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn record() -> Record {
    let files = [("password".to_owned(), "secret\n".to_owned()), ("key".to_owned(), "{}\n".to_owned())];
    Record::new("bat_1", &"ins_1", "2026-01-01T00:00:00.000Z".to_owned(), &files)
}

#[test]
fn an_unsafe_folder_is_refused() {
    let scene = Scene::new();
    let inside = scene.temp.path().join("inside");
    let refusal = |path: &PathBuf| Folder::open(path).unwrap_err().code();
    assert_eq!(refusal(&inside), "BOOTSTRAP_STORAGE_UNSAFE");
    fs::create_dir(&inside).unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o701)).unwrap();
    assert_eq!(refusal(&inside), "BOOTSTRAP_STORAGE_UNSAFE");
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o2770)).unwrap();
    Folder::open(&inside).unwrap();
    let link = scene.temp.path().join("link");
    symlink(&inside, &link).unwrap();
    assert_eq!(refusal(&link), "BOOTSTRAP_STORAGE_UNSAFE");
}

#[test]
fn files_are_private_and_never_overwritten() {
    let scene = Scene::new();
    scene.folder().write("password", "secret\n").unwrap();
    let meta = fs::metadata(scene.temp.path().join("password")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(scene.folder().write("password", "other\n").unwrap_err().code(), "BOOTSTRAP_OUTPUT_EXISTS");
    symlink("nowhere", scene.temp.path().join("key")).unwrap();
    assert_eq!(scene.folder().write("key", "{}\n").unwrap_err().code(), "BOOTSTRAP_OUTPUT_EXISTS");
}

#[test]
fn the_folder_tells_what_it_holds() {
    let scene = Scene::new();
    fs::create_dir(scene.temp.path().join("lost+found")).unwrap();
    assert_eq!(scene.folder().found().unwrap(), Found::Nothing);
    scene.put(PENDING, "{\"attemptId\":");
    assert_eq!(scene.folder().found().unwrap(), Found::UnreadableRecord);
    scene.put("password", "secret\n");
    assert_eq!(scene.folder().found().unwrap(), Found::Foreign("password".to_owned()));
    scene.folder().discard_record().unwrap();
    scene.folder().write_record(&record()).unwrap();
    assert_eq!(scene.folder().found().unwrap(), Found::Attempt(record()));
    scene.put("notes", "");
    assert_eq!(scene.folder().found().unwrap(), Found::Foreign("notes".to_owned()));
}

#[test]
fn an_attempt_is_discarded_with_its_equal_and_partial_files() {
    let scene = Scene::new();
    scene.folder().write_record(&record()).unwrap();
    scene.put("password", "secret\n");
    scene.put("key", "{");
    scene.folder().discard(&record()).unwrap();
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn a_file_with_other_content_stops_the_discard_before_it_begins() {
    for other in ["secreT\n", "secret\nand more"] {
        let scene = Scene::new();
        scene.folder().write_record(&record()).unwrap();
        scene.put("key", "{}\n");
        scene.put("password", other);
        assert_eq!(scene.folder().discard(&record()).unwrap_err().code(), "BOOTSTRAP_OUTPUT_EXISTS");
        assert_eq!(scene.names(), [PENDING, "key", "password"]);
    }
}

#[test]
fn a_finished_record_takes_its_final_name() {
    let scene = Scene::new();
    scene.folder().write_record(&record()).unwrap();
    scene.folder().finish().unwrap();
    assert_eq!(scene.names(), [FINISHED]);
}
