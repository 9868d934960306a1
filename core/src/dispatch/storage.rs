//! The data that a dispatcher keeps of each task, and its storage.
//!
//! For callers that prepare a run. The data that a cycle in time touches lies together, apart from
//! the counters of overruns.

use super::TableState;
use super::cursor::{Cursor, Released};
use crate::earliest::{Entry, entries};
use crate::parts::Visit;
use crate::ready::words;
use crate::table::{OnOverrun, PeriodClass, Slot, Table};

/// Set in a task's next cycle while no cycle has counted some missed releases in its `missed`.
pub(super) const UNCOUNTED: u64 = 1 << 63;

/// The counters of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The first cycle that was to come.
    pub(super) first: u64,
    /// Missed releases that no cycle has counted in its `missed` yet.
    pub(super) uncounted: u64,
    /// How far the phase moved between its last cycle and the next one, ns.
    pub(super) shift_ns: u64,
    /// Cycles that [`super::step`] gave to run.
    pub ran: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Starts later after the release than the slot allows.
    pub started_late: u64,
    /// Executions beyond the budget: the causes of other delays.
    pub over_budget: u64,
    /// Cycles still waiting or running at their next release, by their own fault or another's.
    pub over_release: u64,
    /// Finishes after the deadline.
    pub over_deadline: u64,
    /// How far the phase moved in all, ns: with [`OnOverrun::Delay`] only.
    pub moved_ns: u64,
}

/// The data of a task that a cycle in time touches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The cycle that is expected next.
    pub(super) next: u64,
    /// A finish that is closer to its release than this has no overrun, ns; 0 where every finish
    /// has to be checked.
    pub(super) calm_ns: u64,
    pub(super) run: u32,
}

/// Storage of a [`super::TableState`], all of it prepared before the loop.
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
    /// A finish that is closer to its release than this has no overrun, ns.
    pub(super) fn calm_ns(&self, class: &PeriodClass) -> u64 {
        if self.policy == OnOverrun::Delay {
            // Each finish arms the next release.
            return 0;
        }
        let within = self.deadline_ns.min(self.budget_ns).min(self.start_ns);
        within.saturating_add(1).min(class.period.as_ns())
    }
}

impl TableState<'_> {
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
}
