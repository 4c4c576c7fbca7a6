//! Calls of components: every limit, isolation, grants, the breaker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use occ_driver::breaker::BreakerState;
use occ_driver::call::CallContext;
use occ_driver::types::{
    Agent, Bind, ConfigurationRef, Container, Egress, EnvValue, EnvVar, ExecutionMode, Failure,
    HarnessIdentity, HarnessRequest, HttpProbe, Plan, PlatformFacts, Port, Progress, Refusal, Revision,
    RevisionRef, Role,
};
use occ_driver::{DriverError, Harness, Kind, Limit, Unavailable};
use occ_tests::wait::eventually;
use serde_json::json;
use tokio::time::Instant;

use super::rig::{cx, faulty, load, selection, services, tenant};

const MIB: u64 = 1024 * 1024;

/// Each limit ends a call with its name and both numbers, and the next call works.
#[tokio::test]
async fn every_limit_is_named_with_both_numbers() {
    let services = services();
    let compute = faulty(&services).await;
    let cases: [(&str, Limit, u64); 6] = [
        ("spin", Limit::CpuMs, 300),
        ("allocate", Limit::MemoryBytes, 64 * MIB),
        ("flood-log", Limit::LogLines, 200),
        ("long-log", Limit::LogBytes, 64 * 1024),
        ("flood-host", Limit::HostCalls, 2_000),
        ("huge-result", Limit::ResultBytes, 4 * MIB),
    ];
    for (fault, wanted, bound) in cases {
        let error = compute.ensure_tenant(&cx(), &tenant(fault)).await.unwrap_err();
        let DriverError::LimitExceeded { limit, used, max } = error else { panic!("{fault}: {error}") };
        assert_eq!((limit, max), (wanted, bound), "{fault}");
        assert!(used > max, "{fault}: {used} of {max}");
        let next = compute.ensure_tenant(&cx(), &tenant("none")).await;
        assert_eq!(next, Ok(Progress::Done), "after {fault}");
    }
}

#[tokio::test]
async fn traps_deadlines_and_junk_are_told_apart() {
    let services = services();
    let compute = faulty(&services).await;
    for fault in ["trap", "recurse"] {
        let error = compute.ensure_tenant(&cx(), &tenant(fault)).await.unwrap_err();
        assert!(matches!(error, DriverError::Trap(_)), "{fault}: {error}");
        assert_eq!(error.code(), "DRIVER_TRAPPED");
    }
    let late = compute.ensure_tenant(&cx(), &tenant("late")).await.unwrap_err();
    assert!(matches!(late, DriverError::Deadline { max_ms: 1_000, .. }), "{late}");
    compute.ensure_tenant(&cx(), &tenant("none")).await.unwrap();
    for fault in ["invalid-json", "long-code", "bad-code", "no-reason"] {
        let error = compute.ensure_tenant(&cx(), &tenant(fault)).await.unwrap_err();
        assert!(matches!(error, DriverError::Contract(_)), "{fault}: {error}");
        assert_eq!(error.code(), "INVALID_DRIVER_OBSERVATION");
    }
    compute.ensure_tenant(&cx(), &tenant("none")).await.unwrap();
    let error = compute.ensure_tenant(&cx(), &tenant("big-data")).await.unwrap_err();
    assert!(matches!(error, DriverError::Contract(_)), "{error}");
}

#[tokio::test]
async fn a_plugins_own_verdict_is_no_fault() {
    let services = services();
    let compute = faulty(&services).await;
    for _ in 0..3 {
        for fault in ["outage", "retry", "permanent"] {
            let error = compute.ensure_tenant(&cx(), &tenant(fault)).await.unwrap_err();
            let DriverError::Failure(failure) = &error else { panic!("{fault}: {error}") };
            match (fault, failure) {
                ("outage", Failure::Outage(outage)) => assert_eq!(outage.dependency, "faulty"),
                ("retry", Failure::Retry(reason)) | ("permanent", Failure::Permanent(reason)) => {
                    assert_eq!(reason.code, "FAULTY_ASKED");
                }
                _ => panic!("{fault}: {failure:?}"),
            }
        }
    }
    let waiting = compute.ensure_tenant(&cx(), &tenant("wait")).await.unwrap();
    assert!(matches!(waiting, Progress::Waiting(reason) if reason.code == "FAULTY_ASKED"));
    assert_eq!(compute.plugin().info().breaker, BreakerState::Closed);
}

#[tokio::test]
async fn nothing_of_one_call_is_visible_in_the_next() {
    let services = services();
    let compute = faulty(&services).await;
    for _ in 0..20 {
        let seen = compute.ensure_tenant(&cx(), &tenant("remember")).await;
        assert_eq!(seen, Ok(Progress::Done));
    }
}

#[tokio::test]
async fn what_is_not_granted_answers_so() {
    let services = services();
    let compute = faulty(&services).await;
    for fault in ["ask-process", "escape"] {
        let refused = compute.ensure_tenant(&cx(), &tenant(fault)).await;
        assert_eq!(refused, Ok(Progress::Done), "{fault}");
    }
}

#[tokio::test]
async fn five_faults_in_a_row_open_the_breaker_and_time_closes_it() {
    let services = services();
    let compute = faulty(&services).await;
    for _ in 0..5 {
        let error = compute.ensure_tenant(&cx(), &tenant("trap")).await.unwrap_err();
        assert!(matches!(error, DriverError::Trap(_)), "{error}");
    }
    let refused = compute.ensure_tenant(&cx(), &tenant("none")).await.unwrap_err();
    assert!(
        matches!(refused, DriverError::Unavailable { why: Unavailable::BreakerOpen, retry_after } if retry_after <= Duration::from_secs(1)),
        "{refused}"
    );
    let info = compute.plugin().info();
    assert!(matches!(info.breaker, BreakerState::Open(_)), "{:?}", info.breaker);
    assert_eq!(info.last_error.as_deref(), Some("DRIVER_TRAPPED"));
    let ask = || async {
        let answer = compute.ensure_tenant(&cx(), &tenant("none")).await;
        answer.map_err(|error| error.to_string())
    };
    eventually("the breaker lets a call through", ask).await;
    assert_eq!(compute.plugin().info().breaker, BreakerState::Closed);
}

/// A caller that has no time left learns nothing about the plugin.
#[tokio::test]
async fn an_impatient_caller_is_no_fault_of_the_plugin() {
    let services = services();
    let compute = faulty(&services).await;
    for _ in 0..6 {
        let cx = CallContext { deadline: Instant::now() + Duration::from_millis(20), ..cx() };
        let error = compute.ensure_tenant(&cx, &tenant("late")).await.unwrap_err();
        let DriverError::Deadline { after_ms, max_ms } = error else { panic!("{error}") };
        assert!(after_ms <= 20 && max_ms == 1_000, "{after_ms} of {max_ms}");
    }
    assert_eq!(compute.plugin().info().breaker, BreakerState::Closed);
}

#[tokio::test]
async fn an_id_that_nobody_asked_about_is_refused() {
    let services = services();
    let compute = faulty(&services).await;
    let revision = revision("foreign-id");
    let error = compute.observe(&cx(), &revision).await.unwrap_err();
    assert!(matches!(&error, DriverError::Contract(rule) if !rule.contains("somebody")), "{error}");
    let error = compute.runtime(&cx(), &revision).await.unwrap_err();
    assert!(matches!(error, DriverError::Contract(_)), "{error}");
}

/// On a runtime of one thread, a timer fires while a component spins.
#[tokio::test(flavor = "current_thread")]
async fn a_spinning_component_does_not_hold_its_callers_thread() {
    let services = services();
    let compute = faulty(&services).await;
    let fired = AtomicBool::new(false);
    let timer = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        fired.store(true, Ordering::Relaxed);
    };
    let (cx, tenant) = (cx(), tenant("spin"));
    let spin = async {
        let ended = compute.ensure_tenant(&cx, &tenant).await;
        (ended, fired.load(Ordering::Relaxed))
    };
    let ((), (ended, fired_before)) = tokio::join!(timer, spin);
    assert!(matches!(ended, Err(DriverError::LimitExceeded { limit: Limit::CpuMs, .. })), "{ended:?}");
    assert!(fired_before, "the timer had to wait for the component");
}

/// More calls than slots: they wait, and each has its answer.
#[tokio::test]
async fn calls_wait_for_a_slot() {
    let services = services();
    let compute = faulty(&services).await;
    let (cx, tenant) = (cx(), tenant("slow"));
    let calls = (0..24).map(|_| compute.ensure_tenant(&cx, &tenant));
    for answer in futures_util::future::join_all(calls).await {
        // Under load a call may be cut at a bound; what must not happen is that it finds no slot.
        assert!(!matches!(answer, Err(DriverError::Unavailable { .. })), "{answer:?}");
    }
}

#[tokio::test]
async fn the_harness_plans_and_refuses() {
    let services = services();
    let plugin = load(&services, "harness-openclaw", &selection(Kind::Harness, json!({}))).await;
    let harness = Harness::new(plugin.unwrap()).unwrap();
    let request = |configuration| HarnessRequest {
        configuration,
        mode: ExecutionMode::Embedded,
        auth: None,
        secret_bindings: Vec::new(),
        platform: PlatformFacts { bind: Bind::Loopback, gateway_port: 18_789, trusted_proxies: Vec::new() },
    };
    let refused = harness.resolve(&request(json!([]))).await.unwrap();
    let Err(Refusal::Invalid(problems)) = refused else { panic!("{refused:?}") };
    assert_eq!(problems.first().map(|problem| problem.path.as_str()), Some("/configuration"));
    let good = json!({
        "agents": {"defaults": {"model": "openai/m", "models": {"openai/m": {"agentRuntime": {"id": "openclaw"}}}}},
        "models": {"providers": {"openai": {
            "baseUrl": "https://models.example.com/v1", "api": "openai-responses",
            "models": [{"id": "m", "name": "m"}]
        }}}
    });
    let plan = harness.resolve(&request(good.clone())).await.unwrap().unwrap();
    assert_eq!((plan.harness.id.as_str(), plan.containers.len()), ("openclaw", 1));
    let again = harness.resolve(&request(good)).await.unwrap().unwrap();
    assert_eq!(plan, again, "resolution is deterministic");
}

fn revision(fault: &str) -> Revision {
    let harness = HarnessIdentity {
        id: "openclaw".to_owned(),
        version: "1.0.0".to_owned(),
        mode: ExecutionMode::Embedded,
    };
    let env = EnvVar { name: "OCC_FAULT".to_owned(), value: EnvValue::Literal(fault.to_owned()) };
    let container = Container {
        role: Role::Gateway,
        image_slot: "gateway".to_owned(),
        command: Vec::new(),
        args: Vec::new(),
        env: vec![env],
        ports: vec![Port { name: "gateway".to_owned(), number: 18_789 }],
        readiness: HttpProbe {
            path: "/readyz".to_owned(),
            port: "gateway".to_owned(),
            period_seconds: 5,
            timeout_seconds: 2,
        },
        state: Vec::new(),
        scratch: Vec::new(),
        files: Vec::new(),
        grace_seconds: 1,
        egress: Egress::None,
    };
    Revision {
        agent: Agent {
            tenant: tenant("none"),
            agent_id: "agt_00000000-0000-4000-8000-00000000000a".to_owned(),
            service_principal_id: "spn_00000000-0000-4000-8000-00000000000a".to_owned(),
        },
        reference: RevisionRef {
            revision_id: "rev_00000000-0000-4000-8000-00000000000a".to_owned(),
            number: 1,
        },
        configuration: ConfigurationRef {
            id: "cfg_00000000-0000-4000-8000-00000000000a".to_owned(),
            kind: "agent".to_owned(),
            generation: 1,
        },
        harness: harness.clone(),
        plan: Plan { harness, containers: vec![container], warnings: Vec::new() },
        secrets: Vec::new(),
    }
}
