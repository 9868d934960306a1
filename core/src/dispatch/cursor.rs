//! Where a class of tasks is on its ring of groups, and which cycle of each group was the last.
//!
//! For the dispatcher. Period starts are exact at every cycle, also where the period is no whole
//! number of nanoseconds: the rest is carried. Reads no clock.

use crate::cycle::Job;
use crate::table::{PeriodClass, Table};
use crate::time::{Instant, Period};

/// The newest release of a group.
#[derive(Clone, Copy, Debug)]
pub struct Released {
    /// Its cycle: releases since the epoch.
    pub(super) cycle: u64,
    /// When it was due, and when the one after it is, ns.
    pub(super) at_ns: u64,
    pub(super) next_ns: u64,
    /// The period of its tasks, as its class has it.
    pub(super) period: Period,
}

impl Released {
    /// This release as the cycle of a task, with the releases missed before it and passed after it.
    #[inline(always)]
    pub(super) fn job(self, rank: usize, missed: u64, passed: u64) -> Job {
        let Self { cycle, at_ns, next_ns, period } = self;
        let (release, next) = (Instant::from_ns(at_ns), Instant::from_ns(next_ns));
        Job { rank, cycle, part: 0, release, next, missed, passed, period }
    }
}

/// No release yet.
impl Default for Released {
    fn default() -> Self {
        Self { cycle: 0, at_ns: 0, next_ns: 0, period: Period::NS }
    }
}

/// Where a class is on its ring. Knows the starts of three periods, so that no task divides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The group that is released next, as an index into the table.
    pub(super) group: u32,
    /// The period it is in, and when that one, the one before and the one after start, ns.
    pub(super) period: u64,
    start_ns: u64,
    previous_ns: u64,
    following_ns: u64,
    /// `following_ns` is rounded down by this many `den`-ths.
    rest: u64,
    /// The period in whole ns, and the `den`-ths beyond.
    whole_ns: u64,
    part: u64,
    /// The phase's moves in all, ns.
    pub(super) moved_ns: u64,
}

impl Cursor {
    /// At the first group of `class` that is released at or after `from`.
    pub(super) fn at(class: &PeriodClass, table: &Table<'_>, from: Instant, moved_ns: u64) -> Self {
        let since = from.as_ns().saturating_sub(table.epoch.as_ns()).saturating_sub(moved_ns);
        let exact =
            u128::from(since) * u128::from(class.period.den()) / u128::from(class.period.num_ns());
        // One before, so that a group of it that is still to come is not passed over.
        let period = u64::try_from(exact).unwrap_or(u64::MAX - 1).saturating_sub(1);
        let (whole_ns, part) = whole_and_part(class.period);
        let mut cursor =
            Self { group: class.groups.0, period, moved_ns, whole_ns, part, ..Self::default() };
        let start_ns = |period| cursor.start_of_ns(class, table, period);
        let starts = [period.saturating_sub(1), period, period + 1].map(start_ns);
        [cursor.previous_ns, cursor.start_ns, cursor.following_ns] = starts;
        let rest = u128::from(period + 1) * u128::from(class.period.num_ns())
            % u128::from(class.period.den());
        cursor.rest = rest as u64;
        while cursor.release_ns(table) < from.as_ns() {
            cursor.advance(class);
        }
        cursor
    }

    /// At the first group that is released after `now`.
    pub(super) fn after(
        class: &PeriodClass,
        table: &Table<'_>,
        now: Instant,
        moved_ns: u64,
    ) -> Self {
        Self::at(class, table, Instant::from_ns(now.as_ns().saturating_add(1)), moved_ns)
    }

    /// True for a cursor of `class`, as far as can be checked: it was begun for a class of
    /// this period, at a group that exists.
    pub(super) fn is_of(&self, class: &PeriodClass) -> bool {
        let (first, end) = class.groups;
        (first..end).contains(&self.group)
            && (self.whole_ns, self.part) == whole_and_part(class.period)
    }

    /// When period `period` starts, ns.
    pub(super) fn start_of_ns(&self, class: &PeriodClass, table: &Table<'_>, period: u64) -> u64 {
        let from_ns = table.epoch.as_ns().saturating_add(self.moved_ns);
        from_ns.saturating_add(class.period.offset_ns(period))
    }

    /// When the group it is at is released, ns.
    #[inline]
    pub(super) fn release_ns(&self, table: &Table<'_>) -> u64 {
        self.start_ns.saturating_add(table.groups[self.group as usize].phase_ns)
    }

    /// The longest distance of two releases, ns: the period rounded up.
    #[inline]
    pub(super) fn longest_ns(&self) -> u64 {
        self.whole_ns + u64::from(self.part > 0)
    }

    /// On to the next group.
    #[inline]
    pub(super) fn advance(&mut self, class: &PeriodClass) {
        self.group += 1;
        if self.group == class.groups.1 {
            self.group = class.groups.0;
            self.period += 1;
            self.previous_ns = self.start_ns;
            self.start_ns = self.following_ns;
            let rest = self.rest + self.part;
            let carry = u64::from(rest >= class.period.den());
            self.following_ns = self.start_ns.saturating_add(self.whole_ns + carry);
            self.rest = rest - carry * class.period.den();
        }
    }

    /// Moves the phase: the period it is in starts that much later, and so do all after it.
    pub(super) fn delay(&mut self, by_ns: u64) {
        self.moved_ns = self.moved_ns.saturating_add(by_ns);
        self.start_ns = self.start_ns.saturating_add(by_ns);
        self.following_ns = self.following_ns.saturating_add(by_ns);
    }

    /// Writes down the group that is next, as it is released now.
    #[inline]
    pub(super) fn release(&self, table: &Table<'_>, released: &mut Released) {
        let phase_ns = table.groups[self.group as usize].phase_ns;
        released.cycle = self.period;
        released.at_ns = self.start_ns.saturating_add(phase_ns);
        released.next_ns = self.following_ns.saturating_add(phase_ns);
    }

    /// Writes down the last cycle of a group before the cursor, where several passed at once.
    pub(super) fn release_last(&self, table: &Table<'_>, group: u32, released: &mut Released) {
        let phase_ns = table.groups[group as usize].phase_ns;
        let (cycle, at_ns, next_ns) = if group < self.group {
            (self.period, self.start_ns, self.following_ns)
        } else {
            (self.period.wrapping_sub(1), self.previous_ns, self.start_ns)
        };
        released.cycle = cycle;
        released.at_ns = at_ns.saturating_add(phase_ns);
        released.next_ns = next_ns.saturating_add(phase_ns);
    }
}

/// A period in whole ns, and the `den`-ths beyond.
fn whole_and_part(period: Period) -> (u64, u64) {
    (period.as_ns(), period.num_ns() % period.den())
}
