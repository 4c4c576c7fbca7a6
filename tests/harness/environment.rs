//! What the test command exports: where the built parts and the installed ones are.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// Folder of the built `occ-host`, `occ` and doubles.
///
/// # Errors
/// When the test command did not export it.
pub fn binaries() -> Result<PathBuf> {
    folder("OCC_TEST_BINARIES").context("OCC_TEST_BINARIES is missing: run the tests by `cargo xtask test`")
}

/// Folder of the packed plugins.
///
/// # Errors
/// When the test command did not export it.
pub fn plugins() -> Result<PathBuf> {
    folder("OCC_TEST_PLUGINS").context("OCC_TEST_PLUGINS is missing: run the tests by `cargo xtask test`")
}

/// Folder with `node_modules/openclaw`; absent where npm is.
#[must_use]
pub fn openclaw() -> Option<PathBuf> {
    folder("OCC_TEST_OPENCLAW_DIR")
}

/// Documents with known verdicts, when they are beside the checkout.
#[must_use]
pub fn configurations() -> Option<PathBuf> {
    folder("OCC_TEST_OPENCLAW_CONFIGURATIONS")
}

/// Tests that take minutes were asked for.
#[must_use]
pub fn long() -> bool {
    value("OCC_TEST_LONG").is_some()
}

fn folder(name: &str) -> Option<PathBuf> {
    value(name).map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "the environment of a test run")]
fn value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
