//! What is released by now, and which task is next: the decisions of an executive.
//!
//! For the loop, which obeys; in the simulated clock as on the machine. Pure: time is an argument,
//! everything is in the caller's storage, nothing grows, nothing is walked but the classes that are
//! due. Releasing k tasks of one run costs k/64 words; a wait is one bit.

mod cursor;

use crate::earliest::{Earliest, Entry};
use crate::ready::Ready;
use crate::table::{Policy, Slot, Table};
use crate::time::Instant;

pub use cursor::Cursor;

/// What a task did so far, and what it owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The cycle that is expected next.
    next: u64,
    /// Missed releases that the task was not told of yet.
    untold: u64,
    /// Cycles that ran.
    pub ran: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Starts later after the release than the slot allows.
    pub started_late: u64,
    /// Executions beyond the budget: the culprits of what else is late.
    pub over_budget: u64,
    /// Cycles still waiting or running at their next release: culprits or victims.
    pub over_release: u64,
    /// Finishes after the deadline.
    pub over_deadline: u64,
    /// How far the phase moved in all, ns: with [`Policy::Delay`] only.
    pub moved_ns: u64,
}

/// Storage of a [`State`], all of it prepared before the loop.
#[derive(Debug)]
pub struct Storage<'s> {
    /// One a class.
    pub cursors: &'s mut [Cursor],
    /// [`crate::earliest::entries`] of the number of classes.
    pub matches: &'s mut [Entry],
    /// [`crate::ready::words`] of the number of tasks.
    pub words: &'s mut [u64],
    /// One a task.
    pub counters: &'s mut [Counters],
}

/// What changes while a table runs.
#[derive(Debug)]
pub struct State<'s> {
    cursors: &'s mut [Cursor],
    due: Earliest<'s>,
    ready: Ready<'s>,
    counters: &'s mut [Counters],
}

/// One cycle of one task, to be run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which task.
    pub rank: usize,
    /// Its cycle: releases since the epoch.
    pub cycle: u64,
    /// How often this cycle was broken off before: 0 but for a unit of a calendar.
    pub part: u32,
    /// When it was due.
    pub release: Instant,
    /// When the task's next cycle is; for a unit of a calendar, when its budget is spent.
    pub next: Instant,
    /// Releases of this task that were missed just before.
    pub missed: u64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run this.
    Run(Job),
    /// Wait until this instant: the next release of any task.
    Idle(Instant),
}

/// What a finished cycle did wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overruns {
    /// It started late.
    pub started_late: bool,
    /// It ran longer than its budget.
    pub over_budget: bool,
    /// It finished after its next release.
    pub over_release: bool,
    /// It finished after its deadline.
    pub over_deadline: bool,
}

impl<'s> State<'s> {
    /// The state of `table` in which all releases at or after `from` are to come; `None` when some
    /// storage is too small. Cycles count from the table's epoch, whatever `from` is.
    ///
    /// # Real-time: setup only
    pub fn begin(table: &Table<'_>, storage: Storage<'s>, from: Instant) -> Option<Self> {
        let classes = table.classes();
        let cursors = storage.cursors.get_mut(..classes)?;
        let counters = storage.counters.get_mut(..table.tasks())?;
        counters.fill(Counters::default());
        let mut due = Earliest::new(storage.matches, classes)?;
        let ready = Ready::new(storage.words, table.tasks())?;
        for (index, class) in table.classes.iter().enumerate() {
            let cursor = &mut cursors[index];
            *cursor = Cursor::at(class, table, from, 0);
            due.set(index, cursor.release_ns(table));
        }
        let state = Self { cursors, due, ready, counters };
        for (rank, slot) in table.slots.iter().enumerate() {
            let cursor = &state.cursors[slot.class as usize];
            state.counters[rank].next = cursor.period + u64::from(slot.run < cursor.run);
        }
        Some(state)
    }

    /// What a task did so far.
    ///
    /// # Real-time: in loop
    pub fn counters(&self, rank: usize) -> &Counters {
        &self.counters[rank]
    }
}

/// What there is to do at `now`.
///
/// # Real-time: in loop
#[inline]
pub fn step(table: &Table<'_>, state: &mut State<'_>, now: Instant) -> Step {
    state.release(table, now);
    match state.ready.first() {
        Some(rank) => Step::Run(state.take(table, rank)),
        None => Step::Idle(Instant::from_ns(state.due.first().0)),
    }
}

/// What there is to do at `now` when the CPU is needed at `until`: a task is run only if its budget
/// fits before that. No less urgent one takes its turn instead.
///
/// # Real-time: in loop
#[inline]
pub fn step_before(table: &Table<'_>, state: &mut State<'_>, now: Instant, until: Instant) -> Step {
    state.release(table, now);
    let fits = |rank: usize| {
        let end_ns = now.as_ns().checked_add(table.slots[rank].budget_ns);
        end_ns.is_some_and(|ns| ns <= until.as_ns())
    };
    match state.ready.first() {
        Some(rank) if fits(rank) => Step::Run(state.take(table, rank)),
        _ => Step::Idle(until.min(Instant::from_ns(state.due.first().0))),
    }
}

/// Takes note that `job` ran from `start` to `finish`, and does what its policy says of an overrun.
///
/// # Real-time: in loop
#[inline]
pub fn finish(
    table: &Table<'_>,
    state: &mut State<'_>,
    job: &Job,
    start: Instant,
    finish: Instant,
) -> Overruns {
    let slot = &table.slots[job.rank];
    let over = |from: Instant, to: Instant, most_ns: u64| {
        u64::try_from((to - from).as_ns()).is_ok_and(|ns| ns > most_ns)
    };
    let overruns = Overruns {
        started_late: over(job.release, start, slot.start_ns),
        over_budget: over(start, finish, slot.budget_ns),
        over_release: finish >= job.next,
        over_deadline: over(job.release, finish, slot.deadline_ns),
    };
    let counters = &mut state.counters[job.rank];
    counters.ran += 1;
    counters.started_late += u64::from(overruns.started_late);
    counters.over_budget += u64::from(overruns.over_budget);
    counters.over_release += u64::from(overruns.over_release);
    counters.over_deadline += u64::from(overruns.over_deadline);
    match slot.policy {
        Policy::Delay => state.rearm(table, job, slot, finish),
        _ if overruns.over_release => state.overran(table, job, slot, finish),
        _ => {}
    }
    overruns
}

impl State<'_> {
    /// All releases up to `now`.
    #[inline]
    fn release(&mut self, table: &Table<'_>, now: Instant) {
        loop {
            let (at_ns, index) = self.due.first();
            if at_ns > now.as_ns() || at_ns == u64::MAX {
                return;
            }
            let class = &table.classes[index];
            let cursor = &mut self.cursors[index];
            if class.moves {
                self.ready.add_all(table, cursor.run);
                cursor.advance(class);
                self.due.set(index, u64::MAX);
                continue;
            }
            if now.as_ns() - at_ns < class.longest_ns() {
                while cursor.release_ns(table) <= now.as_ns() {
                    self.ready.add_all(table, cursor.run);
                    cursor.advance(class);
                }
            } else {
                // A stall of whole periods: each run was released, and counts follow from the
                // cursor, so none of them is walked through.
                (class.runs.0..class.runs.1).for_each(|run| self.ready.add_all(table, run));
                *cursor = Cursor::after(class, table, now, cursor.moved_ns);
            }
            self.due.set(index, cursor.release_ns(table));
        }
    }

    /// The cycle of a ready task that is to run, which is waiting no more.
    #[inline]
    fn take(&mut self, table: &Table<'_>, rank: usize) -> Job {
        self.ready.remove(rank);
        let slot = &table.slots[rank];
        let class = &table.classes[slot.class as usize];
        let cursor = &self.cursors[slot.class as usize];
        let phase_ns = table.runs[slot.run as usize].phase_ns;
        let counters = &mut self.counters[rank];
        let (last, start_ns) = cursor.last(slot.run);
        let cycle = match slot.policy {
            Policy::Burst(most) => counters.next.max((last + 1).saturating_sub(u64::from(most))),
            _ => last,
        };
        let skipped = cycle - counters.next;
        let missed = counters.untold + skipped;
        counters.untold = 0;
        counters.next = cycle + 1;
        counters.missed += skipped;
        counters.over_release += skipped;
        let (start_ns, next_ns) = if cycle == last {
            (start_ns, cursor.following(class, slot.run))
        } else {
            (cursor.start_of_ns(class, table, cycle), cursor.start_of_ns(class, table, cycle + 1))
        };
        let at = |start_ns: u64| Instant::from_ns(start_ns.saturating_add(phase_ns));
        Job { rank, cycle, part: 0, release: at(start_ns), next: at(next_ns), missed }
    }

    /// A task that moves its phase has finished: its next release is armed, a period from now if
    /// the planned one has passed.
    fn rearm(&mut self, table: &Table<'_>, job: &Job, slot: &Slot, finish: Instant) {
        let index = slot.class as usize;
        let cursor = &mut self.cursors[index];
        if finish >= job.next {
            let period_ns = table.classes[index].longest_ns();
            let late_ns = finish.as_ns() - job.next.as_ns();
            let by_ns = late_ns.saturating_add(period_ns);
            cursor.moved_ns = cursor.moved_ns.saturating_add(by_ns);
            cursor.start_ns = cursor.start_ns.saturating_add(by_ns);
            self.counters[job.rank].moved_ns = cursor.moved_ns;
        }
        self.due.set(index, cursor.release_ns(table));
    }

    /// A task ran past its next release.
    fn overran(&mut self, table: &Table<'_>, job: &Job, slot: &Slot, finish: Instant) {
        self.release(table, finish);
        let (last, _) = self.cursors[slot.class as usize].last(slot.run);
        match slot.policy {
            Policy::Burst(_) => {
                self.ready.add(job.rank / 64, 1 << (job.rank % 64));
            }
            _ => {
                let counters = &mut self.counters[job.rank];
                let passed = (last + 1).saturating_sub(counters.next);
                counters.next += passed;
                counters.missed += passed;
                counters.untold += passed;
                self.ready.remove(job.rank);
            }
        }
    }
}

impl Ready<'_> {
    /// All tasks of a run.
    #[inline]
    fn add_all(&mut self, table: &Table<'_>, run: u32) {
        let (first, end) = table.runs[run as usize].masks;
        for mask in &table.masks[first as usize..end as usize] {
            self.add(mask.word as usize, mask.bits);
        }
    }
}

#[cfg(test)]
mod tests;
