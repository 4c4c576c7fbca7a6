//! Lengths of time on the command line: `90`, `90s`, `15m`, `24h`, `1m30s`.

use std::time::Duration;

/// Longest duration that any flag takes.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads a positive duration; a number alone is seconds.
///
/// # Errors
/// Says which forms there are.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 90, 90s, 15m or 24h, of at most 7 days");
    let mut secs: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at_checked(digits).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (factor, tail) = match tail.chars().next() {
            None if rest.len() == text.len() => (1, ""),
            Some('s') => (1, tail.get(1..).unwrap_or_default()),
            Some('m') => (60, tail.get(1..).unwrap_or_default()),
            Some('h') => (3600, tail.get(1..).unwrap_or_default()),
            _ => return Err(wrong()),
        };
        secs = number.checked_mul(factor).and_then(|part| secs.checked_add(part)).ok_or_else(wrong)?;
        rest = tail;
    }
    let duration = Duration::from_secs(secs);
    if duration.is_zero() || duration > DURATION_MAX { Err(wrong()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        for (text, secs) in [("90", 90), ("90s", 90), ("15m", 900), ("24h", 86_400), ("1m30s", 90)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(secs)), "{text}");
        }
        for wrong in ["", "0", "-1", "m", "1d", "1.5h", "1m30", "999999999999999999999", "200h", "é"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
