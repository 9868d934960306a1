//! What is released by now, and which task is next: the decisions of an executive.
//!
//! For the loop, in a simulated clock as on the machine. Pure: time is an argument, everything is
//! in the caller's storage, nothing grows, and only the classes that are due are walked. Releasing
//! k tasks of one run costs k/64 words, whatever their number is.

mod cursor;
mod late;
mod storage;
mod succession;
pub(crate) mod warm_up;

use crate::cycle::{Decision, Job, Overruns};
use crate::earliest::Earliest;
use crate::ready::ReadySet;
use crate::table::Table;
use crate::time::{Instant, Span};

use storage::UNCOUNTED;

pub use cursor::{Cursor, Released};
pub use storage::{Counters, Pace, Storage};
pub use succession::{Before, Mismatch};

/// What changes while a table runs.
#[derive(Debug)]
pub struct TableState<'s> {
    /// The last instant at which there is a release.
    last: Instant,
    cursors: &'s mut [Cursor],
    due: Earliest<'s>,
    ready: ReadySet<'s>,
    released: &'s mut [Released],
    paces: &'s mut [Pace],
    counters: &'s mut [Counters],
}

impl<'s> TableState<'s> {
    /// The state of `table` in which all releases at or after `from` are to come; `None` when some
    /// storage is too small. Cycles count from the table's epoch, whatever `from` is.
    ///
    /// # Real-time: setup only
    pub fn begin(table: &Table<'_>, storage: Storage<'s>, from: Instant) -> Option<Self> {
        let Storage { cursors, matches, words, released, paces, counters } = storage.fit(table)?;
        counters.fill(Counters::default());
        let mut due = Earliest::new(matches, table.classes())?;
        let ready = ReadySet::new(words, table.tasks())?;
        for (index, class) in table.classes.iter().enumerate() {
            let cursor = &mut cursors[index];
            *cursor = Cursor::at(class, table, from, 0);
            let (first, end) = class.runs;
            let period = class.period;
            released[first as usize..end as usize].fill(Released { period, ..Released::default() });
            due.set(index, cursor.release_ns(table));
        }
        for (rank, slot) in table.slots.iter().enumerate() {
            let cursor = &cursors[slot.class as usize];
            let next = cursor.period + u64::from(slot.run < cursor.run);
            let class = &table.classes[slot.class as usize];
            paces[rank] = Pace { next, calm_ns: slot.calm_ns(class), run: slot.run };
            counters[rank].first = next;
        }
        Some(Self {
            last: Instant::from_ns(u64::MAX),
            cursors,
            due,
            ready,
            released,
            paces,
            counters,
        })
    }

    /// Releases at or after `end` do not run: an overloaded executive ends too.
    ///
    /// # Real-time: setup only
    pub fn end(&mut self, end: Instant) {
        self.last = end - Span::from_ns(1);
    }

    /// The most urgent task of the run that is released next; `None` while nothing is to come.
    ///
    /// # Real-time: in loop
    pub fn coming(&self, table: &Table<'_>) -> Option<usize> {
        let (at_ns, index) = self.due.first();
        let run = self.cursors.get(index).filter(|_| at_ns < u64::MAX)?.run;
        let mask = table.masks[table.runs[run as usize].masks.0 as usize];
        let rank = mask.word as usize * 64 + mask.bits.trailing_zeros() as usize;
        // What its cycle touches is read now, while there is time.
        let (pace, released) = (self.paces.get(rank)?, self.released.get(run as usize)?);
        core::hint::black_box((pace.next, released.cycle, table.slots[rank].policy));
        core::hint::black_box(self.ready.has(rank));
        Some(rank)
    }

    /// When the next release is.
    ///
    /// # Real-time: in loop
    pub fn next_release(&self) -> Instant {
        Instant::from_ns(self.due.first().0)
    }

    /// How far the phase of a task moved between its last two releases, ns.
    pub(crate) fn shift_ns(&self, rank: usize) -> u64 {
        self.counters[rank].shift_ns
    }

    /// What a task did so far.
    ///
    /// # Real-time: in loop
    pub fn counters(&self, rank: usize) -> Counters {
        let counters = self.counters[rank];
        // Each cycle up to the next one was given to run or missed.
        let passed = (self.paces[rank].next & !UNCOUNTED).saturating_sub(counters.first);
        Counters { ran: passed.saturating_sub(counters.missed), ..counters }
    }
}

/// What there is to do at `now`.
///
/// # Real-time: in loop
#[inline(always)]
pub fn step(table: &Table<'_>, state: &mut TableState<'_>, now: Instant) -> Decision {
    state.release(table, now);
    match state.ready.pop() {
        Some(rank) => Decision::Run(state.take(table, rank)),
        None => Decision::Idle(Instant::from_ns(state.due.first().0)),
    }
}

/// What there is to do at `now` when the CPU is needed at `until`: a task is run only if its budget
/// fits before that. No less urgent one runs in its place.
///
/// # Real-time: in loop
#[inline]
pub fn step_before(
    table: &Table<'_>,
    state: &mut TableState<'_>,
    now: Instant,
    until: Instant,
) -> Decision {
    state.release(table, now);
    let fits = |rank: usize| {
        let end_ns = now.as_ns().checked_add(table.slots[rank].budget_ns);
        end_ns.is_some_and(|ns| ns <= until.as_ns())
    };
    match state.ready.first().filter(|&rank| fits(rank)) {
        Some(rank) => {
            state.ready.pop();
            Decision::Run(state.take(table, rank))
        }
        _ => Decision::Idle(until.min(Instant::from_ns(state.due.first().0))),
    }
}

/// Takes note that `job` ran from `start` to `finish`, and does what its policy says of an overrun.
///
/// # Real-time: in loop
#[inline(always)]
pub fn finish(
    table: &Table<'_>,
    state: &mut TableState<'_>,
    job: &Job,
    start: Instant,
    finish: Instant,
) -> Overruns {
    let took_ns = finish.as_ns().wrapping_sub(job.release.as_ns());
    if took_ns < state.paces[job.rank].calm_ns && start <= finish {
        return Overruns::default();
    }
    state.judge(table, job.rank, (job.release, job.next), (start, finish))
}

impl TableState<'_> {
    /// All releases up to `now`: what [`step`] does first.
    ///
    /// # Real-time: in loop
    #[inline(always)]
    pub fn release(&mut self, table: &Table<'_>, now: Instant) {
        let now = now.min(self.last);
        if self.due.first().0 <= now.as_ns() {
            self.release_due(table, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn release_due(&mut self, table: &Table<'_>, now: Instant) {
        self.ready.put_back();
        loop {
            let (at_ns, index) = self.due.first();
            if at_ns > now.as_ns() || at_ns == u64::MAX {
                return;
            }
            let class = &table.classes[index];
            let cursor = &mut self.cursors[index];
            if class.moves || now.as_ns() - at_ns >= cursor.longest_ns() {
                self.release_seldom(table, index, now);
                continue;
            }
            while cursor.release_ns(table) <= now.as_ns() {
                cursor.release(table, &mut self.released[cursor.run as usize]);
                self.ready.add_all(table, cursor.run);
                cursor.advance(class);
            }
            self.due.set(index, cursor.release_ns(table));
        }
    }

    /// The cycle of a task that is to run.
    #[inline(always)]
    fn take(&mut self, table: &Table<'_>, rank: usize) -> Job {
        let pace = &mut self.paces[rank];
        let newest = self.released[pace.run as usize];
        if pace.next != newest.cycle {
            // In parts: a job returned through memory would keep every job in memory.
            let (oldest, missed, passed) = self.catch_up(table, rank, newest.cycle);
            return oldest.job(rank, missed, passed);
        }
        pace.next = newest.cycle + 1;
        newest.job(rank, 0, 0)
    }
}

impl ReadySet<'_> {
    /// All tasks of a run, while no word is held.
    #[inline]
    fn add_all(&mut self, table: &Table<'_>, run: u32) {
        let (first, end) = table.runs[run as usize].masks;
        for mask in &table.masks[first as usize..end as usize] {
            self.insert(mask.word as usize, mask.bits);
        }
    }
}

#[cfg(test)]
mod tests;
