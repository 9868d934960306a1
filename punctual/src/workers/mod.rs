//! Workers: one thread a task, released by futex from one executive, so that the kernel preempts by
//! priority.
//!
//! For tasks that may take longer than the most urgent one can wait. The executive's thread runs
//! the table and posts ([`crate::posts`]); each task runs its cycles in a SCHED_FIFO thread whose
//! priority follows its rank, below the executive's (1 for all whose rank is beyond the priorities
//! there are), and stamps its own start and finish. A guard
//! above all of them ([`crate::guard`]) takes a runaway's policy away, and its alone. Without the
//! right to SCHED_FIFO all run as SCHED_OTHER, and [`Finished`] says so.
//!
//! What an overrun can do here: `Skip`, `Burst`, `Terminate` (the cancel token is set at the
//! release that the task overran; if it goes on for another [`Workers::grace`] it is demoted until
//! it returns: a thread cannot be killed) and `Stop` are done by the executive; a task with `Delay`
//! has a phase of its own once it overran, so it waits for its releases itself; an external task
//! is paced by its device and has no releases at all.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use punctual::core::{executive::many::Flow, time::Span, wait::Sleep};
//! use punctual::periodic::{Period, Task};
//! use punctual::workers::Workers;
//!
//! let mut sum = 0;
//! let servo = Task::new("servo", Period::hz(1_000).expect("in range"));
//! let crew = Workers::new()
//!     .task(servo, |cycle| {
//!         sum += cycle.missed + 1;
//!         Flow::Continue
//!     })
//!     .task(Task::new("log", Period::hz(100).expect("in range")), |_| Flow::Continue)
//!     .build()?;
//! let finished = crew.run(Sleep, Span::from_ms(30), &AtomicBool::new(false));
//! assert_eq!(finished.tasks[0].name, "servo");
//! println!("{sum} releases of it passed");
//! # Ok::<(), punctual::periodic::BuildError>(())
//! ```

mod layout;
mod run;
mod shared;
mod thread;

use std::fmt;

use punctual_core::executive::many::{Cycle, Flow};
use punctual_core::page;
use punctual_core::time::{Instant, Span};
use punctual_os::Errno;
use punctual_os::scheduler::SchedPolicy as Granted;

use crate::periodic::{BuildError, Task};
use crate::watchdog::Force;

pub use layout::Crew;
pub(crate) use layout::{limits, releases};

/// What runs in each cycle.
pub(crate) type Body<'w> = Box<dyn FnMut(&mut Cycle<'_>) -> Flow + Send + 'w>;
/// What paces an external task: blocks until its next cycle; false for none any more.
pub(crate) type Source<'w> = Box<dyn FnMut() -> bool + Send + 'w>;

/// The executive's priority where none is asked for: the workers' are below, the guard's above.
pub const PRIORITY: u8 = 80;

/// A task and how it runs.
struct Worker<'w> {
    task: Task,
    body: Body<'w>,
    source: Option<Source<'w>>,
}

impl fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("task", &self.task).finish_non_exhaustive()
    }
}

/// Collects workers; [`Workers::build`] checks them and lays them out.
#[derive(Debug)]
pub struct Workers<'w> {
    all: Vec<Worker<'w>>,
    cpu: Option<u32>,
    workers_cpu: Option<u32>,
    priority: u8,
    epoch: Instant,
    grace: Option<Span>,
    overload: bool,
}

impl Default for Workers<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'w> Workers<'w> {
    /// No tasks yet; on any CPU, at [`PRIORITY`], on the grid of CLOCK_MONOTONIC.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self {
            all: Vec::new(),
            cpu: None,
            workers_cpu: None,
            priority: PRIORITY,
            epoch: Instant::from_ns(0),
            grace: None,
            overload: false,
        }
    }

    /// One more task, which is released.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn task(
        mut self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> Flow + Send + 'w,
    ) -> Self {
        self.all.push(Worker { task, body: Box::new(body), source: None });
        self
    }

    /// One more task, which a device paces: `source` blocks until its next cycle, and gives false
    /// when there will be none, which must come at the latest when the executive is to stop. Its
    /// period is nominal: it sets its priority, and what its page is read against.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn external(
        mut self,
        task: Task,
        source: impl FnMut() -> bool + Send + 'w,
        body: impl FnMut(&mut Cycle<'_>) -> Flow + Send + 'w,
    ) -> Self {
        self.all.push(Worker { task, body: Box::new(body), source: Some(Box::new(source)) });
        self
    }

    /// Sets the CPUs of the executive and of the workers; where they are one, the executive
    /// preempts them.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpus(mut self, executive: u32, workers: u32) -> Self {
        (self.cpu, self.workers_cpu) = (Some(executive), Some(workers));
        self
    }

    /// Sets the CPU of the executive alone.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// Sets the CPU of the workers alone.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn workers_cpu(mut self, cpu: u32) -> Self {
        self.workers_cpu = Some(cpu);
        self
    }

    /// Sets the executive's SCHED_FIFO priority, in [2, 98]; the workers' are below.
    /// [`Workers::build`] refuses others.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the instant of release 0 of phase 0.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn epoch(mut self, epoch: Instant) -> Self {
        self.epoch = epoch;
        self
    }

    /// Sets how long a task that is to be terminated may go on after its cancel token was set,
    /// before it is demoted: not less than nothing [default: its period].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn grace(mut self, grace: Span) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Lets the budgets ask for more than a whole CPU.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Checks all tasks and lays them out.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be, with the names of the tasks it is about.
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<Crew<'w>, BuildError> {
        layout::of(self)
    }
}

/// Why a crew ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It came to its end.
    Finished,
    /// It was told to stop, or a task said so.
    Stopped,
    /// The task of this name overran, and its policy is to stop everything.
    Overran(String),
    /// A thread could not be started: nothing ran.
    NoThread(Errno),
}

/// What became of a crew; its figures are on its [`crate::pages::Pages`] too.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Why it ended.
    pub why: Why,
    /// How the watchdog ended it, if it did.
    pub forced: Option<Force>,
    /// The policy that the executive's thread really had.
    pub policy: Granted,
    /// What became of each task, in the order in which they were given.
    pub tasks: Vec<Outcome>,
}

/// What became of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The task.
    pub name: String,
    /// The policy that its thread really had.
    pub policy: Granted,
    /// Its counters.
    pub counts: page::Counts,
    /// Releases that found it still running an earlier cycle.
    pub overran: u64,
    /// How often the guard made it SCHED_OTHER, and how often it got its policy back.
    pub demoted: (u64, u64),
    /// Whether its body panicked, which ended it and nobody else.
    pub panicked: bool,
}

#[cfg(test)]
mod tests;
