//! Reason codes: the stable words that clients and metrics see.

use std::{borrow::Cow, fmt};

/// Longest reason code, in bytes.
pub const CODE_BYTES_MAX: usize = 64;

/// A reason code: `[A-Z][A-Z0-9_]{0,63}`. What it means stands in `occ-api`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(Cow<'static, str>);

impl Code {
    /// A code of this product, written in the source.
    #[must_use]
    pub const fn new(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }

    /// A code from outside, such as a plugin's. `None` when it is not a code.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        is_code(code).then(|| Self(Cow::Owned(code.to_owned())))
    }

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_code(code: &str) -> bool {
    let mut bytes = code.bytes();
    code.len() <= CODE_BYTES_MAX
        && bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_codes_and_nothing_else() {
        for good in ["A", "DRIVER_TRAPPED", "A1_2", &"A".repeat(64)] {
            assert_eq!(Code::parse(good).as_ref().map(Code::as_str), Some(good));
        }
        for bad in ["", "a", "1A", "_A", "A B", "Ä", "A\n", &"A".repeat(65)] {
            assert_eq!(Code::parse(bad), None, "{bad:?}");
        }
    }
}
