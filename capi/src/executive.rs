//! `punctual_executive`: many tasks, whatever runs them and wherever they run, and its entries.
//!
//! The entries that were added to it, and the run that is under way or was last; the run itself is
//! a `punctual::Executive`. One call at a time changes it, before it runs and meanwhile, and one
//! runs it; any thread stops it and reads what its tasks do, which disturbs no loop.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
#[expect(clippy::disallowed_types, reason = "filled by setup before the loop begins")]
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::{
    Calendar, End, ErrorKind, ExecutiveBuilder, Flow, Handle, Period, Placed, Response, StopHandle,
    Summary, TaskId, Trigger, WaitPolicy, learned,
};
use punctual_core::clock::Clock;
use punctual_core::cycle::Cycle;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::fork::Origin;

use crate::callback::{Body, Callback, Plain};
use crate::failure::{Failure, null};
use crate::ffi::{self, Exclusive, Object};
use crate::learned_bytes;
use crate::options::{Config, Options, period};
use crate::record::{self, Record, named};
use crate::single_loop::listed;
use crate::stats::{self, Stats};
use crate::task::{Release, TaskRecord, TaskSpec};
use crate::unit::{UnitRecord, UnitSpec};
use crate::wait_info::WaitInfo;

/// The time after which one that waits for a run or a change to be over looks again, ns.
const LOOK_NS: u64 = 500_000;

/// The object behind a `punctual_executive`.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
struct Executive {
    origin: Origin,
    /// One call at a time changes it.
    changes: Exclusive<()>,
    /// One call at a time runs it; holds what the last run left.
    runs: Exclusive<Option<Last>>,
    registry: Mutex<Registry>,
    stop: Stop,
}

impl Object for Executive {
    const NULL: &'static CStr = null!("executive", "what punctual_executive_create() gave");

    fn origin(&self) -> Origin {
        self.origin
    }
}

impl Executive {
    /// Locks the registry: to be held for moments only, and never while a loop answers.
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks all entries and lays them out.
    fn build(&self, config: Config) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut registry = self.registry();
            if registry.running {
                return Err(busy());
            }
            registry.built = Some(Built::trial(&registry.specs, config)?);
            Ok(())
        })
    }

    /// Reads what was built; EINVAL where nothing was.
    fn with_built<R>(
        &self,
        read: impl FnOnce(&Specs, &Built) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let registry = self.registry();
        let built = registry.built.as_ref();
        let built = built.ok_or_else(|| Failure::invalid("the executive is not built yet"))?;
        read(&registry.specs, built)
    }

    /// Runs it for so long, or until it is stopped.
    fn run(&self, config: Config, duration_ns: u64) -> Result<(), Failure> {
        self.runs.with(|last| {
            *last = None;
            let follow = config.follow.clone();
            let clock = follow.map(|follow| follow.clock());
            let outcome = Arc::<Outcome>::default();
            let registry = self.unchanging();
            let (config, unusable) = registry.specs.resuming(config)?;
            let builder = registry.specs.builder(&config, &outcome)?;
            if self.stop.is_requested() {
                return Ok(());
            }
            let limits = (config, duration_ns);
            let summary = match clock {
                None => self.go(registry, builder, &outcome, limits, last),
                Some(clock) => self.go(registry, builder.clock(clock), &outcome, limits, last),
            }?;
            if let (Some(why), Some(last)) = (unusable, last) {
                last.refuse(&why);
            }
            outcome.judge(summary)
        })
    }

    fn go<C: Clock + Clone + Send + 'static>(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        builder: ExecutiveBuilder<'static, C>,
        outcome: &Arc<Outcome>,
        (config, duration_ns): (Config, u64),
        last: &mut Option<Last>,
    ) -> Result<Summary, Failure> {
        /// Not under way any more, on every way out, a panic's too.
        struct Over<'e>(&'e Executive);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.registry().running = false;
            }
        }
        let (executive, ids) = builder.build().map_err(|why| Failure::of(&why))?;
        let (handle, stop) = (executive.handle(), executive.stop_handle());
        outcome.stopped_by(&stop);
        let ids = registry.specs.ids(&ids, &handle);
        let (wait, outcome) = (config.wait, Arc::clone(outcome));
        let wait_period = executive.wait_period();
        registry.built = Some(Built::of(&executive, config));
        registry.run = Some(Run { handle, outcome, wait, ids, demoted: HashMap::new() });
        registry.running = true;
        drop(registry);
        let _over = Over(self);
        let summary = self.stop.during(&stop, || match duration_ns {
            0 => executive.run(),
            ns => executive.run_for(Duration::from_nanos(ns)),
        });
        let summary = summary.map_err(|why| Failure::of(&why))?;
        // Before it is said to be over: whoever reads that reads all figures after it.
        if let Some(run) = &mut self.registry().run {
            run.demoted =
                summary.tasks.iter().map(|task| (task.name.clone(), task.demotions)).collect();
        }
        *last = Some(Last::of(&summary, wait_period));
        Ok(summary)
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
    fn unused(&self) -> Result<(), Failure> {
        self.runs.with(|_| self.changes.with(|()| Ok(())))
    }

    /// Changes what does not run.
    fn change(
        &self,
        change: impl FnOnce(&mut Specs) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut registry = self.registry();
            if registry.running { Err(busy()) } else { registry.change(change) }
        })
    }

    /// Adds a task or a unit; its index. A task may be added while it runs.
    fn add(&self, spec: &Spec) -> Result<u32, Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                let index = registry.specs.next()?;
                let add = |specs: &mut Specs| {
                    specs.entries.push(Some(spec.clone()));
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
                    registry.specs.entries.push(Some(spec.clone()));
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

    /// Removes a task or a unit, and returns what it did. A task may be removed while it runs.
    fn remove(&self, index: u32) -> Result<Stats, Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                let before = counted(registry.ran(index)?)?;
                let remove = |specs: &mut Specs| {
                    specs.entries[index as usize] = None;
                    Ok(())
                };
                let Some(run) = registry.live() else {
                    return registry.change(remove).map(|()| before);
                };
                let id = run.ids.get(index as usize).copied().flatten();
                let id = id.ok_or(Failure::bare(libc::ENOENT))?;
                let mut done = before;
                let change = || {
                    let did = run.handle.remove(id)?;
                    let forced = run.handle.forced();
                    done = Stats::of(&did.counts).with_forced(forced).with_demotions(did.demotions);
                    Ok(None)
                };
                let taken = |registry: &mut Registry, _| {
                    registry.specs.entries[index as usize] = None;
                };
                if self.change_live(registry, change, taken)? {
                    return Ok(done);
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
            Err(why) => Err(Failure::of(&why)),
        }
    }
}

/// Sleeps from one look to the next.
fn pause() {
    // A signal that cuts this short costs an extra look.
    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

fn busy() -> Failure {
    Failure::new(libc::EBUSY, "the executive runs: only tasks can come and go meanwhile")
}

/// Compiles only for a type that threads may share.
const fn is_shared<T: Sync>() {}

const _: () = is_shared::<Executive>();

/// The tasks of an executive and its run, for one thread at a time.
#[derive(Default)]
struct Registry {
    specs: Specs,
    /// The specs laid out as they are now, where it was built.
    built: Option<Built>,
    /// The run that is under way, else the last one.
    run: Option<Run>,
    /// True while it is under way.
    running: bool,
    /// True while a change waits for a loop of that run.
    changing: bool,
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
        let config = config.filter(|_| specs.entries.iter().any(Option::is_some));
        self.built = config.map(|config| Built::trial(&specs, config)).transpose()?;
        self.specs = specs;
        Ok(())
    }

    /// The run that knows of a task, with its id there, and how often it was demoted; `None` where
    /// it did not run yet.
    fn ran(&self, index: u32) -> Result<Option<Ran>, Failure> {
        let name = self.specs.get(index)?.task_name();
        let Some(run) = &self.run else { return Ok(None) };
        let id = run.ids.get(index as usize).copied().flatten();
        let demoted = run.demoted.get(name).copied().unwrap_or(0);
        Ok(id.map(|id| (run.handle.clone(), id, demoted)))
    }

    /// The run that is under way; `None` for none.
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

/// A run as one task has it: its id there, and the times that it was demoted.
type Ran = (Handle<'static>, TaskId, u64);

/// The statistics of a task in a run; all 0 where there was none.
fn counted(ran: Option<Ran>) -> Result<Stats, Failure> {
    let Some((handle, id, demoted)) = ran else { return Ok(Stats::blank()) };
    let counts = handle.counts(id).map_err(|why| Failure::of(&why))?;
    Ok(Stats::of(&counts).with_forced(handle.forced()).with_demotions(demoted))
}

/// A run, from the start of its setup on.
#[derive(Clone)]
struct Run {
    handle: Handle<'static>,
    outcome: Arc<Outcome>,
    wait: WaitPolicy,
    /// The id of each entry's task, by index; none for one that was removed.
    ids: Vec<Option<TaskId>>,
    /// Times that its thread lost its policy, by the name of the task; empty until the run is over.
    demoted: HashMap<String, u64>,
}

/// The answer of the functions of a run, as far as it ends the run.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "filled by setup before the loop begins")]
struct Outcome {
    /// The first answer; 0 for none.
    answer: AtomicI32,
    stop: OnceLock<StopHandle>,
}

impl Outcome {
    /// Sets the handle that stops the run; the first one holds.
    fn stopped_by(&self, stop: &StopHandle) {
        let _first = self.stop.set(stop.clone());
    }

    /// Keeps the first answer that ends the run, and returns whether it goes on.
    fn keep(&self, (flow, answer): (Flow, c_int)) -> Flow {
        if flow == Flow::Stop {
            let ordering = Ordering::Relaxed;
            let _later = self.answer.compare_exchange(0, answer, ordering, ordering);
        }
        flow
    }

    /// True where a trigger has another cycle; one that fails ends the run.
    fn triggered(&self, answer: c_int) -> bool {
        if answer < 0 {
            self.keep((Flow::Stop, answer));
            if let Some(stop) = self.stop.get() {
                stop.stop();
            }
        }
        answer > 0
    }

    /// Judges the end of the run: the errno of a task first, then the error of the summary.
    fn judge(&self, summary: Summary) -> Result<(), Failure> {
        let answer = self.answer.load(Ordering::Relaxed);
        if answer < 0 {
            // The task's own errno.
            return Err(Failure::bare(answer.saturating_neg()));
        }
        summary.ok().map(drop).map_err(|failed| Failure::of(failed.why()))
    }
}

/// The last run, as it is read afterwards.
#[derive(Debug)]
struct Last {
    /// The state of its wait at its end.
    info: WaitInfo,
    /// The knowledge of its wait as bytes; `None` for a wait that learned nothing.
    learned: Option<[u8; learned::BYTES]>,
    /// The kernel's refusals, a line each.
    refused: String,
    /// The summary as text.
    summary: String,
}

impl Last {
    /// The result of a run whose wait was for releases of this period.
    fn of(summary: &Summary, wait_period: Period) -> Self {
        let Summary { epoch, quiet, moves, policy, wait, refused, .. } = summary;
        let mut text = summary.to_string();
        if let End::Panicked { .. } = summary.end {
            text.push_str(" (a fault of libpunctual's own)");
        }
        Self {
            info: WaitInfo::of(epoch.as_ns(), *quiet, *policy, *wait).moved(*moves),
            learned: learned_bytes::to_bytes(wait, wait_period),
            refused: listed(refused),
            summary: text,
        }
    }

    /// Lists this among the refusals.
    fn refuse(&mut self, why: &str) {
        if !self.refused.is_empty() {
            self.refused.push_str("; ");
        }
        self.refused.push_str(why);
    }
}

/// `punctual_layout`, as in the header: where a task of an executive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Layout {
    size: usize,
    phase_ns: u64,
    rank: u32,
    cpu: i32,
    response_ns: u64,
    deadline_ns: u64,
}

const _: () = assert!(size_of::<Layout>() == 40);

// SAFETY: `repr(C)`; four words and two halves of one make 40 bytes, so that there is no padding.
unsafe impl Record for Layout {
    const LEAST: usize = 24;
    named!("layout");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            phase_ns: u64::MAX,
            rank: u32::MAX,
            cpu: -1,
            response_ns: 0,
            deadline_ns: 0,
        }
    }
}

impl Layout {
    /// The layout of a placed task.
    fn of(placed: &Placed) -> Self {
        let ns = |phase: Duration| u64::try_from(phase.as_nanos()).ok();
        Self {
            phase_ns: placed.phase.and_then(ns).unwrap_or(u64::MAX),
            rank: placed.rank.and_then(|rank| u32::try_from(rank).ok()).unwrap_or(u32::MAX),
            cpu: placed.cpu.and_then(|cpu| i32::try_from(cpu).ok()).unwrap_or(-1),
            response_ns: match placed.response {
                Response::AtMost(longest) => ns(longest).unwrap_or(u64::MAX),
                Response::Unbounded => u64::MAX,
                // Whatever else there may be once is not known to a C program.
                _ => 0,
            },
            deadline_ns: placed.deadline.and_then(ns).unwrap_or(0),
            ..Self::blank()
        }
    }
}

/// A task or a unit.
#[derive(Clone, Debug)]
enum Spec {
    Task(TaskSpec),
    Unit(UnitSpec),
}

impl Spec {
    /// The name of the task: that of a unit is the one that it belongs to.
    fn task_name(&self) -> &str {
        match self {
            Self::Task(spec) => spec.name(),
            Self::Unit(spec) => &spec.task,
        }
    }
}

/// All tasks and units that were added, and how they are to run.
#[derive(Clone, Debug, Default)]
struct Specs {
    /// The tasks and units by index; none for one that was removed.
    entries: Vec<Option<Spec>>,
    frame: Option<Period>,
    /// True where places are made for its units.
    is_scheduled: bool,
    idle: Option<(Duration, Callback<Plain>)>,
    overload: bool,
}

/// The body of a task as the executive calls it.
fn body(
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
    /// The index of the next entry.
    fn next(&self) -> Result<u32, Failure> {
        let too_many = |_| Failure::new(libc::E2BIG, "too many tasks and units");
        u32::try_from(self.entries.len()).map_err(too_many)
    }

    /// The task or unit at an index; ENOENT for none.
    fn get(&self, index: u32) -> Result<&Spec, Failure> {
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
    fn builder(
        &self,
        config: &Config,
        outcome: &Arc<Outcome>,
    ) -> Result<ExecutiveBuilder<'static>, Failure> {
        if self.entries.iter().flatten().next().is_none() {
            return Err(Failure::invalid("an executive without tasks"));
        }
        let mut builder =
            punctual::Executive::builder().thread(config.thread.clone()).phase(config.phase);
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

    /// The configuration of a run whose wait begins with what an earlier one learned; as it was,
    /// and the reason, where that is of no use for the releases that its loop would have.
    fn resuming(&self, mut config: Config) -> Result<(Config, Option<String>), Failure> {
        let Some(bytes) = config.learned.take() else { return Ok((config, None)) };
        let built = self.builder(&config, &Arc::default())?.build();
        let (executive, _) = built.map_err(|why| Failure::of(&why))?;
        Ok(match bytes.known(executive.wait_period()) {
            Ok(known) => {
                let thread = config.thread.wait(config.wait.learned(known));
                (Config { thread, ..config }, None)
            }
            Err(why) => (config, Some(why)),
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
        Ok(Some(if self.is_scheduled { calendar.scheduled() } else { calendar }))
    }

    /// The id of the task of each entry, by index; `ids` in the order of the builder.
    fn ids(&self, ids: &[TaskId], handle: &Handle<'_>) -> Vec<Option<TaskId>> {
        let stats = handle.stats();
        let named: HashMap<&str, TaskId> =
            stats.iter().map(|task| task.name.as_str()).zip(ids.iter().copied()).collect();
        let id = |spec: &Spec| named.get(spec.task_name()).copied();
        self.entries.iter().map(|spec| spec.as_ref().and_then(id)).collect()
    }
}

/// An executive laid out.
#[derive(Debug)]
struct Built {
    config: Config,
    peak: u64,
    /// The risks that are known before it runs, a line each.
    warnings: String,
    /// The layouts by the name of the task.
    layouts: HashMap<String, Layout>,
}

impl Built {
    /// The layout of an executive with this configuration.
    fn of<C>(executive: &punctual::Executive<'static, C>, config: Config) -> Self {
        let layout = executive.layout();
        let layouts = layout.iter().map(|placed| (placed.name.clone(), Layout::of(placed)));
        let warnings = executive.warnings().join("\n");
        Self { peak: executive.peak(), warnings, layouts: layouts.collect(), config }
    }

    /// The layout of the executive that these make, which does not run.
    fn trial(specs: &Specs, config: Config) -> Result<Self, Failure> {
        let built = specs.builder(&config, &Arc::default())?.build();
        let (executive, _) = built.map_err(|why| Failure::of(&why))?;
        Ok(Self::of(&executive, config))
    }
}

/// The time between two checks of a run's end that no call stops it any more, ns.
const STOP_LOOK_NS: u64 = 100_000;

/// The request to stop an executive: for good where it is requested, of one run where that ends.
/// Atomic words alone: for other threads, for tasks, and for signal handlers.
#[derive(Debug, Default)]
struct Stop {
    /// True once a stop for good was requested.
    requested: AtomicBool,
    /// True once the last run has ended.
    over: AtomicBool,
    /// Calls that may look at the run at present.
    callers: AtomicUsize,
    /// The handle that stops the run; null while there is none.
    run: AtomicPtr<StopHandle>,
}

impl Stop {
    /// Stops it for good.
    fn request(&self) {
        self.requested.store(true, SeqCst);
        self.with(StopHandle::stop);
    }

    /// True once it was stopped for good.
    fn is_requested(&self) -> bool {
        self.requested.load(SeqCst)
    }

    /// True where the run is to end, or has ended.
    fn is_stopped(&self) -> bool {
        let ends = || self.with(StopHandle::stopped).unwrap_or(false);
        self.requested.load(SeqCst) || self.over.load(SeqCst) || ends()
    }

    /// Runs `run`, which `handle` stops; at once where its stop was requested.
    fn during<R>(&self, handle: &StopHandle, run: impl FnOnce() -> R) -> R {
        /// Takes the handle back on every way out, a panic's too.
        struct End<'s>(&'s Stop);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.over.store(true, SeqCst);
                self.0.run.store(std::ptr::null_mut(), SeqCst);
                while self.0.callers.load(SeqCst) != 0 {
                    // A signal that cuts this short costs an extra look.
                    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + STOP_LOOK_NS);
                }
            }
        }
        let _end = End(self);
        self.over.store(false, SeqCst);
        self.run.store(std::ptr::from_ref(handle).cast_mut(), SeqCst);
        // Who asks after this look finds the handle.
        if self.requested.load(SeqCst) {
            handle.stop();
        }
        run()
    }

    /// Calls `call` on the handle of the run; `None` without a run.
    fn with<R>(&self, call: impl FnOnce(&StopHandle) -> R) -> Option<R> {
        self.callers.fetch_add(1, SeqCst);
        // SAFETY: null, or what `during` borrows: it takes that back before it returns, and then
        // waits for all who may have read it before.
        let called = unsafe { self.run.load(SeqCst).as_ref() }.map(call);
        self.callers.fetch_sub(1, SeqCst);
        called
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_create(to: *mut *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("executive", "where the handle goes"), std::ptr::null_mut()) }?;
        let made = Box::into_raw(Box::default());
        // SAFETY: it was writable above.
        unsafe { ffi::put(to, null!("executive", "where the handle goes"), made) }
    })
}

/// Adds a task or a unit, and gives its index.
///
/// # Safety
/// `to_index` is null or writable.
unsafe fn add(executive: &Executive, spec: &Spec, to_index: *mut u32) -> Result<(), Failure> {
    let index = executive.add(spec)?;
    if to_index.is_null() {
        return Ok(());
    }
    // SAFETY: not null, and then writable, says the caller.
    unsafe { ffi::put(to_index, null!("index", "where the answer goes"), index) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_add(
    executive: *mut Executive,
    task: *const TaskRecord,
    to_index: *mut u32,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let task = unsafe { record::take(task) }?;
        // SAFETY: its texts are null or end, says the header.
        let spec = Spec::Task(unsafe { task.read() }?);
        // SAFETY: as the header says.
        unsafe { add(executive, &spec, to_index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_add_unit(
    executive: *mut Executive,
    unit: *const UnitRecord,
    to_index: *mut u32,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let unit = unsafe { record::take(unit) }?;
        // SAFETY: its texts are null or end, says the header.
        let spec = Spec::Unit(unsafe { unit.read() }?);
        // SAFETY: as the header says.
        unsafe { add(executive, &spec, to_index) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_remove(executive: *mut Executive, task: u32) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.remove(task).map(drop)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_remove_counted(
    executive: *mut Executive,
    task: u32,
    to: *mut Stats,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or a struct that says its size, says the header. Before anything is gone.
        unsafe { record::fits(to) }?;
        let stats = executive.remove(task)?;
        // SAFETY: not null, and then a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_frame(
    executive: *mut Executive,
    num_ns: u64,
    den: u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let frame =
            period("num_ns / den", num_ns, den).map_err(|failure| failure.about("frame"))?;
        executive.change(|specs| {
            specs.frame = Some(frame);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_schedule(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        executive.change(|specs| {
            specs.is_scheduled = true;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_idle(
    executive: *mut Executive,
    slice_ns: u64,
    run: Option<Plain>,
    data: *mut c_void,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let run = run.ok_or_else(|| Failure::invalid("no function to run"))?;
        if slice_ns == 0 {
            return Err(Failure::invalid("slice_ns must be above 0 (got 0)"));
        }
        executive.change(|specs| {
            specs.idle = Some((Duration::from_nanos(slice_ns), Callback::new(run, data)));
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_allow_overload(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.change(|specs| {
            specs.overload = true;
            Ok(())
        })
    })
}

/// The options of the caller's, or the defaults for null.
///
/// # Safety
/// As the header says of `punctual_options`.
unsafe fn config(options: *const Options) -> Result<Config, Failure> {
    let options = if options.is_null() {
        Record::blank()
    } else {
        // SAFETY: not null, and then a struct that says its size, says the caller.
        unsafe { record::take(options) }?
    };
    // SAFETY: its pointers are what the header says, says the caller.
    unsafe { options.of_executive() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_build(
    executive: *mut Executive,
    options: *const Options,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: as the header says.
        executive.build(unsafe { config(options) }?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_run(
    executive: *mut Executive,
    options: *const Options,
    duration_ns: u64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: as the header says.
        executive.run(unsafe { config(options) }?, duration_ns)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_stop(executive: *mut Executive) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        unsafe { ffi::object(executive) }?.stop.request();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_stopped(
    executive: *const Executive,
    to: *mut c_int,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let stopped = unsafe { ffi::object(executive) }?.stop.is_stopped();
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "where the answer goes"), c_int::from(stopped)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_destroy(executive: *mut Executive) -> c_int {
    // SAFETY: null or an executive, from the box of `punctual_executive_create`, says the header.
    ffi::enter(|| unsafe { ffi::destroy(executive, Executive::unused, ffi::dropped) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_peak(executive: *const Executive, to: *mut u64) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let peak = executive.with_built(|_, built| Ok(built.peak))?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "where the answer goes"), peak) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_warnings(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let warnings = executive.with_built(|_, built| Ok(built.warnings.clone()))?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &warnings) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_task_layout(
    executive: *const Executive,
    task: u32,
    to: *mut Layout,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        let layout = executive.with_built(|specs, built| {
            let layout = built.layouts.get(specs.get(task)?.task_name()).copied();
            layout.ok_or(Failure::bare(libc::ENODATA))
        })?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &layout) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_task_stats(
    executive: *const Executive,
    task: u32,
    to: *mut Stats,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let ran = unsafe { ffi::object(executive) }?.registry().ran(task)?;
        let stats = counted(ran)?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_task_quantile_ns(
    executive: *const Executive,
    task: u32,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let ran = unsafe { ffi::object(executive) }?.registry().ran(task)?;
        let quantile =
            |share| ran.and_then(|(handle, id, _)| handle.quantile(id, share).ok().flatten());
        let quantile_ns = stats::quantile_ns(quantile, share)?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to_ns, null!("to_ns", "where the answer goes"), quantile_ns) }
    })
}

/// Reads what the last run left: EBUSY while there is one, ENODATA where none has ended yet.
fn last<R>(executive: &Executive, read: impl FnOnce(&Last) -> R) -> Result<R, Failure> {
    executive.runs.with(|last| last.as_ref().map(read).ok_or(Failure::bare(libc::ENODATA)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_wait_info(
    executive: *const Executive,
    to: *mut WaitInfo,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let info = last(unsafe { ffi::object(executive) }?, |last| last.info)?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_learned(
    executive: *const Executive,
    to: *mut c_void,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let executive = unsafe { ffi::object(executive) }?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { learned_bytes::give(to, size, || last(executive, |last| last.learned)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_refused(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let refused = last(unsafe { ffi::object(executive) }?, |last| last.refused.clone())?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_executive_summary(
    executive: *const Executive,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or an executive, says the header.
        let summary = last(unsafe { ffi::object(executive) }?, |last| last.summary.clone())?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &summary) }
    })
}

/// Writes an empty layout.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_layout_init(layout: *mut Layout, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(layout, size) })
}

#[cfg(test)]
mod tests;
