//! The frozen calendar: elemental units, each at its place in a frame that repeats.
//!
//! For the dispatcher, which only reads it. *Temporal accuracy on the Pentium Pro* (Maruti, §6.1):
//! a thread is a sequence of elemental units that nothing preempts, each started at an instant that
//! was fixed before the run. A builder prepares the slices; [`UnitTable::new`] checks them once, so
//! that nothing can fail in the loop. Reads no clock.

mod progress;
mod state;
pub(crate) mod warm_up;

pub use progress::{TaskProgress, UnitCounters};
pub use state::{CalendarPosition, CalendarState, finish, step};

use crate::ready::RANKS_MAX;
use crate::table::OnOverrun;
use crate::time::{Instant, Period};

/// The most units of a frame.
pub const UNITS_MAX: usize = 1 << 16;

/// One elemental unit: a place in the frame, and the task that runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitSlot {
    /// From the start of the frame to its start, ns: `ready + budget` is within the frame.
    pub ready_ns: u64,
    /// The longest execution, ns, at least 1: what runs longer is timed out.
    pub budget_ns: u64,
    /// From the start of the frame to the latest finish, ns: from `ready + budget` to `ready +
    /// frame`. A unit that could not be started by then is missed.
    pub deadline_ns: u64,
    /// From `ready` to the latest start that is not counted as late, ns.
    pub start_ns: u64,
    /// Which task.
    pub task: u32,
}

/// Why slices are not a valid calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitTableError {
    /// No unit, or more than [`UNITS_MAX`].
    Units(usize),
    /// More than [`RANKS_MAX`] tasks.
    Tasks(usize),
    /// The frame is no whole number of nanoseconds.
    Frame,
    /// The unit at this index has no budget, is outside of the frame, has its deadline out of
    /// range, or names a task that does not exist.
    Unit(usize),
    /// The unit at this index starts before the one before it is over.
    Overlap(usize),
    /// The task at this index has a policy that a fixed place does not allow: only
    /// [`OnOverrun::Skip`], [`OnOverrun::Terminate`] and [`OnOverrun::Stop`] leave all places
    /// where they are.
    OnOverrun(usize),
}

/// Units at their places in a frame; never changes.
#[derive(Clone, Copy, Debug)]
pub struct UnitTable<'t> {
    pub(crate) epoch: Instant,
    pub(crate) frame: Period,
    pub(crate) frame_ns: u64,
    pub(crate) units: &'t [UnitSlot],
    pub(crate) tasks: &'t [OnOverrun],
}

impl<'t> UnitTable<'t> {
    /// The calendar of these units in the order of their places, whose frame 0 starts at `epoch`;
    /// `tasks` are what happens to each task that is timed out.
    ///
    /// # Errors
    ///
    /// The first invalid unit or task.
    ///
    /// # Real-time: setup only
    pub fn new(
        epoch: Instant,
        frame: Period,
        units: &'t [UnitSlot],
        tasks: &'t [OnOverrun],
    ) -> Result<Self, UnitTableError> {
        let frame_ns = frame.as_ns();
        if units.is_empty() || units.len() > UNITS_MAX {
            return Err(UnitTableError::Units(units.len()));
        }
        if tasks.len() > RANKS_MAX {
            return Err(UnitTableError::Tasks(tasks.len()));
        }
        if frame.den() != 1 {
            return Err(UnitTableError::Frame);
        }
        let mut free_ns = 0;
        for (index, unit) in units.iter().enumerate() {
            let end_ns = unit.ready_ns.saturating_add(unit.budget_ns);
            let placed = unit.budget_ns > 0 && end_ns <= frame_ns;
            // Below 2 · 2⁶², so that no sum overflows.
            let latest_ns = unit.ready_ns.saturating_add(frame_ns);
            let dated = (end_ns..=latest_ns).contains(&unit.deadline_ns);
            if !placed || !dated || unit.task as usize >= tasks.len() {
                return Err(UnitTableError::Unit(index));
            }
            if unit.ready_ns < free_ns {
                return Err(UnitTableError::Overlap(index));
            }
            free_ns = end_ns;
        }
        let moves = |policy: &OnOverrun| matches!(policy, OnOverrun::Delay | OnOverrun::Burst(_));
        if let Some(task) = tasks.iter().position(moves) {
            return Err(UnitTableError::OnOverrun(task));
        }
        Ok(Self { epoch, frame, frame_ns, units, tasks })
    }

    /// How many tasks there are.
    ///
    /// # Real-time: in loop
    pub const fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// How many units a frame has.
    ///
    /// # Real-time: in loop
    pub const fn units(&self) -> usize {
        self.units.len()
    }

    /// The length of the frame, ns.
    ///
    /// # Real-time: in loop
    pub const fn frame_ns(&self) -> u64 {
        self.frame_ns
    }

    /// The start of frame 0.
    ///
    /// # Real-time: in loop
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The start of a frame, ns, saturating at the clock's end.
    #[inline]
    fn start_ns(&self, frame: u64) -> u64 {
        self.epoch.as_ns().saturating_add(frame.saturating_mul(self.frame_ns))
    }
}

#[cfg(test)]
mod tests;
