//! Many tasks: one builder, whatever runs them and wherever they run.
//!
//! For whoever has more than one loop. The parts are laid out and checked before anything runs;
//! then each CPU's tasks share one loop, tasks that take long have threads or processes of their
//! own, and one monitor watches them all. Between the first release and the last nothing is
//! allocated in a loop, and nothing called but the clock, the bodies and, where a task runs
//! elsewhere, futex.

mod bodies;
mod builder;
mod ending;
mod handle;
mod idle;
mod inline;
mod lane;
mod process;
mod run;
mod shared;
mod startup;
mod team;
mod thread;
mod work;

use std::fmt;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::time::Period;
use punctual_engine::clocks::MachineClock;
use punctual_engine::error::{Error, ExecutiveError, Kind};
use punctual_engine::spawn::{self, OwnThread};

use crate::summary::Summary;
use lane::Lane;
use shared::{IDLE, RunState};
use team::Assembly;

pub use builder::{Calendar, ExecutiveBuilder};
pub use ending::StopHandle;
pub use handle::Handle;
pub use process::Process;
pub use punctual_engine::pack::Placed;
pub use shared::TaskId;
pub use work::Trigger;

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
///         position += 0.25 * cycle.dt.as_secs_f64();
///     })
///     .task(log.on_overrun(OnOverrun::Burst(3)), |_| ());
/// # // What the defaults take half a second to find out.
/// # let thread = RtThread::any().wait(WaitPolicy::sleep());
/// # let builder = builder.phase(Phase::Zero).thread(thread);
/// let (plan, _ids) = builder.build()?;
/// println!("{}", plan.run_for(Duration::from_millis(30))?.ok()?);
/// assert!(position > 0.0);
/// # Ok::<(), punctual::Error>(())
/// ```
#[must_use = "it does nothing until it runs"]
pub struct Executive<'env, C = MachineClock> {
    assembly: Assembly<'env, C>,
    peak: u64,
}

impl<C> fmt::Debug for Executive<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executive").field("tasks", &self.layout()).finish_non_exhaustive()
    }
}

impl Executive<'_> {
    /// A builder of an executive, without tasks yet.
    ///
    /// # Real-time: setup only
    pub fn builder<'env>() -> ExecutiveBuilder<'env> {
        ExecutiveBuilder::new()
    }
}

impl<'env, C> Executive<'env, C> {
    /// A handle for other threads, which outlives it: stop it, read what its tasks do, add and
    /// remove tasks while it runs.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'env> {
        Handle { shared: Arc::clone(&self.assembly.shared) }
    }

    /// The task of this name; `None` where there is none. While it runs, [`Handle::task_named`]
    /// finds it.
    ///
    /// # Real-time: setup only
    pub fn task_named(&self, name: &str) -> Option<TaskId> {
        self.assembly.shared.task_named(name)
    }

    /// A handle that stops it, for any thread and for signal handlers.
    ///
    /// # Real-time: setup only
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.assembly.shared.ending))
    }

    /// The place of each task that a loop or a thread of the executive runs: CPU, phase, rank,
    /// response. Those in threads of their own come last.
    ///
    /// # Real-time: setup only
    pub fn layout(&self) -> Vec<Placed> {
        let Assembly { lanes, threads, .. } = &self.assembly;
        let in_threads = threads.iter().map(|(task, _)| task.placed());
        lanes.iter().flat_map(|lane| lane.placed()).chain(in_threads).collect()
    }

    /// The most releases of its main loop that fall on one instant; an upper bound of it where the
    /// periods have a long common multiple.
    ///
    /// # Real-time: setup only
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// The period that the wait of its main loop learns for, the shortest of the tasks that this
    /// runs or releases: for [`learned::to_bytes`](crate::learned::to_bytes) and
    /// [`learned::from_bytes`](crate::learned::from_bytes). Tasks that are added do not change it.
    ///
    /// # Real-time: setup only
    pub fn wait_period(&self) -> Period {
        self.assembly.lanes.first().map_or(IDLE, Lane::adapts_to)
    }

    /// The risks that are known before it runs, a sentence each: tasks that may be late by their
    /// budgets, threads that throttling will stop. The summary has them too, with those of the run.
    ///
    /// # Real-time: setup only
    pub fn warnings(&self) -> &[String] {
        &self.assembly.cautions
    }
}

/// The companion of an executive that has none.
type Nothing<'env> = fn(&Handle<'env>);

impl<'env, C: Clock + Clone + Send + 'env> Executive<'env, C> {
    /// Runs it in the calling thread until it is stopped: by a handle, by a task
    /// ([`Flow::Stop`](crate::Flow::Stop), [`OnOverrun::Stop`](crate::OnOverrun::Stop)), by the
    /// watchdog or by a panic. Setup takes 50 ms for the clock, 90 ms to find a quiet phase (300 ms
    /// where the kernel's tick is hard to see), and a third of a second for the waits to learn,
    /// twice that where releases met the tick. Where a thread above keeps the CPU of a loop or a
    /// task for 4 s of it, the watchdog stops the executive before anything runs.
    ///
    /// Threads that a body starts inherit the CPU of the loop that runs it (not its policy) and get
    /// what that leaves of it, unless [`spawn_elsewhere`](crate::spawn_elsewhere) starts them.
    ///
    /// A panic of a body ends it in order ([`End::Panicked`](crate::End::Panicked)); the program's
    /// panic hook runs at that body's priority.
    ///
    /// A child that fork(2) makes in a callback (a body, a trigger, background work, the
    /// companion of [`run_with`](Self::run_with)) must end, or become another program, before the
    /// callback returns: where it returns it is ended with status 70, for the threads that its copy
    /// of the executive would wait for are its parent's. Whatever else it has of its parent's
    /// executive answers with an error there, and its drop does nothing.
    ///
    /// A task in a thread of its own that never returns keeps this from returning: it has lost its
    /// real-time policy by then, and the others have ended.
    ///
    /// # Errors
    /// A thread that cannot be started, a sample file that cannot be written; with
    /// [`RtThread::strict`](crate::RtThread::strict) what the kernel refused. Nothing has run then,
    /// unless it is one of the two threads that release and watch tasks which are processes: they
    /// are started as all begins, and the other tasks may have run by then.
    ///
    /// # Real-time: setup only
    pub fn run(self) -> Result<Summary, Error> {
        self.assembly.drive(None, None::<Nothing<'env>>).map(|(summary, _)| summary)
    }

    /// Runs it in the calling thread as [`Executive::run`] does, for `duration` from its first
    /// release on.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn run_for(self, duration: Duration) -> Result<Summary, Error> {
        self.assembly.drive(Some(duration), None::<Nothing<'env>>).map(|(summary, _)| summary)
    }

    /// Runs it for `duration` from its first release on, in threads of its own, and `beside` in the
    /// calling one, which may add and remove tasks, whose bodies may borrow. When `beside` returns
    /// the tasks go on until their time is up. Returns the value of `beside`, and the summary.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Panics
    /// When `beside` panics, after all has ended.
    ///
    /// # Real-time: setup only
    pub fn run_with<R>(
        self,
        duration: Duration,
        beside: impl FnOnce(&Handle<'env>) -> R,
    ) -> Result<(R, Summary), Error> {
        let (summary, returned) = self.assembly.drive(Some(duration), Some(beside))?;
        let returned = returned.expect("what runs beside it has returned");
        Ok((returned, summary))
    }
}

/// An executive that runs: its [`Handle`], and its end. Dropping it stops the executive and waits
/// for its end.
#[derive(Debug)]
pub struct Running {
    handle: Handle<'static>,
    thread: OwnThread<Result<Summary, Error>>,
}

impl Deref for Running {
    type Target = Handle<'static>;

    fn deref(&self) -> &Handle<'static> {
        &self.handle
    }
}

impl Running {
    /// A handle for other threads.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'static> {
        self.handle.clone()
    }

    /// Waits until the executive has ended by itself; returns its summary.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn join(mut self) -> Result<Summary, Error> {
        self.end()
    }

    /// Stops the executive and waits for its end; returns its summary.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.handle.stop();
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.handle.shared.ending.check_process()?;
        let ended = self.thread.join().ok_or_else(|| Error::from(ExecutiveError::NotRunning))?;
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        let _ended = self.thread.join();
    }
}

impl<C: Clock + Clone + Send + 'static> Executive<'static, C> {
    /// Runs it as [`Executive::run`] does, in threads of its own, while the caller goes on.
    ///
    /// # Errors
    /// Its thread cannot be started; this is a child that fork(2) made. All other errors come by
    /// [`Running::join`].
    ///
    /// # Real-time: setup only
    pub fn start(self) -> Result<Running, Error> {
        self.assembly.shared.ending.check_process()?;
        let handle = self.handle();
        self.assembly.shared.enter(RunState::Starting);
        let thread = spawn::plain("punctual-loop", move || self.run()).map_err(|why| {
            handle.shared.enter(RunState::Over);
            Kind::Thread(why)
        })?;
        Ok(Running { handle, thread: OwnThread::new(thread) })
    }
}

#[cfg(test)]
mod tests;
