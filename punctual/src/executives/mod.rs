//! Several executives, each pinned to a CPU of its own; the tasks are packed by harmonic chains.
//!
//! For more work than one CPU can do. Each task runs to its end in its executive's thread, as in
//! one executive; tasks on different CPUs run at the same time, and what they share is theirs to
//! guard. All grids have one epoch, so that phases hold across CPUs. One watchdog for all, and one
//! watcher that sets the cancel token of a task that is to be terminated, on another CPU where
//! there is one.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use punctual::core::{executive::many::Flow, time::Span, wait::Sleep};
//! use punctual::executives::Executives;
//! use punctual::periodic::{Period, Task};
//!
//! let task = |name: &str, hertz| Task::new(name, Period::hz(hertz).expect("in range"));
//! let fleet = Executives::new(&[0])
//!     .task(task("servo", 1_000), |_| Flow::Continue)
//!     .task(task("video", 60), |_| Flow::Continue)
//!     .build()?;
//! let finished = fleet.run(|_| Sleep, Span::from_ms(30), &AtomicBool::new(false));
//! for (name, counts) in &finished[0].tasks {
//!     println!("{name}: {} cycles, {} missed", counts.ran, counts.missed);
//! }
//! # assert!(finished[0].tasks.iter().all(|(_, counts)| counts.ran <= 31));
//! # Ok::<(), punctual::periodic::BuildError>(())
//! ```
//!
//! Tasks may come and go while the executives run, one CPU or several: [`Fleet::run_with`] has a
//! [`Roster`] beside them, whose calls return once the change is in effect. The loop takes it
//! between two jobs, where there is time for it before the next release; within 100 ms in any case,
//! once the task that runs has returned. It neither allocates nor frees, and who stays keeps every
//! release, its number and its phase ([`crate::handover`]).
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use punctual::core::{executive::many::Flow, time::Span, wait::Sleep};
//! use punctual::executives::{ChangeError, Executives};
//! use punctual::periodic::{Period, Task};
//!
//! let task = |name: &str, hertz| Task::new(name, Period::hz(hertz).expect("in range"));
//! let one = Executives::new(&[0]).task(task("servo", 1_000), |_| Flow::Continue).build()?;
//! let stop = AtomicBool::new(false);
//! let (probed, finished) = one.run_with(|_| Sleep, Span::from_ms(40), &stop, |roster| {
//!     roster.add(task("probe", 500), |_| Flow::Continue)?;
//!     roster.remove("probe")
//! });
//! match probed {
//!     Ok(counts) => println!("the probe ran {} times", counts.ran),
//!     Err(ChangeError::Refused(why)) => println!("{why}"),
//!     Err(why) => panic!("{why}"),
//! }
//! # assert_eq!(finished[0].tasks[0].0, "servo");
//! # Ok::<(), punctual::periodic::BuildError>(())
//! ```

mod pack;
mod parts;
mod roster;
mod run;

use std::fmt;

use punctual_core::executive::Ended;
use punctual_core::executive::many::{Cycle, Flow};
use punctual_core::page::Counts;
use punctual_core::time::Instant;
use punctual_os::scheduler::SchedPolicy as Granted;

use crate::pages::Pages;
use crate::periodic::{BuildError, Periodic, Plan, Task};
use crate::stage::Priorities;
use crate::workers::{Body, PRIORITY};

pub use pack::pack;
pub use roster::{ChangeError, Roster};

/// Above every thread that is none of the machine's own, below the guard.
const PRIORITIES: Priorities = Priorities { least: 1, most: 98 };

/// Collects tasks; [`Executives::build`] checks them and says which CPU each runs on.
pub struct Executives<'w> {
    cpus: Vec<u32>,
    tasks: Vec<Task>,
    bodies: Vec<Body<'w>>,
    priority: u8,
    epoch: Instant,
    most: f64,
    overload: bool,
}

impl fmt::Debug for Executives<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executives")
            .field("cpus", &self.cpus)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}

impl<'w> Executives<'w> {
    /// One executive on each of these CPUs, each named once, without tasks yet.
    ///
    /// # Real-time: setup only
    pub fn new(cpus: &[u32]) -> Self {
        Self {
            cpus: cpus.to_vec(),
            tasks: Vec::new(),
            bodies: Vec::new(),
            priority: PRIORITY,
            epoch: Instant::from_ns(0),
            most: 1.0,
            overload: false,
        }
    }

    /// One more task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn task(
        mut self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> Flow + Send + 'w,
    ) -> Self {
        self.tasks.push(task);
        self.bodies.push(Box::new(body));
        self
    }

    /// Sets the executives' SCHED_FIFO priority, in [1, 98]; [`Executives::build`] refuses others.
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

    /// Sets the share of each CPU that budgets may fill, in (0, 1] [default: 1].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn most(mut self, share: f64) -> Self {
        self.most = share;
        self
    }

    /// Lets the budgets on a CPU ask for more than the whole of it: releases will be missed.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Packs the tasks, then checks and lays out those of each CPU.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be, with the names of the tasks it is about; budgets that do not
    /// fit on the CPUs with the share they ask of one.
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<Fleet<'w>, BuildError> {
        self.check()?;
        let place = pack(&self.tasks, self.cpus.len(), self.most);
        let mut bodies: Vec<Option<Body<'w>>> = self.bodies.into_iter().map(Some).collect();
        let mut on = Vec::new();
        for (at, &cpu) in self.cpus.iter().enumerate() {
            let here: Vec<usize> =
                (0..self.tasks.len()).filter(|&task| place[task] == at).collect();
            let tasks = here.iter().map(|&task| self.tasks[task].clone());
            let all = tasks.fold(Periodic::new(), Periodic::task);
            let plan = if self.overload { all.allow_overload() } else { all }.build()?;
            // By rank, as the plan has them.
            let of = |name: &str| here.iter().copied().find(|&task| self.tasks[task].name == name);
            let ranked = (0..plan.tasks()).filter_map(|rank| of(plan.name(rank)));
            let bodies = ranked.filter_map(|task| bodies[task].take()).collect();
            let pages = Pages::new((0..plan.tasks()).map(|rank| plan.name(rank).to_owned()));
            let tasks = here.iter().map(|&task| self.tasks[task].clone()).collect();
            on.push(One { cpu, tasks, plan, bodies, pages });
        }
        let Self { priority, epoch, most, overload, .. } = self;
        Ok(Fleet { on, priority, epoch, most, overload })
    }
}

impl Executives<'_> {
    /// All that has nothing to do with how tasks are packed.
    fn check(&self) -> Result<(), BuildError> {
        PRIORITIES.check(self.priority)?;
        // Not a number is neither.
        if !(self.most > 0.0 && self.most <= 1.0) {
            return Err(BuildError::Share(self.most));
        }
        if self.cpus.is_empty() {
            return Err(BuildError::NoCpu);
        }
        let again = |(at, cpu): &(usize, &u32)| self.cpus[..*at].contains(cpu);
        if let Some((_, &cpu)) = self.cpus.iter().enumerate().find(again) {
            return Err(BuildError::SameCpu(cpu));
        }
        // Names are unique over all CPUs.
        let all = self.tasks.iter().cloned().fold(Periodic::new(), Periodic::task);
        all.allow_overload().build().map(drop)
    }
}

/// The executive of one CPU.
struct One<'w> {
    cpu: u32,
    tasks: Vec<Task>,
    plan: Plan,
    bodies: Vec<Body<'w>>,
    pages: Pages,
}

/// Executives that fit together, ready to run once.
pub struct Fleet<'w> {
    on: Vec<One<'w>>,
    priority: u8,
    epoch: Instant,
    most: f64,
    overload: bool,
}

impl fmt::Debug for Fleet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.on.iter().map(|one| (one.cpu, &one.plan))).finish()
    }
}

impl Fleet<'_> {
    /// Each CPU with its plan.
    ///
    /// # Real-time: setup only
    pub fn plans(&self) -> impl Iterator<Item = (u32, &Plan)> {
        self.on.iter().map(|one| (one.cpu, &one.plan))
    }

    /// The pages of each CPU's tasks, by rank; to be read while they run.
    ///
    /// # Real-time: setup only
    pub fn pages(&self) -> Vec<Pages> {
        self.on.iter().map(|one| one.pages.clone()).collect()
    }
}

/// What became of one executive.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its CPU.
    pub cpu: u32,
    /// Why it ended.
    pub ended: Ended,
    /// The policy that its thread really had.
    pub policy: Granted,
    /// Whether it was really pinned to its CPU.
    pub pinned: bool,
    /// Whether a body panicked, which ends all.
    pub panicked: bool,
    /// The tasks that it ran to the end, by rank, and their counters.
    pub tasks: Vec<(String, Counts)>,
    /// Those that were removed before, in that order.
    pub removed: Vec<(String, Counts)>,
}

#[cfg(test)]
mod tests;
