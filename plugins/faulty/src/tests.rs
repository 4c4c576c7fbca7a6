//! Orders are understood; the faults that end a call are the host's tests.

use occ_plugin_sdk::double::FakeHost;

use super::*;

fn tenant(name: &str) -> Tenant {
    Tenant { namespace_id: "ns_1".to_owned(), name: name.to_owned(), existing_namespace: None }
}

#[test]
fn settings_order_faults_by_call_and_for_the_rest() {
    let host = FakeHost::with_settings(&json!({ "fault": "wait", "faults": { "preflight": "none" } }));
    assert_eq!(orders::by_settings(&host, "preflight"), Fault::None);
    assert_eq!(orders::by_settings(&host, "stop"), Fault::Wait);
    let host = FakeHost::with_settings(&json!({ "faults": { "stop": "spin" } }));
    assert_eq!(orders::by_settings(&host, "stop"), Fault::Spin);
    assert_eq!(orders::by_settings(&host, "prepare"), Fault::None);
}

#[test]
fn empty_settings_give_each_call_a_fault_and_let_the_driver_load() {
    let host = FakeHost::with_settings(&json!({}));
    for call in ["platform", "preflight"] {
        assert_eq!(orders::by_settings(&host, call), Fault::None);
    }
    for call in
        ["check-plan", "ensure-tenant", "prepare", "activate", "stop", "observe", "runtime", "read-logs"]
    {
        assert_ne!(orders::by_settings(&host, call), Fault::None, "{call}");
    }
}

#[test]
fn a_tenants_name_orders_before_the_settings() {
    let host = FakeHost::with_settings(&json!({ "fault": "none" }));
    assert_eq!(orders::by_tenant(&host, "stop", &tenant("fault-flood-log")), Fault::FloodLog);
    assert_eq!(orders::by_tenant(&host, "stop", &tenant("fault-unheard-of")), Fault::None);
    assert_eq!(orders::by_tenant(&host, "stop", &tenant("demo")), Fault::None);
    let retry = Faulty::ensure_tenant(&host, &tenant("fault-retry"));
    assert!(matches!(retry, Err(Failure::Retry(_))));
}

#[test]
fn the_schema_names_every_fault_of_the_type() {
    let schema: Value = serde_json::from_str(orders::SCHEMA).unwrap();
    let names = schema["$defs"]["fault"]["enum"].as_array().unwrap();
    for name in names {
        assert!(serde_json::from_value::<Fault>(name.clone()).is_ok(), "{name}");
    }
    assert_eq!(names.len(), Fault::Permanent as usize + 1);
}

#[test]
fn memory_of_an_earlier_call_is_told() {
    let host = FakeHost::default();
    assert_eq!(commit(&host, Fault::Remember), Ok(Progress::Done));
    let Ok(Progress::Waiting(seen)) = commit(&host, Fault::Remember) else { panic!("not seen") };
    assert_eq!(seen.code, "FAULTY_LEAKED");
}

#[test]
fn a_capability_that_answers_without_a_grant_is_told() {
    let host = FakeHost::default();
    assert!(matches!(commit(&host, Fault::AskProcess), Err(Failure::Permanent(_))));
}
