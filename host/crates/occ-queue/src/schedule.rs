//! When a row is looked at again: pure arithmetic, randomness passed in.

use std::{sync::Arc, time::Duration};

/// A source of numbers in `[0, 1)`, injected so that tests decide.
pub type Random = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Longest back-off.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_mins(5);
/// Shortest and longest readiness cadence.
pub(crate) const CADENCE_MIN: Duration = Duration::from_millis(250);
pub(crate) const CADENCE_MAX: Duration = Duration::from_secs(5);
/// Cadence of what has no deadline and is older than [`PATIENT_AGE`].
pub(crate) const CADENCE_PATIENT: Duration = Duration::from_secs(30);
pub(crate) const PATIENT_AGE: Duration = Duration::from_mins(15);
/// Jitter of cadence and poll: this share more or less.
const JITTER: f64 = 0.1;
/// Largest exponent of the back-off; past it the bound rules anyway.
const BACKOFF_EXPONENT_MAX: i32 = 30;

/// `random × min(300 s, 1 s × 2^(attempt − 1))`.
pub(crate) fn backoff(attempt: i32, random: f64) -> Duration {
    let exponent = attempt.saturating_sub(1).clamp(0, BACKOFF_EXPONENT_MAX);
    BACKOFF_MAX.min(Duration::from_secs(1) * (1_u32 << exponent)).mul_f64(random.clamp(0.0, 1.0))
}

/// How long a row that waits for readiness rests, by the age of its phase.
pub(crate) fn readiness(age: Duration, has_deadline: bool, random: f64) -> Duration {
    let rest = if !has_deadline && age >= PATIENT_AGE {
        CADENCE_PATIENT
    } else {
        (age / 40).clamp(CADENCE_MIN, CADENCE_MAX)
    };
    jitter(rest, random)
}

/// Up to a tenth more or less, so that many rows do not come due together.
pub(crate) fn jitter(rest: Duration, random: f64) -> Duration {
    rest.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_five_minutes() {
        let full: Vec<u64> = (0..=11).map(|attempt| backoff(attempt, 1.0).as_secs()).collect();
        assert_eq!(full, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff(i32::MAX, 1.0), BACKOFF_MAX);
        assert_eq!(backoff(4, 0.0), Duration::ZERO);
        assert_eq!(backoff(4, 0.5), Duration::from_secs(4));
    }

    #[test]
    fn readiness_follows_the_age() {
        let middle = |secs, deadline| readiness(Duration::from_secs(secs), deadline, 0.5).as_secs_f64();
        assert!((middle(0, true) - 0.25).abs() < 1e-9);
        assert!((middle(40, true) - 1.0).abs() < 1e-9);
        assert!((middle(3_600, true) - 5.0).abs() < 1e-9);
        assert!((middle(899, false) - 5.0).abs() < 1e-9);
        assert!((middle(900, false) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn jitter_is_a_tenth_either_way() {
        assert_eq!(jitter(Duration::from_secs(10), 0.0), Duration::from_secs(9));
        assert_eq!(jitter(Duration::from_secs(10), 1.0), Duration::from_secs(11));
    }
}
