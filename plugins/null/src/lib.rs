//! The smallest right compute driver: it runs nothing and says so.
//!
//! Nothing is ever started, so there is nothing to wait for, to stop or to remove:
//! reconciling calls are done at once, and every observation is `absent`. That is the
//! only answer a driver without memory can give honestly after `activate` and after
//! `stop`. Copy this folder to begin a driver of your own.

use occ_plugin_sdk::bindings::compute::{
    Agent, Instance, LogLine, LogRequest, Observation, Phase, Revision, RevisionRef, Tenant,
};
use occ_plugin_sdk::bindings::types::{Failure, Progress, SettingProblem};
use occ_plugin_sdk::bindings::workload::Plan;
use occ_plugin_sdk::{Compute, Host, Plugin};
use serde_json::{Value, json};

/// The driver.
#[derive(Debug)]
pub struct Null;

impl Plugin for Null {
    const NAME: &'static str = "null";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SETTINGS_SCHEMA: &'static str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {},
  "additionalProperties": false,
  "examples": [{}]
}"#;
}

impl Compute for Null {
    fn platform(_host: &dyn Host) -> Result<Value, Failure> {
        Ok(json!({"bind": "loopback", "gatewayPort": 18789, "trustedProxies": []}))
    }

    fn check_plan(_host: &dyn Host, _plan: &Plan) -> Vec<SettingProblem> {
        Vec::new()
    }

    fn ensure_tenant(_host: &dyn Host, _tenant: &Tenant) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn delete_tenant(_host: &dyn Host, _tenant: &Tenant) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn prepare(
        _host: &dyn Host,
        _revision: &Revision,
        _serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn activate(_host: &dyn Host, _revision: &Revision) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn deactivate(_host: &dyn Host, _revision: &Revision) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn retire(
        _host: &dyn Host,
        _agent: &Agent,
        _gone: &[RevisionRef],
        _serving: Option<&RevisionRef>,
    ) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn stop(_host: &dyn Host, _agent: &Agent) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn destroy(_host: &dyn Host, _agent: &Agent) -> Result<Progress, Failure> {
        Ok(Progress::Done)
    }

    fn observe(_host: &dyn Host, _revision: &Revision) -> Result<Observation, Failure> {
        Ok(Observation { phase: Phase::Absent, instances: Vec::new(), drift: Vec::new(), held_failure: None })
    }

    fn locate(_host: &dyn Host, _revision: &Revision) -> Result<Vec<Instance>, Failure> {
        Ok(Vec::new())
    }

    fn runtime(_host: &dyn Host, _revision: &Revision) -> Result<Value, Failure> {
        Ok(json!({"pods": [], "sources": []}))
    }

    fn read_logs(
        _host: &dyn Host,
        _revision: &Revision,
        _request: &LogRequest,
    ) -> Result<Vec<LogLine>, Failure> {
        Ok(Vec::new())
    }
}

occ_plugin_sdk::export!(compute: Null);
