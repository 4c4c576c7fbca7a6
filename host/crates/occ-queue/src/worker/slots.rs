//! Who may have the next slot. Upkeep holds at most half; when any is due, one
//! slot is upkeep's, so that a busy queue cannot starve repair.

use crate::claim::Class;

#[derive(Debug)]
pub(super) struct Slots {
    total: usize,
    user: usize,
    upkeep: usize,
    /// Upkeep was due at the last look, or nobody could look.
    upkeep_due: bool,
}

impl Slots {
    pub(super) fn new(total: usize) -> Self {
        Self { total: total.max(1), user: 0, upkeep: 0, upkeep_due: false }
    }

    pub(super) fn free(&self) -> usize {
        self.total.saturating_sub(self.user + self.upkeep)
    }

    /// Slots that user work may take now.
    pub(super) fn user_share(&self) -> usize {
        let kept = usize::from(self.upkeep_due && self.upkeep == 0 && self.total > 1);
        self.free().saturating_sub(kept)
    }

    /// Slots that upkeep may take now.
    pub(super) fn upkeep_share(&self) -> usize {
        let half = (self.total / 2).max(1);
        self.free().min(half.saturating_sub(self.upkeep))
    }

    /// True when upkeep may be waiting for a slot rather than for its time.
    pub(super) fn upkeep_waits(&self) -> bool {
        self.upkeep_due
    }

    pub(super) fn upkeep_seen(&mut self, due: bool) {
        self.upkeep_due = due;
    }

    pub(super) fn taken(&mut self, class: Class) {
        match class {
            Class::User => self.user += 1,
            Class::Upkeep => self.upkeep += 1,
        }
    }

    pub(super) fn freed(&mut self, class: Class) {
        match class {
            Class::User => self.user = self.user.saturating_sub(1),
            Class::Upkeep => self.upkeep = self.upkeep.saturating_sub(1),
        }
    }

    pub(super) fn user(&self) -> usize {
        self.user
    }

    pub(super) fn upkeep(&self) -> usize {
        self.upkeep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(slots: &mut Slots, class: Class, n: usize) {
        for _ in 0..n {
            slots.taken(class);
        }
    }

    #[test]
    fn upkeep_holds_at_most_half() {
        let mut slots = Slots::new(16);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (16, 8));
        take(&mut slots, Class::Upkeep, 8);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (8, 0));
        take(&mut slots, Class::User, 8);
        assert_eq!(slots.free(), 0);
    }

    #[test]
    fn a_busy_queue_leaves_one_slot_to_upkeep_that_is_due() {
        let mut slots = Slots::new(4);
        take(&mut slots, Class::User, 4);
        slots.upkeep_seen(true);
        slots.freed(Class::User);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (0, 1));
        slots.taken(Class::Upkeep);
        slots.freed(Class::User);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (1, 1));
    }

    #[test]
    fn a_single_slot_serves_both() {
        let mut slots = Slots::new(1);
        slots.upkeep_seen(true);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (1, 1));
        slots.taken(Class::User);
        assert_eq!((slots.user_share(), slots.upkeep_share()), (0, 0));
    }
}
