//! Where a class of tasks is on its ring of runs, and which cycle of each run was the last.
//!
//! For the dispatcher. Period starts are exact at every cycle, also where the period is no whole
//! number of nanoseconds: the rest is carried. Reads no clock.

use crate::table::{Class, Table};
use crate::time::Instant;

/// Where a class is on its ring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The run that is released next, as an index into the table.
    pub(super) run: u32,
    /// The period it is in, and when that one and the one before start, ns.
    pub(super) period: u64,
    pub(super) start_ns: u64,
    previous_ns: u64,
    /// `start_ns` is rounded down by this many `den`-ths.
    rest: u64,
    /// How far the phase moved, ns.
    pub(super) moved_ns: u64,
}

impl Cursor {
    /// At the first run of `class` that is released at or after `from`.
    pub(super) fn at(class: &Class, table: &Table<'_>, from: Instant, moved_ns: u64) -> Self {
        let since = from.as_ns().saturating_sub(table.epoch.as_ns()).saturating_sub(moved_ns);
        let exact = u128::from(since) * u128::from(class.den) / u128::from(class.num_ns);
        // One before, so that a run of it that is still to come is not passed over.
        let period = u64::try_from(exact).unwrap_or(u64::MAX).saturating_sub(1);
        let mut cursor = Self { run: class.runs.0, period, moved_ns, ..Self::default() };
        cursor.start_ns = cursor.start_of_ns(class, table, period);
        cursor.previous_ns = cursor.start_of_ns(class, table, period.saturating_sub(1));
        let rest = u128::from(period) * u128::from(class.num_ns) % u128::from(class.den);
        cursor.rest = rest as u64;
        while cursor.release_ns(table) < from.as_ns() {
            cursor.advance(class);
        }
        cursor
    }

    /// At the first run that is released after `now`.
    pub(super) fn after(class: &Class, table: &Table<'_>, now: Instant, moved_ns: u64) -> Self {
        Self::at(class, table, Instant::from_ns(now.as_ns().saturating_add(1)), moved_ns)
    }

    /// When period `period` starts, ns.
    pub(super) fn start_of_ns(&self, class: &Class, table: &Table<'_>, period: u64) -> u64 {
        let from_ns = table.epoch.as_ns().saturating_add(self.moved_ns);
        from_ns.saturating_add(class.start_ns(period))
    }

    /// When the run it is at is released, ns.
    #[inline]
    pub(super) fn release_ns(&self, table: &Table<'_>) -> u64 {
        self.start_ns.saturating_add(table.runs[self.run as usize].phase_ns)
    }

    /// When the period after this one starts, ns, and how much that is rounded down.
    #[inline]
    fn next_period(&self, class: &Class) -> (u64, u64) {
        let rest = self.rest + class.num_ns % class.den;
        let carry = u64::from(rest >= class.den);
        let start_ns = self.start_ns.saturating_add(class.num_ns / class.den + carry);
        (start_ns, rest - carry * class.den)
    }

    /// On to the next run.
    #[inline]
    pub(super) fn advance(&mut self, class: &Class) {
        self.run += 1;
        if self.run == class.runs.1 {
            self.run = class.runs.0;
            self.period += 1;
            self.previous_ns = self.start_ns;
            (self.start_ns, self.rest) = self.next_period(class);
        }
    }

    /// The last cycle of a run that was released, and when its period started, ns.
    #[inline]
    pub(super) fn last(&self, run: u32) -> (u64, u64) {
        if run < self.run {
            (self.period, self.start_ns)
        } else {
            (self.period.wrapping_sub(1), self.previous_ns)
        }
    }

    /// When the period after the last one of a run starts, ns.
    #[inline]
    pub(super) fn following(&self, class: &Class, run: u32) -> u64 {
        if run < self.run { self.next_period(class).0 } else { self.start_ns }
    }
}
