//! An executive from outside: stop it, read what its tasks do, add and remove tasks.
//!
//! For other threads. Reading disturbs no loop.

use std::fmt;
use std::sync::Arc;

use punctual_core::cycle::{Cycle, IntoFlow};
use punctual_core::stats::Counts;
use punctual_core::time::Span;
use punctual_engine::error::Error;
use punctual_engine::monitor::Force;
use punctual_engine::outcome::Stats;
use punctual_engine::pack::Placed;
use punctual_engine::task::Task;

use super::shared::{RunState, Shared, TaskId};
use super::work::boxed;

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
    /// Ends the executive: at once where it spins, within 100 ms where it sleeps, whatever its
    /// periods, where a task runs when that returns, and in its setup within some 50 ms. Stays so.
    /// Releases from now on are none of its run: what was due before and never ran is missed.
    /// May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.ending.stop();
    }

    /// True where it is to stop, or has ended, or was dropped.
    ///
    /// # Real-time: in loop
    pub fn stopped(&self) -> bool {
        self.shared.ending.is_over()
    }

    /// True once its first releases are decided: setup is over, and every thread runs or has ended.
    ///
    /// # Real-time: in loop
    pub fn started(&self) -> bool {
        matches!(self.shared.state(), RunState::Running | RunState::Over)
    }

    /// The most releases of its main loop that fall on one instant, with the tasks that it has now;
    /// an upper bound of it where the periods have a long common multiple.
    ///
    /// # Real-time: reader side
    pub fn peak(&self) -> u64 {
        self.shared.peak()
    }

    /// The statistics of all tasks so far, in the order in which they were given; the last 64 of
    /// those that were removed keep theirs.
    ///
    /// # Real-time: reader side
    pub fn stats(&self) -> Vec<Stats> {
        self.shared.stats()
    }

    /// The statistics of each unit of the calendar so far, in the order of the frame. An only unit
    /// is as its task; of several of one task those that ran count, and frames are missed by the
    /// task.
    ///
    /// # Real-time: reader side
    pub fn units(&self) -> Vec<Stats> {
        self.shared.units()
    }

    /// The task of this name, for a program that does not keep ids; `None` where there is none, or
    /// no more.
    ///
    /// # Real-time: reader side
    pub fn task_named(&self, name: &str) -> Option<TaskId> {
        self.shared.task_named(name)
    }

    /// The statistics of a task so far.
    ///
    /// # Errors
    /// The id is of another executive, or of a task that was removed before 64 others were.
    ///
    /// # Real-time: reader side
    pub fn task(&self, id: TaskId) -> Result<Stats, Error> {
        self.shared.task(id)
    }

    /// The counts of a task so far, which takes no walk through its histogram.
    ///
    /// # Errors
    /// As [`Handle::task`].
    ///
    /// # Real-time: reader side
    pub fn counts(&self, id: TaskId) -> Result<Counts, Error> {
        self.shared.counts(id)
    }

    /// A lateness that at least `share` of a task's releases did not exceed, at most 0.8 % too
    /// much; `None` before its first release and for a share outside [0, 1].
    ///
    /// # Errors
    /// As [`Handle::task`].
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, id: TaskId, share: f64) -> Result<Option<Span>, Error> {
        self.shared.quantile(id, share)
    }

    /// The way in which the watchdog ended it; `None` where it did not.
    ///
    /// # Real-time: reader side
    pub fn forced(&self) -> Option<Force> {
        self.shared.forced()
    }

    /// The place of a periodic task of a loop, or of one that has a thread of its own, as it is
    /// now, after others came or went; `None` for a process, for a task of the calendar, and for
    /// one that was removed.
    ///
    /// # Errors
    /// As [`Handle::task`].
    ///
    /// # Real-time: reader side
    pub fn placed(&self, id: TaskId) -> Result<Option<Placed>, Error> {
        self.shared.placed(id)
    }

    /// Adds a task, which the executive's own thread runs, or that of the CPU it is placed on; with
    /// several CPUs where it fits best. One with a thread of its own gets that here, and waits for
    /// its releases itself, with a wait that its first cycles teach; there may be 32 of them at a
    /// time, and their samples are not recorded. Returns once that is in effect, with the task's
    /// id; its first release is the first one after that. The others keep every release, their
    /// phases, numbers and counts. In an executive with a calendar its budget must fit between two
    /// units. Where its budget may make another task late, or itself, or throttling will stop it,
    /// the summary has a warning, as where an executive is built.
    ///
    /// # Errors
    /// A setting that [`ExecutiveBuilder::build`](crate::ExecutiveBuilder::build) refuses; the
    /// executive does not run; the call is from a body which one of its loops runs, or from one
    /// that was added with a thread of its own (bodies that have threads since before it ran, and
    /// triggered ones, may call it); the task's thread cannot be started. Nothing is changed then.
    ///
    /// # Real-time: setup only
    pub fn add<R: IntoFlow>(
        &self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Result<TaskId, Error> {
        self.shared.add(task, boxed(body))
    }

    /// Removes a task. Returns once that is in effect, with the task's statistics; its body is
    /// dropped here. A release that it was due for, and that has not begun, does not run and is
    /// missed. Tasks that follow it keep their phases. One with a thread of its own leaves within
    /// some 100 ms, once its body has returned, and its thread ends.
    ///
    /// # Errors
    /// There is no such task; it has a process, or a thread since before the executive ran; it
    /// belongs to the calendar, whose frame is fixed before the first release; the executive does
    /// not run; the call is from a body from which [`Handle::add`] may not be called.
    ///
    /// # Real-time: setup only
    pub fn remove(&self, id: TaskId) -> Result<Stats, Error> {
        self.shared.remove(id)
    }
}
