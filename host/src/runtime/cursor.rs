//! The cursor of log reads: signed, and bound to principal, revision and view. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::lines::Anchor;
use crate::app::AuthKey;

/// Most characters of a payload.
const PAYLOAD_CHARS_MAX: usize = 1_900;

/// What a follow-up read goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    /// Who reads.
    pub(super) principal: String,
    /// What is read.
    pub(super) revision: String,
    /// The parameters of the view, in one text.
    pub(super) view: String,
    /// The instance that was read: its uid and its restarts.
    pub(super) instance: Option<(String, u32)>,
    /// Digest of the last lines.
    pub(super) digest: String,
    /// How many lines the digest covers.
    pub(super) lines: usize,
}

impl Cursor {
    /// Was it given to this principal for this view of this revision?
    pub(super) fn fits(&self, principal: &str, revision: &str, view: &str) -> bool {
        self.principal == principal && self.revision == revision && self.view == view
    }

    /// The mark to go on from.
    pub(super) fn anchor(&self) -> Anchor {
        Anchor { digest: self.digest.clone(), lines: self.lines }
    }

    /// `v1.<payload>.<signature>`; nothing when it would be too long.
    pub(super) fn seal(&self, key: &AuthKey) -> Option<String> {
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).ok()?);
        if payload.len() > PAYLOAD_CHARS_MAX {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.encode(key.log_cursor(&[payload.as_bytes()]));
        Some(format!("v1.{payload}.{signature}"))
    }

    /// Reads what [`Cursor::seal`] wrote.
    pub(super) fn open(text: &str, key: &AuthKey) -> Option<Self> {
        let (payload, signature) = text.strip_prefix("v1.")?.split_once('.')?;
        if payload.len() > PAYLOAD_CHARS_MAX
            || URL_SAFE_NO_PAD.encode(key.log_cursor(&[payload.as_bytes()])) != signature
        {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor() -> Cursor {
        Cursor {
            principal: "spn_1".to_owned(),
            revision: "rev_1".to_owned(),
            view: "gateway".to_owned(),
            instance: Some(("uid".to_owned(), 2)),
            digest: "00".to_owned(),
            lines: 3,
        }
    }

    #[test]
    fn a_cursor_comes_back_and_nothing_else_does() {
        let key = AuthKey::new(b"0123456789abcdef0123456789abcdef");
        let text = cursor().seal(&key).unwrap();
        assert_eq!(Cursor::open(&text, &key), Some(cursor()));
        assert_eq!(text.rsplit('.').next().map(str::len), Some(43));
        let other = AuthKey::new(b"0123456789abcdef0123456789abcdeF");
        assert_eq!(Cursor::open(&text, &other), None);
        for broken in ["", "v1", "v1..", "v2.a.b", &text.replace("v1.", "v1.A")] {
            assert_eq!(Cursor::open(broken, &key), None, "{broken}");
        }
    }

    #[test]
    fn a_cursor_that_would_be_too_long_is_not_given_out() {
        let key = AuthKey::new(b"0123456789abcdef0123456789abcdef");
        assert_eq!(Cursor { view: "x".repeat(2_000), ..cursor() }.seal(&key), None);
    }
}
