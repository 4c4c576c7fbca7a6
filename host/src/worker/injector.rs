//! Faults between the steps of a pass, for the tests that prove every crash window.
//!
//! Compiled always, so that what is tested is what runs; a process has none unless its
//! [`Context`](super::Context) was given one.

use std::fmt;

/// Before or after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// The step has not begun.
    Before,
    /// The step is done outside, and not yet committed here.
    After,
}

/// Where a pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point<'a> {
    /// Key of the work.
    pub key: &'a str,
    /// Name of the step.
    pub step: &'static str,
    /// Before or after it.
    pub when: When,
}

/// What happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: go on.
    None,
    /// The pass fails with an error that may go away.
    Error,
    /// The worker dies here: nothing more is written, the lease lapses.
    Crash,
    /// The step runs a second time.
    Repeat,
}

/// Decides what happens at each point.
pub trait Injector: Send + Sync {
    /// Asked once for each point that a pass comes to.
    fn at(&self, point: Point<'_>) -> Fault;
}

impl fmt::Debug for dyn Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Injector")
    }
}
