//! Writes the Installation YAML of a development installation.

use anyhow::Result;
use serde_json::json;

use super::folder::{Folder, write_private};
use super::openclaw::OpenClaw;

/// Writes the file when its content changes.
pub(super) fn write(folder: &Folder, runtime: &OpenClaw) -> Result<()> {
    let gateway = json!([runtime.node, runtime.entry]);
    // YAML is a superset of JSON: quoting is then nobody's problem.
    let document = json!({
        "occ": {"cluster": "dev"},
        "drivers": {
            "secret": {"id": "database", "settings": {"keyFile": folder.secret_key()}},
            "compute": {
                "plugin": "compute-local",
                "settings": {"commands": {"gateway": gateway}},
                "grants": {"process": {"commands": [gateway]}},
            },
            "harnesses": [{"plugin": "harness-openclaw", "settings": {}, "grants": {}}],
        },
        "plugins": {"trust": {"unsigned": "allow"}},
    });
    let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
    let file = folder.installation();
    if std::fs::read_to_string(&file).is_ok_and(|before| before == text) {
        return Ok(());
    }
    write_private(&file, text.as_bytes())
}
