//! What a dispatcher does seldom: releases that passed in a stall, cycles that were missed,
//! finishes that were late, phases that move.
//!
//! For the dispatcher, out of the way of cycles in time.

use super::TableState;
use super::cursor::{Cursor, Released};
use super::storage::UNCOUNTED;
use crate::cycle::{Job, Missed, Overruns};
use crate::releases::Releases;
use crate::table::{OnOverrun, Table};
use crate::time::Instant;

impl TableState<'_> {
    /// A class that is released once a finish, or one of which whole periods passed.
    #[cold]
    #[inline(never)]
    pub(super) fn release_seldom(&mut self, table: &Table<'_>, index: usize, now: Instant) {
        let class = &table.classes[index];
        let cursor = &mut self.cursors[index];
        if class.moves {
            cursor.release(table, &mut self.released[cursor.run as usize]);
            self.ready.add_all(table, cursor.run);
            cursor.advance(class);
            self.due.set(index, u64::MAX);
            return;
        }
        // Each run was released, and none of the cycles that passed is walked through.
        *cursor = Cursor::after(class, table, now, cursor.moved_ns);
        for run in class.runs.0..class.runs.1 {
            cursor.release_last(table, run, &mut self.released[run as usize]);
            self.ready.add_all(table, run);
        }
        self.due.set(index, cursor.release_ns(table));
    }

    /// The cycle to run of a task that missed releases, or of which several are waiting, `last`
    /// the newest. The oldest one runs, with all its lateness, and those after it are missed; a
    /// burst runs them one after the other, but for those beyond its length. With it, the releases
    /// missed before it and passed after it.
    #[cold]
    #[inline(never)]
    pub(super) fn catch_up(
        &mut self,
        table: &Table<'_>,
        rank: usize,
        last: u64,
    ) -> (Released, u64, u64) {
        let slot = &table.slots[rank];
        let counters = &mut self.counters[rank];
        let oldest = self.paces[rank].next & !UNCOUNTED;
        let mut missed = core::mem::take(&mut counters.uncounted);
        let (cycle, passed) = match slot.policy {
            OnOverrun::Burst(most) => {
                let first = last.saturating_add(1).saturating_sub(u64::from(most));
                (oldest.max(first), 0)
            }
            _ => (oldest, last.saturating_sub(oldest)),
        };
        let skipped = cycle - oldest;
        missed += skipped;
        counters.uncounted = passed;
        counters.missed += skipped + passed;
        counters.over_release += skipped + passed;
        let following = cycle + 1 + passed;
        self.paces[rank].next = if passed > 0 { following | UNCOUNTED } else { following };
        let [at_ns, next_ns] = [cycle, following].map(|n| self.release_of(table, rank, n).as_ns());
        let period = table.classes[slot.class as usize].period;
        (Released { cycle, at_ns, next_ns, period }, missed, passed)
    }

    /// Takes note that the cycle of `job` never ran, because the loop ends over it: it is missed,
    /// and no cycle has counted those that were missed before it.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn refuse(&mut self, job: &Job) {
        if let Some(counters) = self.counters.get_mut(job.rank) {
            counters.missed += 1;
            counters.uncounted += job.missed + 1;
        }
    }

    /// The releases of a task up to `over`, where the run ends, that never ran and that no cycle
    /// has counted in its `missed`; they are counted as missed here, and those after it are not.
    ///
    /// # Real-time: in loop
    #[cold]
    pub fn never_ran(&mut self, table: &Table<'_>, rank: usize, over: Instant) -> Option<Missed> {
        self.release(table, over);
        let period = table.classes[table.slots[rank].class as usize].period;
        let releases = Releases::new(self.release_of(table, rank, 0), period);
        let next = self.paces[rank].next & !UNCOUNTED;
        let uncounted = core::mem::take(&mut self.counters[rank].uncounted);
        let first = next - uncounted;
        let newest = self.released[table.slots[rank].run as usize].cycle;
        // What was released ahead of time, or while a task ran past the end, is not missed.
        let due = releases.released(over).min(newest + 1).max(first);
        let end = if self.ready.has(rank) { due } else { due.min(next) };
        let counters = &mut self.counters[rank];
        counters.missed = (counters.missed + end).saturating_sub(next);
        self.paces[rank].next = end;
        self.ready.remove(rank);
        let count = end - first;
        (count > 0).then_some(Missed { releases, first, count })
    }

    /// When a cycle of a task is released.
    fn release_of(&self, table: &Table<'_>, rank: usize, cycle: u64) -> Instant {
        let slot = &table.slots[rank];
        let class = &table.classes[slot.class as usize];
        let start_ns = self.cursors[slot.class as usize].start_of_ns(class, table, cycle);
        Instant::from_ns(start_ns.saturating_add(table.runs[slot.run as usize].phase_ns))
    }

    /// Counts the overruns of a cycle that may have some, and applies the task's policy.
    #[cold]
    #[inline(never)]
    pub(super) fn judge(
        &mut self,
        table: &Table<'_>,
        rank: usize,
        (release, next): (Instant, Instant),
        (start, finish): (Instant, Instant),
    ) -> Overruns {
        let slot = &table.slots[rank];
        let ns = |from: Instant, to: Instant| to.as_ns().saturating_sub(from.as_ns());
        let overruns = Overruns {
            started_late: ns(release, start) > slot.start_ns,
            over_budget: ns(start, finish) > slot.budget_ns,
            over_release: finish >= next,
            over_deadline: ns(release, finish) > slot.deadline_ns,
        };
        let counters = &mut self.counters[rank];
        counters.started_late += u64::from(overruns.started_late);
        counters.over_budget += u64::from(overruns.over_budget);
        counters.over_release += u64::from(overruns.over_release);
        counters.over_deadline += u64::from(overruns.over_deadline);
        match slot.policy {
            OnOverrun::Delay => self.rearm(table, rank, next, finish),
            _ if overruns.over_release => self.overran(table, rank, finish),
            _ => {}
        }
        overruns
    }

    /// A task that moves its phase has finished: its next release is armed, a period from now if
    /// the planned one has passed.
    fn rearm(&mut self, table: &Table<'_>, rank: usize, next: Instant, finish: Instant) {
        let index = table.slots[rank].class as usize;
        let cursor = &mut self.cursors[index];
        let counters = &mut self.counters[rank];
        counters.shift_ns = 0;
        if finish >= next {
            let period_ns = cursor.longest_ns();
            let late_ns = finish.as_ns() - next.as_ns();
            cursor.delay(late_ns.saturating_add(period_ns));
            counters.shift_ns = cursor.moved_ns.saturating_sub(counters.moved_ns);
            counters.moved_ns = cursor.moved_ns;
        }
        self.due.set(index, cursor.release_ns(table));
    }

    /// A task ran past its next release, or past where that would be but for the end.
    fn overran(&mut self, table: &Table<'_>, rank: usize, finish: Instant) {
        self.release(table, finish);
        let slot = &table.slots[rank];
        let last = self.released[slot.run as usize].cycle;
        let next = self.paces[rank].next & !UNCOUNTED;
        if matches!(slot.policy, OnOverrun::Burst(_)) {
            if last >= next {
                self.ready.add(rank / 64, 1 << (rank % 64));
            }
            return;
        }
        let passed = last.saturating_add(1).saturating_sub(next);
        self.paces[rank].next = (next + passed) | UNCOUNTED;
        let counters = &mut self.counters[rank];
        counters.missed += passed;
        counters.uncounted += passed;
        self.ready.remove(rank);
    }
}
