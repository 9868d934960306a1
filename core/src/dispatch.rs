//! The decisions of an executive: the tasks that are released by now, and the one to run next.
//!
//! For the loop, in a simulated clock as on the machine. Pure: time is an argument, everything is
//! in the caller's storage, nothing grows, and only the classes that are due are walked. Releasing
//! k tasks of one group costs k/64 words, whatever their number is.

use crate::cycle::{Decision, Job, Missed, Overruns};
use crate::earliest::{self, Earliest, Entry};
use crate::ready::{self, ReadySet, Visit};
use crate::releases::Releases;
use crate::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, Table, TaskSlot};
use crate::time::{Instant, Period, Span};

/// Set in a task's next cycle while no cycle has counted some missed releases in its `missed`.
const UNCOUNTED: u64 = 1 << 63;

/// In a pace while ranks are checked: a task goes on from here.
const TAKEN: u32 = u32::MAX;

/// The counters of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The first cycle that was to come.
    first: u64,
    /// Missed releases that no cycle has counted in its `missed` yet.
    uncounted: u64,
    /// The phase's move between its last cycle and the next one, ns.
    shift_ns: u64,
    /// Cycles that [`step`] gave to run.
    pub ran: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Starts later after the release than the slot allows.
    pub started_late: u64,
    /// Executions longer than the budget: the causes of other delays.
    pub over_budget: u64,
    /// Cycles still waiting or running at their next release (finish ≥ next), by their own fault or
    /// another's.
    pub over_release: u64,
    /// Finishes after the deadline.
    pub over_deadline: u64,
    /// The phase's moves in all, ns: with [`OnOverrun::Delay`] only.
    pub moved_ns: u64,
}

/// The data of a task that a cycle in time touches.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskPace {
    /// The cycle that is expected next.
    next: u64,
    /// A finish that is closer to its release than this has no overrun, ns; 0 where every finish
    /// has to be checked.
    calm_ns: u64,
    group: u32,
}

/// Storage of a [`TableState`], all of it prepared before the loop.
#[derive(Debug)]
pub struct Storage<'s> {
    /// One a class.
    pub cursors: &'s mut [Cursor],
    /// [`crate::earliest::entries`] of the number of classes.
    pub matches: &'s mut [Entry],
    /// [`crate::ready::words`] of the number of tasks.
    pub words: &'s mut [u64],
    /// One a group.
    pub released: &'s mut [Released],
    /// One a task.
    pub paces: &'s mut [TaskPace],
    /// One a task.
    pub counters: &'s mut [Counters],
}

impl Storage<'_> {
    /// As much of it as `table` takes; `None` when some of it is too small.
    fn fit(self, table: &Table<'_>) -> Option<Self> {
        let (classes, tasks) = (table.classes(), table.tasks());
        Some(Self {
            cursors: self.cursors.get_mut(..classes)?,
            matches: self.matches.get_mut(..earliest::entries(classes))?,
            words: self.words.get_mut(..ready::words(tasks))?,
            released: self.released.get_mut(..table.groups.len())?,
            paces: self.paces.get_mut(..tasks)?,
            counters: self.counters.get_mut(..tasks)?,
        })
    }
}

/// The state that is replaced.
#[derive(Debug)]
pub struct Before<'b, 't, 's> {
    /// The table that ran.
    pub table: &'b Table<'t>,
    /// The state of that table; still to be read afterwards, for the counters of tasks that are
    /// removed.
    pub state: &'b mut TableState<'s>,
    /// For each rank of the new table the rank in the old one that it goes on from, or none.
    pub ranks: &'b [Option<u32>],
}

/// The reason for which one table cannot follow another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Some storage is too small.
    Storage,
    /// The old state is not that of the old table.
    State,
    /// The tables have different epochs.
    Epoch,
    /// Not as many ranks to go on from as the new table has.
    Ranks,
    /// The task of this new rank goes on from one that is not there, from which another goes on
    /// too, or of another period or phase, or whose phase may move where its own may not.
    Task(usize),
    /// The task of this new rank has no release to come before the switch in its old table: that
    /// one has not begun.
    Early(usize),
}

/// The state of a table that runs: all that changes.
#[derive(Debug)]
pub struct TableState<'s> {
    /// The last instant at which there is a release.
    last: Instant,
    cursors: &'s mut [Cursor],
    due: Earliest<'s>,
    ready: ReadySet<'s>,
    released: &'s mut [Released],
    paces: &'s mut [TaskPace],
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
            let (first, end) = class.groups;
            let period = class.period;
            released[first as usize..end as usize].fill(Released { period, ..Released::default() });
            due.set(index, cursor.release_ns(table));
        }
        for (rank, slot) in table.slots.iter().enumerate() {
            let cursor = &cursors[slot.class as usize];
            let next = cursor.period + u64::from(slot.group < cursor.group);
            let class = &table.classes[slot.class as usize];
            paces[rank] = TaskPace { next, calm_ns: calm_ns(slot, class), group: slot.group };
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

    /// The state of `table` that `storage` holds, as an earlier one left it there when it was
    /// dropped; `None` when there is none that could be of this table.
    ///
    /// # Real-time: in loop
    pub fn resume(table: &Table<'_>, storage: Storage<'s>) -> Option<Self> {
        let Storage { cursors, matches, words, released, paces, counters } = storage.fit(table)?;
        let cursors_fit = cursors.iter().zip(table.classes).all(|(at, class)| at.is_of(class));
        if !cursors_fit
            || !paces.iter().zip(table.slots).all(|(pace, slot)| pace.group == slot.group)
        {
            return None;
        }
        let due = Earliest::resume(matches, table.classes())?;
        let ready = ReadySet::resume(words, table.tasks())?;
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

    /// The state in which `table` follows another at `now`: tasks that go on have each release
    /// that they would have had, with their number, backlog, counters and moved phase; those that
    /// are ready stay so. New ones have their first release after `now`. What is removed runs no
    /// more, also what was ready.
    ///
    /// # Errors
    ///
    /// The [`Mismatch`]; then the old state goes on unchanged.
    ///
    /// # Real-time: in loop
    pub fn follow(
        table: &Table<'_>,
        storage: Storage<'s>,
        before: Before<'_, '_, '_>,
        now: Instant,
    ) -> Result<Self, Mismatch> {
        let Before { table: old_table, state: old, ranks } = before;
        if old.paces.len() != old_table.tasks() || old.cursors.len() != old_table.classes() {
            return Err(Mismatch::State);
        }
        if table.epoch != old_table.epoch {
            return Err(Mismatch::Epoch);
        }
        if ranks.len() != table.tasks() {
            return Err(Mismatch::Ranks);
        }
        old.release(old_table, now);
        let after = Instant::from_ns(now.as_ns().saturating_add(1));
        let mut new = Self::begin(table, storage, after).ok_or(Mismatch::Storage)?;
        let fits = new.check(table, old_table, old, ranks);
        // The marks of the check.
        for (pace, slot) in old.paces.iter_mut().zip(old_table.slots) {
            pace.group = slot.group;
        }
        fits?;
        for (rank, from) in ranks.iter().enumerate() {
            if let Some(from) = from {
                new.keep((table, rank), (old_table, old, *from as usize));
            }
        }
        Ok(new)
    }

    /// Checks that each task can go on where it says; leaves marks in the old state's paces.
    fn check(
        &self,
        table: &Table<'_>,
        old_table: &Table<'_>,
        old: &mut TableState<'_>,
        ranks: &[Option<u32>],
    ) -> Result<(), Mismatch> {
        for (rank, from) in ranks.iter().enumerate() {
            let Some(from) = from else { continue };
            let unfit = Mismatch::Task(rank);
            let was = old_table.slots.get(*from as usize).ok_or(unfit)?;
            let pace = &mut old.paces[*from as usize];
            if core::mem::replace(&mut pace.group, TAKEN) == TAKEN {
                return Err(unfit);
            }
            let is = &table.slots[rank];
            let (class, old_class) =
                (&table.classes[is.class as usize], &old_table.classes[was.class as usize]);
            let phase_ns = |table: &Table<'_>, group: u32| table.groups[group as usize].phase_ns;
            let same = (class.period, class.moves) == (old_class.period, old_class.moves)
                && phase_ns(table, is.group) == phase_ns(old_table, was.group);
            if !same {
                return Err(unfit);
            }
            if !class.moves && pace.next & !UNCOUNTED > self.paces[rank].next {
                return Err(Mismatch::Early(rank));
            }
        }
        Ok(())
    }

    /// A task goes on.
    fn keep(
        &mut self,
        (table, rank): (&Table<'_>, usize),
        (old_table, old, from): (&Table<'_>, &TableState<'_>, usize),
    ) {
        let (is, was) = (&table.slots[rank], &old_table.slots[from]);
        self.paces[rank].next = old.paces[from].next;
        self.counters[rank] = old.counters[from];
        self.released[is.group as usize] = old.released[was.group as usize];
        if old.ready.has(from) {
            self.ready.add(rank / 64, 1 << (rank % 64));
        }
        let class = &table.classes[is.class as usize];
        if class.moves {
            let cursor = &mut self.cursors[is.class as usize];
            *cursor = old.cursors[was.class as usize];
            // The only one of its class.
            cursor.group = class.groups.0;
            self.due.set(is.class as usize, old.due.at(was.class as usize));
        }
    }
}

impl TableState<'_> {
    /// Releases at or after `end` do not run: an overloaded executive ends too.
    ///
    /// # Real-time: setup only
    pub fn end(&mut self, end: Instant) {
        self.last = end - Span::from_ns(1);
    }

    /// The most urgent task of the group that is released next; `None` while nothing is to come.
    ///
    /// # Real-time: in loop
    pub fn coming(&self, table: &Table<'_>) -> Option<usize> {
        let (at_ns, index) = self.due.first();
        let group = self.cursors.get(index).filter(|_| at_ns < u64::MAX)?.group;
        let mask = table.masks[table.groups[group as usize].masks.0 as usize];
        let rank = mask.word as usize * 64 + mask.bits.trailing_zeros() as usize;
        // What its cycle touches is read now, while there is time.
        let (pace, released) = (self.paces.get(rank)?, self.released.get(group as usize)?);
        core::hint::black_box((pace.next, released.cycle, table.slots[rank].policy));
        core::hint::black_box(self.ready.has(rank));
        Some(rank)
    }

    /// The instant of the next release.
    ///
    /// # Real-time: in loop
    pub fn next_release(&self) -> Instant {
        Instant::from_ns(self.due.first().0)
    }

    /// The move of a task's phase between its last two releases, ns.
    pub(crate) fn shift_ns(&self, rank: usize) -> u64 {
        self.counters[rank].shift_ns
    }

    /// The counters of a task up to now.
    ///
    /// # Real-time: in loop
    pub fn counters(&self, rank: usize) -> Counters {
        let counters = self.counters[rank];
        // Each cycle up to the next one was given to run or missed.
        let passed = (self.paces[rank].next & !UNCOUNTED).saturating_sub(counters.first);
        Counters { ran: passed.saturating_sub(counters.missed), ..counters }
    }

    /// Passes the memory that it lies in to `visit`.
    ///
    /// # Real-time: in loop
    pub fn visit(&self, visit: &mut impl Visit) {
        visit.part(self.cursors);
        visit.part(self.released);
        visit.part(self.paces);
        visit.part(self.counters);
        self.due.visit(visit);
        self.ready.visit(visit);
    }

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

    /// All releases up to `at`, which is to come, and all that [`step`] does then up to its first
    /// job.
    pub(crate) fn release_ahead(&mut self, table: &Table<'_>, at: Instant) {
        self.release(table, at);
        self.ready.prepare();
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
                cursor.release(table, &mut self.released[cursor.group as usize]);
                add_group(&mut self.ready, table, cursor.group);
                cursor.advance(class);
            }
            self.due.set(index, cursor.release_ns(table));
        }
    }

    /// The cycle of a task that is to run.
    #[inline(always)]
    fn take(&mut self, table: &Table<'_>, rank: usize) -> Job {
        let pace = &mut self.paces[rank];
        let newest = self.released[pace.group as usize];
        if pace.next != newest.cycle {
            // In parts: a job returned through memory would keep every job in memory.
            let CaughtUp { released, missed, passed } = self.catch_up(table, rank, newest.cycle);
            return released.job(rank, missed, passed);
        }
        pace.next = newest.cycle + 1;
        newest.job(rank, 0, 0)
    }

    /// A class that is released once a finish, or one of which whole periods passed.
    #[cold]
    #[inline(never)]
    fn release_seldom(&mut self, table: &Table<'_>, index: usize, now: Instant) {
        let class = &table.classes[index];
        let cursor = &mut self.cursors[index];
        if class.moves {
            cursor.release(table, &mut self.released[cursor.group as usize]);
            add_group(&mut self.ready, table, cursor.group);
            cursor.advance(class);
            self.due.set(index, u64::MAX);
            return;
        }
        // Each group was released, and none of the cycles that passed is walked through.
        *cursor = Cursor::after(class, table, now, cursor.moved_ns);
        for group in class.groups.0..class.groups.1 {
            cursor.release_last(table, group, &mut self.released[group as usize]);
            add_group(&mut self.ready, table, group);
        }
        self.due.set(index, cursor.release_ns(table));
    }

    /// The cycle to run of a task that missed releases, or of which several are waiting, `last`
    /// the newest. The oldest one runs, with all its lateness, and those after it are missed; a
    /// burst runs them one after the other, but for those beyond its length.
    #[cold]
    #[inline(never)]
    fn catch_up(&mut self, table: &Table<'_>, rank: usize, last: u64) -> CaughtUp {
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
        CaughtUp { released: Released { cycle, at_ns, next_ns, period }, missed, passed }
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
        let newest = self.released[table.slots[rank].group as usize].cycle;
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

    /// The instant at which a cycle of a task is released.
    fn release_of(&self, table: &Table<'_>, rank: usize, cycle: u64) -> Instant {
        let slot = &table.slots[rank];
        let class = &table.classes[slot.class as usize];
        let start_ns = self.cursors[slot.class as usize].start_of_ns(class, table, cycle);
        Instant::from_ns(start_ns.saturating_add(table.groups[slot.group as usize].phase_ns))
    }

    /// Counts the overruns of a cycle that may have some, and applies the task's policy.
    #[cold]
    #[inline(never)]
    fn judge(
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
            OnOverrun::Delay => self.rearm(table, rank, finish),
            _ if overruns.over_release => self.overran(table, rank, finish),
            _ => {}
        }
        overruns
    }

    /// A task that moves its phase has finished: its next release is armed, a period from now if
    /// the planned one has passed.
    fn rearm(&mut self, table: &Table<'_>, rank: usize, finish: Instant) {
        let index = table.slots[rank].class as usize;
        let cursor = &mut self.cursors[index];
        let counters = &mut self.counters[rank];
        counters.shift_ns = 0;
        let planned_ns = cursor.release_ns(table);
        if let Some(late_ns) = finish.as_ns().checked_sub(planned_ns) {
            let period_ns = cursor.longest_ns();
            cursor.delay(late_ns.saturating_add(period_ns));
            counters.shift_ns = cursor.moved_ns.saturating_sub(counters.moved_ns);
            counters.moved_ns = cursor.moved_ns;
        }
        self.due.set(index, cursor.release_ns(table));
    }

    /// A task still ran at its next release, or at where that would be but for the end.
    fn overran(&mut self, table: &Table<'_>, rank: usize, finish: Instant) {
        self.release(table, finish);
        let slot = &table.slots[rank];
        let last = self.released[slot.group as usize].cycle;
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

/// The cycle to run of a task of which several releases wait.
struct CaughtUp {
    released: Released,
    /// Releases that were missed before it.
    missed: u64,
    /// Releases that passed after it, and are missed.
    passed: u64,
}

/// The decision at `now`: the most urgent task that is ready, or the next release.
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

/// The decision at `now` when the CPU is needed at `until`: a task is run only if its budget
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

/// Adds all tasks of a group to the ready set, while no word of it is held.
#[inline]
fn add_group(ready: &mut ReadySet<'_>, table: &Table<'_>, group: u32) {
    let (first, end) = table.groups[group as usize].masks;
    for mask in &table.masks[first as usize..end as usize] {
        ready.insert(mask.word as usize, mask.bits);
    }
}

/// A finish of a task that is closer to its release than this has no overrun, ns.
fn calm_ns(slot: &TaskSlot, class: &PeriodClass) -> u64 {
    if slot.policy == OnOverrun::Delay {
        // Each finish arms the next release.
        return 0;
    }
    let within = slot.deadline_ns.min(slot.budget_ns).min(slot.start_ns);
    within.saturating_add(1).min(class.period.as_ns())
}

/// The storage of a table of one task, on which a loop with time in hand runs a turn to warm up: on
/// the stack and dropped after the turn, so that the state of the real tasks is never touched.
#[derive(Debug, Default)]
pub(crate) struct OneTask {
    cursors: [Cursor; 1],
    matches: [Entry; earliest::entries(1)],
    words: [u64; ready::words(1)],
    released: [Released; 1],
    paces: [TaskPace; 1],
    counters: [Counters; 1],
}

impl OneTask {
    const CLASSES: &[PeriodClass] =
        &[PeriodClass { period: Self::PERIOD, groups: (0, 1), moves: false }];
    const GROUPS: &[PhaseGroup] = &[PhaseGroup { phase_ns: 0, masks: (0, 1) }];
    const MASKS: &[Mask] = &[Mask { word: 0, bits: 1 }];
    const SLOTS: &[TaskSlot] = &[TaskSlot {
        class: 0,
        group: 0,
        deadline_ns: u64::MAX,
        budget_ns: u64::MAX,
        start_ns: u64::MAX,
        policy: OnOverrun::Skip,
    }];

    /// Long enough that nothing is late in it.
    const PERIOD: Period = match Period::from_ns(1 << 40) {
        Some(period) => period,
        None => panic!(),
    };

    /// The table of the one task, which is due at `epoch`.
    #[inline]
    pub(crate) fn table(epoch: Instant) -> Table<'static> {
        Table {
            epoch,
            classes: Self::CLASSES,
            groups: Self::GROUPS,
            masks: Self::MASKS,
            slots: Self::SLOTS,
        }
    }

    /// The storage of the state of that table.
    #[inline]
    pub(crate) fn lend(&mut self) -> Storage<'_> {
        let Self { cursors, matches, words, released, paces, counters } = self;
        Storage { cursors, matches, words, released, paces, counters }
    }
}

/// The newest release of a group.
#[derive(Clone, Copy, Debug)]
pub struct Released {
    /// Its cycle: releases since the epoch.
    cycle: u64,
    /// The instant at which it was due, and that of the one after it, ns.
    at_ns: u64,
    next_ns: u64,
    /// The period of its tasks, as its class has it.
    period: Period,
}

impl Released {
    /// This release as the cycle of a task, with the releases missed before it and passed after it.
    #[inline(always)]
    fn job(self, rank: usize, missed: u64, passed: u64) -> Job {
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

/// The place of a class on its ring of groups. Knows the starts of three periods, so that no task
/// divides; they are exact at every cycle, also where the period is no whole number of nanoseconds:
/// the rest is carried. Reads no clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The group that is released next, as an index into the table.
    group: u32,
    /// The period it is in, and when that one, the one before and the one after start, ns.
    period: u64,
    start_ns: u64,
    previous_ns: u64,
    following_ns: u64,
    /// `following_ns` is rounded down by this many `den`-ths.
    rest: u64,
    /// The period in whole ns, and the `den`-ths beyond.
    whole_ns: u64,
    part: u64,
    /// The phase's moves in all, ns.
    moved_ns: u64,
}

impl Cursor {
    /// At the first group of `class` that is released at or after `from`.
    fn at(class: &PeriodClass, table: &Table<'_>, from: Instant, moved_ns: u64) -> Self {
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
    fn after(class: &PeriodClass, table: &Table<'_>, now: Instant, moved_ns: u64) -> Self {
        Self::at(class, table, Instant::from_ns(now.as_ns().saturating_add(1)), moved_ns)
    }

    /// True for a cursor of `class`, as far as can be checked: it was begun for a class of
    /// this period, at a group that exists.
    fn is_of(&self, class: &PeriodClass) -> bool {
        let (first, end) = class.groups;
        (first..end).contains(&self.group)
            && (self.whole_ns, self.part) == whole_and_part(class.period)
    }

    /// The instant at which period `period` starts, ns.
    fn start_of_ns(&self, class: &PeriodClass, table: &Table<'_>, period: u64) -> u64 {
        let from_ns = table.epoch.as_ns().saturating_add(self.moved_ns);
        from_ns.saturating_add(class.period.offset_ns(period))
    }

    /// The instant at which the group it is at is released, ns.
    #[inline]
    fn release_ns(&self, table: &Table<'_>) -> u64 {
        self.start_ns.saturating_add(table.groups[self.group as usize].phase_ns)
    }

    /// The longest distance of two releases, ns: the period rounded up.
    #[inline]
    fn longest_ns(&self) -> u64 {
        self.whole_ns + u64::from(self.part > 0)
    }

    /// On to the next group.
    #[inline]
    fn advance(&mut self, class: &PeriodClass) {
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
    fn delay(&mut self, by_ns: u64) {
        self.moved_ns = self.moved_ns.saturating_add(by_ns);
        self.start_ns = self.start_ns.saturating_add(by_ns);
        self.following_ns = self.following_ns.saturating_add(by_ns);
    }

    /// Writes down the group that is next, as it is released now.
    #[inline]
    fn release(&self, table: &Table<'_>, released: &mut Released) {
        let phase_ns = table.groups[self.group as usize].phase_ns;
        released.cycle = self.period;
        released.at_ns = self.start_ns.saturating_add(phase_ns);
        released.next_ns = self.following_ns.saturating_add(phase_ns);
    }

    /// Writes down the last cycle of a group before the cursor, where several passed at once.
    fn release_last(&self, table: &Table<'_>, group: u32, released: &mut Released) {
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

#[cfg(test)]
mod tests;
