//! The test command: everything that must hold at each commit.

use anyhow::Result;
use clap::Args;

use crate::{openclaw, plugins, postgres, run, sqlx};

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run only the tests whose name contains this, without format, lints and the generated files.
    filter: Option<String>,
    /// Also run the tests that take minutes.
    #[arg(long)]
    long: bool,
}

/// Sets up what the tests need, then checks and tests.
pub(crate) fn test(options: &Options) -> Result<()> {
    postgres::binaries()?;
    plugins::add_target()?;
    let openclaw = openclaw::folder()?;
    if options.filter.is_none() {
        checks()?;
    }
    let bundle = plugins::build()?;
    let server = postgres::Server::start()?;
    // The same selection as below: another one would build many dependencies a second time.
    run::run(&mut run::cargo(["build", "--workspace", "--locked"]))?;
    let mut tests = match &options.filter {
        None => run::cargo(["test", "--workspace", "--locked", "--no-fail-fast"]),
        Some(filter) => {
            run::cargo(["test", "--workspace", "--locked", "--no-fail-fast", "--", filter.as_str()])
        }
    };
    tests
        .env("OCC_TEST_PLUGINS", bundle)
        .env("OCC_TEST_BINARIES", run::target().join("debug"))
        .env("OCC_TEST_DATABASE_URL", server.url("postgres", "postgres"));
    if options.long {
        tests.env("OCC_TEST_LONG", "1");
    }
    if let Some(folder) = &openclaw {
        tests.env("OCC_TEST_OPENCLAW_DIR", folder);
    }
    run::run(&mut tests)?;
    if openclaw.is_none() {
        run::say("not run: every test named openclaw_*, because npm is missing");
    }
    Ok(())
}

/// Format, lints, generated files, and the plugins' own native tests.
fn checks() -> Result<()> {
    let plugins = run::root().join("plugins");
    run::run(&mut run::cargo(["fmt", "--all", "--check"]))?;
    run::run(run::cargo(["fmt", "--all", "--check"]).current_dir(&plugins))?;
    sqlx::prepare(true)?;
    run::run(&mut run::cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    run::run(
        run::cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
            .current_dir(&plugins)
            .env("CARGO_TARGET_DIR", run::target().join("plugins-native")),
    )?;
    run::run(
        run::cargo(["test", "--workspace", "--locked"])
            .current_dir(&plugins)
            .env("CARGO_TARGET_DIR", run::target().join("plugins-native")),
    )
}
