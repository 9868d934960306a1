//! The supervisor: releases processes on one grid, sees them, ends them, starts them again.
//!
//! For `punctual run`, and for programs that want the same. [`Supervisor::build`] checks everything
//! and makes the memory; [`Ready::run`] starts the processes and stays until the end: the executive
//! in a SCHED_FIFO thread, the monitor above it, the lifecycle of the processes in the calling
//! thread.

mod child;
mod ready;
mod release_plan;
mod report;
mod supervisor_loop;
mod threads;
mod time_out;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::block::{
    Admission, OUTPUT_WORDS_MAX, Outputs, Source, TaskServer, Terms, restate, words,
};
use punctual_core::stats::{self, Page, PageKind};
use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::{Instant, Period, Span};
use punctual_os::futex::Scope;
use punctual_os::scheduler::SchedPolicy;

use super::error::SetupError;
use super::listener::Listener;
use super::name::is_name;
use super::shared_memory::SharedMemory;
use super::spec::{Resolved, Spec};
use crate::budgets::Budgets;
use crate::calendar::CalendarPlan;
use crate::clocks::monotonic_now;
use crate::error::{BuildError, CalendarError, Error};
use crate::monitor::{Demotable, RunawayRule, hang_bound};
use crate::periodic::{OnOverrun, Periodic, Plan, Task};
use crate::remote::{Limits, POST, RemoteCounts, RemoteOverrun, RemoteTask};
use crate::rt_thread::RtThread;
use crate::safety::{Caution, Demand, check_demands, check_period_here};
use release_plan::ReleasePlan;
use threads::{Others, Watch};
use time_out::UnitGuard;

pub use child::program;
pub use ready::Ready;
pub use report::{Event, EventKind, Figures, Finished, Over, TaskOutcome};

/// The time for which a process that is to be terminated keeps its real-time policy after its
/// overrun.
const TERMINATE_GRACE: Span = Span::from_ms(4);

/// The longest time for which a thread of a task may run under a real-time policy without blocking
/// before the kernel kills its process (RLIMIT_RTTIME), µs: ten times what the monitor allows, and
/// a burst. It is for when there is no monitor any more; [`super::Registration::wait`] blocks now
/// and then, however far a task is behind.
fn realtime_us(period_ns: u64, burst: u32) -> u64 {
    let cycles_ns = period_ns.saturating_mul(u64::from(burst).saturating_add(1));
    let allowed_ns = hang_bound(period_ns).as_ns().unsigned_abs().saturating_add(cycles_ns);
    allowed_ns.saturating_mul(10) / 1_000
}

/// Collects tasks; [`Supervisor::build`] checks them and makes what they share.
#[derive(Clone, Debug)]
pub struct Supervisor {
    name: Option<String>,
    specs: Vec<Spec>,
    calendar: Option<CalendarPlan>,
    thread: RtThread,
    epoch: Instant,
    overload: bool,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervisor {
    /// The executive's default priority: the tasks' are below.
    pub const PRIORITY: u8 = 80;

    /// No tasks yet, without a name, on any CPU, on the grid of CLOCK_MONOTONIC.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self {
            name: None,
            specs: Vec::new(),
            calendar: None,
            thread: RtThread::any().fifo(Self::PRIORITY),
            epoch: Instant::from_ns(0),
            overload: false,
        }
    }

    /// Sets the name by which processes come to it.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// One more task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn task(mut self, spec: Spec) -> Self {
        self.specs.push(spec);
        self
    }

    /// Releases the tasks of a calendar at the places of their units: each of its tasks is a
    /// process ([`Supervisor::task`]) of its name, whose period is the frame over the number of its
    /// places, and which is released once at each of them. Its budgets, deadlines and late starts
    /// are the calendar's; its policy is that of its [`Task`]. A unit that still runs where the
    /// place of another begins is timed out: it counts as an overrun, and its thread is SCHED_OTHER
    /// until its next release. Without a priority the processes of units all have the one below the
    /// supervisor's, and periodic tasks come below them.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn calendar(mut self, plan: CalendarPlan) -> Self {
        self.calendar = Some(plan);
        self
    }

    /// Sets the executive's thread: its CPU, which is that of the tasks too that have none of their
    /// own, its SCHED_FIFO priority, in [2, 98] and above the tasks', and what its wait takes of
    /// the CPU.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn thread(mut self, thread: RtThread) -> Self {
        self.thread = thread;
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

    /// Lets the budgets ask for more than a whole CPU.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Checks all tasks, lays them out, makes their memory, and takes the name.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be; threads that could take the machine away; a period that
    /// the clock's own stamps would fill, or in which its wait has no time to sleep.
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<Ready, Error> {
        let plan = self.release_plan()?;
        let cautions = self.check_here()?;
        let listener = self.name.as_deref().map(Listener::open).transpose()?;
        let mut blocks = Vec::new();
        for rank in 0..plan.ranks() {
            let spec = self.specs.iter().find(|spec| spec.task.name() == plan.name(rank));
            // The plan has the names of these tasks.
            let spec = spec.ok_or(BuildError::NoName)?.clone();
            blocks.push(self.block(spec, rank, &plan)?);
        }
        let page = SharedMemory::page("releases", stats::WORDS)
            .map_err(|why| SetupError::Memory("releases".to_owned(), why))?;
        let warnings = cautions.iter().map(ToString::to_string).collect();
        let Self { thread, epoch, .. } = self;
        Ok(Ready { plan, blocks, listener, page, thread, epoch, warnings })
    }

    /// Checks what can be known before anything is made or started: the shares of CPUs, the
    /// periods, and the users, directories and capabilities of its tasks. Returns what may be too
    /// much.
    ///
    /// # Errors
    ///
    /// As [`Self::build`].
    ///
    /// # Real-time: setup only
    pub fn check_here(&self) -> Result<Vec<Caution>, Error> {
        let cautions = check_demands(&self.demands())?;
        if let Some(shortest) = self.shortest() {
            self.thread.wait_policy().check(shortest)?;
            check_period_here(shortest)?;
        }
        for spec in &self.specs {
            spec.surroundings.resolve(spec.task.name())?;
        }
        Ok(cautions)
    }

    /// The shortest period.
    fn shortest(&self) -> Option<Period> {
        self.specs.iter().map(|spec| spec.task.period()).min()
    }

    /// The periods and the phases of its periodic tasks, ns; none where they cannot be.
    ///
    /// # Real-time: setup only
    pub fn grids(&self) -> Vec<(Period, u64)> {
        let plan = self.periodic_plan().ok();
        plan.iter().flat_map(Plan::grids).collect()
    }

    /// The shares of their CPUs that its loop and its tasks may take.
    ///
    /// # Real-time: setup only
    pub fn demands(&self) -> Vec<Demand> {
        let demand = |spec: &Spec| Demand {
            cpu: self.cpu(spec),
            real_time: true,
            period: spec.task.period(),
            share: self.share(spec),
        };
        let own = self.shortest().map(|period| Demand::waiting(&self.thread, period));
        self.specs.iter().map(demand).chain(own).collect()
    }

    /// The task of the calendar that this process is, if it is one.
    fn unit(&self, spec: &Spec) -> Option<(&CalendarPlan, usize)> {
        let plan = self.calendar.as_ref()?;
        let task = (0..plan.tasks()).find(|&task| plan.name(task) == spec.task.name())?;
        Some((plan, task))
    }

    /// The share of a CPU that the budgets of a task take.
    fn share(&self, spec: &Spec) -> f64 {
        self.unit(spec).map_or_else(|| spec.task.load(), |(plan, task)| plan.share(task))
    }

    /// The executive's priority; 0 for another policy than SCHED_FIFO.
    fn priority(&self) -> u8 {
        self.thread.named_fifo().unwrap_or(0)
    }

    /// Checks all settings and tasks; makes nothing.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<(), SetupError> {
        self.release_plan().map(drop)
    }

    /// The plan, where all settings and tasks can be.
    fn release_plan(&self) -> Result<ReleasePlan, SetupError> {
        if let Some(name) = self.name.as_ref().filter(|name| !is_name(name)) {
            return Err(SetupError::Name(name.clone()));
        }
        if self.specs.is_empty() {
            return Err(SetupError::Build(BuildError::NoTask));
        }
        if !(2..=98).contains(&self.priority()) {
            return Err(SetupError::Build(BuildError::Priority(self.priority(), 2, 98)));
        }
        self.specs.iter().try_for_each(|spec| spec.check(self.priority()))?;
        let tasks = self.periodic_plan()?;
        let plan = ReleasePlan::new(self.calendar.as_ref(), tasks)?;
        self.check_units(&plan)?;
        if !self.overload {
            let mut budgets = Budgets::here();
            self.add_to(&mut budgets);
            budgets.check()?;
        }
        Ok(plan)
    }

    /// Adds the budgets of its tasks.
    ///
    /// # Real-time: setup only
    pub fn add_to(&self, budgets: &mut Budgets) {
        for spec in &self.specs {
            match self.unit(spec) {
                Some((plan, task)) => budgets.add_unit(plan, task, self.cpu(spec)),
                None => budgets.add(&spec.task, self.cpu(spec)),
            }
        }
    }

    /// Each task of the calendar has one process, of the period of its places.
    fn check_units(&self, plan: &ReleasePlan) -> Result<(), SetupError> {
        for rank in 0..plan.units() {
            let name = || plan.name(rank).to_owned();
            let mut specs = self.specs.iter().filter(|spec| spec.task.name() == plan.name(rank));
            let spec = specs.next().ok_or_else(|| CalendarError::NoProcess(name()))?;
            if specs.next().is_some() {
                return Err(CalendarError::SameName(name()).into());
            }
            let (got, due) = (spec.task.period(), plan.period(rank));
            if got != due {
                return Err(CalendarError::ProcessPeriod(name(), got, due).into());
            }
            let policy = spec.task.overrun_policy();
            if matches!(policy, OnOverrun::Burst(_)) {
                return Err(CalendarError::OnOverrun(name(), policy).into());
            }
        }
        Ok(())
    }

    /// The periodic tasks as the executive runs them: it posts a release and is done at once; what
    /// a task does wrong is judged by its block.
    fn periodic_plan(&self) -> Result<Plan, BuildError> {
        let periodic: Vec<&Spec> =
            self.specs.iter().filter(|spec| self.unit(spec).is_none()).collect();
        let joint = periodic.iter().map(|spec| spec.task.clone());
        let joint = joint.fold(Periodic::new(), Periodic::task);
        // Each may have a CPU of its own: whether they fit there is checked with all others.
        let joint = joint.allow_overload().build()?;
        let phase_ns = |task: &Task| {
            let rank = (0..joint.tasks()).find(|&rank| joint.name(rank) == task.name());
            rank.map_or(0, |rank| joint.phase_ns(rank))
        };
        let remote = |spec: &&Spec| {
            let task = spec.task.remote(phase_ns(&spec.task));
            match self.calendar {
                // It is posted where that ends before the next unit.
                Some(_) => task.budget(POST),
                None => task,
            }
        };
        let remote = periodic.iter().map(remote).fold(Periodic::new(), Periodic::task);
        remote.allow_overload().build()
    }

    /// The SCHED_FIFO priority of a process: its own, or by its rank.
    fn fifo(&self, spec: &Spec, rank: usize, plan: &ReleasePlan) -> u8 {
        // All units share one: whichever runs over loses it.
        let first = usize::from(plan.units() > 0);
        let below = first + (rank + 1).saturating_sub(plan.units()).max(1 - first);
        let below = u8::try_from(below).unwrap_or(u8::MAX);
        spec.thread.named_fifo().unwrap_or(self.priority().saturating_sub(below).max(1))
    }

    /// The CPU of a process; `None` for any.
    fn cpu(&self, spec: &Spec) -> Option<u32> {
        spec.thread.pinned_to().or(self.thread.pinned_to())
    }

    /// The tasks as its loop would release them, those of the calendar first, then the periodic
    /// ones by rank; makes nothing.
    ///
    /// # Errors
    ///
    /// The first setting that cannot be.
    ///
    /// # Real-time: setup only
    pub fn layout(&self) -> Result<Vec<PlacedTask>, SetupError> {
        let plan = self.release_plan()?;
        let placed = |rank| {
            let spec = self.specs.iter().find(|spec| spec.task.name() == plan.name(rank))?;
            Some(PlacedTask {
                name: plan.name(rank).to_owned(),
                period: plan.period(rank),
                phase_ns: plan.phase_ns(rank),
                is_unit: rank < plan.units(),
                priority: self.fifo(spec, rank, &plan),
                cpu: self.cpu(spec),
            })
        };
        Ok((0..plan.ranks()).filter_map(placed).collect())
    }

    fn block(&self, spec: Spec, rank: usize, plan: &ReleasePlan) -> Result<TaskBlock, SetupError> {
        let (burst, on_overrun) = RemoteOverrun::of(spec.task.overrun_policy());
        let safe = spec.safe_words();
        debug_assert!(safe.len() <= OUTPUT_WORDS_MAX, "checked");
        let (releases, places) = plan.releases(rank, self.epoch);
        let mut terms = Terms::even(releases, burst);
        (terms.places, terms.output_words) = (places, safe.len());
        let failed = |why| SetupError::Memory(spec.task.name().to_owned(), why);
        let memory = SharedMemory::block(spec.task.name(), words(safe.len())).map_err(failed)?;
        let page = SharedMemory::page(spec.task.name(), stats::WORDS).map_err(failed)?;
        // Whoever reads before the loop begins finds an empty block, a page and the safe value.
        let _block = TaskServer::new(memory.words(), terms);
        let resolved = spec.surroundings.resolve(spec.task.name())?;
        let period_ns = spec.task.period().as_ns();
        let patience_ns = hang_bound(period_ns).as_ns().unsigned_abs();
        Ok(TaskBlock {
            fifo: self.fifo(&spec, rank, plan),
            cpu: self.cpu(&spec),
            limits: match plan.limits(rank) {
                limits if limits.is_empty() => vec![Limits::of(&spec.task)],
                limits => limits,
            },
            realtime_us: realtime_us(period_ns, burst),
            silent_after: patience_ns.div_ceil(period_ns),
            grace: match on_overrun {
                // So that who is to end it gets the CPU, where there is but one.
                RemoteOverrun::Cancel => TERMINATE_GRACE,
                _ => hang_bound(period_ns),
            },
            terms,
            on_overrun,
            safe,
            resolved,
            memory,
            page: Arc::new(page),
            spec,
            admission: Admission::new(),
            counts: RemoteCounts::default(),
            demotable: Demotable::default(),
            others: Others::default(),
        })
    }
}

/// A task of a supervisor, as its loop would release it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTask {
    /// Its name.
    pub name: String,
    /// Its period; of a task of the calendar the frame over the number of its places.
    pub period: Period,
    /// Its phase, or its first place in the frame, ns after the epoch.
    pub phase_ns: u64,
    /// True where it is released at the places of units.
    pub is_unit: bool,
    /// The SCHED_FIFO priority that its thread is given.
    pub priority: u8,
    /// The CPU that its thread is pinned to; `None` for any.
    pub cpu: Option<u32>,
}

/// One block of a supervisor: the state that its loop, its monitor and its supervising thread
/// share. Only atomics change here; the supervising thread alone knows which process has the block.
#[derive(Debug)]
struct TaskBlock {
    spec: Spec,
    terms: Terms,
    /// The limits of a cycle, by place of its frame.
    limits: Vec<Limits>,
    on_overrun: RemoteOverrun,
    fifo: u8,
    cpu: Option<u32>,
    grace: Span,
    /// A process that takes none of so many releases is silent.
    silent_after: u64,
    safe: Vec<u64>,
    /// The surroundings of its process, in the kernel's numbers.
    resolved: Resolved,
    memory: SharedMemory,
    page: Arc<SharedMemory>,
    admission: Admission,
    counts: RemoteCounts,
    demotable: Demotable,
    others: Others,
    /// The longest time for which a thread of its process may run under a real-time policy without
    /// blocking, µs.
    realtime_us: u64,
}

impl TaskBlock {
    /// The task as the executive has it; `None` never: the memory was made for it.
    fn remote(&self) -> Option<RemoteTask<'_, Page<'_>>> {
        Some(RemoteTask {
            server: TaskServer::new(self.memory.words(), self.terms)?,
            kept: Page::new(self.page.words(), PageKind::Lateness)?,
            admission: &self.admission,
            counts: &self.counts,
            limits: self.limits.clone(),
            on_overrun: self.on_overrun,
            scope: Scope::Machine,
        })
    }

    /// The rule by which the monitor demotes its registered thread.
    fn rule(&self) -> RunawayRule<'_> {
        let words = self.memory.words();
        RunawayRule::new(words, self.terms, self.grace, self.policy(), &self.demotable)
    }

    /// The policy that its registered thread is given.
    fn policy(&self) -> SchedPolicy {
        SchedPolicy::Fifo(self.fifo)
    }

    /// The guard by which the loop times it out, where it is a task of the calendar.
    fn guard(&self) -> UnitGuard<'_> {
        UnitGuard::new(self.memory.words(), &self.demotable, self.policy())
    }

    /// The watch that the monitor keeps over the other threads of its process.
    fn watch(&self) -> Watch<'_> {
        let bound = hang_bound(self.spec.task.period().as_ns());
        Watch::new(&self.others, &self.demotable, bound)
    }

    /// States the terms again, over which the task may have written, and commits the safe value:
    /// nobody else writes any more.
    fn take_over(&self) {
        restate(self.memory.words(), &self.terms);
        if !self.safe.is_empty()
            && let Some(outputs) = Outputs::of(self.memory.words(), self.safe.len())
        {
            outputs.commit(&self.safe, Source::Safe);
        }
    }

    /// A word of the block is in memory: pays its first touch.
    fn touch(&self) {
        let touched = self.memory.words().iter().chain(self.page.words());
        let sum = touched.step_by(512).map(|word| word.load(Ordering::Relaxed));
        std::hint::black_box(sum.fold(0u64, u64::wrapping_add));
    }
}

/// The request to end a supervisor, which its caller makes while it runs.
///
/// Flags alone: a signal handler or another thread sets them. The instant at which one was set is
/// known only where the flag keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    flag: &'a AtomicBool,
    /// The flag with the instant at which it was set, where it keeps that.
    dated: Option<&'a StopFlag>,
    hurry: Option<&'a AtomicBool>,
}

impl<'a> Stop<'a> {
    /// It ends once `flag` is set.
    ///
    /// # Real-time: setup only
    pub const fn new(flag: &'a AtomicBool) -> Self {
        Self { flag, dated: None, hurry: None }
    }

    /// It ends once `stop` is set: what is due after its instant is none of its releases.
    ///
    /// # Real-time: setup only
    pub fn dated(stop: &'a StopFlag) -> Self {
        Self { flag: stop.flag(), dated: Some(stop), hurry: None }
    }

    /// Once `flag` is set too, tasks get no time to leave: they are ended at once.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn hurry(self, flag: &'a AtomicBool) -> Self {
        Self { hurry: Some(flag), ..self }
    }

    fn set(&self) {
        self.request(monotonic_now());
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    fn is_hurried(&self) -> bool {
        self.hurry.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl StopRequest for Stop<'_> {
    fn flag(&self) -> &AtomicBool {
        self.flag
    }

    fn requested(&self) -> Option<Instant> {
        self.dated?.requested()
    }

    fn request(&self, at: Instant) {
        match self.dated {
            Some(stop) => stop.request(at),
            None => self.flag.request(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_stop_keeps_the_first_instant_and_a_flag_none() {
        let (dated, flag) = (StopFlag::default(), AtomicBool::new(false));
        let (first, stop) = (Instant::from_ns(30), Stop::dated(&dated));
        assert!(!stop.is_set());
        dated.request(first);
        // As it does itself at its end.
        stop.set();
        assert_eq!((stop.is_set(), stop.requested()), (true, Some(first)));
        let stop = Stop::new(&flag);
        stop.set();
        assert_eq!((stop.is_set(), stop.requested()), (true, None));
    }
}
