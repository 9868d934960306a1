//! What a `punctual_executive` is: what was added to it, and the run that is under way or was last.
//!
//! Setup and readers; what runs is `punctual::Executive`.

use std::collections::HashMap;
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::clocks::MachineClock;
use punctual::core::clock::Clock;
use punctual::follow::Followed;
use punctual::os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual::{ErrorKind, ExecutiveBuilder, Handle, Summary, TaskId, WaitPolicy};

use super::outcome::{Last, Outcome};
use super::specs::{Built, Spec, Specs, body};
use super::stop::Stop;
use crate::errors;
use crate::ffi::{Exclusive, Failure};
use crate::layout::Layout;
use crate::options::Config;
use crate::task::TaskSpec;

/// How often one that waits for a run or a change to be over looks again, ns.
const LOOK_NS: u64 = 500_000;

/// An executive.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(crate) struct Executive {
    /// One call at a time changes it.
    changes: Exclusive<()>,
    /// One call at a time runs it: of the last run.
    pub(super) runs: Exclusive<Option<Last>>,
    registry: Mutex<Registry>,
    pub(super) stop: Stop,
}

/// All that is known of it.
#[derive(Default)]
pub(super) struct Registry {
    specs: Specs,
    /// Of the specs as they are, where it was built.
    built: Option<Built>,
    /// Under way or the last one.
    run: Option<Run>,
    /// Whether it is under way.
    running: bool,
    /// Whether a change waits for a loop of that run.
    changing: bool,
}

/// A run, from the start of its setup on.
#[derive(Clone)]
struct Run {
    handle: Handle<'static>,
    outcome: Arc<Outcome>,
    wait: WaitPolicy,
    /// By index.
    ids: Vec<Option<TaskId>>,
    /// Once it is over, by the name of the task: how often its thread lost its policy.
    demoted: HashMap<String, u64>,
}

fn busy() -> Failure {
    Failure::new(libc::EBUSY, "the executive runs: only tasks can come and go meanwhile")
}

impl Registry {
    /// Changes what does not run: all or nothing, checked where it was built before.
    fn change(
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
    fn live(&self) -> Option<Run> {
        self.run.clone().filter(|_| self.running)
    }

    /// Tasks have come or gone: ranks and phases as they are now.
    fn lay_out_anew(&mut self) {
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

impl Executive {
    /// Held for moments only.
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what does not run.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Specs) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut registry = self.registry();
            if registry.running { Err(busy()) } else { registry.change(change) }
        })
    }

    /// One more task or unit; its index. A task may come while it runs.
    pub(super) fn add(&self, spec: &Spec) -> Result<u32, Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                let index = registry.specs.next()?;
                let add = |specs: &mut Specs| {
                    specs.all.push(Some(spec.clone()));
                    Ok(())
                };
                let Some(run) = registry.live() else {
                    registry.change(add)?;
                    return Ok(index);
                };
                let Spec::Task(task @ TaskSpec { trigger: None, .. }) = spec else {
                    return Err(busy());
                };
                let change = || {
                    let callback = body(task.body, &run.outcome);
                    run.handle.add(task.task(run.wait), callback).map(Some)
                };
                let taken = |registry: &mut Registry, id| {
                    registry.specs.all.push(Some(spec.clone()));
                    if let Some(run) = &mut registry.run {
                        run.ids.push(id);
                    }
                };
                if self.change_live(registry, change, taken)? {
                    return Ok(index);
                }
            }
        })
    }

    /// One task or unit less. A task may go while it runs.
    pub(super) fn remove(&self, index: u32) -> Result<(), Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                registry.specs.get(index)?;
                let remove = |specs: &mut Specs| {
                    specs.all[index as usize] = None;
                    Ok(())
                };
                let Some(run) = registry.live() else { return registry.change(remove) };
                let id = run.ids.get(index as usize).copied().flatten();
                let id = id.ok_or(Failure::bare(libc::ENOENT))?;
                let change = || run.handle.remove(id).map(|_| None);
                let taken = |registry: &mut Registry, _| {
                    registry.specs.all[index as usize] = None;
                };
                if self.change_live(registry, change, taken)? {
                    return Ok(());
                }
            }
        })
    }

    /// Hands a change to the run, and keeps what it has changed; false where that has not begun or
    /// is over: there may be another one by then.
    fn change_live(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        change: impl FnOnce() -> Result<Option<TaskId>, punctual::Error>,
        taken: impl FnOnce(&mut Registry, Option<TaskId>),
    ) -> Result<bool, Failure> {
        /// Over on every way out, a panic's too.
        struct UnderWay<'e>(&'e Executive);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                self.0.registry().changing = false;
            }
        }
        registry.changing = true;
        // The loop answers in its own time; readers read meanwhile.
        drop(registry);
        let under_way = UnderWay(self);
        match change() {
            Ok(id) => {
                let mut registry = self.registry();
                taken(&mut registry, id);
                registry.lay_out_anew();
                Ok(true)
            }
            Err(why) if why.kind() == ErrorKind::NotRunning => {
                drop(under_way);
                pause();
                Ok(false)
            }
            Err(why) => Err(errors::failure(&why)),
        }
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
            let clock = follow.map(|follow| Followed::new(MachineClock::best(), &follow));
            let outcome = Arc::<Outcome>::default();
            let registry = self.unchanging();
            let builder = registry.specs.builder(&config, &outcome)?;
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
fn pause() {
    // A signal that cuts this short costs an extra look.
    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

/// What threads share is whole.
const fn is_shared<T: Sync>() {}
const _: () = is_shared::<Executive>();
