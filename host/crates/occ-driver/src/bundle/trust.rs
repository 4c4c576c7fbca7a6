//! Which bundles may run.

use std::collections::BTreeSet;

/// The trust policy of an Installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustPolicy {
    /// SHA-256 digests of `bundle.json` files, in hexadecimal digits.
    pub digests: BTreeSet<String>,
    /// Bundles that nothing vouches for may run.
    pub allow_unsigned: bool,
}

/// Why a bundle may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It came with the program.
    Image,
    /// The Installation names its digest.
    Pinned,
    /// The Installation allows bundles that nothing vouches for.
    Unsigned,
}

impl Standing {
    /// Lower-case name, as the API shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Pinned => "pinned",
            Self::Unsigned => "unsigned",
        }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// Signatures are not verified yet; a policy that relies on them must not look as if.
    #[error("plugins.trust.keys is not offered by this version; use plugins.trust.digests")]
    Keys,
    /// A digest that cannot match anything.
    #[error("plugins.trust.digests[{0}] must be sha256: and 64 lower-case hexadecimal digits")]
    Digest(usize),
}

impl TrustPolicy {
    /// Reads the section `plugins.trust` of an Installation.
    ///
    /// # Errors
    /// Every member that cannot be used.
    pub fn new(
        digests: &[String],
        keys: &[String],
        allow_unsigned: bool,
    ) -> Result<Self, Vec<PolicyProblem>> {
        let mut problems: Vec<PolicyProblem> =
            keys.first().map(|_| PolicyProblem::Keys).into_iter().collect();
        let mut known = BTreeSet::new();
        for (index, text) in digests.iter().enumerate() {
            match text.strip_prefix("sha256:").filter(|digits| crate::digest::is_sha256(digits)) {
                Some(digits) => {
                    known.insert(digits.to_owned());
                }
                None => problems.push(PolicyProblem::Digest(index)),
            }
        }
        if problems.is_empty() { Ok(Self { digests: known, allow_unsigned }) } else { Err(problems) }
    }

    /// May a bundle with this `bundle.json` run, and why?
    pub(crate) fn standing(&self, sha256: &str, of_image: bool) -> Option<Standing> {
        if of_image {
            return Some(Standing::Image);
        }
        if self.digests.contains(sha256) {
            return Some(Standing::Pinned);
        }
        self.allow_unsigned.then_some(Standing::Unsigned)
    }
}
