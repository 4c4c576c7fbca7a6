//! The migrations that the binary carries, and the manifest that says what they must be.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::error::{MigrateError, Reason};

/// Files of `migrations/`, compiled in. Cargo builds them anew when the manifest below changes.
static EMBEDDED: Migrator = sqlx::migrate!("../migrations");
/// Made by `cargo xtask migrations`.
const MANIFEST: &str = include_str!("../../../migrations/manifest.json");
/// Format of the manifest that this code reads.
const MANIFEST_FORMAT: u32 = 1;

/// A list of migrations with its manifest.
#[derive(Debug, Clone)]
pub struct Source {
    pub(super) files: Vec<SourceFile>,
    manifest: Manifest,
}

/// One migration.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// `noun_verb` of the file name.
    pub name: String,
    pub(super) migration: Migration,
}

#[derive(Debug, Clone, Deserialize)]
struct Manifest {
    format: u32,
    files: Vec<ManifestFile>,
}

#[derive(Debug, Clone, Deserialize)]
struct ManifestFile {
    version: i64,
    name: String,
    sha384: String,
    compatible_from: i64,
}

impl SourceFile {
    /// A migration made of text, for tests.
    #[must_use]
    pub fn new(version: i64, name: &str, sql: &'static str) -> Self {
        let description = Cow::Owned(name.replace('_', " "));
        let migration =
            Migration::new(version, description, MigrationType::Simple, sql.into_sql_str(), false);
        Self { name: name.to_owned(), migration }
    }

    pub(super) fn version(&self) -> i64 {
        self.migration.version
    }

    fn sha384(&self) -> String {
        self.migration.checksum.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl Source {
    /// What this binary carries. [`Source::verify`] says whether it is whole.
    #[must_use]
    pub fn embedded() -> Self {
        let files = EMBEDDED
            .iter()
            .map(|migration| SourceFile {
                name: migration.description.replace(' ', "_"),
                migration: migration.clone(),
            })
            .collect();
        let unreadable = Manifest { format: 0, files: Vec::new() };
        Self { files, manifest: serde_json::from_str(MANIFEST).unwrap_or(unreadable) }
    }

    /// Other migrations with a manifest that fits them, for tests.
    #[must_use]
    pub fn of(files: Vec<SourceFile>) -> Self {
        let recorded = files
            .iter()
            .map(|file| ManifestFile {
                version: file.version(),
                name: file.name.clone(),
                sha384: file.sha384(),
                compatible_from: file.version(),
            })
            .collect();
        Self { files, manifest: Manifest { format: MANIFEST_FORMAT, files: recorded } }
    }

    /// The first `count` migrations, as an earlier binary carried them; for tests.
    #[must_use]
    pub fn prefix(mut self, count: usize) -> Self {
        self.files.truncate(count);
        self.manifest.files.truncate(count);
        self
    }

    /// The migrations in the order in which they run.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Version of the last migration.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.files.last().map_or(0, SourceFile::version)
    }

    /// Oldest schema version whose binary still works on the result.
    #[must_use]
    pub fn compatible_from(&self) -> i64 {
        self.manifest.files.last().map_or(0, |file| file.compatible_from)
    }

    /// Step 1: files and manifest are the same list.
    ///
    /// # Errors
    /// `source-set-differs`, `source-bytes-differ`.
    pub fn verify(&self) -> Result<(), MigrateError> {
        let set = |text: String| Err(MigrateError::refused(Reason::SourceSetDiffers, text));
        if self.manifest.format != MANIFEST_FORMAT {
            return set(format!(
                "the embedded manifest is not of format {MANIFEST_FORMAT}; build the binary anew"
            ));
        }
        let (carried, recorded) = (self.files.len(), self.manifest.files.len());
        if carried != recorded || carried == 0 {
            return set(format!("the binary carries {carried} migrations, its manifest names {recorded}"));
        }
        let mut last = 0;
        for (file, record) in self.files.iter().zip(&self.manifest.files) {
            if (file.version(), &file.name) != (record.version, &record.name) || file.version() <= last {
                return set(format!(
                    "the binary carries {}_{} where its manifest names {}_{}",
                    file.version(),
                    file.name,
                    record.version,
                    record.name
                ));
            }
            if file.migration.no_tx || file.migration.migration_type != MigrationType::Simple {
                return set(format!("{}_{} is not one transaction", file.version(), file.name));
            }
            if file.sha384() != record.sha384 {
                return Err(MigrateError::refused(
                    Reason::SourceBytesDiffer,
                    format!("the bytes of {}_{} are not those of the manifest", file.version(), file.name),
                ));
            }
            last = file.version();
        }
        Ok(())
    }
}
