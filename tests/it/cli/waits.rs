//! Waiting: success, failure, rollback, deadline, a server that goes away or knows no `?wait=`.

use serde_json::{Value, json};

use super::fake::{Asked, Fake, Reply};
use super::run::Person;
use super::{AGENT, NAMESPACE, OLDER, REVISION};

fn deployment(status: &str, error: &Value) -> Value {
    let progress = json!({"lastAttempt": {"at": "t", "code": "REVISION_INCOMPLETE", "message": "The runtime is not ready yet."}});
    json!({"deploymentId": REVISION, "status": status, "progress": progress, "error": error, "warnings": []})
}

/// Accepts a deploy and then answers reads of the deployment by a function of their number.
fn deploying(read: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Fake {
    Fake::start(move |asked, number| {
        if asked.method == "POST" {
            Reply::data(
                202,
                &json!({"id": REVISION, "revision": 2, "agentId": AGENT, "configurationId": "cfg_1"}),
            )
        } else if asked.target.contains("/deployments/") {
            read(asked, number - 1)
        } else {
            Reply::data(
                200,
                &json!({"id": AGENT, "activeRevisionId": OLDER, "desiredRuntimeState": "running"}),
            )
        }
    })
}

fn deploy(wait: &str) -> String {
    format!("agent deploy {AGENT} -n {NAMESPACE} {wait}")
}

#[test]
fn cli_wait_ends_when_the_deployment_succeeded() {
    let fake = deploying(|_, number| match number {
        0 | 1 => Reply::data(200, &deployment("running", &Value::Null)),
        _ => Reply::data(200, &deployment("succeeded", &Value::Null)),
    });
    let ran = Person::new().at(&fake.url, &deploy("--wait")).exits(0);
    assert!(ran.stdout.contains(REVISION), "{}", ran.stdout);
    // Progress is told when it changes, not at each read.
    assert_eq!(ran.stderr.matches("REVISION_INCOMPLETE").count(), 1, "{}", ran.stderr);
    let asked = fake.asked();
    assert!(asked[0].header("idempotency-key").is_some());
    assert!(asked[1].target.ends_with(&format!("/deployments/{REVISION}?wait=30")), "{}", asked[1].target);
}

#[test]
fn cli_wait_names_the_failure_and_who_serves() {
    let error = json!({"code": "ACTIVATION_ROLLED_BACK", "message": "The predecessor serves again.",
        "data": {"cause": "RUNTIME_STARTUP_FAILED", "restoredRevisionId": OLDER}});
    let fake = deploying(move |_, _| Reply::data(200, &deployment("failed", &error)));
    let ran = Person::new().at(&fake.url, &deploy("--wait")).exits(1);
    assert!(
        ran.stderr.contains("error: ACTIVATION_ROLLED_BACK: The predecessor serves again."),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("Cause: RUNTIME_STARTUP_FAILED\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("revision {OLDER} is the active one")), "{}", ran.stderr);
    let ran = Person::new().at(&fake.url, &deploy("--wait -o json")).exits(1);
    let printed: Value = serde_json::from_str(ran.stderr.trim()).unwrap();
    assert_eq!(printed["error"]["code"], "ACTIVATION_ROLLED_BACK");
}

#[test]
fn cli_wait_has_a_deadline_and_says_how_to_go_on() {
    let fake = deploying(|_, _| Reply::data(200, &deployment("queued", &Value::Null)));
    let ran = Person::new().at(&fake.url, &deploy("--wait=2s")).exits(6);
    assert!(
        ran.stderr.contains(&format!("occ agent deployment-status {AGENT} {REVISION} --wait")),
        "{}",
        ran.stderr
    );
}

#[test]
fn cli_wait_outlives_a_restart_of_the_server() {
    let fake = deploying(|_, number| match number {
        // More than the repetitions of one read.
        0..=5 => Reply::hang_up(),
        _ => Reply::data(200, &deployment("succeeded", &Value::Null)),
    });
    let ran = Person::new().at(&fake.url, &deploy("--wait")).exits(0);
    assert!(ran.stderr.contains("trying again"), "{}", ran.stderr);
}

#[test]
fn cli_wait_without_the_parameter_reads_by_itself() {
    let fake = deploying(|asked, number| {
        if asked.target.contains("wait=") {
            Reply::error(400, "INVALID_REQUEST", "Unknown parameter.")
        } else if number < 2 {
            Reply::data(200, &deployment("running", &Value::Null))
        } else {
            Reply::data(200, &deployment("succeeded", &Value::Null))
        }
    });
    Person::new().at(&fake.url, &deploy("--wait")).exits(0);
    assert_eq!(fake.asked().iter().filter(|asked| asked.target.contains("wait=")).count(), 1);
}

#[test]
fn cli_wait_for_stop_and_deletion_reads_the_agent() {
    let fake = Fake::start(|asked, number| match (asked.method.as_str(), number) {
        ("GET", 1) => Reply::data(
            200,
            &json!({"id": AGENT, "desiredRuntimeState": "stopped", "activeRevisionId": REVISION}),
        ),
        _ => Reply::data(202, &json!({"id": AGENT, "desiredRuntimeState": "stopped"})),
    });
    let ran =
        Person::new().at(&fake.url, &format!("agent stop {AGENT} -n {NAMESPACE} --wait -o json")).exits(0);
    assert_eq!(ran.json(), json!({"id": AGENT, "desiredRuntimeState": "stopped"}));
    assert!(ran.stderr.contains(&format!("occ agent deploy {AGENT}")), "{}", ran.stderr);
    assert_eq!(fake.asked().len(), 3);

    let fake = Fake::start(|_, number| match number {
        0 | 1 => Reply::data(202, &json!({"id": AGENT, "status": "deleting"})),
        _ => Reply::error(404, "NOT_FOUND", "Not found."),
    });
    let ran = Person::new().at(&fake.url, &format!("agent delete {AGENT} -n {NAMESPACE} --wait")).exits(0);
    assert_eq!(ran.stdout, format!("Deleted agent {AGENT}.\n"));
}

#[test]
fn cli_wait_for_a_namespace_that_fails() {
    let fake = Fake::start(|asked, _| {
        let status = if asked.method == "POST" { "provisioning" } else { "failed" };
        Reply::data(201, &json!({"id": NAMESPACE, "name": "acme", "status": status}))
    });
    let ran = Person::new().at(&fake.url, "namespace create acme --wait").exits(1);
    assert!(ran.stderr.contains(&format!("Namespace {NAMESPACE} is failed")), "{}", ran.stderr);
}

#[test]
fn cli_wait_deployed_compares_the_pointer() {
    let agent = |active: &'static str| {
        Fake::start(move |asked, _| {
            if asked.target.contains("/revisions?") {
                Reply::page(&json!([{"id": REVISION, "revision": 2}]), None)
            } else if asked.target.contains("/deployments/") {
                Reply::data(200, &deployment("succeeded", &Value::Null))
            } else {
                Reply::data(200, &json!({"id": AGENT, "activeRevisionId": active}))
            }
        })
    };
    let line = format!("wait agent/{AGENT} --for deployed -n {NAMESPACE}");
    Person::new().at(&agent(REVISION).url, &line).exits(0);
    let ran = Person::new().at(&agent(OLDER).url, &line).exits(1);
    assert!(ran.stderr.contains(&format!("revision {OLDER} is active now")), "{}", ran.stderr);
}
