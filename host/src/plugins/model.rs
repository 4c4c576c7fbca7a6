//! A loaded plugin as the API shows it.

use occ_api::types::{Plugin, PluginCalls, PluginCapabilities};

use crate::drivers::{PluginInfo, WINDOW_SECS};

/// The wire form.
pub(super) fn wire(info: PluginInfo) -> Plugin {
    let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    Plugin {
        id: info.identity.id,
        kind: info.origin.kind.as_str().to_owned(),
        version: info.identity.version.to_string(),
        contract: format!("occ:plugin@{}", info.origin.contract),
        digest: info.identity.digest,
        bundle: info.origin.bundle,
        // No bundle has a signature that this version verifies; what vouches for it is its
        // place in the image or its digest in the Installation.
        signature: "absent".to_owned(),
        capabilities: PluginCapabilities {
            requested: names(info.requested),
            granted: names(info.capabilities),
        },
        state: "loaded".to_owned(),
        breaker: info.breaker.as_str().to_owned(),
        last_error_code: info.last_error,
        calls: PluginCalls {
            window_seconds: WINDOW_SECS,
            count: info.recent.calls,
            failures: info.recent.failures,
            p50_ms: info.recent.p50_ms,
            p99_ms: info.recent.p99_ms,
        },
    }
}
