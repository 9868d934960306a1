//! How one table replaces another while the loop runs: no release is lost, none runs twice.
//!
//! For the loop, between two jobs. The tables have one epoch, so that a task that is in both has
//! the same releases in both, and only its rank changes. Pure: time is an argument; takes as long
//! as there are tasks, once; never allocates, and changes nothing where the two do not fit.

use super::TableState;
use super::storage::{Storage, UNCOUNTED};
use crate::earliest::Earliest;
use crate::ready::ReadySet;
use crate::table::Table;
use crate::time::Instant;

/// In a pace while ranks are checked: a task goes on from here.
const TAKEN: u32 = u32::MAX;

/// The state that is replaced.
#[derive(Debug)]
pub struct Before<'b, 't, 's> {
    /// The table that ran.
    pub table: &'b Table<'t>,
    /// Where that is; still to be read afterwards, for the counters of tasks that are removed.
    pub state: &'b mut TableState<'s>,
    /// For each rank of the new table the rank in the old one that it goes on from, or none.
    pub ranks: &'b [Option<u32>],
}

/// Why one table cannot follow another.
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

impl<'s> TableState<'s> {
    /// The state in which `table` follows another at `now`: tasks that go on have each release
    /// that they would have had, with their number, backlog, counters and moved phase; those that
    /// are ready stay so. New ones have their first release after `now`. What is removed runs no
    /// more, also what was ready.
    ///
    /// # Errors
    ///
    /// What does not fit; then the old state goes on unchanged.
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
            pace.run = slot.run;
        }
        fits?;
        for (rank, from) in ranks.iter().enumerate() {
            if let Some(from) = from {
                new.keep((table, rank), (old_table, old, *from as usize));
            }
        }
        Ok(new)
    }

    /// Whether each task can go on where it says; leaves marks in the old state's paces.
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
            if core::mem::replace(&mut pace.run, TAKEN) == TAKEN {
                return Err(unfit);
            }
            let is = &table.slots[rank];
            let (class, old_class) =
                (&table.classes[is.class as usize], &old_table.classes[was.class as usize]);
            let phase_ns = |table: &Table<'_>, run: u32| table.runs[run as usize].phase_ns;
            let same = (class.period, class.moves) == (old_class.period, old_class.moves)
                && phase_ns(table, is.run) == phase_ns(old_table, was.run);
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
        self.released[is.run as usize] = old.released[was.run as usize];
        if old.ready.has(from) {
            self.ready.add(rank / 64, 1 << (rank % 64));
        }
        let class = &table.classes[is.class as usize];
        if class.moves {
            let cursor = &mut self.cursors[is.class as usize];
            *cursor = old.cursors[was.class as usize];
            // The only one of its class.
            cursor.run = class.runs.0;
            self.due.set(is.class as usize, old.due.at(was.class as usize));
        }
    }

    /// The state of `table` that `storage` holds, as an earlier one left it there when it was
    /// dropped; `None` when there is none that could be of this table.
    ///
    /// # Real-time: in loop
    pub fn resume(table: &Table<'_>, storage: Storage<'s>) -> Option<Self> {
        let Storage { cursors, matches, words, released, paces, counters } = storage.fit(table)?;
        let cursors_fit = cursors.iter().zip(table.classes).all(|(at, class)| at.is_of(class));
        if !cursors_fit || !paces.iter().zip(table.slots).all(|(pace, slot)| pace.run == slot.run) {
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
}
