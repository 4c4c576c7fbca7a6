//! Stops calling a plugin that keeps failing, for a while.
//!
//! ```text
//! closed --5 faults in a row--> open (1 s, then 2 s, 4 s … 60 s) --time--> one trial call
//!    ^                            ^                                           |
//!    '------------ an answer -----|-------------------------------------------|
//!                                 '------------------- a fault ---------------'
//! ```

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Faults in a row that open it.
pub const FAULTS_MAX: u32 = 5;
/// How long it is open first.
pub const OPEN_MIN: Duration = Duration::from_secs(1);
/// How long it is open at most.
pub const OPEN_MAX: Duration = Duration::from_secs(60);
/// How long a caller waits that comes while the trial call runs.
const TRIAL_WAIT: Duration = Duration::from_millis(500);

/// State of a plugin's breaker, as the API shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused for this long yet.
    Open(Duration),
    /// One call tries whether it works again.
    Trial,
}

impl BreakerState {
    /// Lower-case name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open(_) => "open",
            Self::Trial => "half_open",
        }
    }
}

/// Counts faults in a row and decides whether a call may begin.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    faults: u32,
    /// Set while open: until when, and for how long it was opened.
    open: Option<(Instant, Duration)>,
    trial: bool,
}

/// Leave to call; how the call ended is told to it. Dropped untold (the caller went
/// away), it only lets the next one try.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    breaker: &'a Breaker,
    trial: bool,
}

/// What a call's end changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Opened(Duration),
    Closed,
}

impl Breaker {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// May a call begin? If not, when to ask again.
    pub(crate) fn admit(&self, now: Instant) -> Result<Admission<'_>, Duration> {
        let mut state = self.state();
        let Some((until, _)) = state.open else {
            return Ok(Admission { breaker: self, trial: false });
        };
        let left = until.saturating_duration_since(now);
        if !left.is_zero() {
            return Err(left);
        }
        if state.trial {
            return Err(TRIAL_WAIT);
        }
        state.trial = true;
        Ok(Admission { breaker: self, trial: true })
    }

    pub(crate) fn snapshot(&self, now: Instant) -> BreakerState {
        let state = self.state();
        match state.open {
            None => BreakerState::Closed,
            Some((until, _)) => match until.saturating_duration_since(now) {
                Duration::ZERO => BreakerState::Trial,
                left => BreakerState::Open(left),
            },
        }
    }
}

impl Admission<'_> {
    /// The plugin answered, be it with a failure of its own.
    pub(crate) fn answered(self) -> Change {
        let mut state = self.breaker.state();
        state.faults = 0;
        if self.trial && state.open.take().is_some() { Change::Closed } else { Change::None }
    }

    /// The plugin is at fault.
    pub(crate) fn failed(self, now: Instant) -> Change {
        let mut state = self.breaker.state();
        state.faults = state.faults.saturating_add(1);
        let open_for = match state.open {
            Some((_, last)) if self.trial => last.saturating_mul(2).min(OPEN_MAX),
            None if state.faults >= FAULTS_MAX => OPEN_MIN,
            // A call that began before it opened changes nothing.
            _ => return Change::None,
        };
        state.open = Some((now + open_for, open_for));
        Change::Opened(open_for)
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.trial {
            self.breaker.state().trial = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_faults_open_it_and_a_good_trial_closes_it() {
        let breaker = Breaker::default();
        let now = Instant::now();
        for _ in 1..FAULTS_MAX {
            assert_eq!(breaker.admit(now).unwrap().failed(now), Change::None);
        }
        breaker.admit(now).unwrap().answered();
        for _ in 1..FAULTS_MAX {
            assert_eq!(
                breaker.admit(now).unwrap().failed(now),
                Change::None,
                "faults in a row count, not faults"
            );
        }
        assert_eq!(breaker.admit(now).unwrap().failed(now), Change::Opened(OPEN_MIN));
        assert_eq!(breaker.admit(now).unwrap_err(), OPEN_MIN);
        let now = now + OPEN_MIN;
        let trial = breaker.admit(now).unwrap();
        assert!(breaker.admit(now).is_err(), "one trial at a time");
        drop(trial);
        let trial = breaker.admit(now).unwrap();
        assert_eq!(trial.failed(now), Change::Opened(2 * OPEN_MIN));
        let now = now + 2 * OPEN_MIN;
        assert_eq!(breaker.admit(now).unwrap().answered(), Change::Closed);
        assert_eq!(breaker.snapshot(now), BreakerState::Closed);
    }

    #[test]
    fn it_never_stays_open_longer_than_a_minute() {
        let breaker = Breaker::default();
        let mut now = Instant::now();
        for _ in 0..FAULTS_MAX {
            breaker.admit(now).unwrap().failed(now);
        }
        let mut open = OPEN_MIN;
        for _ in 0..10 {
            now += open;
            let Change::Opened(next) = breaker.admit(now).unwrap().failed(now) else { panic!("stays open") };
            open = next;
        }
        assert_eq!(open, OPEN_MAX);
    }
}
