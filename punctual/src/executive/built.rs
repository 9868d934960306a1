//! An executive that is built: everything is checked and laid out, nothing runs yet.
//!
//! How it runs is in [`super::drive`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::builder::Work;
use super::ending::StopHandle;
use super::handle::Handle;
use super::handle::Placed;
use super::lane::Lane;
use super::run::Clocking;
use super::shared::{Closing, Shared};
use super::thread::Pace;
use super::thread::ThreadTask;
use crate::clocks::MachineClock;
use crate::loops::Phase;
use crate::process::Supervisor;
use crate::safety::Caution;

/// Many periodic tasks, ready to run once.
///
/// ```
/// use std::time::Duration;
/// use punctual::{Executive, OnOverrun, Period, Task};
/// # use punctual::{Phase, RtThread, WaitPolicy};
///
/// let servo = Task::every("servo", Period::hz(1_000).expect("in range"));
/// let log = Task::every("log", Period::hz(50).expect("in range"));
/// let mut position = 0.0;
/// let builder = Executive::builder()
///     .task(servo.budget(Duration::from_micros(200)), |cycle| {
///         position += 0.25 * cycle.dt.as_ns() as f64 * 1e-9;
///     })
///     .task(log.on_overrun(OnOverrun::Burst(3)), |_| ());
/// # // What the defaults take two seconds to find out.
/// # let thread = RtThread::any().wait(WaitPolicy::sleep());
/// # let builder = builder.phase(Phase::Zero).thread(thread);
/// let (plan, _ids) = builder.build()?;
/// println!("{}", plan.run_for(Duration::from_millis(30))?.ok()?);
/// assert!(position > 0.0);
/// # Ok::<(), punctual::Error>(())
/// ```
#[must_use = "it does nothing until it runs"]
pub struct Executive<'env, C = MachineClock> {
    pub(super) shared: Arc<Shared<'env>>,
    pub(super) closing: Closing<'env>,
    pub(super) lanes: Vec<Lane<'env>>,
    pub(super) threads: Vec<(ThreadTask, Work<'env>)>,
    pub(super) supervisor: Option<(Supervisor, Vec<usize>)>,
    pub(super) clocking: Clocking<'env, C>,
    pub(super) phase: Phase,
    pub(super) samples: Option<PathBuf>,
    pub(super) peak: u64,
    /// What throttling will do, by budgets and waits.
    pub(super) cautions: Vec<Caution>,
}

impl<C> fmt::Debug for Executive<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executive").field("tasks", &self.layout()).finish_non_exhaustive()
    }
}

impl<'env, C> Executive<'env, C> {
    /// A handle for other threads, which outlives it: stop it, read what its tasks do, add and
    /// remove tasks while it runs.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'env> {
        Handle { shared: Arc::clone(&self.shared) }
    }

    /// What stops it, and needs no more than a signal handler has.
    ///
    /// # Real-time: setup only
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.shared.ending))
    }

    /// Where each task is that a loop or a thread of the executive runs.
    ///
    /// # Real-time: setup only
    pub fn layout(&self) -> Vec<Placed> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            let units = lane.calendar.as_ref().map_or(0, |(plan, _)| plan.tasks());
            for (rank, task) in lane.ranks.iter().enumerate() {
                let phase_ns = match (rank.checked_sub(units), &lane.calendar) {
                    (None, Some((plan, _))) => plan.ready_ns(rank),
                    (of, _) => of.map(|rank| lane.plan.phase_ns(rank)),
                };
                let thread =
                    self.threads.iter().map(|(of, _)| of).find(|of| of.task.name == task.name);
                all.push(Placed {
                    name: task.name.clone(),
                    cpu: thread.map_or(lane.thread.cpu, |of| of.cpu),
                    phase: phase_ns.map(Duration::from_nanos),
                    rank: Some(rank),
                });
            }
        }
        for (of, _) in &self.threads {
            let phase_ns = match &of.pace {
                Pace::Remote { .. } => continue,
                Pace::Own(plan) => Some(plan.phase_ns(0)),
                Pace::Triggered => None,
            };
            all.push(Placed {
                name: of.task.name.clone(),
                cpu: of.cpu,
                phase: phase_ns.map(Duration::from_nanos),
                rank: None,
            });
        }
        all
    }

    /// The most releases of its main loop that fall on one instant; an upper bound of it where the
    /// periods have a long common multiple.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn peak(&self) -> u64 {
        self.peak
    }
}
