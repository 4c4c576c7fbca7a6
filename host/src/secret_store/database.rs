//! Envelope encryption: AES-256-GCM with one data key per value and version. Pure.
//!
//! The data key seals the value; the key-encryption key `key_id` wraps the data key. Both carry
//! the same associated data, which names the owner of the value, so a row copied to another
//! owner, id or version does not open. A data key seals once, so its nonce cannot repeat; a
//! key-encryption key wraps with a random nonce of 96 bits, which is safe for 2^32 values.

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{Aead, KeyInit, Nonce, Payload};
use occ_api::ids::{AgentId, NamespaceId, SecretId};
use zeroize::Zeroizing;

use super::defect;
use super::key_file::{KEY_BYTES, Keys};
use crate::drivers::SecretValue;
use crate::error::Result;
use crate::ids::Ids;

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 65_536;
/// Bytes of a nonce.
const NONCE_BYTES: usize = 12;

/// Whose value it is: sealed in with it.
pub(super) enum Owner<'a> {
    /// A Secret that somebody wrote.
    Secret {
        /// Namespace of the Secret.
        namespace: &'a NamespaceId,
        /// The Secret.
        secret: &'a SecretId,
        /// Version of the value.
        version: u64,
    },
    /// A credential that the host generated.
    Generated {
        /// Namespace of the Agent.
        namespace: &'a NamespaceId,
        /// The Agent.
        agent: &'a AgentId,
        /// Name of the credential.
        name: &'a str,
        /// Version of the value.
        version: u64,
    },
}

impl Owner<'_> {
    /// Unambiguous bytes: each part with its length before it.
    fn associated_data(&self) -> Vec<u8> {
        let (parts, version) = match self {
            Self::Secret { namespace, secret, version } => {
                (vec!["occ-secret-1", namespace.as_str(), secret.as_str()], *version)
            }
            Self::Generated { namespace, agent, name, version } => {
                (vec!["occ-generated-1", namespace.as_str(), agent.as_str(), *name], *version)
            }
        };
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes
    }
}

/// The columns of a sealed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sealed {
    /// Which key wrapped the data key.
    pub(super) key_id: String,
    /// The wrapped data key, 48 bytes.
    pub(super) wrapped_key: Vec<u8>,
    /// Nonce of the wrapping.
    pub(super) key_nonce: Vec<u8>,
    /// Nonce of the value.
    pub(super) nonce: Vec<u8>,
    /// The value and its tag.
    pub(super) ciphertext: Vec<u8>,
}

/// Seals a value for its owner with the newest key.
pub(super) fn seal(keys: &Keys, ids: &Ids, owner: &Owner<'_>, value: &SecretValue) -> Result<Sealed> {
    let text = value.expose().as_bytes();
    if text.is_empty() || text.len() > VALUE_BYTES_MAX {
        return Err(defect("a secret value of a length that nobody checked"));
    }
    let aad = owner.associated_data();
    let key = keys.newest();
    let data_key = Zeroizing::new(ids.bytes::<KEY_BYTES>());
    let (key_nonce, nonce) = (ids.bytes::<NONCE_BYTES>(), ids.bytes::<NONCE_BYTES>());
    Ok(Sealed {
        key_id: key.id.clone(),
        wrapped_key: encrypt(&key.bytes, &key_nonce, &aad, data_key.as_slice())?,
        key_nonce: key_nonce.to_vec(),
        nonce: nonce.to_vec(),
        ciphertext: encrypt(&data_key, &nonce, &aad, text)?,
    })
}

/// Opens a value of this owner.
pub(super) fn open(keys: &Keys, owner: &Owner<'_>, sealed: &Sealed) -> Result<SecretValue> {
    let key = keys
        .get(&sealed.key_id)
        .ok_or_else(|| defect("a stored value was sealed with a key that the key file lacks"))?;
    let aad = owner.associated_data();
    let data_key = decrypt(&key.bytes, &sealed.key_nonce, &aad, &sealed.wrapped_key)?;
    let data_key: &[u8; KEY_BYTES] =
        data_key.as_slice().try_into().map_err(|_| defect("a stored data key has another length"))?;
    let mut value = decrypt(data_key, &sealed.nonce, &aad, &sealed.ciphertext)?;
    let text = String::from_utf8(std::mem::take(&mut *value)).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        defect("a stored value is not UTF-8")
    })?;
    Ok(SecretValue::new(text))
}

fn cipher(key: &[u8; KEY_BYTES]) -> Result<Aes256Gcm> {
    Aes256Gcm::new_from_slice(key).map_err(|_| defect("a key has another length"))
}

fn encrypt(key: &[u8; KEY_BYTES], nonce: &[u8; NONCE_BYTES], aad: &[u8], msg: &[u8]) -> Result<Vec<u8>> {
    let nonce = Nonce::<Aes256Gcm>::from(*nonce);
    cipher(key)?.encrypt(&nonce, Payload { msg, aad }).map_err(|_| defect("a value cannot be sealed"))
}

fn decrypt(key: &[u8; KEY_BYTES], nonce: &[u8], aad: &[u8], msg: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let nonce: [u8; NONCE_BYTES] =
        nonce.try_into().map_err(|_| defect("a stored nonce has another length"))?;
    let opened = cipher(key)?.decrypt(&Nonce::<Aes256Gcm>::from(nonce), Payload { msg, aad });
    opened.map(Zeroizing::new).map_err(|_| defect("a stored value does not open: it was changed, or moved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const TWO: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    struct Names {
        ids: Ids,
        namespace: NamespaceId,
        secret: SecretId,
        agent: AgentId,
    }

    fn names(seed: u64) -> Names {
        let ids = Ids::seeded(seed);
        let (namespace, secret, agent) = (
            NamespaceId::from_uuid(ids.uuid()),
            SecretId::from_uuid(ids.uuid()),
            AgentId::from_uuid(ids.uuid()),
        );
        Names { ids, namespace, secret, agent }
    }

    impl Names {
        fn owner(&self, version: u64) -> Owner<'_> {
            Owner::Secret { namespace: &self.namespace, secret: &self.secret, version }
        }
    }

    fn value(text: &str) -> SecretValue {
        SecretValue::new(text.to_owned())
    }

    #[test]
    fn what_was_sealed_opens_for_its_owner() {
        let (keys, names) = (Keys::of_tests(ONE), names(1));
        let sealed = seal(&keys, &names.ids, &names.owner(1), &value("top secret ü")).unwrap();
        assert_eq!(open(&keys, &names.owner(1), &sealed).unwrap().expose(), "top secret ü");
        assert_eq!((sealed.wrapped_key.len(), sealed.key_nonce.len(), sealed.nonce.len()), (48, 12, 12));
        assert_eq!(sealed.ciphertext.len(), "top secret ü".len() + 16);
        assert!(!sealed.ciphertext.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_row_moved_elsewhere_does_not_open() {
        let (keys, names, other) = (Keys::of_tests(ONE), names(1), names(2));
        let sealed = seal(&keys, &names.ids, &names.owner(1), &value("x")).unwrap();
        let (namespace, secret) = (&names.namespace, &names.secret);
        let elsewhere = [
            names.owner(2),
            Owner::Secret { namespace: &other.namespace, secret, version: 1 },
            Owner::Secret { namespace, secret: &other.secret, version: 1 },
            Owner::Generated { namespace, agent: &names.agent, name: "x", version: 1 },
        ];
        for owner in elsewhere {
            assert_eq!(open(&keys, &owner, &sealed).unwrap_err().code(), "INTERNAL_ERROR");
        }
    }

    #[test]
    fn a_changed_bit_does_not_open() {
        let (keys, names) = (Keys::of_tests(ONE), names(1));
        let sealed = seal(&keys, &names.ids, &names.owner(1), &value("x")).unwrap();
        let flips: [fn(&mut Sealed) -> &mut Vec<u8>; 4] = [
            |sealed| &mut sealed.ciphertext,
            |sealed| &mut sealed.nonce,
            |sealed| &mut sealed.wrapped_key,
            |sealed| &mut sealed.key_nonce,
        ];
        for part in flips {
            let mut changed = sealed.clone();
            part(&mut changed)[0] ^= 1;
            assert!(open(&keys, &names.owner(1), &changed).is_err());
        }
    }

    #[test]
    fn after_a_rotation_old_values_open_and_new_ones_use_the_new_key() {
        let (old, names) = (Keys::of_tests(ONE), names(1));
        let sealed = seal(&old, &names.ids, &names.owner(1), &value("x")).unwrap();
        let both = Keys::of_tests(&format!("{TWO}\n{ONE}"));
        assert_eq!(open(&both, &names.owner(1), &sealed).unwrap().expose(), "x");
        let again = seal(&both, &names.ids, &names.owner(1), &value("x")).unwrap();
        assert_ne!(again.key_id, sealed.key_id);
        let error = open(&old, &names.owner(1), &again).unwrap_err();
        assert_eq!(error.code(), "INTERNAL_ERROR");
    }

    #[test]
    fn two_sealings_of_one_value_share_nothing() {
        let (keys, names) = (Keys::of_tests(ONE), names(1));
        let one = seal(&keys, &names.ids, &names.owner(1), &value("same")).unwrap();
        let two = seal(&keys, &names.ids, &names.owner(1), &value("same")).unwrap();
        assert_ne!(one.ciphertext, two.ciphertext);
        assert_ne!(one.wrapped_key, two.wrapped_key);
        assert_ne!(one.key_nonce, two.key_nonce);
    }

    #[test]
    fn lengths_are_bounded() {
        let (keys, names) = (Keys::of_tests(ONE), names(1));
        assert!(seal(&keys, &names.ids, &names.owner(1), &value("")).is_err());
        assert!(seal(&keys, &names.ids, &names.owner(1), &value(&"x".repeat(VALUE_BYTES_MAX + 1))).is_err());
        assert!(seal(&keys, &names.ids, &names.owner(1), &value(&"x".repeat(VALUE_BYTES_MAX))).is_ok());
    }
}
