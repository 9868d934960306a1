//! What a `punctual_workers` is: tasks while they are added, then pages and phases.
//!
//! Setup and readers; the run is `run.rs`'s.

#[expect(
    clippy::disallowed_types,
    reason = "filled by build, a call of setup; then only read"
)]
use std::sync::OnceLock;

use punctual::core::executive::many::Flow;
use punctual::core::page::View;
use punctual::core::time::Span;
use punctual::pages::Pages;
use punctual::periodic::{Period, Task};
use punctual::workers::Workers;

use super::outcome::Outcome;
use super::source::Source;
use super::stop::Stop;
use crate::border::{Exclusive, Failure};
use crate::periodic::failure;
use crate::run::Told;
use crate::task::Callback;

/// Workers.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "filled by build, a call of setup; then only read")]
pub(crate) struct Crew {
    pub(super) setup: Exclusive<Setup>,
    built: OnceLock<Built>,
    pub(super) stop: Stop,
}

/// What one call at a time may touch.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) tasks: Vec<Added>,
    /// The CPU of the workers.
    pub(super) cpu: Option<u32>,
    grace: Option<Span>,
    overload: bool,
    pub(super) told: Told,
    /// Of the last run; none before the first one is over.
    pub(super) outcomes: Vec<Outcome>,
}

/// A task and what runs it.
pub(super) struct Added {
    pub(super) task: Task,
    pub(super) callback: Callback,
    /// What paces it, where that is a device.
    pub(super) source: Option<Source>,
}

/// What is fixed once it is built.
pub(super) struct Built {
    pub(super) pages: Pages,
    /// None for one that a device paces.
    phases: Vec<Option<u64>>,
    /// The shortest period.
    pub(super) shortest: Period,
}

impl Crew {
    /// One more task; its index.
    pub(super) fn add(&self, added: Added) -> Result<u32, Failure> {
        self.setup_with(|setup| {
            let index = u32::try_from(setup.tasks.len())
                .map_err(|_| Failure::new(libc::E2BIG, "too many tasks"))?;
            setup.tasks.push(added);
            Ok(index)
        })
    }

    pub(super) fn allow_overload(&self) -> Result<(), Failure> {
        self.setup_with(|setup| {
            setup.overload = true;
            Ok(())
        })
    }

    /// Sets the CPU of the workers; −1 for any.
    pub(super) fn pin(&self, cpu: i32) -> Result<(), Failure> {
        self.setup_with(|setup| {
            setup.cpu = match (cpu, u32::try_from(cpu)) {
                (-1, _) => None,
                (_, Ok(cpu)) => Some(cpu),
                _ => return Err(Failure::invalid(format!("CPU {cpu}: from 0 on, or -1 for any"))),
            };
            Ok(())
        })
    }

    pub(super) fn grace_ns(&self, ns: u64) -> Result<(), Failure> {
        self.setup_with(|setup| {
            setup.grace = Some(Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
            Ok(())
        })
    }

    /// Before it is built.
    fn setup_with<R>(
        &self,
        change: impl FnOnce(&mut Setup) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.setup.with(|setup| match self.built.get() {
            None => change(setup),
            Some(_) => Err(Failure::new(libc::EBUSY, "the workers are built already")),
        })
    }

    /// Checks all tasks and lays them out.
    pub(super) fn build(&self) -> Result<(), Failure> {
        self.setup_with(|setup| {
            let built = Built::of(setup)?;
            // Nobody else is in here.
            let _first = self.built.set(built);
            Ok(())
        })
    }

    /// What was built.
    pub(super) fn built(&self) -> Result<&Built, Failure> {
        self.built.get().ok_or_else(|| Failure::invalid("the workers are not built yet"))
    }

    pub(super) fn outcome(&self, task: u32) -> Result<Outcome, Failure> {
        self.built()?.check(task)?;
        let outcome = self.setup.with(|setup| Ok(setup.outcomes.get(task as usize).copied()))?;
        outcome.ok_or(Failure::bare(libc::ENODATA))
    }
}

impl Setup {
    /// Workers without tasks, as they were asked for.
    pub(super) fn workers<'w>(&self) -> Workers<'w> {
        let mut workers = Workers::new();
        if let Some(cpu) = self.cpu {
            workers = workers.workers_cpu(cpu);
        }
        if let Some(grace) = self.grace {
            workers = workers.grace(grace);
        }
        if self.overload { workers.allow_overload() } else { workers }
    }
}

impl Built {
    fn of(setup: &Setup) -> Result<Self, Failure> {
        let shortest = setup.tasks.iter().map(|added| added.task.period()).min();
        let shortest = shortest.ok_or_else(|| Failure::invalid("workers without tasks"))?;
        // What runs is made anew for each run; here only whether it can be.
        let idle = setup.tasks.iter().fold(setup.workers(), |all, added| {
            let task = added.task.clone();
            match added.source {
                Some(_) => all.external(task, || false, |_| Flow::Stop),
                None => all.task(task, |_| Flow::Stop),
            }
        });
        let crew = idle.build().map_err(|why| failure(&why))?;
        let phases = crew.places().map(|(_, phase_ns, _)| phase_ns).collect();
        Ok(Self { pages: crew.pages(), phases, shortest })
    }

    /// Whether there is this task.
    fn check(&self, task: u32) -> Result<usize, Failure> {
        let there = (task as usize) < self.phases.len();
        there.then_some(task as usize).ok_or(Failure::bare(libc::ENOENT))
    }

    /// The phase of a task; ENODATA for one that a device paces.
    pub(super) fn phase_ns(&self, task: u32) -> Result<u64, Failure> {
        self.phases[self.check(task)?].ok_or(Failure::bare(libc::ENODATA))
    }

    /// The page of a task; `None` before its first run, and in the moment in which one empties it.
    pub(super) fn view(&self, task: u32) -> Result<Option<View<'_>>, Failure> {
        let task = self.check(task)?;
        Ok(self.pages.iter().nth(task).and_then(|(_, view)| view))
    }
}
