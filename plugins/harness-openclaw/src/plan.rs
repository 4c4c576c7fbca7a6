//! The workload plan: one container that is gateway and agent.

use occ_plugin_sdk::bindings::types::Reason;
use occ_plugin_sdk::bindings::workload::{
    Container, Egress, EnvValue, EnvVar, ExecutionMode, File, HarnessIdentity, HttpProbe, Plan, Port, Role,
    ScratchMount, StateMount,
};

use crate::gateway::PASSWORD;
use crate::policy::OPENCLAW;

/// What this plan promises; another number makes it another harness for the host.
const VERSION: &str = "1";
const CONFIGURATION: &str = "/etc/openclaw/openclaw.json";
const PORT: &str = "gateway";
const STATE: &str = "state";
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
/// OpenClaw's own budget: 315 s to drain, 10 s to shut down, 5 s to exit.
const GRACE_SECONDS: u32 = 330;

/// Everything in the environment that is not the plan's own: the model credential and
/// the configuration's bindings.
pub(crate) fn embedded(
    configuration: String,
    port: u16,
    secrets: Vec<EnvVar>,
    warnings: Vec<Reason>,
) -> Plan {
    let harness = HarnessIdentity {
        id: OPENCLAW.to_owned(),
        version: VERSION.to_owned(),
        mode: ExecutionMode::Embedded,
    };
    let mut env = vec![
        variable("OPENCLAW_CONFIG_PATH", EnvValue::FilePath(CONFIGURATION.to_owned())),
        variable("OPENCLAW_STATE_DIR", EnvValue::StatePath(STATE.to_owned())),
        variable("HOME", EnvValue::ScratchPath(HOME.to_owned())),
        variable("OPENCLAW_GATEWAY_PORT", EnvValue::PortNumber(PORT.to_owned())),
        variable(PASSWORD, EnvValue::Generated("gateway-password".to_owned())),
    ];
    env.extend(secrets);
    let container = Container {
        role: Role::Gateway,
        image_slot: PORT.to_owned(),
        command: vec!["node".to_owned(), "/app/openclaw.mjs".to_owned()],
        args: vec!["gateway".to_owned()],
        env,
        ports: vec![Port { name: PORT.to_owned(), number: port }],
        readiness: HttpProbe {
            path: "/readyz".to_owned(),
            port: PORT.to_owned(),
            period_seconds: 2,
            timeout_seconds: 3,
        },
        state: vec![StateMount { name: STATE.to_owned(), path: "/home/node/.openclaw".to_owned() }],
        scratch: vec![
            ScratchMount { name: HOME.to_owned(), path: "/home/node".to_owned(), size_mib: 1024 },
            ScratchMount { name: TEMPORARY.to_owned(), path: "/tmp".to_owned(), size_mib: 64 },
        ],
        files: vec![File { path: CONFIGURATION.to_owned(), contents: configuration }],
        grace_seconds: GRACE_SECONDS,
        egress: Egress::PublicHttps,
    };
    Plan { harness, containers: vec![container], warnings }
}

/// One environment variable.
pub(crate) fn variable(name: &str, value: EnvValue) -> EnvVar {
    EnvVar { name: name.to_owned(), value }
}

/// Names that the plan itself sets, that the platform keeps, or that decide which code runs.
pub(crate) fn is_reserved(name: &str) -> bool {
    const EXACT: [&str; 5] = ["HOME", "TMPDIR", "PATH", "ENV", "BASH_ENV"];
    const PREFIXES: [&str; 5] = ["OPENCLAW_", "OCC_", "NODE_", "LD_", "DYLD_"];
    let name = name.to_uppercase();
    EXACT.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
