use super::*;

const A: &str = "https://a.example.com";
const B: &str = "https://b.example.com";

fn context(name: &str, url: &str) -> Context {
    Context {
        name: name.to_owned(),
        url: url.to_owned(),
        namespace: Some(format!("ns_{name}")),
        service_key_file: Some(PathBuf::from(format!("/{name}.json"))),
        ca_bundle: Some(PathBuf::from(format!("/{name}.pem"))),
        output: None,
    }
}

fn settle(global: &Global, environment: &Environment, levels: &[&Context]) -> Settings {
    Settings::settle(global, environment, levels).unwrap()
}

fn flags() -> Global {
    Global {
        url: Some(A.to_owned()),
        namespace: Some("ns_flag".to_owned()),
        service_key_file: Some(PathBuf::from("/flag.json")),
        ca_bundle: Some(PathBuf::from("/flag.pem")),
        timeout_seconds: Some(5),
        ..Global::default()
    }
}

fn variables() -> Environment {
    Environment {
        url: Some(B.to_owned()),
        namespace: Some("ns_variable".to_owned()),
        service_key_file: Some(PathBuf::from("/variable.json")),
        ca_bundle: Some(PathBuf::from("/variable.pem")),
        timeout_seconds: Some("7".to_owned()),
        ..Environment::default()
    }
}

fn values(settings: &Settings) -> (String, String, String, String) {
    (
        settings.url.clone().unwrap().value,
        settings.namespace.clone().unwrap().value,
        settings.key_file.clone().unwrap().value.display().to_string(),
        settings.ca_bundle.clone().unwrap().display().to_string(),
    )
}

fn expected(url: &str, name: &str) -> (String, String, String, String) {
    (url.to_owned(), format!("ns_{name}"), format!("/{name}.json"), format!("/{name}.pem"))
}

#[test]
fn a_flag_wins_over_the_environment() {
    let settings = settle(&flags(), &variables(), &[]);
    assert_eq!(values(&settings), expected(A, "flag"));
    assert_eq!(settings.timeout, Duration::from_secs(5));
    assert_eq!(settings.url.unwrap().source, Source::Flag);
}

#[test]
fn the_environment_wins_over_the_named_context() {
    let named = context("named", A);
    let settings = settle(&Global::default(), &variables(), &[&named]);
    assert_eq!(values(&settings), expected(B, "variable"));
    assert_eq!(settings.timeout, Duration::from_secs(7));
    assert_eq!(settings.url.unwrap().source, Source::Environment);
}

#[test]
fn the_named_context_wins_over_the_current_one() {
    let (named, current) = (context("named", A), context("current", B));
    let settings = settle(&Global::default(), &Environment::default(), &[&named, &current]);
    assert_eq!(values(&settings), expected(A, "named"));
    assert_eq!(settings.namespace.unwrap().source, Source::Context("named".to_owned()));
}

#[test]
fn each_value_is_settled_on_its_own() {
    let current = context("current", A);
    let mut named = context("named", A);
    named.namespace = None;
    let environment =
        Environment { ca_bundle: Some(PathBuf::from("/variable.pem")), ..Environment::default() };
    let global = Global { service_key_file: Some(PathBuf::from("/flag.json")), ..Global::default() };
    let settings = settle(&global, &environment, &[&named, &current]);
    assert_eq!(
        values(&settings),
        (A.to_owned(), "ns_current".to_owned(), "/flag.json".to_owned(), "/variable.pem".to_owned())
    );
}

#[test]
fn what_a_context_holds_goes_to_its_own_origin_only() {
    let current = context("current", A);
    let global = Global { url: Some(B.to_owned()), ..Global::default() };
    let settings = settle(&global, &Environment::default(), &[&current]);
    assert_eq!(
        (settings.key_file.clone(), settings.ca_bundle.clone(), settings.namespace.clone()),
        (None, None, None)
    );
    let failure = settings.key().unwrap_err();
    assert_eq!(failure.exit(), Exit::Denied);
    assert!(failure.message().contains("--service-key-file"));
    // The same origin, spelt differently.
    let global = Global { url: Some("HTTPS://A.example.com:443/".to_owned()), ..Global::default() };
    let settings = settle(&global, &Environment::default(), &[&current]);
    assert_eq!(settings.key_file.unwrap().value, PathBuf::from("/current.json"));
}

#[test]
fn without_a_url_the_way_out_is_named() {
    let failure = settle(&Global::default(), &Environment::default(), &[]).origin().unwrap_err();
    assert_eq!(failure.exit(), Exit::Usage);
    assert!(failure.message().contains("--url") && failure.message().contains("OCC_URL"));
}

#[test]
fn a_timeout_is_positive_and_whole() {
    for wrong in ["0", "-1", "1.5", "", "99999"] {
        assert!(timeout_secs(wrong).is_err(), "{wrong}");
    }
    assert_eq!(timeout_secs("30").unwrap(), 30);
}

#[test]
fn a_key_file_never_shows_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    for content in
        ["canary", "{\"data\":{}}", "{\"data\":{\"key\":\"\"}}", "{\"data\":{\"key\":\"canary\\nx\"}}"]
    {
        std::fs::write(&path, content).unwrap();
        let failure = read_key(&path).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(!failure.to_text().contains("canary"), "{}", failure.to_text());
    }
    std::fs::write(&path, "{\"data\":{\"key\":\"occ_x\"},\"meta\":{}}").unwrap();
    assert_eq!(read_key(&path).unwrap(), "occ_x");
}
