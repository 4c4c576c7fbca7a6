//! Ctrl-C: exit 130, or 0 while following, or left to the child that has the terminal.

use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{SigSet, Signal};

const EXIT_130: u8 = 0;
const EXIT_0: u8 = 1;
const LEFT_TO_CHILD: u8 = 2;

static ON_INTERRUPT: AtomicU8 = AtomicU8::new(EXIT_130);

/// Takes over SIGINT. Call first: threads that start later inherit the mask.
pub(crate) fn install() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            match ON_INTERRUPT.load(Ordering::SeqCst) {
                EXIT_0 => std::process::exit(0),
                LEFT_TO_CHILD => {}
                _ => std::process::exit(130),
            }
        }
    });
}

/// From now on an interruption is the ordinary end.
pub(crate) fn ends_well() {
    ON_INTERRUPT.store(EXIT_0, Ordering::SeqCst);
}

/// Runs something that has the terminal and deals with interruptions itself.
pub(crate) fn left_to_child<T>(run: impl FnOnce() -> T) -> T {
    let before = ON_INTERRUPT.swap(LEFT_TO_CHILD, Ordering::SeqCst);
    let outcome = run();
    ON_INTERRUPT.store(before, Ordering::SeqCst);
    outcome
}
