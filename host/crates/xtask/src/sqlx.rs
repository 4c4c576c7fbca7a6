//! Records every compiler-checked statement in `.sqlx/`, so that a build needs no database.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::{postgres, run};

/// Crates that hold statements, by the file whose time stamp makes Cargo check them again.
const SOURCES: [&str; 3] = ["host/src/lib.rs", "host/crates/occ-queue/src/lib.rs", "tests/harness/lib.rs"];

/// Fills `.sqlx/` from a database of the newest schema.
pub(crate) fn prepare(check: bool) -> Result<()> {
    let server = postgres::Server::start()?;
    let url = server.migrated("occ_statements")?;
    let fresh = tempfile::tempdir()?;
    for source in SOURCES {
        touch(&run::root().join(source))?;
    }
    run::run(
        run::cargo(["check", "--workspace", "--all-targets"])
            .env("DATABASE_URL", &url)
            .env("SQLX_OFFLINE", "false")
            .env("SQLX_OFFLINE_DIR", fresh.path()),
    )?;
    let recorded = run::root().join(".sqlx");
    let (now, before) = (contents(fresh.path())?, contents(&recorded)?);
    if now.is_empty() {
        bail!("no statement was recorded");
    }
    if now == before {
        run::say(&format!(".sqlx is current: {} statements", now.len()));
        return Ok(());
    }
    if check {
        bail!(".sqlx is not current: run `cargo xtask sqlx` and commit the result");
    }
    std::fs::create_dir_all(&recorded)?;
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        std::fs::remove_file(recorded.join(name))?;
    }
    for (name, text) in &now {
        std::fs::write(recorded.join(name), text)?;
    }
    run::say(&format!(".sqlx holds {} statements", now.len()));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a file's time stamp, not a time of the product")]
fn touch(file: &Path) -> Result<()> {
    if file.exists() {
        std::fs::File::options().append(true).open(file)?.set_modified(SystemTime::now())?;
    }
    Ok(())
}

fn contents(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if let Some(name) =
                path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".json"))
            {
                files.insert(name.to_owned(), std::fs::read(&path)?);
            }
        }
    }
    Ok(files)
}
