//! The file of key-encryption keys.
//!
//! ```text
//! # newest first
//! 3b1f…64 hexadecimal digits…
//! 90ac…64 hexadecimal digits…
//! ```
//!
//! One key of 256 bits a line, as 64 hexadecimal digits; blank lines and lines that begin with
//! `#` are skipped. The first key seals, every key opens: to rotate, put a new key in front and
//! keep the old ones until each value has been written again. A key's id is `kek-` and the first
//! 16 hexadecimal digits of its SHA-256; it stands beside each value that the key sealed.
//!
//! Nobody but the owner may write the file, and others may not read it (mode `0600`; a group may
//! read, as a mounted volume has it).

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;
/// A file of keys is shorter than this.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// What others may not do with the file, and the group may not do but read.
const MODE_REFUSED: u32 = 0o037;
/// Code of every fault of the file.
const FAULT: &str = "SECRET_KEY_FILE_INVALID";

/// One key-encryption key.
pub(super) struct Key {
    /// Stands beside what it sealed.
    pub(super) id: String,
    /// The key itself.
    pub(super) bytes: Zeroizing<[u8; KEY_BYTES]>,
}

/// The keys of a file: at least one.
pub(super) struct Keys {
    newest: Key,
    older: Vec<Key>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("newest", &self.newest.id).field("older", &self.older.len()).finish()
    }
}

impl Keys {
    /// Reads and checks the file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let fault = |rule: &str| Error::startup(FAULT, format!("The key file {} {rule}.", path.display()));
        let meta = fs::metadata(path).map_err(|error| fault("cannot be read").caused_by(error))?;
        if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
            return Err(fault("is no file of at most 64 KiB"));
        }
        if meta.permissions().mode() & MODE_REFUSED != 0 {
            return Err(fault("is open to others; run chmod 600 on it"));
        }
        let text = fs::read_to_string(path).map_err(|error| fault("cannot be read").caused_by(error))?;
        Self::parse(&Zeroizing::new(text)).map_err(fault)
    }

    /// The rule that is broken as the error.
    fn parse(text: &str) -> std::result::Result<Self, &'static str> {
        let mut seen = BTreeSet::new();
        let mut keys = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let key = Key::parse(line).ok_or("has a line that is not 64 hexadecimal digits")?;
            if !seen.insert(key.id.clone()) {
                return Err("names a key twice");
            }
            keys.push(key);
        }
        let mut keys = keys.into_iter();
        let newest = keys.next().ok_or("holds no key; write 64 random hexadecimal digits into it")?;
        Ok(Self { newest, older: keys.collect() })
    }

    /// The key that seals.
    pub(super) fn newest(&self) -> &Key {
        &self.newest
    }

    /// The key of this id.
    pub(super) fn get(&self, id: &str) -> Option<&Key> {
        std::iter::once(&self.newest).chain(&self.older).find(|key| key.id == id)
    }

    /// A fixed key, for tests.
    #[cfg(test)]
    pub(super) fn of_tests(text: &str) -> Self {
        Self::parse(text).unwrap()
    }
}

impl Key {
    fn parse(line: &str) -> Option<Self> {
        if line.len() != 2 * KEY_BYTES || !line.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(line.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        let digest = Sha256::digest(bytes.as_slice());
        let id = digest.iter().take(8).fold("kek-".to_owned(), |id, byte| format!("{id}{byte:02x}"));
        Some(Self { id, bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const TWO: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn the_first_key_seals_and_every_key_opens() {
        let keys = Keys::of_tests(&format!("# newest\n{TWO}\n\n{ONE}\n"));
        let one = Keys::of_tests(ONE).newest().id.clone();
        assert_eq!(one, "kek-630dcd2966c43366");
        assert_eq!(keys.newest().bytes.first(), Some(&0xff));
        assert_eq!(keys.get(&one).unwrap().bytes.get(31), Some(&0x1f));
        assert!(keys.get("kek-unknown").is_none());
    }

    #[test]
    fn bad_files_are_refused_with_their_rule() {
        let rule = |text: &str| Keys::parse(text).err();
        assert_eq!(rule(""), Some("holds no key; write 64 random hexadecimal digits into it"));
        assert_eq!(rule("# only this"), rule(""));
        assert_eq!(rule("abcd"), Some("has a line that is not 64 hexadecimal digits"));
        assert_eq!(rule(&ONE.replace('0', "g")), rule("abcd"));
        assert_eq!(rule(&format!("{ONE}\n{ONE}")), Some("names a key twice"));
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.key");
        fs::write(&path, ONE).unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o440, true), (0o644, false), (0o620, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = Keys::read(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                assert_eq!(error.code(), FAULT);
            }
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let keys = Keys::of_tests(ONE);
        assert_eq!(format!("{keys:?}"), "Keys { newest: \"kek-630dcd2966c43366\", older: 0 }");
    }
}
