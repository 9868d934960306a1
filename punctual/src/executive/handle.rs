//! An executive from outside: stop it, read what its tasks do.
//!
//! For other threads. Reading disturbs no loop; how tasks come and go is in [`super::changes`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::stats::Counts;
use punctual_core::time::Span;

use super::entries::Entry;
use super::error::ExecutiveError;
use super::id::{Placed, TaskId};
use super::shared::{LaneTasks, RunState, Shared};
use crate::counting::Stats as Memory;
use crate::error::Error;
use crate::monitor::Force;
use crate::quantile;
use crate::summary::Stats;

/// A handle of an executive, for any thread that the bodies' borrows reach (a scoped one, say);
/// outlives it. What stops it from anywhere is [`StopHandle`](crate::StopHandle).
pub struct Handle<'env> {
    pub(super) shared: Arc<Shared<'env>>,
}

impl Clone for Handle<'_> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &self.shared.state()).finish_non_exhaustive()
    }
}

impl<'env> Handle<'env> {
    /// Ends the executive: at once where it spins, at its next wake where it sleeps, and where a
    /// task runs when that returns. Stays so. Releases from now on are none of its run:
    /// what was due before and never ran is missed. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.ending.stop();
    }

    /// Whether it is to stop, or has ended, or was dropped.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.shared.ending.stopped()
    }

    /// Whether its first releases are decided: setup is over, and every thread runs or has ended.
    ///
    /// # Real-time: in loop
    pub fn started(&self) -> bool {
        matches!(self.shared.state(), RunState::Running | RunState::Over)
    }

    /// The most releases of its main loop that fall on one instant, with the tasks that it has now;
    /// an upper bound of it where the periods have a long common multiple.
    ///
    /// # Real-time: reader side
    #[doc(hidden)]
    pub fn peak(&self) -> u64 {
        self.shared.tasks().lanes.first().map_or(0, |lane| lane.plan.peak())
    }

    /// What all tasks did so far, in the order in which they were given; the last
    /// 64 of those that were removed keep what they had.
    ///
    /// # Real-time: reader side
    pub fn stats(&self) -> Vec<Stats> {
        self.shared.stats()
    }

    /// What each unit of the calendar did so far, in the order of the frame. An only unit is as its
    /// task; of several of one task those that ran count, and frames are missed by the task.
    ///
    /// # Real-time: reader side
    pub fn units(&self) -> Vec<Stats> {
        self.shared.units()
    }

    /// What a task did so far.
    ///
    /// # Errors
    /// That it is a task of another executive, or one that was removed before 64 others were.
    ///
    /// # Real-time: reader side
    pub fn task(&self, id: TaskId) -> Result<Stats, Error> {
        Ok(self.entry(id)?.stats())
    }

    /// The counts of a task alone, which takes no walk through its histogram.
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn counts(&self, id: TaskId) -> Result<Counts, Error> {
        let entry = self.entry(id)?;
        let view = entry.stats.as_ref().and_then(Memory::view);
        Ok(view.map(|view| view.counts()).unwrap_or_default())
    }

    /// A lateness that at least `share` of a task's releases did not exceed, at most 0.8 % too
    /// much; `None` before its first release and for a share outside [0, 1].
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, id: TaskId, share: f64) -> Result<Option<Span>, Error> {
        let entry = self.entry(id)?;
        let view = entry.stats.as_ref().and_then(Memory::view);
        Ok(view.and_then(|view| quantile::of(&view, share)))
    }

    /// How the watchdog ended it, if it did.
    ///
    /// # Real-time: reader side
    #[doc(hidden)]
    pub fn forced(&self) -> Option<Force> {
        self.shared.forced()
    }

    /// Where a periodic task of a loop, or one that came with a thread of its own, is now, also
    /// after others came or went; `None` for one that a loop does not run, or that was removed.
    ///
    /// # Errors
    /// That it is a task of another executive.
    ///
    /// # Real-time: reader side
    pub fn placed(&self, id: TaskId) -> Result<Option<Placed>, Error> {
        let Entry { name, removed, .. } = self.entry(id)?;
        if let Some(late) = self.shared.tasks().late.iter().find(|late| late.entry == id.at) {
            let phase = Some(Duration::from_nanos(late.phase_ns));
            return Ok(Some(Placed { name, cpu: late.cpu, phase, rank: None }));
        }
        let calendar = self.shared.rules.calendar.as_ref();
        let units = calendar.map_or(0, |(calendar, _)| calendar.tasks());
        let tasks = self.shared.tasks();
        let lanes = tasks.lanes.iter().zip(&self.shared.lanes).filter(|_| !removed);
        let mut found = lanes.filter_map(|(LaneTasks { plan, .. }, lane)| {
            let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == name)?;
            Some((units + rank, plan.phase_ns(rank), lane.cpu))
        });
        Ok(found.next().map(|(rank, phase_ns, cpu)| Placed {
            name: name.clone(),
            cpu,
            phase: Some(Duration::from_nanos(phase_ns)),
            rank: Some(rank),
        }))
    }

    pub(super) fn entry(&self, id: TaskId) -> Result<Entry, Error> {
        let at = self.shared.at(id);
        let entry = at.and_then(|at| self.shared.tasks().entries.get(at).cloned());
        entry.ok_or_else(|| ExecutiveError::NoTask.into())
    }
}
