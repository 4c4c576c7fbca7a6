use super::*;

fn variables(pairs: &[(&str, &str)]) -> Environment {
    Environment::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

const SERVE: [(&str, &str); 6] = [
    ("OCC_MODE", "development"),
    ("OCC_PORT", "7480"),
    ("OCC_CONFIG_PATH", "/etc/occ/installation.yaml"),
    ("OCC_DATABASE_URL", "postgres://occ_app@localhost/occ"),
    ("OCC_AUTH_SECRET", "0123456789abcdef0123456789abcdef"),
    ("OCC_AUTH_BASE_URL", "http://127.0.0.1:7480"),
];

#[test]
fn development_listens_on_loopback_by_default() {
    let serve = variables(&SERVE).serve().unwrap();
    assert_eq!(serve.listen.to_string(), "127.0.0.1:7480");
    assert_eq!(serve.metrics.map(|address| address.port()), Some(9464));
    assert!(!format!("{serve:?}").contains("0123456789abcdef"));
}

#[test]
fn every_problem_is_reported_at_once_and_without_values() {
    let problems = variables(&[
        ("OCC_MODE", "staging"),
        ("OCC_PORT", "99999"),
        ("OCC_AUTH_SECRET", "short-canary"),
        ("OCC_AUTH_BASE_URL", "ftp://x"),
        ("OCC_WORKER_LANE", "3"),
    ])
    .serve()
    .unwrap_err();
    let text = problems.to_string();
    for name in [
        "OCC_MODE",
        "OCC_PORT",
        "OCC_CONFIG_PATH",
        "OCC_DATABASE_URL",
        "OCC_AUTH_SECRET",
        "OCC_AUTH_BASE_URL",
    ] {
        assert!(text.contains(&format!("\n  {name}: ")), "{name} is missing in {text}");
    }
    assert!(
        text.contains("OCC_WORKER_LANE: is unknown; the nearest known name is OCC_WORKER_LANES"),
        "{text}"
    );
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn plain_and_file_form_together_are_refused() {
    let mut pairs = SERVE.to_vec();
    pairs.push(("OCC_AUTH_SECRET_FILE", "/etc/occ/auth"));
    let text = variables(&pairs).serve().unwrap_err().to_string();
    assert!(text.contains("keep OCC_AUTH_SECRET or OCC_AUTH_SECRET_FILE"), "{text}");
}

#[test]
fn a_worker_reads_its_bounds() {
    let mut pairs = SERVE.to_vec();
    pairs.push(("OCC_WORKER_MAX_ATTEMPTS", "51"));
    let text = variables(&pairs).worker().unwrap_err().to_string();
    assert!(text.contains("OCC_WORKER_MAX_ATTEMPTS: must be a whole number from 1 to 50"), "{text}");
}

const YAML: &str = "
occ: { cluster: dev }
drivers:
  secret: { id: database, settings: { keyFile: /var/lib/occ/secret.key } }
  compute: { plugin: compute-local, settings: { commands: {} } }
  harnesses: [{ plugin: harness-openclaw }]
";

#[test]
fn the_installation_reads_with_defaults() {
    let installation = Installation::parse(YAML, Mode::Development).unwrap();
    assert_eq!(installation.drivers.compute.plugin, "compute-local");
    assert_eq!(installation.limits, Limits::default());
    let text = Installation::parse(YAML, Mode::Production).unwrap_err().to_string();
    assert!(text.contains("/drivers/compute/plugin"), "{text}");
}

#[test]
fn what_is_not_plain_yaml_is_refused() {
    for (name, text) in [
        ("anchor", format!("{YAML}\nlogging: &a {{ level: info }}\n")),
        ("duplicate", format!("{YAML}\nocc: {{ cluster: other }}\n")),
        ("second document", format!("{YAML}\n---\nocc: 1\n")),
        ("tag", YAML.replace("dev }", "!secret dev }")),
        ("unknown key", format!("{YAML}\nruntime: {{}}\n")),
        ("credential", YAML.replace("cluster: dev", "cluster: sk-canary")),
        ("credential key", YAML.replace("commands: {}", "commands: {}, apiKey: canary")),
    ] {
        let parsed = Installation::parse(&text, Mode::Development);
        let error = parsed.err().unwrap_or_else(|| panic!("{name} is accepted")).to_string();
        assert!(!error.contains("canary"), "{name}: {error}");
    }
}
