//! The settings: which program runs for which image slot.

use std::collections::BTreeMap;

use serde::Deserialize;

/// JSON Schema of [`Settings`].
pub(crate) const SCHEMA: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "commands": {
      "description": "Program and first arguments by image slot of the plan; the plan's arguments follow.",
      "type": "object",
      "properties": {
        "gateway": { "$ref": "#/$defs/command" },
        "agent": { "$ref": "#/$defs/command" }
      },
      "required": ["gateway"],
      "additionalProperties": false
    },
    "gatewayPort": {
      "description": "Fixed port of the gateway, for a machine that runs one agent; without it each agent gets a free one.",
      "type": "integer",
      "minimum": 1024,
      "maximum": 65535
    }
  },
  "required": ["commands"],
  "additionalProperties": false,
  "examples": [
    { "commands": { "gateway": ["/usr/bin/node", "/usr/lib/node_modules/openclaw/openclaw.mjs"] } }
  ],
  "$defs": {
    "command": {
      "type": "array",
      "prefixItems": [{ "type": "string", "pattern": "^/", "maxLength": 4096 }],
      "items": { "type": "string", "minLength": 1, "maxLength": 4096 },
      "minItems": 1,
      "maxItems": 16
    }
  }
}"##;

/// What the gateway asks for when no port is fixed.
pub(crate) const GATEWAY_PORT_DEFAULT: u16 = 18_789;

/// The driver's settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Image slot of the plan -> absolute program and its first arguments.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Fixed port of the gateway.
    #[serde(default)]
    pub gateway_port: Option<u16>,
}
