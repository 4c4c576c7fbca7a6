//! What an error of the `process` capability means for the call.

use occ_plugin_sdk::bindings::process::{ProcessError, ProcessRefusal};
use occ_plugin_sdk::bindings::types::{Failure, OutageKind};
use occ_plugin_sdk::reason::{outage, permanent, reason_with, retry};
use serde_json::json;

/// The failure that an error of the capability ends the call with.
pub(crate) fn of(error: ProcessError) -> Failure {
    match error {
        ProcessError::CommandNotFound(_) => {
            permanent("RUNTIME_COMMAND_MISSING", "The runtime's program is not on this machine.")
        }
        ProcessError::PortTaken(port) => Failure::Permanent(reason_with(
            "RUNTIME_PORT_TAKEN",
            "The port of the runtime is taken by another program.",
            &json!({ "port": port }),
        )),
        ProcessError::SecretUnavailable(name) => Failure::Permanent(reason_with(
            "SECRET_BINDING_UNAVAILABLE",
            "The value of an environment variable is not available.",
            &json!({ "name": name }),
        )),
        ProcessError::NotFound | ProcessError::InUse => {
            retry("INVALID_DRIVER_OBSERVATION", "The process changed while it was looked at.")
        }
        ProcessError::Failed(_) => {
            retry("DEPENDENCY_UNAVAILABLE", "The machine could not do what was asked.")
        }
        ProcessError::Refused(refusal) => refused(refusal),
    }
}

fn refused(refusal: ProcessRefusal) -> Failure {
    match refusal {
        ProcessRefusal::NotGranted => {
            permanent("PROCESS_NOT_GRANTED", "The process capability is not granted to this driver.")
        }
        ProcessRefusal::CommandNotAllowed => {
            permanent("RUNTIME_COMMAND_REFUSED", "The grant does not cover the runtime's command.")
        }
        ProcessRefusal::OutsideTenant => {
            permanent("OWNERSHIP_CONFLICT", "A process of this id belongs to another tenant.")
        }
        ProcessRefusal::Limit => outage("process-host", OutageKind::Throttled),
        ProcessRefusal::Malformed => {
            permanent("PLAN_NOT_SUPPORTED", "The process description was refused by the machine.")
        }
        // The work belongs to another worker now. What this one does next is refused too.
        ProcessRefusal::Fenced | ProcessRefusal::LeaseLost => {
            retry("LEASE_EXPIRED", "The work is no longer this worker's.")
        }
    }
}
