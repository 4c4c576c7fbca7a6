//! Answers that are none, and requests that are repeated.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fake::{Fake, Reply};
use super::run::Person;
use super::{AGENT, KEY, NAMESPACE};

#[test]
fn cli_answer_a_redirect_is_never_followed() {
    let other = Fake::always(Reply::data(200, &json!({})));
    let target = format!("{}/installation?token=t", other.url);
    let fake = Fake::always(Reply::raw(302, "").header("location", &target));
    let ran = Person::new().at(&fake.url, "installation get").exits(1);
    assert!(ran.stderr.contains(&format!("points to {}/installation;", other.url)), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("use --url {}", other.url)), "{}", ran.stderr);
    assert!(!ran.stderr.contains("token"), "{}", ran.stderr);
    assert!(other.asked().is_empty(), "the key must not reach another origin");
}

#[test]
fn cli_answer_that_breaks_the_contract_is_named_so() {
    let whole = json!({"data": {"id": "ins_1"}, "meta": {"requestId": "r"}}).to_string();
    for (reply, line) in [
        (Reply::raw(200, &whole[..20]), "installation get"),
        (Reply::raw(200, whole.clone()).cut_by(10), "installation get"),
        (Reply::raw(200, json!({"data": {}}).to_string()), "installation get"),
        (Reply::raw(200, "<html>"), "installation get"),
        (Reply::raw(200, ""), "installation get"),
        (Reply::data(200, &json!({"id": "x"})), "namespace list"),
    ] {
        let fake = Fake::always(reply);
        let ran = Person::new().at(&fake.url, line).exits(1);
        assert!(ran.stderr.starts_with("error: ") && ran.stdout.is_empty(), "{ran:?}");
    }
}

#[test]
fn cli_answer_204_has_no_body() {
    let line = format!("iam role delete role_1 -n {NAMESPACE}");
    let fake = Fake::always(Reply::raw(204, ""));
    let ran = Person::new().at(&fake.url, &line).exits(0);
    assert_eq!(ran.stdout, "Deleted role role_1.\n");
    assert_eq!(fake.only().line(), format!("DELETE /namespaces/{NAMESPACE}/iam/roles/role_1"));
}

#[test]
fn cli_answer_that_takes_too_long_ends_with_6() {
    let fake = Fake::always(Reply::data(200, &json!({})).held(Duration::from_secs(20)));
    let begun = Instant::now();
    let ran = Person::new().at(&fake.url, "installation get --timeout-seconds 1").exits(6);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(ran.stderr.contains("within 1 s"), "{}", ran.stderr);
}

#[test]
fn cli_repeat_reads_three_times_at_most() {
    let fake = Fake::always(Reply::error(503, "DEPENDENCY_UNAVAILABLE", "Not now."));
    Person::new().at(&fake.url, "installation get").exits(1);
    assert_eq!(fake.asked().len(), 4);
    let fake = Fake::start(|_, number| match number {
        0 => Reply::hang_up(),
        1 => Reply::error(503, "DEPENDENCY_UNAVAILABLE", "Not now."),
        _ => Reply::data(200, &json!({"id": "ins_1", "name": "Acme"})),
    });
    let ran = Person::new().at(&fake.url, "installation get -o json").exits(0);
    assert_eq!(ran.json(), json!({"id": "ins_1", "name": "Acme"}));
    assert_eq!(fake.asked().len(), 3);
}

#[test]
fn cli_repeat_a_creation_under_one_key() {
    let fake = Fake::start(|_, number| match number {
        0 => Reply::hang_up(),
        1 => Reply::error(409, "IDEMPOTENCY_IN_PROGRESS", "Still running.").header("retry-after", "1"),
        _ => Reply::data(201, &json!({"id": NAMESPACE, "name": "acme", "status": "provisioning"})),
    });
    Person::new().at(&fake.url, "namespace create acme").exits(0);
    let asked = fake.asked();
    let keys: Vec<Option<&str>> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
    assert_eq!(asked.len(), 3);
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(asked[2].body, json!({"name": "acme"}).to_string());

    let fake = Fake::always(Reply::data(201, &json!({"id": NAMESPACE})));
    Person::new().at(&fake.url, "namespace create acme --idempotency-key mine-1").exits(0);
    assert_eq!(fake.only().header("idempotency-key"), Some("mine-1"));
}

#[test]
fn cli_repeat_never_what_declares_no_key() {
    for (reply, code) in [
        (Reply::hang_up(), 1),
        (Reply::error(503, "DEPENDENCY_UNAVAILABLE", "Not now."), 1),
        (Reply::error(429, "RATE_LIMITED", "Slowly.").header("retry-after", "1"), 1),
    ] {
        let hung = format!("{reply:?}").contains("hang_up: true");
        let fake = Fake::always(reply);
        let ran = Person::new().at(&fake.url, &format!("agent stop {AGENT} -n {NAMESPACE}")).exits(code);
        assert_eq!(fake.only().header("idempotency-key"), None);
        assert_eq!(ran.stderr.contains(&format!("occ agent get {AGENT}")), hung, "{}", ran.stderr);
    }
}

#[test]
fn cli_retry_after_counts_within_its_range_only() {
    for (asked_secs, requests) in [("0", 1), ("3601", 1), ("soon", 1), ("-1", 1), ("1", 2)] {
        let fake = Fake::start(move |_, number| match number {
            0 => Reply::error(429, "RATE_LIMITED", "Slowly.").header("retry-after", asked_secs),
            _ => Reply::data(200, &json!({"id": "ins_1"})),
        });
        Person::new().at(&fake.url, "installation get").exits(i32::from(requests == 1));
        assert_eq!(fake.asked().len(), requests, "{asked_secs}");
    }
    // It does not fit into the time for the request.
    let fake = Fake::always(Reply::error(429, "RATE_LIMITED", "Slowly.").header("retry-after", "3600"));
    Person::new().at(&fake.url, "installation get").exits(1);
    assert_eq!(fake.asked().len(), 1);
}

#[test]
fn cli_requests_carry_the_key_and_nothing_else_of_it() {
    let fake = Fake::always(Reply::error(500, "INTERNAL_ERROR", "A defect."));
    let ran = Person::new().at(&fake.url, "installation get").exits(1);
    let asked = fake.only();
    assert_eq!(asked.header("x-api-key"), Some(KEY));
    assert_eq!(asked.header("authorization"), None);
    assert!(!ran.stderr.contains("canary") && !asked.target.contains("canary"));
}
