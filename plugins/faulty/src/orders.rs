//! Who tells which call to fail how: the call's arguments, else the settings, else each
//! call has a fault of its own.

use std::collections::BTreeMap;

use occ_plugin_sdk::Host;
use occ_plugin_sdk::bindings::compute::{Revision, Tenant};
use occ_plugin_sdk::bindings::workload::{EnvValue, Plan};
use occ_plugin_sdk::host::settings_of;
use serde::Deserialize;

use crate::fault::Fault;

/// JSON Schema of [`Orders`].
pub(crate) const SCHEMA: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "fault": { "description": "The fault of every call that faults has no word for.", "$ref": "#/$defs/fault" },
    "faults": {
      "description": "The fault of a call, by its name in the contract.",
      "type": "object",
      "propertyNames": { "enum": [
        "platform", "check-plan", "preflight", "ensure-tenant", "delete-tenant", "prepare", "activate",
        "deactivate", "retire", "stop", "destroy", "observe", "locate", "runtime", "read-logs"
      ] },
      "additionalProperties": { "$ref": "#/$defs/fault" }
    }
  },
  "additionalProperties": false,
  "examples": [{}, { "fault": "trap" }, { "fault": "none", "faults": { "activate": "spin" } }],
  "$defs": {
    "fault": { "enum": [
      "none", "trap", "recurse", "spin", "allocate", "flood-log", "long-log", "flood-host", "late", "slow",
      "invalid-json", "long-code", "bad-code", "no-reason", "big-data", "huge-result", "foreign-id", "bad-path",
      "remember", "ask-process", "escape", "wait", "outage", "retry", "permanent"
    ] }
  }
}"##;

/// The environment variable of a plan that orders a fault: `trap`, or
/// `prepare=trap,activate=spin`.
const ENVIRONMENT: &str = "OCC_FAULT";
/// The beginning of a tenant's name that orders a fault: `fault-trap`.
const TENANT_PREFIX: &str = "fault-";

/// The settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Orders {
    #[serde(default)]
    fault: Option<Fault>,
    #[serde(default)]
    faults: BTreeMap<String, Fault>,
}

/// The fault of `call` by the settings alone.
pub(crate) fn by_settings(host: &dyn Host, call: &str) -> Fault {
    let orders: Orders = settings_of(host).unwrap_or_default();
    let ordered = orders.faults.get(call).copied().or(orders.fault);
    // Told about some calls only, the others behave.
    let rest = if orders.faults.is_empty() { own(call) } else { Fault::None };
    ordered.unwrap_or(rest)
}

/// The fault of `call` on this revision.
pub(crate) fn by_revision(host: &dyn Host, call: &str, revision: &Revision) -> Fault {
    by_plan(host, call, &revision.plan)
}

/// The fault of `call` on this plan.
pub(crate) fn by_plan(host: &dyn Host, call: &str, plan: &Plan) -> Fault {
    let variables = plan.containers.iter().flat_map(|container| &container.env);
    let mut orders = variables.filter(|variable| variable.name == ENVIRONMENT);
    match orders.next().map(|variable| &variable.value) {
        Some(EnvValue::Literal(order)) => by_text(order, call),
        _ => by_settings(host, call),
    }
}

/// The fault of `call` on this tenant.
pub(crate) fn by_tenant(host: &dyn Host, call: &str, tenant: &Tenant) -> Fault {
    match tenant.name.strip_prefix(TENANT_PREFIX).and_then(parse) {
        Some(fault) => fault,
        None => by_settings(host, call),
    }
}

fn by_text(order: &str, call: &str) -> Fault {
    let words = order.split(',').map(str::trim);
    let mut ordered = words.filter_map(|word| match word.split_once('=') {
        Some((named, fault)) => (named == call).then(|| parse(fault)).flatten(),
        None => parse(word),
    });
    ordered.next_back().unwrap_or(Fault::None)
}

fn parse(text: &str) -> Option<Fault> {
    serde_json::from_value(serde_json::Value::from(text)).ok()
}

/// With settings `{}`: one fault for each call, so that one run shows them all. What the
/// host calls at load behaves, else nothing else would be seen.
fn own(call: &str) -> Fault {
    match call {
        "check-plan" => Fault::BadPath,
        "ensure-tenant" => Fault::FloodLog,
        "delete-tenant" => Fault::FloodHost,
        "prepare" => Fault::Trap,
        "activate" => Fault::Spin,
        "deactivate" => Fault::Allocate,
        "retire" => Fault::InvalidJson,
        "stop" => Fault::LongCode,
        "destroy" => Fault::NoReason,
        "observe" => Fault::HugeResult,
        "locate" => Fault::Recurse,
        "runtime" => Fault::ForeignId,
        "read-logs" => Fault::BigData,
        _ => Fault::None,
    }
}
