//! `ETag` and `If-Match`: strong tags of the form `"v<integer>"`.

use occ_api::error::ErrorCode;

use super::query::integer;
use crate::error::{Error, Result};

/// The condition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: the resource exists, whatever its version.
    Any,
    /// Exactly this version.
    Version(u64),
    /// A well-formed strong tag that this server never gave out.
    Other,
}

impl IfMatch {
    /// Reads the header; one strong tag or `*`.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for several tags, a weak one or anything else.
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let is_tag = |tag: &str| tag.bytes().all(|byte| byte == 0x21 || (0x23..=0x7e).contains(&byte));
        let Some(tag) = inner.filter(|tag| is_tag(tag)) else {
            return Err(Error::new(
                ErrorCode::InvalidRequest,
                "The request is invalid: If-Match takes one strong entity tag or an asterisk.",
            ));
        };
        Ok(tag.strip_prefix('v').and_then(integer).map_or(Self::Other, Self::Version))
    }

    /// Compares with the version of the locked row.
    ///
    /// # Errors
    /// `PRECONDITION_FAILED`, which carries the current version for the answer's `ETag`.
    pub fn check(&self, current: u64) -> Result<()> {
        match self {
            Self::Any => Ok(()),
            Self::Version(wanted) if *wanted == current => Ok(()),
            Self::Version(_) | Self::Other => {
                Err(Error::new(ErrorCode::PreconditionFailed, "The resource was changed since it was read.")
                    .with_version(current))
            }
        }
    }

    /// The canonical form, for the fingerprint of a repeatable request.
    pub(super) fn canonical(&self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::Version(version) => tag(*version),
            Self::Other => "other".to_owned(),
        }
    }
}

/// The tag of a version.
pub(super) fn tag(version: u64) -> String {
    format!("\"v{version}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_exactly() {
        assert_eq!(IfMatch::parse("*").unwrap(), IfMatch::Any);
        assert_eq!(IfMatch::parse("\"v7\"").unwrap(), IfMatch::Version(7));
        assert_eq!(IfMatch::parse("\"v07\"").unwrap(), IfMatch::Other);
        assert_eq!(IfMatch::parse("\"abc\"").unwrap(), IfMatch::Other);
        for malformed in ["", "v7", "W/\"v7\"", "\"v7\", \"v8\"", "\"v7", "**", "\"v\u{7f}\""] {
            assert_eq!(
                IfMatch::parse(malformed).unwrap_err().api_code(),
                ErrorCode::InvalidRequest,
                "{malformed}"
            );
        }
    }

    #[test]
    fn a_mismatch_tells_the_current_version() {
        assert!(IfMatch::Any.check(3).is_ok());
        assert!(IfMatch::Version(3).check(3).is_ok());
        let error = IfMatch::Version(2).check(3).unwrap_err();
        assert_eq!(error.api_code(), ErrorCode::PreconditionFailed);
        assert_eq!(error.version(), Some(3));
        assert_eq!(IfMatch::Other.check(3).unwrap_err().version(), Some(3));
    }
}
