//! The supervisor: releases processes on one grid, sees them, ends them, starts them again.
//!
//! For `punctual run`, and for programs that want the same. [`Supervisor::build`] checks everything
//! and makes the memory; [`Ready::run`] starts the processes and stays until the end: the executive
//! in a SCHED_FIFO thread, the monitor above it, the lifecycle of the processes in the calling
//! thread.

mod child;
mod ready;
mod report;
mod supervisor_loop;
mod threads;

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
use crate::clocks::monotonic_now;
use crate::error::{BuildError, Error};
use crate::monitor::{Demotable, RunawayRule, hang_bound};
use crate::periodic::{Periodic, Plan, Task};
use crate::remote::{Limits, RemoteCounts, RemoteOverrun, RemoteTask};
use crate::rt_thread::RtThread;
use crate::safety::{Demand, check_demands, check_period_here};
use threads::{Others, Watch};

pub use child::program;
pub use ready::Ready;
pub use report::{Event, EventKind, Figures, Finished, Over, TaskOutcome};

/// How long a process that is to be terminated keeps its real-time policy after its overrun.
const TERMINATE_GRACE: Span = Span::from_ms(4);

/// How long a thread of a task may run under a real-time policy without blocking before the kernel
/// kills its process (RLIMIT_RTTIME), µs: ten times what the monitor allows, and a burst. It is for
/// when there is no monitor any more; [`super::Registration::wait`] blocks now and then, however
/// far a task is behind.
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

    /// Sets how the executive's thread runs: its CPU, which is that of the tasks too that have none
    /// of their own, its SCHED_FIFO priority, in [2, 98] and above the tasks', and what its wait
    /// takes of the CPU.
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
    /// The first thing that cannot be; that its threads could take the machine away; a period that
    /// the clock's own stamps would fill, or in which its wait has no time to sleep.
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<Ready, Error> {
        let plan = self.check()?;
        let cautions = check_demands(&self.demands())?;
        if let Some(shortest) = self.shortest() {
            self.thread.wait_policy().check(shortest)?;
            check_period_here(shortest)?;
        }
        let listener = self.name.as_deref().map(Listener::open).transpose()?;
        let mut blocks = Vec::new();
        for rank in 0..plan.tasks() {
            let spec = self.specs.iter().find(|spec| spec.task.name() == plan.name(rank));
            // The plan has the names of these tasks.
            let spec = spec.ok_or(BuildError::NoName)?.clone();
            blocks.push(self.block(spec, rank, plan.phase_ns(rank))?);
        }
        let page = SharedMemory::page("releases", stats::WORDS)
            .map_err(|why| SetupError::Memory("releases".to_owned(), why))?;
        let warnings = cautions.iter().map(ToString::to_string).collect();
        let Self { thread, epoch, .. } = self;
        Ok(Ready { plan, blocks, listener, page, thread, epoch, warnings })
    }

    /// The shortest period.
    fn shortest(&self) -> Option<Period> {
        self.specs.iter().map(|spec| spec.task.period()).min()
    }

    /// The periods and the phases of its tasks, ns; none where they cannot be.
    ///
    /// # Real-time: setup only
    pub fn grids(&self) -> Vec<(Period, u64)> {
        let plan = self.plan().ok();
        let grid = |plan: &Plan, rank| (plan.period(rank), plan.phase_ns(rank));
        plan.iter().flat_map(|plan| (0..plan.tasks()).map(|rank| grid(plan, rank))).collect()
    }

    /// The shares of their CPUs that its loop and its tasks may take.
    ///
    /// # Real-time: setup only
    pub fn demands(&self) -> Vec<Demand> {
        let demand = |spec: &Spec| Demand {
            cpu: spec.thread.pinned_to().or(self.thread.pinned_to()),
            real_time: true,
            period: spec.task.period(),
            share: spec.task.load(),
        };
        let own = self.shortest().map(|period| self.thread.demand(period));
        self.specs.iter().map(demand).chain(own).collect()
    }

    /// The executive's priority; 0 for another policy than SCHED_FIFO.
    fn priority(&self) -> u8 {
        self.thread.named_fifo().unwrap_or(0)
    }

    /// The plan, where all settings and tasks can be; makes nothing.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<Plan, SetupError> {
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
        Ok(self.plan()?)
    }

    /// All tasks as the executive runs them: it posts a release and is done at once; what a task
    /// does wrong is judged by its block.
    fn plan(&self) -> Result<Plan, BuildError> {
        let checked = self.specs.iter().map(|spec| spec.task.clone());
        let periodic = checked.fold(Periodic::new(), Periodic::task);
        let joint = if self.overload { periodic.allow_overload() } else { periodic }.build()?;
        let phase_ns = |task: &Task| {
            let rank = (0..joint.tasks()).find(|&rank| joint.name(rank) == task.name());
            rank.map_or(0, |rank| joint.phase_ns(rank))
        };
        let remote = |spec: &Spec| spec.task.remote(phase_ns(&spec.task));
        self.specs.iter().map(remote).fold(Periodic::new(), Periodic::task).build()
    }

    fn block(&self, spec: Spec, rank: usize, phase_ns: u64) -> Result<TaskBlock, SetupError> {
        let (burst, on_overrun) = RemoteOverrun::of(spec.task.overrun_policy());
        let safe = spec.safe_words();
        debug_assert!(safe.len() <= OUTPUT_WORDS_MAX, "checked");
        let releases = spec.task.releases(self.epoch, phase_ns);
        let terms = Terms { releases, burst, output_words: safe.len() };
        let failed = |why| SetupError::Memory(spec.task.name().to_owned(), why);
        let memory = SharedMemory::block(spec.task.name(), words(safe.len())).map_err(failed)?;
        let page = SharedMemory::page(spec.task.name(), stats::WORDS).map_err(failed)?;
        // Whoever reads before the loop begins finds an empty block, a page and the safe value.
        let _block = TaskServer::new(memory.words(), terms);
        let resolved = spec.surroundings.resolve(spec.task.name())?;
        let below = u8::try_from(rank.saturating_add(1)).unwrap_or(u8::MAX);
        let period_ns = spec.task.period().as_ns();
        let patience_ns = hang_bound(period_ns).as_ns().unsigned_abs();
        let by_rank = self.priority().saturating_sub(below).max(1);
        Ok(TaskBlock {
            fifo: spec.thread.named_fifo().unwrap_or(by_rank),
            cpu: spec.thread.pinned_to().or(self.thread.pinned_to()),
            limits: Limits::of(&spec.task),
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

/// One block of a supervisor: what its loop, its monitor and its supervising thread share. Only
/// atomics change here; the supervising thread alone knows which process has the block.
#[derive(Debug)]
struct TaskBlock {
    spec: Spec,
    terms: Terms,
    limits: Limits,
    on_overrun: RemoteOverrun,
    fifo: u8,
    cpu: Option<u32>,
    grace: Span,
    /// A process that takes none of so many releases is silent.
    silent_after: u64,
    safe: Vec<u64>,
    /// What its process runs as and in.
    resolved: Resolved,
    memory: SharedMemory,
    page: Arc<SharedMemory>,
    admission: Admission,
    counts: RemoteCounts,
    demotable: Demotable,
    others: Others,
    /// How long a thread of its process may run under a real-time policy without blocking, µs.
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
            limits: self.limits,
            on_overrun: self.on_overrun,
            scope: Scope::Machine,
        })
    }

    /// The rule by which the monitor demotes its registered thread.
    fn rule(&self) -> RunawayRule<'_> {
        let words = self.memory.words();
        let policy = SchedPolicy::Fifo(self.fifo);
        RunawayRule::new(words, self.terms.releases, self.grace, policy, &self.demotable)
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

/// When a supervisor ends, as its caller decides while it runs.
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
