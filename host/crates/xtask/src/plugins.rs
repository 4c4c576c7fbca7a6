//! Builds the components, always in release, and packs the bundle.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::run;

const TARGET: &str = "wasm32-wasip2";

/// Builds every plugin and returns the bundle's folder.
pub(crate) fn build() -> Result<PathBuf> {
    add_target()?;
    let plugins = run::root().join("plugins");
    let mut cargo = run::cargo(["build", "--release", "--target", TARGET, "--locked"]);
    cargo.current_dir(&plugins).env("CARGO_TARGET_DIR", run::target()).env("RUSTFLAGS", remapped());
    run::run(&mut cargo)?;
    let bundle = run::target().join("plugins");
    std::fs::create_dir_all(&bundle)?;
    let mut entries = Vec::new();
    for manifest in manifests(&plugins)? {
        entries.push(pack(&manifest, &bundle)?);
    }
    if entries.is_empty() {
        bail!("no plugin.json below {}", plugins.display());
    }
    let document =
        json!({"schema": 1, "name": "bundled", "version": env!("CARGO_PKG_VERSION"), "plugins": entries});
    let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
    let staged = bundle.join(".bundle.json");
    std::fs::write(&staged, text)?;
    std::fs::rename(&staged, bundle.join("bundle.json"))?;
    Ok(bundle)
}

/// Panic messages hold source paths; without this the same source has another digest on another machine.
fn remapped() -> String {
    let home = run::env("CARGO_HOME")
        .or_else(|| run::env("HOME").map(|home| format!("{home}/.cargo")))
        .unwrap_or_default();
    format!("--remap-path-prefix={home}=/cargo --remap-path-prefix={}=/source", run::root().display())
}

/// The compiler's target for components, added when absent.
pub(crate) fn add_target() -> Result<()> {
    let installed = run::output(&mut run::command("rustup", ["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line.trim() == TARGET) {
        run::run(&mut run::command("rustup", ["target", "add", TARGET]))?;
    }
    Ok(())
}

fn manifests(plugins: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(plugins)? {
        let manifest = entry?.path().join("plugin.json");
        if manifest.is_file() {
            found.push(manifest);
        }
    }
    found.sort();
    Ok(found)
}

/// Copies one component into the bundle and completes its entry with file and digest.
fn pack(manifest: &Path, bundle: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(manifest)?;
    let mut entry: Map<String, Value> =
        serde_json::from_str(&text).with_context(|| format!("{}", manifest.display()))?;
    let id = entry
        .get("id")
        .and_then(Value::as_str)
        .with_context(|| format!("{}: id is missing", manifest.display()))?;
    let file = format!("{}.wasm", id.replace('-', "_"));
    let built = run::target().join(TARGET).join("release").join(&file);
    let bytes = std::fs::read(&built).with_context(|| format!("{}", built.display()))?;
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let staged = bundle.join(format!(".{file}"));
    std::fs::write(&staged, &bytes)?;
    std::fs::rename(&staged, bundle.join(&file))?;
    entry.insert("file".to_owned(), json!(file));
    entry.insert("sha256".to_owned(), json!(digest));
    Ok(Value::Object(entry))
}
