//! Writes `migrations/manifest.json`, which the host compiles in and compares with the files it embeds.
//!
//! Every migration names itself `YYYYMMDDHHMMSS_noun_verb.sql` and begins with three header lines:
//! `-- purpose:` one sentence, `-- compatible-from:` the oldest schema version whose binary still works on the
//! result, `-- phase:` `expand` or `contract`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use sha2::{Digest, Sha384};

use crate::run;

/// Format of the manifest.
const FORMAT: u32 = 1;
/// Digits of a version: a UTC time to the second.
const VERSION_DIGITS: usize = 14;

#[derive(Debug, Serialize)]
struct Manifest {
    format: u32,
    files: Vec<File>,
}

#[derive(Debug, Serialize)]
struct File {
    version: i64,
    name: String,
    sha384: String,
    phase: String,
    compatible_from: i64,
}

/// Writes the manifest; with `check` it changes nothing and fails when the manifest is not current.
pub(crate) fn run(check: bool) -> Result<()> {
    let folder = run::root().join("migrations");
    let target = folder.join("manifest.json");
    let mut fresh = serde_json::to_string_pretty(&manifest(&folder)?)?;
    fresh.push('\n');
    let current = std::fs::read_to_string(&target).unwrap_or_default() == fresh;
    if check {
        ensure!(
            current,
            "migrations/manifest.json is not current: run `cargo xtask migrations` and commit the result"
        );
    }
    if !current {
        std::fs::write(&target, fresh)?;
    }
    run::say(if current {
        "migrations/manifest.json is current"
    } else {
        "migrations/manifest.json is written"
    });
    Ok(())
}

fn manifest(folder: &Path) -> Result<Manifest> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".sql") {
            names.push(name);
        }
    }
    names.sort();
    let mut files: Vec<File> = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name))?;
        let file = file(&name, &text).with_context(|| format!("migrations/{name}"))?;
        ensure!(
            files.last().is_none_or(|last| last.version < file.version),
            "migrations/{name}: its version is taken"
        );
        files.push(file);
    }
    Ok(Manifest { format: FORMAT, files })
}

/// Reads one file by its name and text.
fn file(name: &str, text: &str) -> Result<File> {
    let (digits, noun_verb) =
        name.strip_suffix(".sql").and_then(|stem| stem.split_once('_')).context("the name has no `_`")?;
    ensure!(
        digits.len() == VERSION_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()),
        "the name begins with a UTC time of {VERSION_DIGITS} digits (YYYYMMDDHHMMSS)"
    );
    ensure!(
        noun_verb.contains('_') && noun_verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
        "the name goes on with `noun_verb`, in lower case"
    );
    ensure!(!text.contains("no-transaction"), "a migration is one transaction together with its receipt");
    let version: i64 = digits.parse()?;
    let mut lines = text.lines();
    let purpose = header(lines.next(), "purpose")?;
    ensure!(!purpose.is_empty(), "`-- purpose:` is empty");
    let compatible_from: i64 =
        header(lines.next(), "compatible-from")?.parse().context("`-- compatible-from:`")?;
    ensure!((1..=version).contains(&compatible_from), "`-- compatible-from:` lies after the file itself");
    let phase = header(lines.next(), "phase")?;
    if !matches!(phase, "expand" | "contract") {
        bail!("`-- phase:` is `expand` or `contract`");
    }
    Ok(File {
        version,
        name: noun_verb.to_owned(),
        sha384: hex(&Sha384::digest(text.as_bytes())),
        phase: phase.to_owned(),
        compatible_from,
    })
}

fn header<'a>(line: Option<&'a str>, field: &str) -> Result<&'a str> {
    line.and_then(|line| line.strip_prefix("-- ")?.strip_prefix(field)?.strip_prefix(": "))
        .map(str::trim)
        .with_context(|| format!("the header line `-- {field}:` is missing"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "-- purpose: makes things\n-- compatible-from: 20260101000000\n-- phase: expand\nselect 1;\n";

    #[test]
    fn a_good_file_is_read() {
        let file = file("20260102030405_things_create.sql", GOOD).unwrap();
        assert_eq!((file.version, file.name.as_str()), (20_260_102_030_405, "things_create"));
        assert_eq!((file.phase.as_str(), file.compatible_from), ("expand", 20_260_101_000_000));
        assert_eq!(file.sha384.len(), 96);
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        for (name, text) in [
            ("2026_things_create.sql", GOOD.to_owned()),
            ("20260102030405_things.sql", GOOD.to_owned()),
            ("20260102030405_things_create.sql", GOOD.replace("expand", "later")),
            ("20260102030405_things_create.sql", GOOD.replace("-- purpose", "-- about")),
            ("20260102030405_things_create.sql", GOOD.replace("20260101000000", "20270101000000")),
            ("20260102030405_things_create.sql", format!("{GOOD}-- no-transaction\n")),
        ] {
            assert!(file(name, &text).is_err(), "{name}\n{text}");
        }
    }
}
