//! Whether a task whose process ended is started again, and when.
//!
//! For supervisors. Pure: time is an argument. Limited, and slower each time, so that a task that
//! cannot run takes nothing from the others.

use punctual_core::time::{Instant, Span};

/// How a task is started again when its process has ended; by default never.
///
/// `Restart { most: 2, ..Restart::ON_FAILURE }`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// How often in a row, 0 for never: a process that ran for [`Restart::WELL`] begins a new one.
    pub most: u32,
    /// How long it waits before the first time, not negative; twice as long each time in a
    /// row, up to [`Restart::LONGEST`].
    pub pause: Span,
    /// Also when it did not fail.
    pub always: bool,
}

impl Default for Restart {
    /// Never.
    fn default() -> Self {
        Self { most: 0, ..Self::ON_FAILURE }
    }
}

impl Restart {
    /// When it failed (an exit status other than 0, a signal, or an end by its supervisor): five
    /// times in a row, from 100 ms on.
    pub const ON_FAILURE: Self = Self { most: 5, pause: Span::from_ms(100), always: false };
    /// However it ended: five times in a row, from 100 ms on.
    pub const ALWAYS: Self = Self { always: true, ..Self::ON_FAILURE };
    /// The longest pause.
    pub const LONGEST: Span = Span::from_ms(10_000);
    /// A process that was released for this long ran well.
    pub const WELL: Span = Span::from_ms(60_000);
}

/// How often a task was started again.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Count {
    in_row: u32,
    /// In all.
    pub(in super::super) all: u64,
}

impl Count {
    /// When a process that ended at `now` is started again; `None` for never. It had been released
    /// for `ran`.
    pub(in super::super) fn next(
        &mut self,
        restart: &Restart,
        failed: bool,
        ran: Span,
        now: Instant,
    ) -> Option<Instant> {
        let wanted = failed || restart.always;
        if ran >= Restart::WELL {
            self.in_row = 0;
        }
        if !wanted || self.in_row >= restart.most {
            return None;
        }
        let doubled = restart.pause.as_ns().max(0).saturating_mul(1 << self.in_row.min(40));
        self.in_row += 1;
        self.all += 1;
        Some(now + Span::from_ns(doubled).min(Restart::LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_the_row_has_an_end() {
        let restart = Restart { most: 9, ..Restart::ALWAYS };
        let mut count = Count::default();
        let mut next = |ran_ms| count.next(&restart, false, Span::from_ms(ran_ms), at(1_000));
        let pauses = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        for pause in pauses {
            assert_eq!(next(5), Some(at(1_000 + pause)));
        }
        assert_eq!(next(5), None);
        assert_eq!(next(60_000), Some(at(1_100)), "it ran well");
        assert_eq!(count.all, 10);
    }

    #[test]
    fn who_asks_for_failures_gets_those_alone() {
        let (ran, now) = (Span::ZERO, at(0));
        let failures = Restart::ON_FAILURE;
        assert_eq!(Count::default().next(&failures, false, ran, now), None);
        assert!(Count::default().next(&failures, true, ran, now).is_some());
        assert_eq!(Count::default().next(&Restart::default(), true, ran, now), None);
        let none = Restart { most: 0, ..failures };
        assert_eq!(Count::default().next(&none, true, ran, now), None);
    }
}
