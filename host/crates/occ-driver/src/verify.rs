//! Does an answer say what the contract allows? Shapes are settled by types before; these
//! are the rules that types cannot say.
//!
//! **No value of an answer is ever part of an error**: it could be tenant data.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::abi::{Answer, Call};
use crate::error::{DriverError, Limit};
use crate::types::{
    Container, EnvValue, ExecutionMode, Failure, Instance, Plan, Progress, Reason, Refusal, Revision,
    SettingProblem,
};

/// Longest code.
const CODE_BYTES_MAX: usize = 64;
/// Longest message of a reason or a problem.
const MESSAGE_BYTES_MAX: usize = 1024;
/// Largest data of a reason, as JSON.
const REASON_DATA_BYTES_MAX: usize = 1024;
/// Longest slug of a dependency.
const DEPENDENCY_BYTES_MAX: usize = 64;

type Verdict = Result<(), DriverError>;

fn ids_of(revision: &Revision) -> BTreeSet<String> {
    let agent = &revision.agent;
    let own = [&agent.tenant.namespace_id, &agent.agent_id, &agent.service_principal_id];
    let frozen = [&revision.reference.revision_id, &revision.configuration.id];
    let secrets = revision.secrets.iter().map(|secret| &secret.secret_id);
    own.into_iter().chain(frozen).chain(secrets).cloned().collect()
}

fn broken(rule: impl Into<String>) -> DriverError {
    DriverError::Contract(rule.into())
}

/// What of a call its answer must agree with.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    resolve: Option<(ExecutionMode, BTreeSet<String>)>,
    tail_lines: Option<u32>,
    ids: Option<BTreeSet<String>>,
}

/// What ids of the host begin with.
const ID_PREFIXES: [&str; 6] = ["ns_", "agt_", "rev_", "spn_", "cfg_", "sec_"];

impl Expected {
    pub(crate) fn of(call: &Call) -> Self {
        let mut expected = Self::default();
        match call {
            Call::Resolve(request) => {
                let auth = request.auth.iter().filter_map(|auth| auth.secret_id.clone());
                let bound = request.secret_bindings.iter().map(|(_, id)| id.clone());
                expected.resolve = Some((request.mode, auth.chain(bound).collect()));
            }
            Call::ReadLogs(_, request) => expected.tail_lines = Some(request.tail_lines),
            Call::Observe(revision) | Call::Locate(revision) | Call::Runtime(revision) => {
                expected.ids = Some(ids_of(revision));
            }
            _ => {}
        }
        expected
    }

    /// Checks an answer.
    pub(crate) fn check(&self, answer: &Answer, result_bytes_max: u64) -> Verdict {
        let used = u64::try_from(bytes(answer)).unwrap_or(u64::MAX);
        if used > result_bytes_max {
            return Err(DriverError::LimitExceeded {
                limit: Limit::ResultBytes,
                used,
                max: result_bytes_max,
            });
        }
        match answer {
            Answer::Description(description) => description_of(description),
            Answer::Problems(problems) => problems_of(problems),
            Answer::Warnings(reasons) => reasons.iter().try_for_each(reason_of),
            Answer::Progress(Progress::Waiting(reason)) => reason_of(reason),
            Answer::Observation(observation) => {
                self.instances(&observation.instances)?;
                let reasons = observation.instances.iter().filter_map(|instance| instance.reason.as_ref());
                reasons.chain(&observation.drift).chain(&observation.held_failure).try_for_each(reason_of)
            }
            Answer::Instances(instances) => {
                self.instances(instances)?;
                instances.iter().filter_map(|instance| instance.reason.as_ref()).try_for_each(reason_of)
            }
            Answer::Document(document) if !document.is_object() => Err(broken("runtime is no JSON object")),
            Answer::Document(document) => self.own_ids(document, "runtime"),
            Answer::Lines(lines) => match self.tail_lines.and_then(|most| usize::try_from(most).ok()) {
                Some(most) if lines.len() > most => {
                    Err(broken("read-logs answers more lines than were asked for"))
                }
                _ => Ok(()),
            },
            Answer::Resolved(Ok(plan)) => self.plan(plan),
            Answer::Resolved(Err(Refusal::Invalid(problems) | Refusal::Unsupported(problems))) => {
                if problems.is_empty() {
                    return Err(broken("a refusal names no problem"));
                }
                problems_of(problems)
            }
            Answer::Platform(_) | Answer::Progress(Progress::Done) => Ok(()),
        }
    }

    fn instances(&self, instances: &[Instance]) -> Verdict {
        instances
            .iter()
            .try_for_each(|instance| self.own_ids(&instance.coordinates, "an instance's coordinates"))
    }

    /// A document about a revision names no other object's id.
    fn own_ids(&self, document: &Value, what: &str) -> Verdict {
        let Some(ids) = &self.ids else { return Ok(()) };
        let foreign =
            |text: &str| ID_PREFIXES.iter().any(|prefix| text.starts_with(prefix)) && !ids.contains(text);
        let own = match document {
            Value::String(text) => !foreign(text),
            Value::Array(items) => return items.iter().try_for_each(|item| self.own_ids(item, what)),
            Value::Object(members) => {
                members.values().try_for_each(|item| self.own_ids(item, what))?;
                !members.keys().any(|key| foreign(key))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if own { Ok(()) } else { Err(broken(format!("{what} names an id that the call is not about"))) }
    }

    fn plan(&self, plan: &Plan) -> Verdict {
        plan.warnings.iter().try_for_each(reason_of)?;
        let Some((mode, secrets)) = &self.resolve else {
            return Ok(());
        };
        if plan.harness.mode != *mode {
            return Err(broken("the plan is for another execution mode than was asked for"));
        }
        if plan.containers.is_empty() {
            return Err(broken("the plan has no container"));
        }
        for (index, container) in plan.containers.iter().enumerate() {
            container_of(container, secrets)
                .map_err(|rule| broken(format!("containers[{index}]: {rule}")))?;
        }
        Ok(())
    }
}

/// Checks the plugin's own failure.
pub(crate) fn failure(failure: &Failure) -> Verdict {
    match failure {
        Failure::Outage(outage) => {
            let slug = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let length = outage.dependency.len();
            if (1..=DEPENDENCY_BYTES_MAX).contains(&length) && outage.dependency.bytes().all(slug) {
                Ok(())
            } else {
                Err(broken("an outage's dependency is no lower-case slug of at most 64 characters"))
            }
        }
        Failure::Retry(reason) | Failure::Permanent(reason) => reason_of(reason),
    }
}

/// `[A-Z][A-Z0-9_]{0,63}`
pub(crate) fn is_code(code: &str) -> bool {
    code.len() <= CODE_BYTES_MAX
        && code.starts_with(|first: char| first.is_ascii_uppercase())
        && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn reason_of(reason: &Reason) -> Verdict {
    if !is_code(&reason.code) {
        return Err(broken(format!(
            "a reason's code of {} bytes does not match [A-Z][A-Z0-9_]{{0,63}}",
            reason.code.len()
        )));
    }
    if reason.message.len() > MESSAGE_BYTES_MAX {
        return Err(broken(format!(
            "the message of {} is longer than {MESSAGE_BYTES_MAX} bytes",
            reason.code
        )));
    }
    match &reason.data {
        Some(data) if data.to_string().len() > REASON_DATA_BYTES_MAX => {
            Err(broken(format!("the data of {} is larger than {REASON_DATA_BYTES_MAX} bytes", reason.code)))
        }
        _ => Ok(()),
    }
}

fn problems_of(problems: &[SettingProblem]) -> Verdict {
    for problem in problems {
        if !problem.path.is_empty() && !problem.path.starts_with('/') {
            return Err(broken("a problem's path is no JSON Pointer"));
        }
        if problem.message.len() > MESSAGE_BYTES_MAX {
            return Err(broken(format!("a problem's message is longer than {MESSAGE_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

fn description_of(description: &crate::types::Description) -> Verdict {
    if semver::Version::parse(&description.version).is_err() {
        return Err(broken("describe: version is no semantic version"));
    }
    if !description.settings_schema.is_object() {
        return Err(broken("describe: settings-schema is no JSON object"));
    }
    Ok(())
}

fn container_of(container: &Container, secrets: &BTreeSet<String>) -> Result<(), String> {
    if !container.ports.iter().any(|port| port.name == container.readiness.port) {
        return Err("readiness names no port of the container".to_owned());
    }
    let mut names = BTreeSet::new();
    for var in &container.env {
        let name = &var.name;
        if !names.insert(name) {
            return Err(format!("env names {name} twice"));
        }
        let found = match &var.value {
            EnvValue::Literal(_) | EnvValue::Generated(_) | EnvValue::RevisionId => true,
            EnvValue::Secret(id) if !secrets.contains(id) => {
                return Err(format!("env {name} names a Secret that the request does not bind"));
            }
            EnvValue::Secret(_) => true,
            EnvValue::FilePath(path) => container.files.iter().any(|file| file.path == *path),
            EnvValue::StatePath(mount) => container.state.iter().any(|state| state.name == *mount),
            EnvValue::ScratchPath(mount) => container.scratch.iter().any(|scratch| scratch.name == *mount),
            EnvValue::PortNumber(port) => container.ports.iter().any(|known| known.name == *port),
        };
        if !found {
            return Err(format!("env {name} names a file, mount or port that the container does not have"));
        }
    }
    Ok(())
}

/// Bytes of text in an answer; numbers and shapes count little and are bounded by them.
fn bytes(answer: &Answer) -> usize {
    let problems =
        |list: &[SettingProblem]| list.iter().map(|one| one.path.len() + one.message.len()).sum::<usize>();
    let reasons = |list: &[Reason]| list.iter().map(reason_bytes).sum::<usize>();
    let instances = |list: &[Instance]| {
        list.iter()
            .map(|one| json_bytes(&one.coordinates) + one.reason.as_ref().map_or(0, reason_bytes))
            .sum::<usize>()
    };
    match answer {
        Answer::Description(description) => {
            description.name.len() + description.version.len() + json_bytes(&description.settings_schema)
        }
        Answer::Problems(list) => problems(list),
        Answer::Warnings(list) => reasons(list),
        Answer::Platform(_) | Answer::Progress(Progress::Done) => 0,
        Answer::Progress(Progress::Waiting(reason)) => reason_bytes(reason),
        Answer::Observation(observation) => {
            instances(&observation.instances)
                + reasons(&observation.drift)
                + observation.held_failure.as_ref().map_or(0, reason_bytes)
        }
        Answer::Instances(list) => instances(list),
        Answer::Document(document) => json_bytes(document),
        Answer::Lines(lines) => lines.iter().map(|line| line.text.len() + 1).sum(),
        Answer::Resolved(Ok(plan)) => {
            plan.containers.iter().map(container_bytes).sum::<usize>() + reasons(&plan.warnings)
        }
        Answer::Resolved(Err(Refusal::Invalid(list) | Refusal::Unsupported(list))) => problems(list),
    }
}

fn reason_bytes(reason: &Reason) -> usize {
    reason.code.len() + reason.message.len() + reason.data.as_ref().map_or(0, json_bytes)
}

/// Text and keys of a document; close enough to its length as JSON.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(key, item)| key.len() + json_bytes(item) + 4).sum::<usize>() + 2
        }
    }
}

fn container_bytes(container: &Container) -> usize {
    let env = container.env.iter().map(|var| {
        var.name.len()
            + match &var.value {
                EnvValue::Literal(text)
                | EnvValue::Secret(text)
                | EnvValue::Generated(text)
                | EnvValue::FilePath(text)
                | EnvValue::StatePath(text)
                | EnvValue::ScratchPath(text)
                | EnvValue::PortNumber(text) => text.len(),
                EnvValue::RevisionId => 0,
            }
    });
    let files = container.files.iter().map(|file| file.path.len() + file.contents.len());
    let words = container.command.iter().chain(&container.args).map(String::len);
    env.chain(files).chain(words).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codes_match_their_pattern() {
        for good in ["A", "RUNTIME_STARTUP_FAILED", &"A".repeat(64), "A1_"] {
            assert!(is_code(good), "{good}");
        }
        for bad in ["", "a", "1A", "_A", "A-B", "Ä", &"A".repeat(65)] {
            assert!(!is_code(bad), "{bad}");
        }
    }

    #[test]
    fn reasons_are_bounded() {
        let reason =
            |data: Value| Reason { code: "CODE".to_owned(), message: String::new(), data: Some(data) };
        assert_eq!(reason_of(&reason(json!({"exitCode": 78}))), Ok(()));
        let large = reason_of(&reason(json!("x".repeat(2_000)))).unwrap_err();
        assert_eq!(large, broken("the data of CODE is larger than 1024 bytes"));
    }

    #[test]
    fn an_error_never_repeats_the_answer() {
        let reason = Reason { code: "hunter2".to_owned(), message: "hunter2".repeat(1_000), data: None };
        let error = reason_of(&reason).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
