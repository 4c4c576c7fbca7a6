//! How long a service key lives. Pure.

use time::Duration;

/// Life of a key that asks for none.
const LIFE_DEFAULT: Duration = Duration::days(30);

/// The life of a new key; the body's reader has checked its bounds.
pub(super) fn life(expires_in_secs: Option<u64>) -> Duration {
    let asked = expires_in_secs.and_then(|secs| i64::try_from(secs).ok());
    asked.map_or(LIFE_DEFAULT, Duration::seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lives_as_long_as_asked_or_thirty_days() {
        assert_eq!(life(None), Duration::days(30));
        assert_eq!(life(Some(86_400)), Duration::days(1));
    }
}
