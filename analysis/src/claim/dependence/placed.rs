//! The latenesses of releases that never ran.
//!
//! A missed release is given the lateness that it would have had at the wake that ended the stall:
//! the stalled cycle's, less the periods in between, and at least one period. Numbers only.

/// The missed releases between two recorded cycles, the latest first: taken a few at a time, all
/// that whoever counts them tells no further apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    period_ns: i128,
    stalled_ns: i128,
    missed: u64,
    /// The next one, counted from 1.
    number: u64,
}

impl Placed {
    /// `missed` releases after a cycle that was `stalled_ns` late; without a period (0) each is
    /// later than anything.
    pub(crate) fn new(missed: u64, stalled_ns: i64, period_ns: i64) -> Self {
        let (period_ns, stalled_ns) = (i128::from(period_ns), i128::from(stalled_ns));
        Self { period_ns, stalled_ns, missed, number: 1 }
    }

    /// The lateness of the next one, ns; `None` once all are taken.
    pub(crate) fn lateness_ns(&self) -> Option<i64> {
        if self.number > self.missed {
            return None;
        }
        let lateness = match self.period_ns {
            0 => i128::MAX,
            period => (self.stalled_ns - i128::from(self.number) * period).max(period),
        };
        Some(i64::try_from(lateness).unwrap_or(i64::MAX))
    }

    /// Takes the next one, and all after it that are `alike_from_ns` late at least, which the next
    /// one is. Gives how many these are.
    pub(crate) fn take(&mut self, alike_from_ns: i64) -> u64 {
        let (period, low) = (self.period_ns, i128::from(alike_from_ns));
        let last = if period > 0 && low > period {
            // Below one period none is.
            let last = u64::try_from((self.stalled_ns - low) / period);
            last.map_or(self.missed, |last| last.min(self.missed))
        } else {
            self.missed
        };
        let last = last.max(self.number);
        let taken = last - self.number + 1;
        self.number = last.saturating_add(1);
        taken
    }
}
