//! `dev`, `bench`, `openapi`: build in release, then hand over to the product.

use std::os::unix::process::CommandExt;

use anyhow::{Result, bail};

use crate::{openclaw, plugins, postgres, run};

/// Builds host, client and plugins in release and becomes `occ-host dev`.
pub(crate) fn dev(options: &[String]) -> Result<()> {
    let ends = options.iter().any(|option| matches!(option.as_str(), "--down" | "--reset" | "--help"));
    if !ends {
        postgres::binaries()?;
    }
    let bundle = plugins::build()?;
    run::run(&mut run::cargo(["build", "--release", "--locked", "-p", "occ-host", "-p", "occ-cli"]))?;
    let mut host = run::command(&run::target().join("release/occ-host").to_string_lossy(), ["--plugins"]);
    host.arg(bundle).arg("dev").args(options);
    bail!("cannot start occ-host: {}", host.exec())
}

/// Builds in release and runs the bench.
pub(crate) fn bench(options: &[String]) -> Result<()> {
    let bundle = plugins::build()?;
    let openclaw = openclaw::folder()?;
    run::run(&mut run::cargo([
        "build",
        "--release",
        "--locked",
        "-p",
        "occ-tests",
        "-p",
        "occ-host",
        "-p",
        "occ-cli",
    ]))?;
    let server = postgres::Server::start()?;
    let mut bench = run::command(&run::target().join("release/occ-bench").to_string_lossy(), options);
    bench
        .env("OCC_TEST_PLUGINS", bundle)
        .env("OCC_TEST_BINARIES", run::target().join("release"))
        .env("OCC_TEST_DATABASE_URL", server.url("postgres", "postgres"));
    if let Some(folder) = openclaw {
        bench.env("OCC_TEST_OPENCLAW_DIR", folder);
    }
    run::run(&mut bench)
}

/// Prints the document that `/openapi.json` serves.
pub(crate) fn openapi() -> Result<()> {
    run::run(&mut run::cargo(["run", "--quiet", "--locked", "-p", "occ-host", "--", "openapi"]))
}
