//! Query strings: declared parameters only, each at most once, values as exact text.

use occ_api::error::{FieldCode, FieldError, pointer_segment};
use occ_api::ids::NamespaceId;
use percent_encoding::percent_decode_str;

use super::page::CURSOR_CHARS_MAX;
use crate::error::{Error, Result};

/// Longest wait that a client may ask for, in seconds.
pub(super) const WAIT_SECS_MAX: u64 = 60;
/// Characters of a free text parameter.
const TEXT_CHARS_MAX: usize = 200;

/// One declared parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What its value may be.
    pub rule: Rule,
    /// Must it be there?
    pub required: bool,
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A decimal number without sign or leading zeros.
    Integer {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// 1 to `max` characters without NUL.
    Text {
        /// Most characters.
        max: usize,
    },
    /// A Namespace id.
    Namespace,
    /// An instant, as the API writes it.
    Time,
}

impl Param {
    /// An optional parameter.
    #[must_use]
    pub const fn new(name: &'static str, rule: Rule) -> Self {
        Self { name, rule, required: false }
    }

    /// An optional free text of at most 200 characters.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        Self::new(name, Rule::Text { max: TEXT_CHARS_MAX })
    }

    /// The same, required.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(super) fn paging(limit_max: u32) -> [Self; 2] {
        [
            Self::new("limit", Rule::Integer { min: 1, max: u64::from(limit_max) }),
            Self::new("cursor", Rule::Text { max: CURSOR_CHARS_MAX }),
        ]
    }

    pub(super) fn wait() -> Self {
        Self::new("wait", Rule::Integer { min: 0, max: WAIT_SECS_MAX })
    }
}

impl Rule {
    fn accepts(self, value: &str) -> bool {
        match self {
            Self::Integer { min, max } => integer(value).is_some_and(|number| (min..=max).contains(&number)),
            Self::Flag => matches!(value, "true" | "false"),
            Self::OneOf(words) => words.contains(&value),
            Self::Text { max } => !value.is_empty() && value.chars().count() <= max && !value.contains('\0'),
            Self::Namespace => NamespaceId::parse(value).is_ok(),
            Self::Time => super::page::parse_time(value).is_some(),
        }
    }
}

/// A decimal number as exact text: no sign, no leading zero, no space.
pub(super) fn integer(text: &str) -> Option<u64> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    if canonical { text.parse().ok() } else { None }
}

/// Reads a raw query string against what the operation declares, in the order of declaration.
///
/// # Errors
/// `INVALID_REQUEST` that names every parameter at fault; values are never echoed.
pub(super) fn parse(raw: Option<&str>, declared: &[Param]) -> Result<Vec<(&'static str, String)>> {
    let raw = match raw {
        None => "",
        Some(_) if declared.is_empty() => {
            return Err(Error::new(
                occ_api::error::ErrorCode::InvalidRequest,
                "The request is invalid: this operation takes no query string.",
            ));
        }
        Some(raw) => raw,
    };
    let mut faults = Vec::new();
    let mut values: Vec<(&'static str, String)> = Vec::new();
    for part in raw.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decode(name).unwrap_or_default();
        let Some(param) = declared.iter().find(|param| param.name == name) else {
            faults.push(fault(&name, FieldCode::UnknownField));
            continue;
        };
        let repeated = values.iter().any(|(seen, _)| *seen == param.name);
        match decode(value).filter(|value| !repeated && param.rule.accepts(value)) {
            Some(value) => values.push((param.name, value)),
            None => faults.push(fault(param.name, FieldCode::InvalidValue)),
        }
    }
    let missing = declared
        .iter()
        .filter(|param| param.required && !raw_names(raw, param.name))
        .map(|param| fault(param.name, FieldCode::Required));
    faults.extend(missing);
    if faults.is_empty() { Ok(values) } else { Err(Error::invalid(faults)) }
}

fn raw_names(raw: &str, name: &str) -> bool {
    raw.split('&')
        .any(|part| decode(part.split_once('=').map_or(part, |(name, _)| name)).as_deref() == Some(name))
}

fn fault(name: &str, code: FieldCode) -> FieldError {
    FieldError::new(format!("/{}", pointer_segment(name)), code)
}

/// Percent-decodes once; `+` is a plus sign.
fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[Param] = &[
        Param::new("limit", Rule::Integer { min: 1, max: 200 }),
        Param::new("dryRun", Rule::Flag),
        Param::new("state", Rule::OneOf(&["queued", "claimed"])),
        Param::text("actorId"),
    ];

    fn codes(raw: &str) -> Vec<(String, FieldCode)> {
        let error = parse(Some(raw), DECLARED).unwrap_err();
        error.details().iter().map(|detail| (detail.path.clone(), detail.code)).collect()
    }

    #[test]
    fn exact_values_are_taken() {
        let values = parse(Some("limit=200&dryRun=true&state=queued&actorId=spn%5F1"), DECLARED).unwrap();
        assert_eq!(
            values,
            [
                ("limit", "200".to_owned()),
                ("dryRun", "true".to_owned()),
                ("state", "queued".to_owned()),
                ("actorId", "spn_1".to_owned())
            ]
        );
    }

    #[test]
    fn inexact_values_are_refused() {
        for raw in ["limit=0200", "limit=+1", "limit=", "limit=0", "limit=201", "limit=1.0", "limit=%31%00"] {
            assert_eq!(codes(raw), [("/limit".to_owned(), FieldCode::InvalidValue)], "{raw}");
        }
        for raw in ["dryRun=1", "dryRun=True", "dryRun", "dryRun=true%20"] {
            assert_eq!(codes(raw), [("/dryRun".to_owned(), FieldCode::InvalidValue)], "{raw}");
        }
    }

    #[test]
    fn unknown_and_repeated_names_are_refused_together() {
        assert_eq!(
            codes("limit=1&limit=2&nope=1"),
            [("/limit".to_owned(), FieldCode::InvalidValue), ("/nope".to_owned(), FieldCode::UnknownField)]
        );
    }

    #[test]
    fn a_query_where_none_is_declared_is_refused() {
        assert!(parse(Some(""), &[]).is_err());
        assert!(parse(Some("a=1"), &[]).is_err());
        assert_eq!(parse(None, &[]).unwrap(), []);
    }
}
