//! Workers laid out: which table posts, who waits by himself, which priority each thread gets.
//!
//! For the builder. All phases are balanced together, whoever waits for them; what cannot be where
//! it runs is refused here, with its reason.

use punctual_core::releases::Releases;
use punctual_core::seat::Terms;
use punctual_core::time::{Instant, Span};

use super::{Body, Source, Worker, Workers};
use crate::guard::hang_bound;
use crate::pages::Pages;
use crate::periodic::{BuildError, OnOverrun, Periodic, Phase, Plan, Task};
use crate::posts::{Limits, PostOverrun};
use crate::stage::Priorities;

/// Workers that fit together, ready to run once.
#[derive(Debug)]
pub struct Crew<'w> {
    pub(super) cpu: Option<u32>,
    pub(super) workers_cpu: Option<u32>,
    pub(super) priority: u8,
    pub(super) epoch: Instant,
    /// The tasks that the executive posts.
    pub(super) plan: Plan,
    pub(super) tasks: Vec<Placed<'w>>,
    pub(super) pages: Pages,
}

/// One worker in its place.
pub(super) struct Placed<'w> {
    pub(super) name: String,
    pub(super) body: Body<'w>,
    pub(super) priority: u8,
    pub(super) pace: Pace<'w>,
    pub(super) limits: Limits,
}

impl std::fmt::Debug for Placed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who says when a worker runs.
pub(super) enum Pace<'w> {
    /// The executive: by the rank in its plan.
    Posted { rank: usize, terms: Terms, on_overrun: PostOverrun, grace: Span },
    /// Itself: its phase may move.
    Own(Box<Plan>),
    /// Its device.
    Device { source: Source<'w>, period_ns: u64 },
}

impl Crew<'_> {
    /// The pages, to be read while it runs.
    ///
    /// # Real-time: setup only
    pub fn pages(&self) -> Pages {
        self.pages.clone()
    }

    /// Keeps its figures on the pages of an earlier crew, where their readers are; those of other
    /// tasks are left alone.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn keep_on(mut self, earlier: &Pages) -> Self {
        if earlier.iter().map(|(name, _)| name).eq(self.pages.iter().map(|(name, _)| name)) {
            self.pages = earlier.clone();
        }
        self
    }

    /// Names, phases in ns after the epoch (none for one that a device paces) and priorities, in
    /// the order in which the tasks were given.
    ///
    /// # Real-time: setup only
    pub fn places(&self) -> impl Iterator<Item = (&str, Option<u64>, u8)> {
        let phase = |placed: &Placed<'_>| match &placed.pace {
            Pace::Posted { rank, .. } => Some(self.plan.phase_ns(*rank)),
            Pace::Own(plan) => Some(plan.phase_ns(0)),
            Pace::Device { .. } => None,
        };
        self.tasks.iter().map(move |at| (at.name.as_str(), phase(at), at.priority))
    }
}

/// Lays workers out.
pub(super) fn of(workers: Workers<'_>) -> Result<Crew<'_>, BuildError> {
    Priorities::ABOVE_TASKS.check(workers.priority)?;
    if let Some(grace) = workers.grace.filter(|grace| *grace < Span::ZERO) {
        return Err(BuildError::Grace(grace.as_ns()));
    }
    workers.all.iter().try_for_each(check)?;
    let build = |tasks: &mut dyn Iterator<Item = Task>| {
        let all = tasks.fold(Periodic::new(), Periodic::task);
        if workers.overload { all.allow_overload() } else { all }.build()
    };
    // Together once, for checks, phases and ranks.
    let joint = build(&mut workers.all.iter().map(|worker| worker.task.clone()))?;
    let rank = |name: &str| (0..joint.tasks()).find(|&rank| joint.name(rank) == name);
    let placed = |task: &Task| {
        let phase_ns = rank(&task.name).map_or(0, |rank| joint.phase_ns(rank));
        task.clone().phase(Phase::At(phase_ns))
    };
    let is_posted =
        |worker: &&Worker<'_>| worker.source.is_none() && worker.task.policy != OnOverrun::Delay;
    // Whoever posts is done at once: an overrun is the worker's, and so is the policy.
    let posted = |worker: &Worker<'_>| {
        let task = placed(&worker.task).policy(OnOverrun::Skip);
        Task { budget_ns: None, deadline_ns: None, start_ns: None, ..task }
    };
    let plan = build(&mut workers.all.iter().filter(is_posted).map(posted))?;
    let pages = Pages::new(workers.all.iter().map(|worker| worker.task.name.clone()));
    let mut tasks = Vec::new();
    for worker in workers.all {
        let is_posted = is_posted(&&worker);
        let Worker { task, body, source } = worker;
        let below = rank(&task.name).map_or(1, |rank| rank.saturating_add(1));
        let below = u8::try_from(below).unwrap_or(u8::MAX);
        let pace = match source {
            Some(source) => Pace::Device { source, period_ns: task.period.as_ns() },
            None if is_posted => pace(&plan, &task, workers.epoch, workers.grace),
            None => Pace::Own(Box::new(build(&mut std::iter::once(placed(&task)))?)),
        };
        tasks.push(Placed {
            name: task.name.clone(),
            body,
            priority: workers.priority.saturating_sub(below).max(1),
            pace,
            limits: limits(&task),
        });
    }
    let Workers { cpu, workers_cpu, priority, epoch, .. } = workers;
    Ok(Crew { cpu, workers_cpu, priority, epoch, plan, tasks, pages })
}

/// A task that the executive posts.
fn pace(plan: &Plan, task: &Task, epoch: Instant, grace: Option<Span>) -> Pace<'static> {
    let rank = (0..plan.tasks()).find(|&rank| plan.name(rank) == task.name).unwrap_or(0);
    let period = Span::from_ns(i64::try_from(task.period.as_ns()).unwrap_or(i64::MAX));
    let (burst, on_overrun, grace) = match task.policy {
        OnOverrun::Burst(most) => (most, PostOverrun::Nothing, None),
        OnOverrun::Terminate => (0, PostOverrun::Cancel, Some(grace.unwrap_or(period))),
        OnOverrun::Stop => (0, PostOverrun::Stop, None),
        _ => (0, PostOverrun::Nothing, None),
    };
    let grace = grace.unwrap_or_else(|| hang_bound(task.period.as_ns()));
    let terms =
        Terms { releases: releases(task, epoch, plan.phase_ns(rank)), burst, output_words: 0 };
    Pace::Posted { rank, terms, on_overrun, grace }
}

/// When which cycle of a task is.
pub(crate) fn releases(task: &Task, epoch: Instant, phase_ns: u64) -> Releases {
    let first = Instant::from_ns(epoch.as_ns().saturating_add(phase_ns));
    Releases::new(first, task.period)
}

/// What counts as wrong in a task's cycles.
pub(crate) fn limits(task: &Task) -> Limits {
    Limits {
        start_ns: task.start_ns.unwrap_or(u64::MAX),
        budget_ns: task.budget_ns.unwrap_or(u64::MAX),
        deadline_ns: task.deadline_ns.unwrap_or_else(|| task.period.as_ns()),
    }
}

/// What cannot be where a worker runs.
fn check(worker: &Worker<'_>) -> Result<(), BuildError> {
    let Worker { task, source, .. } = worker;
    let cannot = |why| Err(BuildError::Cannot(task.name.clone(), why));
    if source.is_none() {
        return Ok(());
    }
    match (task.policy, &task.phase) {
        (OnOverrun::Burst(_), _) => {
            cannot("a device paces it: it has no releases to catch up with")
        }
        (OnOverrun::Delay, _) => cannot("a device paces it: it has no phase that could move"),
        (OnOverrun::Terminate, _) => cannot("a device paces it: it has no release to be ended at"),
        (OnOverrun::Stop, _) => cannot("a device paces it: it has no release to overrun"),
        (_, Phase::At(_) | Phase::After(..)) => cannot("a device paces it: it has no phase"),
        _ if task.deadline_ns.is_some() || task.start_ns.is_some() => {
            cannot("a device paces it: without a release nothing is late")
        }
        _ => Ok(()),
    }
}
