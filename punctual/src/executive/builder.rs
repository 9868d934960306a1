//! What an executive is to be: its tasks, where they run, how its threads run.
//!
//! For whoever sets one up. Plain data with the best defaults; [`ExecutiveBuilder::build`] says
//! what is wrong with it before anything runs.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::executive::many::{Cycle, Flow};
use punctual_core::time::Span;

use super::body::boxed;
use super::built::Executive;
use super::calendar::Calendar;
use super::clocking::Clocking;
use super::idle::Idle;
use super::process::Process;
use super::trigger::Trigger;
use super::work::{Given, Work};
use crate::clocks::MachineClock;
use crate::loops::Phase;
use crate::rt_thread::{RtThread, span};
use crate::task::Task;

/// Collects what an executive is to be.
#[must_use = "it is made by `build`"]
pub struct ExecutiveBuilder<'env, C = MachineClock> {
    pub(super) given: Vec<Given<'env>>,
    pub(super) calendar: Option<Calendar<'env>>,
    pub(super) idle: Option<Idle<'env>>,
    pub(super) thread: RtThread,
    pub(super) cpus: Vec<u32>,
    pub(super) phase: Phase,
    pub(super) tick: Option<Duration>,
    pub(super) grace: Option<Span>,
    pub(super) most: f64,
    pub(super) overload: bool,
    pub(super) samples: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) clocking: Clocking<'env, C>,
}

impl<C> fmt::Debug for ExecutiveBuilder<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: Vec<&Task> = self.given.iter().map(|given| &given.task).collect();
        f.debug_struct("ExecutiveBuilder")
            .field("tasks", &tasks)
            .field("calendar", &self.calendar)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl Executive<'_> {
    /// An executive to be, without tasks yet.
    ///
    /// # Real-time: setup only
    pub fn builder<'env>() -> ExecutiveBuilder<'env> {
        ExecutiveBuilder::new()
    }
}

impl ExecutiveBuilder<'_> {
    fn new() -> Self {
        Self {
            given: Vec::new(),
            calendar: None,
            idle: None,
            thread: RtThread::any(),
            cpus: Vec::new(),
            phase: Phase::Quiet,
            tick: None,
            grace: None,
            most: 1.0,
            overload: false,
            samples: None,
            name: None,
            clocking: Clocking::machine(),
        }
    }
}

impl<'env, C> ExecutiveBuilder<'env, C> {
    /// One more task, whose body runs once a period, where [`Task::placed`] says.
    ///
    /// # Real-time: setup only
    pub fn task<R: Into<Flow>>(
        mut self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.given.push(Given { task, work: Work::Body(boxed(body)) });
        self
    }

    /// Units at fixed places of a frame, which the executive's own thread runs; its other tasks run
    /// where their budgets fit between the units. All begins with the first frame that can be
    /// whole, also tasks in threads and processes; only what is triggered runs before it
    /// ([`Trigger`](crate::Trigger)).
    ///
    /// # Real-time: setup only
    pub fn calendar(mut self, calendar: Calendar<'env>) -> Self {
        self.calendar = Some(calendar);
        self
    }

    /// One more task, which is a process of its own: it is started, released, seen and ended by a
    /// supervisor, and calls [`Registration`](crate::Registration).
    ///
    /// # Real-time: setup only
    pub fn external(mut self, task: Task, process: Process) -> Self {
        self.given.push(Given { task, work: Work::Process(Box::new(process)) });
        self
    }

    /// One more task, whose cycles a device triggers: it has a thread of its own and no releases,
    /// so that nothing of it is late; what is kept is the distance from start to start.
    /// [`Flow::Break`] from its body ends this task alone, [`Flow::Stop`] the executive. The thread
    /// has the lowest real-time priority, on any CPU, unless
    /// [`Placement::thread`](crate::Placement::thread) says otherwise.
    ///
    /// # Real-time: setup only
    pub fn triggered<R: Into<Flow>>(
        mut self,
        trigger: Trigger<'env>,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.given.push(Given { task, work: Work::Triggered(trigger, boxed(body)) });
        self
    }

    /// Background work in slices of at most this length: one runs where it ends before the next
    /// release, in the executive's own thread with its priority, so that ordinary threads get
    /// little of that CPU. [`Flow::Break`] says that there is nothing more to do before that.
    ///
    /// # Real-time: setup only
    pub fn idle<R: Into<Flow>>(
        mut self,
        slice: Duration,
        mut body: impl FnMut() -> R + Send + 'env,
    ) -> Self {
        self.idle = Some(Idle { slice: span(slice), body: Box::new(move || body().into()) });
        self
    }

    /// Sets how the executive's own thread runs: that which calls [`Executive::run`], or the one
    /// that [`Executive::start`] starts. Its threads on other CPUs run in the same way.
    ///
    /// # Real-time: setup only
    pub fn thread(mut self, thread: RtThread) -> Self {
        self.thread = thread;
        self
    }

    /// Has it run on these CPUs, a thread on each, the first one its own: each task goes where it
    /// fits best, harmonic periods together. Instead of the CPU of [`ExecutiveBuilder::thread`].
    ///
    /// # Real-time: setup only
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = cpus.into_iter().collect();
        self
    }

    /// Sets the share of each CPU that budgets may fill before the next one is taken, in (0, 1]
    /// [default: 1].
    ///
    /// # Real-time: setup only
    pub fn fill(mut self, share: f64) -> Self {
        self.most = share;
        self
    }

    /// Sets where the releases of all tasks lie: away from the kernel's tick ([`Phase::Quiet`],
    /// the default), or with release 0 of phase 0 at zero or a given instant of the clock.
    ///
    /// # Real-time: setup only
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Lets balanced phases fall on multiples of `tick` [default: on those of the periods' common
    /// divisor, so that tasks that all have one period are released together, with one wake].
    ///
    /// # Real-time: setup only
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// Sets how long a task with a thread of its own may go on after its cancel token was set,
    /// before it loses its real-time policy until it returns [default: its period].
    ///
    /// # Real-time: setup only
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(span(grace));
        self
    }

    /// Lets the budgets on a CPU ask for more than the whole of it: releases will be missed.
    ///
    /// # Real-time: setup only
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Records the lateness of every cycle in a sample file, a run a task, which `punctual analyse`
    /// reads. A file of that name stays until the first samples are written, and is replaced then.
    /// Tasks that are added later, that a device triggers or that are processes are not in it.
    ///
    /// # Real-time: setup only
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.samples = Some(file.into());
        self
    }

    /// Sets the name by which processes join it ([`Process::joining`]).
    ///
    /// # Real-time: setup only
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Has all releases be on the time of this clock: one that is followed
    /// ([`Follower::clock`](crate::follow::Follower::clock)), or that of a simulation.
    /// [`Phase::Quiet`] is zero there.
    ///
    /// # Real-time: setup only
    pub fn clock<D: Clock + Clone + Send + 'env>(self, clock: D) -> ExecutiveBuilder<'env, D> {
        let clocking = Clocking::given(clock);
        let Self { given, calendar, idle, thread, cpus, phase, tick, .. } = self;
        let Self { grace, most, overload, samples, name, .. } = self;
        ExecutiveBuilder {
            given,
            calendar,
            idle,
            thread,
            cpus,
            phase,
            tick,
            grace,
            most,
            overload,
            samples,
            name,
            clocking,
        }
    }
}
