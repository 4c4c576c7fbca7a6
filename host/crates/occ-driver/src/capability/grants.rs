//! What a manifest requests, what the Installation grants, and the difference.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::process::ProcessGrant;

/// `requests` of a manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    /// Kinds and verbs of a Kubernetes API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Vec<Value>>,
    /// Hosts and ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Vec<Value>>,
    /// Processes on the host's own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRequest>,
}

/// A request for processes has no parameters: which commands is the grant's matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessRequest {}

impl Requests {
    /// Names of what is requested.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        names.extend(self.kubernetes.as_ref().is_some_and(|kinds| !kinds.is_empty()).then_some("kubernetes"));
        names.extend(self.http.as_ref().is_some_and(|hosts| !hosts.is_empty()).then_some("http"));
        names.extend(self.process.is_some().then_some("process"));
        names
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    kubernetes: Option<Value>,
    #[serde(default)]
    http: Option<Value>,
    #[serde(default)]
    process: Option<ProcessDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessDocument {
    commands: Vec<Vec<String>>,
}

/// What a plugin effectively gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Commands that it may start.
    pub process: Option<ProcessGrant>,
}

/// Why a plugin cannot get what it needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantProblem {
    /// The grant breaks its schema; shapes only, no values.
    #[error("grants break their schema: {0}")]
    Malformed(String),
    /// Requested, not optional, not granted.
    #[error(
        "{0} is requested by the plugin and not granted; grant it under `grants.{0}` or choose another plugin"
    )]
    Missing(&'static str),
    /// This host has no such capability yet.
    #[error("{0} is granted, but this version of the host does not offer it")]
    NotBuilt(&'static str),
    /// Only a development installation may run processes of its own machine.
    #[error("process is granted, but only an installation with OCC_MODE=development may run processes")]
    DevelopmentOnly,
}

impl Grants {
    /// Effective rights are what is requested and granted.
    ///
    /// # Errors
    /// Every problem: the difference of requests and grants.
    pub fn effective(
        requests: &Requests,
        optional: &[String],
        grants: &Value,
        development: bool,
    ) -> Result<Self, Vec<GrantProblem>> {
        let document: Document = match serde_json::from_value(grants.clone()) {
            Ok(document) => document,
            Err(error) => return Err(vec![GrantProblem::Malformed(error.to_string())]),
        };
        let mut problems = Vec::new();
        for (name, granted) in
            [("kubernetes", document.kubernetes.is_some()), ("http", document.http.is_some())]
        {
            if granted {
                problems.push(GrantProblem::NotBuilt(name));
            }
        }
        let mut effective = Self::default();
        match document.process {
            Some(_) if !development => problems.push(GrantProblem::DevelopmentOnly),
            Some(process) => match ProcessGrant::new(process.commands) {
                Ok(grant) if requests.process.is_some() => effective.process = Some(grant),
                Ok(_) => {}
                Err(error) => problems.push(GrantProblem::Malformed(error.to_string())),
            },
            None => {}
        }
        if problems.is_empty() {
            let missing = |name: &&'static str| {
                let granted = *name == "process" && effective.process.is_some();
                !granted && !optional.iter().any(|optional| optional == name)
            };
            problems.extend(requests.names().into_iter().filter(missing).map(GrantProblem::Missing));
        }
        if problems.is_empty() { Ok(effective) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requests(value: Value) -> Requests {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rights_are_requests_and_grants() {
        let process = requests(json!({"process": {}}));
        let grants = json!({"process": {"commands": [["/usr/bin/node", "/opt/openclaw.mjs"]]}});
        let effective = Grants::effective(&process, &[], &grants, true).unwrap();
        let commands = [vec!["/usr/bin/node".to_owned(), "/opt/openclaw.mjs".to_owned()]];
        assert_eq!(effective.process.unwrap().commands(), &commands);
        let unasked = Grants::effective(&Requests::default(), &[], &grants, true).unwrap();
        assert_eq!(unasked, Grants::default());
    }

    #[test]
    fn the_difference_is_named() {
        let process = requests(json!({"process": {}}));
        let refused = |optional: &[String], grants: Value, development| {
            Grants::effective(&process, optional, &grants, development).unwrap_err()
        };
        assert_eq!(refused(&[], json!({}), true), [GrantProblem::Missing("process")]);
        assert_eq!(
            Grants::effective(&process, &["process".to_owned()], &json!({}), true),
            Ok(Grants::default())
        );
        let one = json!({"process": {"commands": [["/bin/true"]]}});
        assert_eq!(refused(&[], one, false), [GrantProblem::DevelopmentOnly]);
        assert!(matches!(refused(&[], json!({"process": true}), true)[..], [GrantProblem::Malformed(_)]));
        assert!(matches!(refused(&[], json!({"disk": {}}), true)[..], [GrantProblem::Malformed(_)]));
        let relative = json!({"process": {"commands": [["node"]]}});
        assert!(matches!(refused(&[], relative, true)[..], [GrantProblem::Malformed(_)]));
        assert_eq!(refused(&[], json!({"kubernetes": []}), true), [GrantProblem::NotBuilt("kubernetes")]);
    }
}
