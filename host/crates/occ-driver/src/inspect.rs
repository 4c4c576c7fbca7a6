//! Reads what a component is from its bytes, before anything compiles it.
//!
//! Two depths: [`Header`] looks at names only and is read at every load; [`missing`] reads
//! types and explains a component that does not fit.

use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};

use crate::abi::{self, Kind};

/// Larger files are refused unread.
pub const COMPONENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
const PACKAGE: &str = "occ:plugin/";
/// Names that are kept of a component.
const NAMES_MAX: usize = 256;

/// Why bytes are no plugin of this host. The caller adds the file's or plugin's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// Beyond [`COMPONENT_BYTES_MAX`].
    #[error("is too large: {bytes} bytes of at most {max}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// Cut short, random, or damaged.
    #[error("is no WebAssembly component: {0}")]
    Malformed(String),
    /// A core module.
    #[error(
        "is a core module, not a component; build it with `cargo build --release --target wasm32-wasip2`, \
         or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// A component of something else.
    #[error(
        "exports nothing of occ:plugin, so it is a component of another world; its exports are: {exports}"
    )]
    OtherPackage {
        /// A few of its exports.
        exports: String,
    },
    /// Parts of it were built for different versions of the contract.
    #[error("mixes versions of occ:plugin: {0}")]
    MixedVersions(String),
    /// Built for a version that this host does not speak.
    #[error(
        "was built for occ:plugin@{built}; this host offers {offered}; \
         {} is the first function that does not fit", .missing.as_deref().unwrap_or("none")
    )]
    OtherVersion {
        /// The component's version.
        built: String,
        /// This host's versions.
        offered: String,
        /// A function of the nearest offered version that it lacks.
        missing: Option<String>,
    },
    /// The right version, another world.
    #[error("is no {world}: occ:plugin@{version} asks for {missing}, which it does not export")]
    OtherWorld {
        /// The world that was asked for.
        world: &'static str,
        /// The component's version.
        version: String,
        /// The first interface or function that it lacks.
        missing: String,
    },
}

/// Names in a component's outermost layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What it imports, such as `occ:plugin/log@0.1.0`.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
}

impl Header {
    /// Reads the names.
    ///
    /// # Errors
    /// When the bytes are no component.
    pub fn read(bytes: &[u8]) -> Result<Self, InspectError> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > COMPONENT_BYTES_MAX {
            return Err(InspectError::TooLarge { bytes: length, max: COMPONENT_BYTES_MAX });
        }
        let mut header = Self { imports: Vec::new(), exports: Vec::new() };
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(malformed)? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(InspectError::CoreModule);
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        header.imports.push(import.map_err(malformed)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        header.exports.push(export.map_err(malformed)?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        header.imports.truncate(NAMES_MAX);
        header.exports.truncate(NAMES_MAX);
        Ok(header)
    }

    /// The version of the contract that it was built for, as it says it.
    ///
    /// # Errors
    /// When it is a component of something else, or of several versions.
    pub fn version(&self) -> Result<semver::Version, InspectError> {
        let of = |name: &String| {
            name.strip_prefix(PACKAGE)?.rsplit_once('@').map(|(_, version)| version.to_owned())
        };
        let mut versions: Vec<String> = self.exports.iter().filter_map(of).collect();
        versions.sort();
        versions.dedup();
        match versions.as_slice() {
            [] => {
                let exports: Vec<&str> = self.exports.iter().take(5).map(String::as_str).collect();
                let exports = if exports.is_empty() { "none".to_owned() } else { exports.join(", ") };
                Err(InspectError::OtherPackage { exports })
            }
            [version] => semver::Version::parse(version).map_err(|error| malformed_version(version, &error)),
            several => Err(InspectError::MixedVersions(several.join(", "))),
        }
    }

    /// Capabilities that it imports, such as `process`.
    #[must_use]
    pub fn capabilities(&self) -> Vec<String> {
        let of = |name: &String| Some(name.strip_prefix(PACKAGE)?.split('@').next()?.to_owned());
        let mut found: Vec<String> = self.imports.iter().filter_map(of).collect();
        found.extend(
            self.imports.iter().any(|name| name.starts_with("wasi:http/")).then(|| "http".to_owned()),
        );
        // Shared types are no capability.
        found.retain(|name| name != "types" && name != "workload");
        found.sort();
        found.dedup();
        found
    }

    /// Kinds whose every interface it exports.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let exported = |interface: &str| {
            let start = format!("{PACKAGE}{interface}@");
            self.exports.iter().any(|name| name.starts_with(&start))
        };
        [
            (Kind::Compute, "compute"),
            (Kind::Harness, "harness"),
            (Kind::Backend, "backend"),
            (Kind::Repo, "repo"),
        ]
        .into_iter()
        .filter(|(_, interface)| exported(interface) && exported("driver"))
        .map(|(kind, _)| kind)
        .collect()
    }

    /// Is it a component of this kind and of a version that this host speaks? Answers the
    /// version's major and minor number.
    ///
    /// # Errors
    /// With the first thing that is missing.
    pub fn accept(&self, kind: Kind, bytes: &[u8]) -> Result<(u64, u64), InspectError> {
        let version = self.version()?;
        let key = (version.major, version.minor);
        if abi::contract(key).is_none() {
            return Err(InspectError::OtherVersion {
                built: version.to_string(),
                offered: abi::versions().join(", "),
                missing: missing(bytes, kind, None),
            });
        }
        if self.kinds().contains(&kind) {
            return Ok(key);
        }
        Err(InspectError::OtherWorld {
            world: kind.world(),
            missing: missing(bytes, kind, Some(key)).unwrap_or_else(|| kind.as_str().to_owned()),
            version: version.to_string(),
        })
    }
}

/// The first function of a kind's interfaces that a component lacks, such as
/// `compute.observe`; of the newest version when none is given. `None` when it has all of
/// them, or when its bytes are no valid component.
#[must_use]
pub fn missing(bytes: &[u8], kind: Kind, version: Option<(u64, u64)>) -> Option<String> {
    let newest = || {
        abi::versions()
            .first()
            .and_then(|text| text.split_once('.'))
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
    };
    let contract = abi::contract(version.or_else(newest)?)?;
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let types = validator.validate_all(bytes).ok()?;
    let header = Header::read(bytes).ok()?;
    for (interface, functions) in contract.exports(kind) {
        let start = format!("{PACKAGE}{interface}@");
        let Some(name) = header.exports.iter().find(|name| name.starts_with(&start)) else {
            return functions.first().map(|function| format!("{interface}.{function}"));
        };
        let item = types.as_ref().component_item_for_export(name)?;
        let wasmparser::component_types::ComponentEntityType::Instance(id) = item.ty else {
            return Some((*interface).to_owned());
        };
        let instance = types.as_ref().get(id)?;
        if let Some(absent) = functions.iter().find(|function| !instance.exports.contains_key(**function)) {
            return Some(format!("{interface}.{absent}"));
        }
    }
    None
}

fn malformed(error: wasmparser::BinaryReaderError) -> InspectError {
    InspectError::Malformed(format!("{} at byte {}", error.message(), error.offset()))
}

fn malformed_version(version: &str, error: &semver::Error) -> InspectError {
    InspectError::Malformed(format!("version {version:?} of occ:plugin cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty component and an empty core module, as binary.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    #[test]
    fn what_is_no_component_is_told_apart() {
        assert_eq!(Header::read(MODULE), Err(InspectError::CoreModule));
        for junk in [&b""[..], b"\0as", b"#!/bin/sh\n", &[7; 64], &COMPONENT[..6]] {
            assert!(matches!(Header::read(junk), Err(InspectError::Malformed(_))), "{junk:?}");
        }
        let header = Header::read(COMPONENT).unwrap();
        assert_eq!(header.version(), Err(InspectError::OtherPackage { exports: "none".to_owned() }));
    }

    #[test]
    fn versions_come_from_the_exports() {
        let header = |exports: &[&str]| Header {
            imports: vec!["occ:plugin/log@0.1.0".to_owned(), "wasi:cli/stderr@0.2.3".to_owned()],
            exports: exports.iter().map(|name| (*name).to_owned()).collect(),
        };
        let both = header(&["occ:plugin/driver@0.1.0", "occ:plugin/compute@0.1.0"]);
        assert_eq!(both.version(), Ok(semver::Version::new(0, 1, 0)));
        assert_eq!(both.kinds(), [Kind::Compute]);
        assert_eq!(both.capabilities(), ["log"]);
        assert_eq!(both.accept(Kind::Compute, COMPONENT), Ok((0, 1)));
        let mixed = header(&["occ:plugin/driver@0.1.0", "occ:plugin/compute@0.2.0"]);
        assert_eq!(mixed.version(), Err(InspectError::MixedVersions("0.1.0, 0.2.0".to_owned())));
        let newer = header(&["occ:plugin/driver@7.0.0", "occ:plugin/compute@7.0.0"]);
        let error = newer.accept(Kind::Compute, COMPONENT).unwrap_err().to_string();
        assert!(error.contains("occ:plugin@7.0.0") && error.contains("offers 0.1"), "{error}");
        assert!(error.contains("driver.describe is the first"), "{error}");
        let harness = both.accept(Kind::Harness, COMPONENT).unwrap_err();
        assert!(matches!(harness, InspectError::OtherWorld { world: "harness-resolver", .. }), "{harness}");
    }
}
