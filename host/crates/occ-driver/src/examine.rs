//! What `plugin inspect` tells about a file, whether it would be accepted or not.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::abi::{self, Kind};
use crate::bundle::read_file;
use crate::digest;
use crate::engine::Engine;
use crate::inspect::{COMPONENT_BYTES_MAX, Header};
use crate::load::Prepared;

/// Everything that can be told without calling it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// Size in bytes.
    pub bytes: usize,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Its world, when it is of this contract.
    pub kind: Option<Kind>,
    /// Version of the contract that it was built for.
    pub contract: Option<String>,
    /// Names that it imports.
    pub imports: Vec<String>,
    /// Capabilities among them.
    pub capabilities: Vec<String>,
    /// How long the code generator took, when it came so far.
    pub compile_time: Option<Duration>,
    /// Why this host would refuse it.
    pub refused: Option<String>,
}

/// Versions of the contract that this host offers.
#[must_use]
pub fn offered() -> String {
    abi::versions().join(", ")
}

/// Reads a file and tries to compile and link it. Blocks.
///
/// # Errors
/// When the file cannot be read at all.
pub fn examine(engine: &Engine, file: &Path, kind: Option<Kind>) -> Result<Examination, String> {
    let bytes = read_file(file, COMPONENT_BYTES_MAX).map_err(|error| error.to_string())?;
    let name = file.display().to_string();
    let header = Header::read(&bytes);
    let found = header.as_ref().ok().and_then(|header| header.kinds().first().copied());
    let mut examination = Examination {
        bytes: bytes.len(),
        sha256: digest::sha256(&bytes),
        kind: found,
        contract: None,
        imports: Vec::new(),
        capabilities: Vec::new(),
        compile_time: None,
        refused: None,
    };
    match header {
        Ok(header) => {
            examination.contract = header.version().ok().map(|version| version.to_string());
            examination.capabilities = header.capabilities();
            examination.imports = header.imports;
        }
        Err(error) => {
            examination.refused = Some(format!("{name} {error}"));
            return Ok(examination);
        }
    }
    let started = Instant::now();
    // A component of no kind is refused as the kind that most plugins are.
    match Prepared::new(engine, None, kind.or(found).unwrap_or(Kind::Compute), &name, &bytes) {
        Ok(_) => examination.compile_time = Some(started.elapsed()),
        Err(error) => examination.refused = Some(error.to_string()),
    }
    Ok(examination)
}
