//! What follows an exit: pure.

use std::time::Duration;

use super::types::EXITS_MAX;

/// OpenClaw's exit code for a configuration that it cannot accept: another start
/// cannot help.
pub(super) const EXIT_CONFIG_INVALID: i32 = 78;
/// First wait before a restart.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait before a restart.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A process that lived so long begins the waits anew.
pub(super) const BACKOFF_RESET: Duration = Duration::from_secs(120);

/// What the supervisor does after an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterExit {
    /// Start again after this wait.
    Restart(Duration),
    /// Leave it until somebody acts.
    Hold,
}

/// Decides after an exit with `code`, when `exits_since_ready` exits (this one among
/// them) happened without a ready between and `restarts_in_row` restarts without a
/// long life between.
pub(super) fn after_exit(code: Option<i32>, exits_since_ready: u32, restarts_in_row: u32) -> AfterExit {
    if code == Some(EXIT_CONFIG_INVALID) || exits_since_ready >= EXITS_MAX {
        AfterExit::Hold
    } else {
        AfterExit::Restart(backoff(restarts_in_row))
    }
}

/// 1 s, 2 s, 4 s … 60 s.
pub(super) fn backoff(restarts_in_row: u32) -> Duration {
    let factor = 1_u32.checked_shl(restarts_in_row.min(16)).unwrap_or(u32::MAX);
    BACKOFF_FIRST.saturating_mul(factor).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u64> = (0..8).map(|step| backoff(step).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
    }

    #[test]
    fn an_invalid_configuration_is_held_at_once() {
        assert_eq!(after_exit(Some(78), 1, 0), AfterExit::Hold);
    }

    #[test]
    fn the_third_exit_without_a_ready_is_held() {
        assert_eq!(after_exit(Some(1), 1, 0), AfterExit::Restart(Duration::from_secs(1)));
        assert_eq!(after_exit(Some(1), 2, 1), AfterExit::Restart(Duration::from_secs(2)));
        assert_eq!(after_exit(Some(1), 3, 2), AfterExit::Hold);
        assert_eq!(after_exit(None, 3, 2), AfterExit::Hold);
    }

    #[test]
    fn exits_after_a_ready_go_on_for_ever() {
        assert_eq!(after_exit(Some(1), 1, 40), AfterExit::Restart(BACKOFF_MAX));
    }
}
