//! Bundles: where plugins come from, and whether they may run.
//!
//! **Every file's SHA-256 is compared before anything else reads it**, and the bytes that
//! were hashed are the bytes that are used: a file is read once.

mod manifest;
mod source;
mod trust;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use manifest::{BackendType, Code, Manifest, ManifestProblem, PluginEntry, SCHEMA};
pub use trust::{PolicyProblem, Standing, TrustPolicy};

use crate::digest;
use source::Source;
pub(crate) use source::read_file;

/// Where a search looks, and how far what is found there is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchFolder {
    /// A bundle, or a folder of bundles (folders and `.tar.gz` files).
    pub path: PathBuf,
    /// It came with the program itself.
    pub of_image: bool,
    /// Its absence is an error: somebody named it.
    pub required: bool,
}

/// Why a bundle, or one plugin of it, may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// It cannot be read.
    #[error("{at}: cannot be read: {why}")]
    Unreadable {
        /// Bundle or file.
        at: String,
        /// What the system said.
        why: String,
    },
    /// A form of bundle that is not offered.
    #[error(
        "{0}: OCI artifacts are not offered by this version; unpack the bundle into a folder and name that"
    )]
    Oci(String),
    /// An archive that breaks a rule.
    #[error("{at}: is no bundle archive: {rule}")]
    Archive {
        /// The archive.
        at: String,
        /// The rule.
        rule: String,
    },
    /// `bundle.json` breaks rules.
    #[error("{at}: bundle.json: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Manifest {
        /// The bundle.
        at: String,
        /// The rules.
        problems: Vec<ManifestProblem>,
    },
    /// Nothing vouches for it.
    #[error(
        "{at}: no rule of plugins.trust allows this bundle; add its digest sha256:{sha256} to plugins.trust.digests"
    )]
    Untrusted {
        /// The bundle.
        at: String,
        /// SHA-256 of its `bundle.json`.
        sha256: String,
    },
    /// The bytes are not those that the manifest names.
    #[error("{at}: {file} has SHA-256 {found}, bundle.json says {expected}")]
    Digest {
        /// The bundle.
        at: String,
        /// The file.
        file: String,
        /// Of the bytes.
        found: String,
        /// Of the manifest.
        expected: String,
    },
    /// Two bundles bring different plugins under one id.
    #[error("plugin {id} comes with {first} and with {second}; remove one")]
    Duplicate {
        /// The id.
        id: String,
        /// First bundle in the order of the search.
        first: String,
        /// The other.
        second: String,
    },
}

/// A bundle that passed trust; its files are not read yet.
#[derive(Debug)]
pub struct Bundle {
    source: Source,
    manifest: Manifest,
    standing: Standing,
}

/// A plugin that was found; `bytes` reads and proves its file.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    bundle: &'a Bundle,
    entry: &'a PluginEntry,
}

impl Bundle {
    /// Opens one bundle.
    ///
    /// # Errors
    /// When it cannot be read, breaks a rule or is not trusted.
    pub fn open(path: &Path, of_image: bool, policy: &TrustPolicy) -> Result<Self, BundleError> {
        let source = Source::open(path)?;
        let document = source.read(source::MANIFEST, source::MANIFEST_BYTES_MAX)?;
        let sha256 = digest::sha256(&document);
        let standing = policy
            .standing(&sha256, of_image)
            .ok_or_else(|| BundleError::Untrusted { at: source.name(), sha256 })?;
        let manifest = Manifest::read(&document)
            .map_err(|problems| BundleError::Manifest { at: source.name(), problems })?;
        Ok(Self { source, manifest, standing })
    }

    /// Its manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

impl<'a> Found<'a> {
    /// Its entry in the manifest.
    #[must_use]
    pub fn entry(&self) -> &'a PluginEntry {
        self.entry
    }

    /// Where its bundle is.
    #[must_use]
    pub fn source(&self) -> String {
        self.bundle.source.name()
    }

    /// Why its bundle may run.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.bundle.standing
    }

    /// Reads its file and proves its digest.
    ///
    /// # Errors
    /// When the file is unreadable, too large or another one.
    pub fn bytes(&self) -> Result<Vec<u8>, BundleError> {
        let bytes = self.bundle.source.read(&self.entry.file, crate::inspect::COMPONENT_BYTES_MAX)?;
        let found = digest::sha256(&bytes);
        if found == self.entry.sha256 {
            return Ok(bytes);
        }
        Err(BundleError::Digest {
            at: self.source(),
            file: self.entry.file.clone(),
            found,
            expected: self.entry.sha256.clone(),
        })
    }
}

/// Every bundle of a search.
#[derive(Debug, Default)]
pub struct Library {
    bundles: Vec<Bundle>,
    /// Bundles that were refused; the others go on.
    refused: Vec<BundleError>,
}

impl Library {
    /// Opens every bundle in the folders, in their order. A folder that appears twice
    /// counts once.
    ///
    /// # Errors
    /// A named folder that is not there, and two plugins of one id.
    pub fn search(folders: &[SearchFolder], policy: &TrustPolicy) -> Result<Self, BundleError> {
        let mut library = Self::default();
        let mut seen = Vec::new();
        for folder in folders {
            for path in source::bundles_in(&folder.path, folder.required)? {
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                if seen.contains(&real) {
                    continue;
                }
                seen.push(real);
                match Bundle::open(&path, folder.of_image, policy) {
                    Ok(bundle) => library.bundles.push(bundle),
                    Err(error) => library.refused.push(error),
                }
            }
        }
        library.check_ids()?;
        Ok(library)
    }

    /// One id may come twice only as the very same file.
    fn check_ids(&self) -> Result<(), BundleError> {
        let mut ids: BTreeMap<&str, (&str, &Bundle)> = BTreeMap::new();
        for bundle in &self.bundles {
            for plugin in &bundle.manifest.plugins {
                match ids.get(plugin.id.as_str()) {
                    Some((sha256, first)) if *sha256 != plugin.sha256 => {
                        return Err(BundleError::Duplicate {
                            id: plugin.id.clone(),
                            first: first.source.name(),
                            second: bundle.source.name(),
                        });
                    }
                    Some(_) => {}
                    None => {
                        ids.insert(&plugin.id, (&plugin.sha256, bundle));
                    }
                }
            }
        }
        Ok(())
    }

    /// A plugin by id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Found<'_>> {
        self.plugins().find(|found| found.entry.id == id)
    }

    /// Every plugin, in the order of the search.
    pub fn plugins(&self) -> impl Iterator<Item = Found<'_>> {
        self.bundles
            .iter()
            .flat_map(|bundle| bundle.manifest.plugins.iter().map(move |entry| Found { bundle, entry }))
    }

    /// Bundles that may not run.
    #[must_use]
    pub fn refused(&self) -> &[BundleError] {
        &self.refused
    }
}

#[cfg(test)]
mod tests;
