//! The tasks, units and background work of an executive, as they were added.
//!
//! Setup. Plain data, and the one place that hands it to the builder of `punctual`.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use punctual::{Calendar, Executive, ExecutiveBuilder, Flow, Handle, Period, TaskId, Trigger};
use punctual_core::cycle::Cycle;

use super::Outcome;
use crate::callback::{Body, Callback, Plain};
use crate::errors;
use crate::executive::Layout;
use crate::ffi::Failure;
use crate::options::Config;
use crate::task::{Release, TaskSpec};
use crate::unit::UnitSpec;

/// A task or a unit.
#[derive(Clone, Debug)]
pub(super) enum Spec {
    Task(TaskSpec),
    Unit(UnitSpec),
}

impl Spec {
    /// The name of the task: that of a unit is the one that it belongs to.
    pub(super) fn task_name(&self) -> &str {
        match self {
            Self::Task(spec) => spec.name(),
            Self::Unit(spec) => &spec.task,
        }
    }
}

/// All tasks and units that were added, and how they are to run.
#[derive(Clone, Debug, Default)]
pub(super) struct Specs {
    /// By index; none for one that was removed.
    pub(super) entries: Vec<Option<Spec>>,
    pub(super) frame: Option<Period>,
    pub(super) idle: Option<(Duration, Callback<Plain>)>,
    pub(super) overload: bool,
}

/// The body of a task as the executive calls it.
pub(super) fn body(
    callback: Callback<Body>,
    outcome: &Arc<Outcome>,
) -> impl FnMut(&mut Cycle<'_>) -> Flow + Send + use<> {
    let outcome = Arc::clone(outcome);
    move |cycle| outcome.keep(callback.cycle(cycle))
}

/// The trigger of a task as the executive waits for it.
fn trigger(release: Release, outcome: &Arc<Outcome>) -> Trigger<'static> {
    match release {
        Release::Wait(wait) => {
            let outcome = Arc::clone(outcome);
            Trigger::wait(move || outcome.triggered(wait.wait()))
        }
        // SAFETY: not -1, and open until the run has ended, says the header.
        Release::Readable(fd) => Trigger::fd(unsafe { BorrowedFd::borrow_raw(fd) }),
    }
}

impl Specs {
    /// The index of the next one.
    pub(super) fn next(&self) -> Result<u32, Failure> {
        let too_many = |_| Failure::new(libc::E2BIG, "too many tasks and units");
        u32::try_from(self.entries.len()).map_err(too_many)
    }

    /// The task or unit at an index; ENOENT for none.
    pub(super) fn get(&self, index: u32) -> Result<&Spec, Failure> {
        let spec = self.entries.get(index as usize).and_then(Option::as_ref);
        spec.ok_or(Failure::bare(libc::ENOENT))
    }

    fn units(&self) -> impl Iterator<Item = &UnitSpec> {
        self.entries.iter().flatten().filter_map(|spec| match spec {
            Spec::Unit(unit) => Some(unit),
            Spec::Task(_) => None,
        })
    }

    /// The builder of all that, for a run with this outcome.
    pub(super) fn builder(
        &self,
        config: &Config,
        outcome: &Arc<Outcome>,
    ) -> Result<ExecutiveBuilder<'static>, Failure> {
        if self.entries.iter().flatten().next().is_none() {
            return Err(Failure::invalid("an executive without tasks"));
        }
        let mut builder = Executive::builder().thread(config.thread.clone()).phase(config.phase);
        if !config.cpus.is_empty() {
            builder = builder.cpus(config.cpus.iter().copied());
        }
        if let Some(grace) = config.grace {
            builder = builder.grace(grace);
        }
        if let Some(file) = &config.samples {
            builder = builder.record(file);
        }
        if self.overload {
            builder = builder.allow_overload();
        }
        if let Some((slice, work)) = self.idle {
            let outcome = Arc::clone(outcome);
            builder = builder.idle(slice, move || outcome.keep(work.slice()));
        }
        for spec in self.entries.iter().flatten() {
            let Spec::Task(spec) = spec else { continue };
            let (task, run) = (spec.task(config.wait), body(spec.body, outcome));
            builder = match spec.trigger {
                None => builder.task(task, run),
                Some(release) => builder.triggered(trigger(release, outcome), task, run),
            };
        }
        Ok(match self.calendar(outcome)? {
            Some(calendar) => builder.calendar(calendar),
            None => builder,
        })
    }

    /// The calendar of all units; `None` without frame and units.
    fn calendar(&self, outcome: &Arc<Outcome>) -> Result<Option<Calendar<'static>>, Failure> {
        let Some(frame) = self.frame else {
            let Some(unit) = self.units().next() else { return Ok(None) };
            let text = format!("unit {:?} needs a frame: punctual_executive_frame()", unit.name);
            return Err(Failure::invalid(text));
        };
        let mut calendar = Calendar::frame(frame);
        let mut bodies: HashMap<&str, (&str, Callback<Body>)> = HashMap::new();
        for UnitSpec { name, task, unit, body: callback } in self.units() {
            calendar = match (callback, bodies.get(task.as_str())) {
                (None, _) => calendar.part(unit.clone()),
                (Some(callback), None) => {
                    bodies.insert(task, (name, *callback));
                    calendar.unit(unit.clone(), body(*callback, outcome))
                }
                (Some(callback), Some((_, first))) if first.is(callback) => {
                    calendar.part(unit.clone())
                }
                (Some(_), Some((first, _))) => {
                    return Err(Failure::invalid(format!(
                        "units {first:?} and {name:?} of task {task:?} have different functions to \
                         run"
                    )));
                }
            };
        }
        Ok(Some(calendar))
    }

    /// The id of each one's task; `ids` as the builder gave them.
    pub(super) fn ids(&self, ids: &[TaskId], handle: &Handle<'_>) -> Vec<Option<TaskId>> {
        let stats = handle.stats();
        let named: HashMap<&str, TaskId> =
            stats.iter().map(|task| task.name.as_str()).zip(ids.iter().copied()).collect();
        let id = |spec: &Spec| named.get(spec.task_name()).copied();
        self.entries.iter().map(|spec| spec.as_ref().and_then(id)).collect()
    }
}

/// An executive laid out.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) config: Config,
    pub(super) peak: u64,
    /// By the name of the task.
    pub(super) layouts: HashMap<String, Layout>,
}

impl Built {
    /// That of an executive with this configuration.
    pub(super) fn of<C>(executive: &Executive<'static, C>, config: Config) -> Self {
        let layout = executive.layout();
        let layouts = layout.iter().map(|placed| (placed.name.clone(), Layout::of(placed)));
        Self { peak: executive.peak(), layouts: layouts.collect(), config }
    }

    /// The executive that these make, laid out and not run.
    pub(super) fn trial(specs: &Specs, config: Config) -> Result<Self, Failure> {
        let built = specs.builder(&config, &Arc::default())?.build();
        let (executive, _) = built.map_err(|why| errors::failure(&why))?;
        Ok(Self::of(&executive, config))
    }
}
