//! The driver's logic against processes that live and end when the test says so.

use occ_plugin_sdk::bindings::compute::{ConfigurationRef, Phase};
use occ_plugin_sdk::bindings::process::ProcessRefusal;
use occ_plugin_sdk::bindings::workload::{
    Container, Egress, EnvValue, EnvVar, ExecutionMode, File, HarnessIdentity, HttpProbe, Port, ScratchMount,
    StateMount,
};
use occ_plugin_sdk::double::FakeHost;

use super::*;

const AGENT: &str = "agt_1";
/// The label of the rendering in [`revision`]`(1)`. It changes with the rendering, which
/// restarts every agent after an upgrade: change it knowingly.
const RENDERING: &str = "44faf6f63ca18c39";

fn host() -> FakeHost {
    FakeHost::with_settings(&json!({ "commands": { "gateway": ["/bin/node", "/srv/openclaw.mjs"] } }))
}

fn variable(name: &str, value: EnvValue) -> EnvVar {
    EnvVar { name: name.to_owned(), value }
}

fn container() -> Container {
    Container {
        role: Role::Gateway,
        image_slot: "gateway".to_owned(),
        command: vec!["node".to_owned(), "/app/openclaw.mjs".to_owned()],
        args: vec!["gateway".to_owned()],
        env: vec![
            variable("CONFIG", EnvValue::FilePath("/etc/x.json".to_owned())),
            variable("KEY", EnvValue::Secret("sec_1".to_owned())),
            variable("PASSWORD", EnvValue::Generated("gateway-password".to_owned())),
            variable("REVISION", EnvValue::RevisionId),
            variable("PORT", EnvValue::PortNumber("gateway".to_owned())),
        ],
        ports: vec![Port { name: "gateway".to_owned(), number: 18_789 }],
        readiness: HttpProbe {
            path: "/readyz".to_owned(),
            port: "gateway".to_owned(),
            period_seconds: 2,
            timeout_seconds: 3,
        },
        state: vec![StateMount { name: "state".to_owned(), path: "/home/state".to_owned() }],
        scratch: vec![ScratchMount { name: "tmp".to_owned(), path: "/tmp".to_owned(), size_mib: 64 }],
        files: vec![File { path: "/etc/x.json".to_owned(), contents: "{}".to_owned() }],
        grace_seconds: 330,
        egress: Egress::PublicHttps,
    }
}

fn agent() -> Agent {
    let tenant =
        Tenant { namespace_id: "ns_1".to_owned(), name: "demo".to_owned(), existing_namespace: None };
    Agent { tenant, agent_id: AGENT.to_owned(), service_principal_id: "spn_1".to_owned() }
}

fn reference(number: u64) -> RevisionRef {
    RevisionRef { revision_id: format!("rev_{number}"), number }
}

fn revision(number: u64) -> Revision {
    let harness =
        HarnessIdentity { id: "openclaw".to_owned(), version: "1".to_owned(), mode: ExecutionMode::Embedded };
    Revision {
        agent: agent(),
        ref_: reference(number),
        configuration: ConfigurationRef { id: "cfg_1".to_owned(), kind: "agent".to_owned(), generation: 1 },
        harness: harness.clone(),
        plan: Plan { harness, containers: vec![container()], warnings: Vec::new() },
        secrets: Vec::new(),
    }
}

fn waits(progress: Result<Progress, Failure>) -> String {
    match progress.unwrap() {
        Progress::Waiting(reason) => reason.code,
        Progress::Done => "done".to_owned(),
    }
}

fn fails(progress: Result<Progress, Failure>) -> Reason {
    match progress.unwrap_err() {
        Failure::Permanent(reason) => reason,
        other => panic!("not permanent: {other:?}"),
    }
}

/// A host where revision `number` is active and ready.
fn serving(number: u64) -> FakeHost {
    let host = host();
    assert_eq!(waits(Local::prepare(&host, &revision(number), None)), "REVISION_INCOMPLETE");
    host.process.becomes_ready(AGENT);
    assert_eq!(Local::activate(&host, &revision(number)), Ok(Progress::Done));
    host.process.calls.borrow_mut().clear();
    host
}

#[test]
fn a_first_revision_is_started_by_prepare_and_done_when_ready() {
    let host = host();
    for _ in 0..2 {
        assert_eq!(waits(Local::prepare(&host, &revision(1), None)), "REVISION_INCOMPLETE");
        assert_eq!(host.process.alive(), 1);
    }
    host.process.becomes_ready(AGENT);
    assert_eq!(Local::prepare(&host, &revision(1), None), Ok(Progress::Done));
    assert_eq!(Local::activate(&host, &revision(1)), Ok(Progress::Done));
    assert_eq!(host.process.entries.borrow()[AGENT].started.len(), 1);
}

#[test]
fn the_process_is_what_the_plan_says_with_the_settings_program() {
    let host = serving(1);
    let spec = host.process.entries.borrow()[AGENT].spec.clone();
    assert_eq!(spec.command, ["/bin/node", "/srv/openclaw.mjs", "gateway"]);
    assert_eq!(spec.env[3], variable("REVISION", EnvValue::Literal("rev_1".to_owned())));
    assert_eq!(spec.env[1], variable("KEY", EnvValue::Secret("sec_1".to_owned())));
    assert_eq!(spec.ports, [Port { name: "gateway".to_owned(), number: 0 }]);
    assert_eq!((spec.grace_seconds, spec.readiness.path.as_str()), (330, "/readyz"));
    let labels: Vec<_> = spec.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        labels,
        [
            "openclaw.dev/agent=agt_1",
            "openclaw.dev/revision=rev_1",
            "openclaw.dev/agent-revision=1",
            "openclaw.dev/workload-role=gateway",
            &format!("openclaw.dev/spec-digest={RENDERING}"),
        ]
    );
}

#[test]
fn a_replacement_starts_only_after_its_predecessor_ended() {
    let host = serving(1);
    assert_eq!(Local::prepare(&host, &revision(2), Some(&reference(1))), Ok(Progress::Done));
    assert!(host.process.calls.borrow().is_empty(), "prepare must not disturb what serves");
    for _ in 0..2 {
        assert_eq!(waits(Local::activate(&host, &revision(2))), "REVISION_FINALIZATION_INCOMPLETE");
        assert_eq!(host.process.alive(), 1);
        assert!(desired::is_of(&host.process.status(AGENT).unwrap(), "rev_1"));
    }
    host.process.exits(AGENT, 0);
    assert_eq!(waits(Local::activate(&host, &revision(2))), "REVISION_FINALIZATION_INCOMPLETE");
    host.process.becomes_ready(AGENT);
    assert_eq!(Local::activate(&host, &revision(2)), Ok(Progress::Done));
    assert_eq!(host.process.alive(), 1);
    let started = host.process.entries.borrow()[AGENT].started.clone();
    assert_eq!(started.len(), 2);
    assert_ne!(started[0], started[1]);
}

#[test]
fn a_rollback_is_an_ordinary_activation() {
    let host = serving(1);
    let _ = Local::activate(&host, &revision(2));
    host.process.exits(AGENT, 0);
    let _ = Local::activate(&host, &revision(2));
    host.process.exits(AGENT, 78);
    let held = fails(Local::activate(&host, &revision(2)));
    assert_eq!(held.code, "RUNTIME_STARTUP_FAILED");
    assert_eq!(held.data.as_deref(), Some(r#"{"exitCode":78,"restarts":0}"#));
    assert_eq!(Local::prepare(&host, &revision(1), Some(&reference(2))), Ok(Progress::Done));
    assert_eq!(waits(Local::activate(&host, &revision(1))), "REVISION_FINALIZATION_INCOMPLETE");
    host.process.becomes_ready(AGENT);
    assert_eq!(Local::activate(&host, &revision(1)), Ok(Progress::Done));
    assert_eq!(Local::retire(&host, &agent(), &[reference(2)], Some(&reference(1))), Ok(Progress::Done));
    assert_eq!(host.process.alive(), 1);
}

#[test]
fn three_exits_without_a_ready_are_held_and_fewer_are_not() {
    let host = host();
    let _ = Local::prepare(&host, &revision(1), None);
    for exit in 1..=2 {
        host.process.exits(AGENT, 1);
        assert_eq!(waits(Local::prepare(&host, &revision(1), None)), "REVISION_CRASHING", "exit {exit}");
        host.process.restarts(AGENT);
        assert_eq!(waits(Local::prepare(&host, &revision(1), None)), "REVISION_INCOMPLETE");
    }
    host.process.exits(AGENT, 1);
    let held = fails(Local::prepare(&host, &revision(1), None));
    assert_eq!(held.data.as_deref(), Some(r#"{"exitCode":1,"restarts":2}"#));
    let seen = Local::observe(&host, &revision(1)).unwrap();
    assert_eq!(seen.phase, Phase::Degraded);
    assert_eq!(seen.held_failure.unwrap().code, "RUNTIME_STARTUP_FAILED");
    assert!(seen.drift.is_empty());
    // Another revision takes the entry over.
    assert_eq!(waits(Local::prepare(&host, &revision(2), None)), "REVISION_INCOMPLETE");
}

#[test]
fn an_abandoned_candidate_makes_way_for_the_next_first_revision() {
    let host = host();
    let _ = Local::prepare(&host, &revision(1), None);
    assert_eq!(waits(Local::prepare(&host, &revision(2), None)), "REVISION_INCOMPLETE");
    host.process.exits(AGENT, 0);
    let _ = Local::prepare(&host, &revision(2), None);
    assert!(desired::is_of(&host.process.status(AGENT).unwrap(), "rev_2"));
}

#[test]
fn stop_keeps_the_state_and_destroy_removes_it() {
    let host = serving(1);
    for _ in 0..2 {
        assert_eq!(waits(Local::stop(&host, &agent())), "STOP_INCOMPLETE");
    }
    assert_eq!(Local::observe(&host, &revision(1)).unwrap().phase, Phase::Stopping);
    host.process.exits(AGENT, 0);
    for _ in 0..2 {
        assert_eq!(Local::stop(&host, &agent()), Ok(Progress::Done));
    }
    assert!(host.process.status(AGENT).is_some());
    assert_eq!(Local::observe(&host, &revision(1)).unwrap().phase, Phase::Absent);
    for _ in 0..2 {
        assert_eq!(Local::destroy(&host, &agent()), Ok(Progress::Done));
    }
    assert!(host.process.status(AGENT).is_none());
}

#[test]
fn destroying_what_runs_stops_it_first() {
    let host = serving(1);
    assert_eq!(waits(Local::destroy(&host, &agent())), "DELETION_INCOMPLETE");
    host.process.exits(AGENT, 0);
    assert_eq!(Local::delete_tenant(&host, &agent().tenant), Ok(Progress::Done));
    assert!(host.process.status(AGENT).is_none());
}

#[test]
fn stopping_an_exited_process_keeps_it_from_being_started_again() {
    let host = serving(1);
    host.process.exits(AGENT, 1);
    assert_eq!(Local::stop(&host, &agent()), Ok(Progress::Done));
    assert!(host.process.status(AGENT).unwrap().stopped);
}

#[test]
fn retire_and_deactivate_leave_the_serving_revision_alone() {
    let host = serving(2);
    let gone = [reference(1), reference(2)];
    assert_eq!(Local::retire(&host, &agent(), &gone, Some(&reference(2))), Ok(Progress::Done));
    assert_eq!(Local::deactivate(&host, &revision(1)), Ok(Progress::Done));
    assert!(host.process.calls.borrow().is_empty());
    assert_eq!(waits(Local::retire(&host, &agent(), &gone, None)), "REVISION_FINALIZATION_INCOMPLETE");
    host.process.exits(AGENT, 0);
    assert_eq!(Local::retire(&host, &agent(), &gone, None), Ok(Progress::Done));
    assert!(host.process.status(AGENT).is_some());
}

#[test]
fn unknown_ids_are_harmless() {
    let host = host();
    assert_eq!(Local::stop(&host, &agent()), Ok(Progress::Done));
    assert_eq!(Local::destroy(&host, &agent()), Ok(Progress::Done));
    assert_eq!(Local::deactivate(&host, &revision(1)), Ok(Progress::Done));
    assert_eq!(Local::retire(&host, &agent(), &[reference(9)], None), Ok(Progress::Done));
    assert_eq!(Local::locate(&host, &revision(1)), Ok(Vec::new()));
    let seen = Local::observe(&host, &revision(1)).unwrap();
    assert_eq!((seen.phase, seen.drift[0].code.as_str()), (Phase::Absent, "PROCESS_ABSENT"));
    let runtime = Local::runtime(&host, &revision(1)).unwrap();
    assert_eq!(runtime["sources"][0]["unavailableCode"], "NO_POD");
    let request = LogRequest { role: Role::Gateway, previous: false, tail_lines: 10, since_seconds: None };
    assert_eq!(Local::read_logs(&host, &revision(1), &request), Ok(Vec::new()));
    assert!(host.process.calls.borrow().is_empty());
}

#[test]
fn drift_tells_an_ended_process_and_another_rendering_apart() {
    let mut host = serving(1);
    assert!(Local::observe(&host, &revision(1)).unwrap().drift.is_empty());
    host.process.exits(AGENT, 1);
    let seen = Local::observe(&host, &revision(1)).unwrap();
    assert_eq!((seen.phase, seen.drift), (Phase::Degraded, Vec::new()), "the host mends this");
    host.process.restarts(AGENT);
    host.process.is_lost(AGENT);
    let seen = Local::observe(&host, &revision(1)).unwrap();
    assert_eq!((seen.phase, seen.drift[0].code.as_str()), (Phase::Degraded, "PROCESS_EXITED"));
    let _ = Local::activate(&host, &revision(1));
    assert_eq!(host.process.alive(), 1);
    host.settings = json!({ "commands": { "gateway": ["/opt/node", "/srv/openclaw.mjs"] } }).to_string();
    assert_eq!(Local::observe(&host, &revision(1)).unwrap().drift[0].code, "PROCESS_OUTDATED");
    // The repair: prepare and activate the active revision.
    let _ = Local::prepare(&host, &revision(1), Some(&reference(1)));
    host.process.exits(AGENT, 0);
    let _ = Local::activate(&host, &revision(1));
    assert!(Local::observe(&host, &revision(1)).unwrap().drift.is_empty());
    assert_eq!(host.process.entries.borrow()[AGENT].spec.command[0], "/opt/node");
}

#[test]
fn runtime_is_the_process_as_a_pod() {
    let host = serving(1);
    let document = Local::runtime(&host, &revision(1)).unwrap();
    assert_eq!(document["endpoints"], json!([{ "name": "gateway", "url": "http://127.0.0.1:40000" }]));
    let pod = &document["pods"][0];
    assert_eq!((pod["name"].as_str(), pod["uid"].as_str()), (Some(AGENT), Some("start-1")));
    assert_eq!((pod["phase"].as_str(), pod["ready"].as_bool()), (Some("Running"), Some(true)));
    assert_eq!(document["sources"][0]["available"], true);
    assert_eq!(Local::runtime(&host, &revision(2)).unwrap()["pods"], json!([]));
    let place = Local::locate(&host, &revision(1)).unwrap();
    assert_eq!(place[0].coordinates, r#"{"ports":{"gateway":40000},"process":"agt_1","startId":"start-1"}"#);
    host.process.exits(AGENT, 1);
    let document = Local::runtime(&host, &revision(1)).unwrap();
    assert_eq!(document["endpoints"], json!([]));
    let ended = json!({ "reason": "Error", "exitCode": 1, "finishedAt": "1970-01-01T00:00:02.000Z" });
    assert_eq!(document["pods"][0]["containers"][0]["lastTermination"], ended);
}

#[test]
fn errors_of_the_machine_become_the_failures_that_the_worker_knows() {
    let cases = [
        (ProcessError::PortTaken(18_789), "permanent RUNTIME_PORT_TAKEN"),
        (ProcessError::CommandNotFound("x".to_owned()), "permanent RUNTIME_COMMAND_MISSING"),
        (ProcessError::SecretUnavailable("KEY".to_owned()), "permanent SECRET_BINDING_UNAVAILABLE"),
        (ProcessError::Refused(ProcessRefusal::LeaseLost), "retry LEASE_EXPIRED"),
        (ProcessError::Refused(ProcessRefusal::Fenced), "retry LEASE_EXPIRED"),
        (ProcessError::Refused(ProcessRefusal::NotGranted), "permanent PROCESS_NOT_GRANTED"),
        (ProcessError::Refused(ProcessRefusal::CommandNotAllowed), "permanent RUNTIME_COMMAND_REFUSED"),
        (ProcessError::Refused(ProcessRefusal::OutsideTenant), "permanent OWNERSHIP_CONFLICT"),
        (ProcessError::Refused(ProcessRefusal::Limit), "outage process-host"),
        (ProcessError::Failed("spawn".to_owned()), "retry DEPENDENCY_UNAVAILABLE"),
    ];
    for (error, expected) in cases {
        let host = host();
        *host.process.fails_next.borrow_mut() = Some(error);
        let seen = match Local::activate(&host, &revision(1)).unwrap_err() {
            Failure::Permanent(reason) => format!("permanent {}", reason.code),
            Failure::Retry(reason) => format!("retry {}", reason.code),
            Failure::Outage(outage) => format!("outage {}", outage.dependency),
        };
        assert_eq!(seen, expected);
    }
}

#[test]
fn preflight_warns_of_a_missing_program_and_refuses_an_ungranted_one() {
    let host = host();
    assert_eq!(Local::preflight(&host), Ok(Vec::new()));
    *host.process.fails_next.borrow_mut() = Some(ProcessError::CommandNotFound("/bin/node".to_owned()));
    assert_eq!(Local::preflight(&host).unwrap()[0].code, "RUNTIME_COMMAND_MISSING");
    *host.process.fails_next.borrow_mut() = Some(ProcessError::Refused(ProcessRefusal::CommandNotAllowed));
    assert!(Local::preflight(&host).is_err());
}

#[test]
fn plans_that_one_process_cannot_be_are_refused_with_their_paths() {
    let host = host();
    let plan = |change: &dyn Fn(&mut Plan)| {
        let mut plan = revision(1).plan;
        change(&mut plan);
        let paths = Local::check_plan(&host, &plan).into_iter().map(|problem| problem.path);
        paths.collect::<Vec<_>>()
    };
    assert!(plan(&|_| {}).is_empty());
    assert_eq!(plan(&|plan| plan.harness.mode = ExecutionMode::Dedicated), ["/harness/mode"]);
    assert_eq!(plan(&|plan| plan.containers.push(container())), ["/containers"]);
    assert_eq!(plan(&|plan| plan.containers.clear()), ["/containers"]);
    assert_eq!(plan(&|plan| plan.containers[0].role = Role::Agent), ["/containers/0/role"]);
    assert_eq!(plan(&|plan| plan.containers[0].image_slot = "agent".to_owned()), ["/containers/0/imageSlot"]);
    assert_eq!(
        plan(&|plan| plan.containers[0].ports.clear()),
        ["/containers/0/readiness/port", "/containers/0/env/4/value"]
    );
    let reserved = variable("LD_PRELOAD", EnvValue::Literal("x".to_owned()));
    assert_eq!(plan(&|plan| plan.containers[0].env[0] = reserved.clone()), ["/containers/0/env/0/name"]);
    let twice = variable("KEY", EnvValue::RevisionId);
    assert_eq!(plan(&|plan| plan.containers[0].env[2] = twice.clone()), ["/containers/0/env/2/name"]);
    let mut broken = revision(1);
    broken.plan.containers.clear();
    assert_eq!(fails(Local::prepare(&host, &broken, None)).code, "PLAN_NOT_SUPPORTED");
}

#[test]
fn a_fixed_port_is_asked_for_and_told_to_the_harness() {
    let mut host = host();
    assert_eq!(Local::platform(&host).unwrap()["gatewayPort"], 18_789);
    let commands = json!({ "gateway": ["/bin/node"] });
    host.settings = json!({ "commands": commands, "gatewayPort": 18_789 }).to_string();
    let _ = Local::prepare(&host, &revision(1), None);
    assert_eq!(host.process.entries.borrow()[AGENT].spec.ports[0].number, 18_789);
}

#[test]
fn an_adopted_namespace_is_refused() {
    let mut tenant = agent().tenant;
    assert_eq!(Local::ensure_tenant(&host(), &tenant), Ok(Progress::Done));
    tenant.existing_namespace = Some("theirs".to_owned());
    assert_eq!(fails(Local::ensure_tenant(&host(), &tenant)).code, "EXISTING_NAMESPACE_MISSING");
}

#[test]
fn time_is_written_as_the_calendar_has_it() {
    assert_eq!(runtime::time(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(runtime::time(951_782_400_000), "2000-02-29T00:00:00.000Z");
    assert_eq!(runtime::time(1_772_445_785_678), "2026-03-02T10:03:05.678Z");
    assert_eq!(runtime::time(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
}

#[test]
fn the_example_settings_are_readable() {
    let schema: Value = serde_json::from_str(settings::SCHEMA).unwrap();
    let example: Settings = serde_json::from_value(schema["examples"][0].clone()).unwrap();
    assert!(example.commands["gateway"][0].starts_with('/'));
}

/// Any order of calls, each cut off or repeated, ends at one process of the wanted
/// revision, and there never are two.
#[test]
fn calls_in_any_interrupted_order_converge() {
    for seed in 0_u64..2_000 {
        let host = host();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..12 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let number = 1 + random / 16 % 3;
            let _ = match random % 8 {
                0 => Local::prepare(&host, &revision(number), None),
                1 => Local::prepare(&host, &revision(number), Some(&reference(1 + random / 64 % 3))),
                2 | 3 => Local::activate(&host, &revision(number)),
                4 => Local::retire(&host, &agent(), &[reference(number)], None),
                5 => Local::stop(&host, &agent()),
                6 => Local::destroy(&host, &agent()),
                _ => Local::deactivate(&host, &revision(number)),
            };
            match random / 256 % 3 {
                0 => host.process.becomes_ready(AGENT),
                1 => host.process.exits(AGENT, 1),
                _ => {}
            }
            assert!(host.process.alive() <= 1);
        }
        let _ = Local::stop(&host, &agent());
        host.process.exits(AGENT, 0);
        assert_eq!(Local::stop(&host, &agent()), Ok(Progress::Done), "seed {seed}");
        let _ = Local::activate(&host, &revision(4));
        host.process.becomes_ready(AGENT);
        assert_eq!(Local::activate(&host, &revision(4)), Ok(Progress::Done), "seed {seed}");
        assert_eq!(Local::observe(&host, &revision(4)).unwrap().phase, Phase::Ready);
    }
}
