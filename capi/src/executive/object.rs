//! What a `punctual_executive` is: what was added to it, and the run that is under way or was last.
//!
//! Setup and readers; what runs is `punctual::Executive`.

use std::collections::HashMap;
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::{ExecutiveBuilder, Handle, Summary, TaskId, WaitPolicy};
use punctual_core::clock::Clock;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::fork::Origin;

use super::outcome::{Last, Outcome};
use super::specs::{Built, Specs};
use super::stop::Stop;
use crate::errors;
use crate::ffi::{Exclusive, Failure, Object};
use crate::layout::Layout;
use crate::options::Config;

/// How often one that waits for a run or a change to be over looks again, ns.
const LOOK_NS: u64 = 500_000;

/// An executive.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(crate) struct Executive {
    origin: Origin,
    /// One call at a time changes it.
    pub(super) changes: Exclusive<()>,
    /// One call at a time runs it: of the last run.
    pub(super) runs: Exclusive<Option<Last>>,
    registry: Mutex<Registry>,
    pub(super) stop: Stop,
}

/// All that is known of it.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) specs: Specs,
    /// Of the specs as they are, where it was built.
    built: Option<Built>,
    /// Under way or the last one.
    pub(super) run: Option<Run>,
    /// Whether it is under way.
    pub(super) running: bool,
    /// Whether a change waits for a loop of that run.
    pub(super) changing: bool,
}

/// A run, from the start of its setup on.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) handle: Handle<'static>,
    pub(super) outcome: Arc<Outcome>,
    pub(super) wait: WaitPolicy,
    /// By index.
    pub(super) ids: Vec<Option<TaskId>>,
    /// Once it is over, by the name of the task: how often its thread lost its policy.
    demoted: HashMap<String, u64>,
}

pub(super) fn busy() -> Failure {
    Failure::new(libc::EBUSY, "the executive runs: only tasks can come and go meanwhile")
}

impl Registry {
    /// Changes what does not run: all or nothing, checked where it was built before.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(&mut Specs) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut specs = self.specs.clone();
        change(&mut specs)?;
        let config = self.built.as_ref().map(|built| built.config.clone());
        let config = config.filter(|_| specs.all.iter().any(Option::is_some));
        self.built = config.map(|config| Built::trial(&specs, config)).transpose()?;
        self.specs = specs;
        Ok(())
    }

    /// The run that is under way.
    pub(super) fn live(&self) -> Option<Run> {
        self.run.clone().filter(|_| self.running)
    }

    /// Tasks have come or gone: ranks and phases as they are now.
    pub(super) fn lay_out_anew(&mut self) {
        let (Some(run), Some(built)) = (&self.run, &mut self.built) else { return };
        for id in run.ids.iter().flatten() {
            let Ok(Some(placed)) = run.handle.placed(*id) else { continue };
            let now = Layout::of(&placed);
            let layout = built.layouts.entry(placed.name).or_insert(now);
            // A task in a thread of its own has a CPU of its own too.
            (layout.phase_ns, layout.rank) = (now.phase_ns, now.rank);
        }
    }
}

impl Object for Executive {
    fn origin(&self) -> Origin {
        self.origin
    }
}

impl Executive {
    /// Held for moments only.
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks all of it and lays it out.
    pub(super) fn build(&self, config: Config) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut registry = self.registry();
            if registry.running {
                return Err(busy());
            }
            registry.built = Some(Built::trial(&registry.specs, config)?);
            Ok(())
        })
    }

    /// Of what was built.
    pub(super) fn with_built<R>(
        &self,
        read: impl FnOnce(&Specs, &Built) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let registry = self.registry();
        let built = registry.built.as_ref();
        let built = built.ok_or_else(|| Failure::invalid("the executive is not built yet"))?;
        read(&registry.specs, built)
    }

    /// The run that knows of a task, with its id there, and how often it was demoted; `None` where
    /// it did not run yet.
    pub(super) fn ran(
        &self,
        index: u32,
    ) -> Result<Option<(Handle<'static>, TaskId, u64)>, Failure> {
        let registry = self.registry();
        let name = registry.specs.get(index)?.task_name();
        let Some(run) = &registry.run else { return Ok(None) };
        let id = run.ids.get(index as usize).copied().flatten();
        let demoted = run.demoted.get(name).copied().unwrap_or(0);
        Ok(id.map(|id| (run.handle.clone(), id, demoted)))
    }

    /// Runs it for so long, or until it is stopped.
    pub(super) fn run(&self, config: Config, duration_ns: u64) -> Result<(), Failure> {
        self.runs.with(|last| {
            *last = None;
            let follow = config.follow.clone();
            let clock = follow.map(|follow| follow.clock());
            let outcome = Arc::<Outcome>::default();
            let registry = self.unchanging();
            let builder = registry.specs.builder(&config, &outcome)?;
            if self.stop.is_requested() {
                return Ok(());
            }
            let summary = match clock {
                None => self.go(registry, builder, &outcome, (config, duration_ns)),
                Some(clock) => {
                    self.go(registry, builder.clock(clock), &outcome, (config, duration_ns))
                }
            }?;
            if let Some(run) = &mut self.registry().run {
                let of = summary.tasks.iter().map(|task| (task.name.clone(), task.demotions));
                run.demoted = of.collect();
            }
            *last = Some(Last::of(&summary));
            outcome.judge(summary)
        })
    }

    fn go<C: Clock + Clone + Send + 'static>(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        builder: ExecutiveBuilder<'static, C>,
        outcome: &Arc<Outcome>,
        (config, duration_ns): (Config, u64),
    ) -> Result<Summary, Failure> {
        /// Not under way any more, on every way out, a panic's too.
        struct Over<'e>(&'e Executive);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.registry().running = false;
            }
        }
        let (executive, ids) = builder.build().map_err(|why| errors::failure(&why))?;
        let (handle, stop) = (executive.handle(), executive.stop_handle());
        outcome.stopped_by(&stop);
        let ids = registry.specs.ids(&ids, &handle);
        let (wait, outcome) = (config.wait, Arc::clone(outcome));
        registry.built = Some(Built::of(&executive, config));
        registry.run = Some(Run { handle, outcome, wait, ids, demoted: HashMap::new() });
        registry.running = true;
        drop(registry);
        let _over = Over(self);
        let summary = self.stop.during(&stop, || match duration_ns {
            0 => executive.run(),
            ns => executive.run_for(Duration::from_nanos(ns)),
        });
        summary.map_err(|why| errors::failure(&why))
    }

    /// The registry while no change of a run is under way: one that is hears of the end of the run
    /// before and goes first.
    fn unchanging(&self) -> MutexGuard<'_, Registry> {
        loop {
            let registry = self.registry();
            if !registry.changing {
                return registry;
            }
            drop(registry);
            pause();
        }
    }

    /// EBUSY while it runs or is changed.
    pub(super) fn unused(&self) -> Result<(), Failure> {
        self.runs.with(|_| self.changes.with(|()| Ok(())))
    }
}

/// A look later.
pub(super) fn pause() {
    // A signal that cuts this short costs an extra look.
    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

/// What threads share is whole.
const fn is_shared<T: Sync>() {}
const _: () = is_shared::<Executive>();
