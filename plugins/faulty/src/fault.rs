//! The faults: what each does to the host.

use std::cell::RefCell;
use std::time::Duration;

use occ_plugin_sdk::Host;
use occ_plugin_sdk::bindings::kubernetes::{self, ApiError, ObjectKey, ObjectKind};
use occ_plugin_sdk::bindings::log::Level;
use occ_plugin_sdk::bindings::process::ProcessError;
use occ_plugin_sdk::bindings::types::{Failure, OutageKind, Progress, Reason};
use occ_plugin_sdk::reason::{outage, permanent, reason, retry, waiting};
use serde::Deserialize;

/// Longer than any wall-time limit of a call.
const LATE: Duration = Duration::from_secs(300);
/// CPU work that stays below the limit of a call and is long enough to be seen.
const SLOW_ROUNDS: u64 = 200_000_000;
const MIB: usize = 1024 * 1024;
/// More than the host takes as one result.
const HUGE_RESULT: usize = 5 * MIB;

thread_local! {
    /// What `remember` leaves behind. A fresh store per call finds it empty.
    static MEMORY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// One way to misbehave, or to answer on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// None: do what the null driver does.
    None,
    /// A WebAssembly trap.
    Trap,
    /// Calls itself until the stack is used up.
    Recurse,
    /// Spins without end: the CPU limit.
    Spin,
    /// Allocates without end: the memory limit. Traps when refused.
    Allocate,
    /// Logs without end, in short lines.
    FloodLog,
    /// Logs one line of 1 MiB.
    LongLog,
    /// Calls the host without end: the host-call limit.
    FloodHost,
    /// Sleeps longer than a call may take: the wall-time limit.
    Late,
    /// Computes for a while and then answers properly.
    Slow,
    /// Answers with data that is not JSON.
    InvalidJson,
    /// Answers with a code of 65 characters.
    LongCode,
    /// Answers with a code that has small letters.
    BadCode,
    /// Waits for a reason without a code.
    NoReason,
    /// Answers with more data than a reason may carry.
    BigData,
    /// Answers with more than 4 MiB.
    HugeResult,
    /// Answers about an agent that nobody asked about.
    ForeignId,
    /// Says where it cannot run a plan with a path that is no JSON Pointer.
    BadPath,
    /// Writes a secret into its memory; a later call that sees it waits with
    /// `FAULTY_LEAKED`.
    Remember,
    /// Uses the `process` capability, granted or not; done only if it was refused.
    AskProcess,
    /// Asks for an object of another tenant; done only if it was refused.
    Escape,
    /// Answers `waiting`.
    Wait,
    /// Answers an outage, which refunds the attempt.
    Outage,
    /// Answers `retry`.
    Retry,
    /// Answers `permanent`.
    Permanent,
}

/// What a reconciling call answers under this fault, if it comes to answer.
pub(crate) fn commit(host: &dyn Host, fault: Fault) -> Result<Progress, Failure> {
    let told = |code: &str| Ok(waiting(code, "The faulty driver was told to answer this."));
    match fault {
        Fault::None | Fault::ForeignId | Fault::BadPath => Ok(Progress::Done),
        Fault::Trap => trap(),
        Fault::Recurse => told(if recurse(1) == 0 { "FAULTY_ASKED" } else { "FAULTY" }),
        Fault::Spin => spin(),
        Fault::Allocate => allocate(),
        Fault::FloodLog => loop {
            host.log(Level::Info, "again and again", &[("secret", "not-a-real-secret")]);
        },
        Fault::LongLog => {
            host.log(Level::Info, &"x".repeat(MIB), &[]);
            Ok(Progress::Done)
        }
        Fault::FloodHost => loop {
            std::hint::black_box(host.settings());
        },
        Fault::Late => {
            std::thread::sleep(LATE);
            Ok(Progress::Done)
        }
        Fault::Slow => {
            let sum = (0..SLOW_ROUNDS).fold(0_u64, |sum, round| std::hint::black_box(sum ^ round));
            host.log(Level::Debug, "computed", &[("sum", &sum.to_string())]);
            Ok(Progress::Done)
        }
        Fault::InvalidJson => Ok(with_data("{not json".to_owned())),
        Fault::LongCode => told(&"A".repeat(65)),
        Fault::BadCode => told("lower_case"),
        Fault::NoReason => told(""),
        Fault::BigData => Ok(with_data(format!("\"{}\"", "x".repeat(2048)))),
        Fault::HugeResult => {
            Ok(Progress::Waiting(Reason { message: "x".repeat(HUGE_RESULT), ..reason("FAULTY_ASKED", "") }))
        }
        Fault::Remember => remember(host),
        Fault::AskProcess => ask_process(host),
        Fault::Escape => escape(),
        Fault::Wait => told("FAULTY_ASKED"),
        Fault::Outage => Err(outage("faulty", OutageKind::Unavailable)),
        Fault::Retry => Err(retry("FAULTY_ASKED", "The faulty driver was told to answer this.")),
        Fault::Permanent => Err(permanent("FAULTY_ASKED", "The faulty driver was told to answer this.")),
    }
}

fn with_data(data: String) -> Progress {
    Progress::Waiting(Reason { data: Some(data), ..reason("FAULTY_ASKED", "The data is at fault.") })
}

#[expect(clippy::panic, reason = "the fault itself: a panic aborts, which is a trap")]
fn trap() -> ! {
    panic!("told to trap")
}

#[expect(unconditional_recursion, reason = "the fault itself: the stack ends, not the recursion")]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    recurse(depth.wrapping_add(1)).wrapping_add(frame.iter().sum::<u64>())
}

fn spin() -> ! {
    let mut round = 0_u64;
    loop {
        round = std::hint::black_box(round.wrapping_add(1));
    }
}

fn allocate() -> ! {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(std::hint::black_box(vec![1; MIB]));
    }
}

fn remember(host: &dyn Host) -> Result<Progress, Failure> {
    let seen = MEMORY.with_borrow_mut(|memory| memory.replace("a secret of call A".to_owned()));
    match seen {
        None => Ok(Progress::Done),
        Some(_) => {
            host.log(Level::Error, "memory of an earlier call is visible", &[]);
            Ok(waiting("FAULTY_LEAKED", "Memory of an earlier call is visible."))
        }
    }
}

fn ask_process(host: &dyn Host) -> Result<Progress, Failure> {
    match host.process().check(&["/bin/sh".to_owned()]) {
        Err(ProcessError::Refused(_)) => Ok(Progress::Done),
        _ => Err(permanent("FAULTY_ASKED", "A capability that was not granted answered.")),
    }
}

/// Reaches past the traits of the SDK, as any component can.
fn escape() -> Result<Progress, Failure> {
    let kind = ObjectKind { api_version: "v1".to_owned(), kind: "Namespace".to_owned() };
    let key = ObjectKey { kind, namespace: None, name: "kube-system".to_owned() };
    match kubernetes::get(&key) {
        Err(ApiError::Refused(_)) => Ok(Progress::Done),
        _ => Err(permanent("FAULTY_ASKED", "An object of nobody's tenant was not refused.")),
    }
}
