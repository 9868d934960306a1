//! What a dispatcher keeps of each task, and the storage that it keeps it in.
//!
//! For whoever prepares a run. What a cycle in time touches of a task lies together, apart from the
//! counters of what went wrong.

use super::cursor::{Cursor, Released};
use crate::earliest::{Entry, entries};
use crate::ready::words;
use crate::table::{OnOverrun, PeriodClass, Slot, Table};

/// Set in a task's next cycle while it was not told of some missed releases.
pub(super) const UNTOLD: u64 = 1 << 63;

/// What a task did so far, and what it owes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The first cycle that was to come.
    pub(super) first: u64,
    /// Missed releases that the task was not told of yet.
    pub(super) untold: u64,
    /// Cycles that [`super::step`] gave to run.
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
    /// How far the phase moved in all, ns: with [`OnOverrun::Delay`] only.
    pub moved_ns: u64,
}

/// All that a cycle in time touches of a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The cycle that is expected next.
    pub(super) next: u64,
    /// A finish that is closer to its release than this is late in no way, ns; 0 where every finish
    /// is to be looked at.
    pub(super) calm_ns: u64,
    pub(super) run: u32,
}

/// Storage of a [`super::State`], all of it prepared before the loop.
#[derive(Debug)]
pub struct Storage<'s> {
    /// One a class.
    pub cursors: &'s mut [Cursor],
    /// [`crate::earliest::entries`] of the number of classes.
    pub matches: &'s mut [Entry],
    /// [`crate::ready::words`] of the number of tasks.
    pub words: &'s mut [u64],
    /// One a run.
    pub released: &'s mut [Released],
    /// One a task.
    pub paces: &'s mut [Pace],
    /// One a task.
    pub counters: &'s mut [Counters],
}

impl Storage<'_> {
    /// As much of it as `table` takes; `None` when some of it is too small.
    pub(super) fn fit(self, table: &Table<'_>) -> Option<Self> {
        let (classes, tasks) = (table.classes(), table.tasks());
        Some(Self {
            cursors: self.cursors.get_mut(..classes)?,
            matches: self.matches.get_mut(..entries(classes))?,
            words: self.words.get_mut(..words(tasks))?,
            released: self.released.get_mut(..table.runs.len())?,
            paces: self.paces.get_mut(..tasks)?,
            counters: self.counters.get_mut(..tasks)?,
        })
    }
}

impl Slot {
    /// A finish that is closer to its release than this is late in no way, ns.
    pub(super) fn calm_ns(&self, class: &PeriodClass) -> u64 {
        if self.policy == OnOverrun::Delay {
            // Each finish arms the next release.
            return 0;
        }
        let within = self.deadline_ns.min(self.budget_ns).min(self.start_ns);
        within.saturating_add(1).min(class.period.as_ns())
    }
}
