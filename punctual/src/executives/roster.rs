//! Tasks registered and removed while the executives run.
//!
//! For a thread beside them. Each change is checked by the builder, as at first, laid out with the
//! phases of all that goes on, and handed to the executive of its CPU ([`crate::handover`]); what
//! was removed is freed here.

use std::fmt;

use punctual_core::executive::many::{Cycle, Flow};
use punctual_core::page::Counts;
use punctual_core::time::Instant;

use super::pack::place;
use super::parts::{Parts, nothing};
use crate::handover::{Change, Handover, Refused};
use crate::pages::Pages;
use crate::periodic::{BuildError, Periodic, Plan, Successor, Task};
use crate::stage::watchdog_bound;
use crate::workers::Body;

/// Why tasks stay as they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// They cannot be so.
    Cannot(BuildError),
    /// There is no task of this name.
    Unknown(String),
    /// The executive did not take the change.
    Refused(Refused),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cannot(why) => why.fmt(f),
            Self::Unknown(name) => write!(f, "there is no task {name:?}"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

impl From<BuildError> for ChangeError {
    fn from(why: BuildError) -> Self {
        Self::Cannot(why)
    }
}

/// The tasks of executives that run, to be changed.
#[derive(Debug)]
pub struct Roster<'r, 'w> {
    pub(super) on: Vec<Desk<'r, 'w>>,
    pub(super) most: f64,
    pub(super) overload: bool,
    pub(super) epoch: Instant,
}

/// The executive of one CPU.
pub(super) struct Desk<'r, 'w> {
    pub(super) cpu: u32,
    pub(super) handover: &'r Handover<Parts<'w>>,
    pub(super) tasks: Vec<Task>,
    pub(super) plan: Plan,
    pub(super) pages: Pages,
    pub(super) removed: Vec<(String, Counts)>,
}

impl fmt::Debug for Desk<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("cpu", &self.cpu).field("plan", &self.plan).finish()
    }
}

impl<'w> Roster<'_, 'w> {
    /// One more task, on the CPU where it fits best: that of the task which it follows; or the one
    /// whose harmonic chain it goes on, as long as its budget fits there; or the least loaded one.
    /// Returns once it is in effect, with that CPU; the task's first release is the first one after
    /// that. The others keep every release, their phases, numbers and counters.
    ///
    /// # Errors
    ///
    /// What cannot be, as [`super::Executives::build`] says it, or that the executives have ended;
    /// nothing is changed then.
    ///
    /// # Real-time: setup only
    pub fn add(
        &mut self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> Flow + Send + 'w,
    ) -> Result<u32, ChangeError> {
        // Names, and that all tasks have a priority or none, hold over all CPUs.
        let all = self.on.iter().flat_map(|desk| &desk.tasks).chain([&task]).cloned();
        all.fold(Periodic::new(), Periodic::task).allow_overload().check().map(drop)?;
        let on: Vec<&[Task]> = self.on.iter().map(|desk| &desk.tasks[..]).collect();
        let at = place(&task, &on, self.most);
        let mut tasks = self.on[at].tasks.clone();
        tasks.push(task);
        self.change(at, tasks, Some(Box::new(body)))?;
        Ok(self.on[at].cpu)
    }

    /// One task less. Returns once it is in effect, with the task's counters; its body is dropped.
    /// A release that it was due for, and that has not begun, does not run. Tasks that follow it
    /// keep their phases.
    ///
    /// # Errors
    ///
    /// That there is no such task, or that the executives have ended.
    ///
    /// # Real-time: setup only
    pub fn remove(&mut self, name: &str) -> Result<Counts, ChangeError> {
        let is = |task: &Task| task.name() == name;
        let at = self.on.iter().position(|desk| desk.tasks.iter().any(is));
        let at = at.ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        let mut tasks = self.on[at].tasks.clone();
        tasks.retain(|task| !is(task));
        let pages = self.on[at].pages.clone();
        self.change(at, tasks, None)?;
        let page = pages.iter().find(|page| page.0 == name).and_then(|(_, page)| page);
        let counts = page.map(|page| page.counts()).unwrap_or_default();
        self.on[at].removed.push((name.to_owned(), counts));
        Ok(counts)
    }

    /// Each CPU with its plan of now.
    ///
    /// # Real-time: setup only
    pub fn plans(&self) -> impl Iterator<Item = (u32, &Plan)> {
        self.on.iter().map(|desk| (desk.cpu, &desk.plan))
    }

    /// The pages of each CPU's tasks of now, by rank; to be read while they run. Those of a task
    /// that was removed stay as they were.
    ///
    /// # Real-time: setup only
    pub fn pages(&self) -> Vec<Pages> {
        self.on.iter().map(|desk| desk.pages.clone()).collect()
    }

    /// Other tasks on one CPU; of those that are new there is one, with this body.
    fn change(
        &mut self,
        at: usize,
        tasks: Vec<Task>,
        mut new: Option<Body<'w>>,
    ) -> Result<(), ChangeError> {
        let desk = &mut self.on[at];
        let all = tasks.iter().cloned().fold(Periodic::new(), Periodic::task);
        let all = if self.overload { all.allow_overload() } else { all };
        let Successor { plan, ranks } = all.build_after(&desk.plan)?;
        let names = (0..plan.tasks()).map(|rank| plan.name(rank).to_owned());
        let pages = desk.pages.after(names.zip(ranks.iter().map(Option::is_some)));
        let body = |from: &Option<u32>| match from {
            None => new.take().unwrap_or_else(nothing),
            Some(_) => nothing(),
        };
        let bodies = ranks.iter().map(body).collect();
        let parts = Parts { bodies, pages: pages.writers(), bound: watchdog_bound(&plan) };
        let next = Successor { plan: plan.clone(), ranks };
        let change = Change::new(next, self.epoch, parts);
        // What was there before is freed here.
        desk.handover.publish(change).map(drop).map_err(|(why, _)| ChangeError::Refused(why))?;
        (desk.tasks, desk.plan, desk.pages) = (tasks, plan, pages);
        Ok(())
    }
}
