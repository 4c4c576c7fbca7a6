//! Pure: the API's Runtime document of a process. A process is a pod whose name is the
//! agent's id and whose uid is the id of its start.

use occ_plugin_sdk::bindings::process::{Exit, Status};
use serde_json::{Value, json};

use crate::judge;

const SOURCE: &str = "gateway";
const RETENTION: &str = "The output since the newest start and the output before it.";

/// `{pods, endpoints, sources}` of the revision's process, or of none.
pub(crate) fn document(status: Option<&Status>) -> Value {
    let Some(status) = status else {
        return json!({ "pods": [], "endpoints": [], "sources": [source(json!([]))] });
    };
    let ready = status.running && status.ready && !status.stopping;
    let name = &status.id;
    let endpoints: Vec<Value> = status
        .ports
        .iter()
        .filter(|_| status.running)
        .map(|port| json!({ "name": port.name, "url": format!("http://127.0.0.1:{}", port.number) }))
        .collect();
    let container = json!({
        "name": SOURCE,
        "state": state(status),
        "reason": judge::instance(status).reason.map(|reason| reason.code),
        "ready": ready,
        "restartCount": status.restarts,
        "startedAt": status.running.then(|| time(status.started_at_ms)),
        "lastTermination": status.last_exit.as_ref().map(termination),
    });
    let pod = json!({
        "role": SOURCE,
        "cluster": "execution",
        "name": name,
        "uid": status.start_id,
        "phase": phase(status),
        "ready": ready,
        "createdAt": time(status.started_at_ms),
        "containers": [container],
        "events": [],
    });
    let reference = json!({
        "name": name, "uid": status.start_id, "container": SOURCE, "restartCount": status.restarts,
    });
    json!({ "pods": [pod], "endpoints": endpoints, "sources": [source(json!([reference]))] })
}

fn source(pods: Value) -> Value {
    let available = pods.as_array().is_some_and(|pods| !pods.is_empty());
    let mut source = json!({
        "id": SOURCE, "kind": "container", "pods": pods, "available": available, "retention": RETENTION,
    });
    if let (false, Some(fields)) = (available, source.as_object_mut()) {
        fields.insert("unavailableCode".to_owned(), json!("NO_POD"));
    }
    source
}

fn state(status: &Status) -> &'static str {
    match (status.running, status.stopped || judge::held(status).is_some()) {
        (true, _) => "running",
        (false, true) => "terminated",
        (false, false) => "waiting",
    }
}

fn phase(status: &Status) -> &'static str {
    match (status.running, judge::held(status).is_some(), status.stopped) {
        (true, ..) => "Running",
        (false, true, _) => "Failed",
        (false, false, true) => "Succeeded",
        (false, false, false) => "Pending",
    }
}

fn termination(exit: &Exit) -> Value {
    let code = exit.code.or_else(|| exit.signal.map(|signal| 128_i32.saturating_add(signal)));
    let reason = match (exit.code, exit.signal) {
        (Some(0), _) => "Completed",
        (Some(_), _) => "Error",
        (None, Some(_)) => "Signal",
        (None, None) => "Unknown",
    };
    json!({ "reason": reason, "exitCode": code, "finishedAt": time(exit.at_ms) })
}

/// Milliseconds since the epoch as UTC with three fractional digits (the civil-from-days
/// rule of the proleptic Gregorian calendar, years counted from March).
pub(crate) fn time(at_ms: u64) -> String {
    let (days, in_day) = (at_ms / 86_400_000, at_ms % 86_400_000);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}
