//! The builder of an executive: its tasks, their places, the settings of its threads.
//!
//! For whoever sets one up: an [`ExecutiveBuilder`], and a [`Calendar`] for what has fixed places.
//! Plain data with defaults for the least lateness; [`ExecutiveBuilder::build`] refuses what cannot
//! be, before anything runs.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, IntoFlow};
use punctual_core::stats::PageKind;
use punctual_core::table::OnOverrun;
use punctual_core::time::{Period, Span};
use punctual_engine::budgets::Budgets;
use punctual_engine::calendar::{CalendarBuilder, Combination, Unit};
use punctual_engine::clocks::MachineClock;
use punctual_engine::duration::span;
use punctual_engine::error::{BuildError, Error, ExecutiveError};
use punctual_engine::pack::{pack, place, together};
use punctual_engine::periodic::{LateTask, Periodic, Plan};
use punctual_engine::remote::POST;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::{Caution, check_demands};
use punctual_engine::task::{Offset, Place, Task};
use punctual_os::scheduler::SchedPolicy;

use super::Executive;
use super::bodies::Ranked;
use super::idle::Idle;
use super::lane::Lane;
use super::process::{Process, supervised};
use super::shared::{Closing, CpuUse, Entry, IDLE, LaneShared, LaneTasks, Rules, Shared, TaskId};
use super::team::{Assembly, Clocking};
use super::thread::{ReleasedBy, ThreadTask};
use super::work::{Body, Trigger, Work, boxed};
use crate::loops::Phase;

/// An executive to be: its tasks, and the settings of its threads.
#[must_use = "it is made by `build`"]
pub struct ExecutiveBuilder<'env, C = MachineClock> {
    given: Vec<Given<'env>>,
    calendar: Option<Calendar<'env>>,
    /// The refusal of what was given twice, for the build.
    twice: Option<BuildError>,
    idle: Option<Idle<'env>>,
    thread: RtThread,
    /// The CPUs of its loops, the main one's first; `None` for that of the thread alone.
    cpus: Option<Vec<u32>>,
    phase: Phase,
    tick: Option<Duration>,
    grace: Option<Span>,
    most: f64,
    overload: bool,
    samples: Option<PathBuf>,
    name: Option<String>,
    clocking: Clocking<'env, C>,
}

impl<C> fmt::Debug for ExecutiveBuilder<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: Vec<&Task> = self.given.iter().map(|given| &given.task).collect();
        f.debug_struct("ExecutiveBuilder")
            .field("tasks", &tasks)
            .field("calendar", &self.calendar)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

impl ExecutiveBuilder<'_> {
    pub(super) fn new() -> Self {
        Self {
            given: Vec::new(),
            calendar: None,
            twice: None,
            idle: None,
            thread: RtThread::any(),
            cpus: None,
            phase: Phase::Quiet,
            tick: None,
            grace: None,
            most: 1.0,
            overload: false,
            samples: None,
            name: None,
            clocking: Clocking::machine(),
        }
    }
}

impl<'env, C> ExecutiveBuilder<'env, C> {
    /// Adds a task, whose body runs once a period, in the place that [`Task::placed`] gives it.
    /// Inline bodies run one after the other, and none interrupts another: one that takes long or
    /// blocks (a read, a lock, a sleep) keeps all tasks of its loop waiting, and their releases
    /// that pass meanwhile are missed. Place such a task in a thread
    /// ([`Placement::thread`](crate::Placement::thread)) or a process, and give the others budgets,
    /// by which the summary tells whose cycles were too long.
    ///
    /// # Real-time: setup only
    pub fn task<R: IntoFlow>(
        mut self,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.given.push(Given { task, work: Work::Body(boxed(body)) });
        self
    }

    /// Sets the calendar: units at fixed places of a frame, which the executive's own thread runs;
    /// its other tasks run where their budgets fit between the units. All begins with the first
    /// frame that can be whole, also tasks in threads and processes; only what is triggered runs
    /// before it ([`Trigger`]). An executive has one: a second is an error of the build.
    ///
    /// # Real-time: setup only
    pub fn calendar(mut self, calendar: Calendar<'env>) -> Self {
        if self.calendar.replace(calendar).is_some() {
            self.twice = Some(BuildError::TwoCalendars);
        }
        self
    }

    /// Adds a task that is a process of its own: it is started, released, seen and ended by a
    /// supervisor, and calls [`Registration`](crate::Registration).
    ///
    /// # Real-time: setup only
    pub fn external(mut self, task: Task, process: Process) -> Self {
        self.given.push(Given { task, work: Work::Process(Box::new(process)) });
        self
    }

    /// Adds a task whose cycles a device triggers: it has a thread of its own and no releases, so
    /// that nothing of it is late; what is kept is the distance from start to start.
    /// [`Flow::Break`](crate::Flow::Break) from its body ends this task alone,
    /// [`Flow::Stop`](crate::Flow::Stop) the executive. The thread has the lowest real-time
    /// priority, on any CPU, unless [`Placement::thread`](crate::Placement::thread) says otherwise.
    ///
    /// # Real-time: setup only
    pub fn triggered<R: IntoFlow>(
        mut self,
        trigger: Trigger<'env>,
        task: Task,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.given.push(Given { task, work: Work::Triggered(trigger, boxed(body)) });
        self
    }

    /// Sets background work, in slices of at most this length, above 0: one runs where it ends
    /// before the next release, in the executive's own thread with its priority, so that ordinary
    /// threads get little of that CPU. [`Flow::Break`](crate::Flow::Break) ends it until that
    /// release. An executive has one: a second is an error of the build.
    ///
    /// # Real-time: setup only
    pub fn idle<R: IntoFlow>(
        mut self,
        slice: Duration,
        mut body: impl FnMut() -> R + Send + 'env,
    ) -> Self {
        let idle = Idle::new(span(slice), move || body().into_flow());
        if self.idle.replace(idle).is_some() {
            self.twice = Some(BuildError::TwoIdles);
        }
        self
    }

    /// Sets the CPU, the policy, the wait and the watchdog of the executive's own thread [default:
    /// [`RtThread::any`]]: that which calls [`Executive::run`], or the one that
    /// [`Executive::start`] starts. Its threads on other CPUs run in the same way.
    ///
    /// # Real-time: setup only
    pub fn thread(mut self, thread: RtThread) -> Self {
        self.thread = thread;
        self
    }

    /// Has it run on these CPUs, a thread on each, the first one its own: each task goes where it
    /// fits best, harmonic periods together. Instead of the CPU of [`ExecutiveBuilder::thread`]; an
    /// empty list is refused.
    ///
    /// # Real-time: setup only
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = Some(cpus.into_iter().collect());
        self
    }

    /// Sets the share of each CPU that budgets may fill before the next one is taken, in (0, 1]
    /// [default: 1].
    ///
    /// # Real-time: setup only
    pub fn fill(mut self, share: f64) -> Self {
        self.most = share;
        self
    }

    /// Sets the place of the releases of all tasks on the clock: away from the kernel's tick
    /// ([`Phase::Quiet`], the default; where its own loop meets the tick all the same, as its wait
    /// learns, they are moved, with a warning, unless it has processes), or with release 0 of phase
    /// 0 at zero or a given instant of the clock.
    ///
    /// # Real-time: setup only
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Lets balanced phases fall on multiples of `tick` [default: on those of the periods' common
    /// divisor, so that tasks that all have one period are released together, with one wake].
    ///
    /// # Real-time: setup only
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// Sets the time that a task with a thread of its own may go on after its cancel token was set,
    /// before it loses its real-time policy until it returns [default: its period].
    ///
    /// # Real-time: setup only
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(span(grace));
        self
    }

    /// Lets the budgets on a CPU ask for more than the whole of it, and a task be late behind
    /// another whatever their phases: releases will be missed.
    ///
    /// # Real-time: setup only
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Records the lateness of every cycle in a sample file, a run a task, which `punctual analyse`
    /// reads. A file of that name stays until the first samples are written, and is replaced then.
    /// Tasks that are added later, that a device triggers or that are processes are not in it.
    ///
    /// # Real-time: setup only
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.samples = Some(file.into());
        self
    }

    /// Sets the name by which processes join it ([`Process::joining`]).
    ///
    /// # Real-time: setup only
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Has all releases be on the time of this clock: one that is followed
    /// ([`Follower::clock`](crate::follow::Follower::clock)), or that of a simulation.
    /// [`Phase::Quiet`] is zero there.
    ///
    /// # Real-time: setup only
    pub fn clock<D: Clock + Clone + Send + 'env>(self, clock: D) -> ExecutiveBuilder<'env, D> {
        let clocking = Clocking::given(clock);
        let Self { given, calendar, twice, idle, thread, cpus, phase, tick, .. } = self;
        let Self { grace, most, overload, samples, name, .. } = self;
        ExecutiveBuilder {
            given,
            calendar,
            twice,
            idle,
            thread,
            cpus,
            phase,
            tick,
            grace,
            most,
            overload,
            samples,
            name,
            clocking,
        }
    }
}

/// A task that was given, and who does its work.
struct Given<'env> {
    task: Task,
    work: Work<'env>,
}

/// A task of a loop, its number and its body.
type Own<'env> = (usize, Task, Body<'env>);
/// A task in a thread of its own, its number and its work.
type Elsewhere<'env> = (usize, Task, Work<'env>);
/// The tasks of the threads, each with its work, and those that the main loop releases.
type Threads<'env> = (Vec<(ThreadTask, Work<'env>)>, Vec<Task>);

impl<'env, C> ExecutiveBuilder<'env, C> {
    /// Checks all of it and lays it out: the executive, and the ids of its tasks in the order in
    /// which they were given; those of a calendar come last, in the order of its frame.
    ///
    /// # Errors
    /// The first setting that cannot be, with the names of its tasks. What may make a task late is
    /// no error but a warning of the summary, unless no phases help and the thread is
    /// [`strict`](RtThread::strict).
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<(Executive<'env, C>, Vec<TaskId>), Error>
    where
        C: Clock + Clone + Send + 'env,
    {
        if let Some(why) = self.twice {
            return Err(why.into());
        }
        let Self { given, calendar, idle, thread, phase, clocking, samples, cpus, .. } = self;
        let Self { tick, grace, most, overload, name, .. } = self;
        if !(most > 0.0 && most <= 1.0) {
            return Err(BuildError::Share(most).into());
        }
        if given.is_empty() && calendar.is_none() {
            return Err(BuildError::NoTask.into());
        }
        if idle.as_ref().is_some_and(Idle::is_empty) {
            return Err(BuildError::Slice.into());
        }
        let mut rules =
            Rules { thread: thread.clone(), overload, own_cpus: 1, most, tick, calendar: None };
        let mut entries: Vec<Entry> = Vec::new();
        let Sorted { bodies, threads, processes } = sort(given, &mut entries, thread.policy())?;
        let Cpus { cpus, own } = cpus_of(&thread, cpus, &bodies)?;
        (rules.thread, rules.own_cpus) = (rules.thread.pinned(cpus[0]), own);
        if calendar.is_some() && cpus.len() > 1 {
            return Err(ExecutiveError::CalendarCpus.into());
        }
        let mut of_lane: Vec<Vec<Own<'env>>> = cpus.iter().map(|_| Vec::new()).collect();
        let mut budgets = Budgets::here();
        for (_, task, work) in &threads {
            // The period of what a device triggers is no rate.
            if matches!(work, Work::Body(_)) {
                budgets.add(task, task.placement().thread_cpu());
            }
        }
        let places = places(&bodies, &threads, &cpus, (&budgets, &rules));
        bodies.into_iter().zip(places).for_each(|(body, at)| of_lane[at].push(body));
        let main = Main::of(&of_lane[0], &threads, &rules)?;
        let beside = (grace, calendar.is_some());
        let (threads, remote) = main.threads(threads, beside, &mut entries, &rules)?;

        let (mut lanes, lane_tasks) = lanes(of_lane, &cpus, (&main, &remote), &rules)?;
        lanes[0].set_idle(idle);
        let mut cancels = lane_tasks.iter().any(LaneTasks::cancels);
        if let Some(calendar) = calendar {
            cancels |= calendar.add_to(&mut lanes[0], &mut entries)?;
            rules.calendar = lanes[0].calendar().cloned();
        }
        thread.check(lanes.iter().map(Lane::adapts_to).min().unwrap_or(IDLE))?;
        for entry in lanes.iter().flat_map(Lane::counted) {
            entries[entry].make_page(PageKind::Lateness);
        }
        let supervisor = supervised(processes, name, &thread, clocking.is_machine())?;
        if let Some((plan, _)) = &rules.calendar {
            (0..plan.tasks()).for_each(|task| budgets.add_unit(plan, task, cpus[0]));
        }
        if let Some((supervisor, _)) = &supervisor {
            supervisor.add_to(&mut budgets);
        }
        rules.check_budgets(budgets.clone(), cpus.iter().copied().zip(&lane_tasks))?;

        let own =
            lanes.iter().map(Lane::demand).chain(threads.iter().map(|(task, _)| task.demand()));
        let of_processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.demands());
        let demands: Vec<_> = own.chain(of_processes).collect();
        let mut cautions: Vec<String> =
            check_demands(&demands)?.iter().map(Caution::to_string).collect();
        let late_tasks: Vec<LateTask> =
            lanes.iter().flat_map(|lane| lane.plan().late_tasks()).collect();
        cautions.extend(late_tasks.iter().map(LateTask::to_string));
        let refuses = thread.is_strict() && !overload;
        if let Some(late) = late_tasks.into_iter().find(|late| refuses && late.is_certain()) {
            return Err(BuildError::from(&late).into());
        }
        let lanes_shared = cpus.iter().map(|cpu| LaneShared::new(*cpu)).collect();
        let tasks = (entries, lane_tasks);
        let cpu_use = CpuUse { demands, budgets };
        let shared = Shared::new(lanes_shared, threads.len(), rules, tasks, (cancels, cpu_use));
        let shared = Arc::new(shared);
        let ids = shared.ids();
        let (closing, peak) = (Closing(Arc::clone(&shared)), main.joint.peak());
        let assembly = Assembly {
            shared,
            closing,
            lanes,
            threads,
            supervisor,
            clocking,
            phase,
            samples,
            cautions,
        };
        Ok((Executive { assembly, peak }, ids))
    }
}

/// The main loop's tasks, and those that it releases: their phases are balanced together.
struct Main {
    joint: Plan,
    thread: RtThread,
}

impl Main {
    fn of(own: &[Own<'_>], threads: &[Elsewhere<'_>], rules: &Rules) -> Result<Self, Error> {
        let released = threads.iter().filter(|(_, _, work)| matches!(work, Work::Body(_)));
        let released = released.map(|(_, task, _)| task);
        let own = || own.iter().map(|(_, task, _)| task);
        // One thread runs them, wherever it is.
        let alone = rules.periodic(own().cloned());
        alone.check().map_err(|why| why.on_cpu(rules.thread.pinned_to()))?;
        let tasks: Vec<Task> = own().chain(released).cloned().collect();
        let joint = rules.periodic(tasks).allow_overload().build()?;
        Ok(Self { joint, thread: rules.thread.clone() })
    }

    fn rank(&self, task: &Task) -> Option<usize> {
        (0..self.joint.tasks()).find(|&rank| self.joint.name(rank) == task.name())
    }

    fn phase_ns(&self, task: &Task) -> u64 {
        self.rank(task).map_or(0, |rank| self.joint.phase_ns(rank))
    }

    /// The task at its phase.
    fn fixed(&self, task: &Task) -> Task {
        task.clone().at(Duration::from_nanos(self.phase_ns(task)))
    }

    /// The tasks in threads of their own; beside units each is released where that ends before the
    /// next one.
    fn threads<'env>(
        &self,
        tasks: Vec<Elsewhere<'env>>,
        (grace, beside_units): (Option<Span>, bool),
        entries: &mut [Entry],
        rules: &Rules,
    ) -> Result<Threads<'env>, Error> {
        let (mut threads, mut remote) = (Vec::new(), Vec::new());
        for (entry, task, work) in tasks {
            let phase_ns = self.phase_ns(&task);
            let released_by = match &work {
                Work::Triggered(..) => ReleasedBy::Device,
                _ if task.overrun_policy() == OnOverrun::Delay => {
                    ReleasedBy::Itself(Box::new(rules.periodic([self.fixed(&task)]).build()?))
                }
                _ => {
                    let posted = task.remote(phase_ns);
                    remote.push(if beside_units { posted.budget(POST) } else { posted });
                    ReleasedBy::executive(&task, phase_ns, grace)
                }
            };
            let rank = self.rank(&task);
            let thread = ThreadTask::new(entry, task, released_by, (&self.thread, rank));
            entries[entry].make_page(thread.kind());
            entries[entry].beside = Some(thread.placed());
            threads.push((thread, work));
        }
        Ok((threads, remote))
    }

    /// The main loop.
    fn lane<'env>(
        &self,
        bodies: Vec<Own<'env>>,
        remote: &[Task],
        thread: RtThread,
        rules: &Rules,
    ) -> Result<(Lane<'env>, LaneTasks), Error> {
        let own = bodies.iter().map(|(_, task, _)| self.fixed(task));
        let tasks = own.chain(remote.iter().cloned()).collect();
        // Its load was checked, with what else runs on its CPU.
        lane((0, thread), tasks, bodies, remote, Rules { overload: true, ..rules.clone() })
    }
}

/// All loops, the main one first.
fn lanes<'env>(
    of_lane: Vec<Vec<Own<'env>>>,
    cpus: &[Option<u32>],
    (main, remote): (&Main, &[Task]),
    rules: &Rules,
) -> Result<(Vec<Lane<'env>>, Vec<LaneTasks>), Error> {
    let (mut lanes, mut lane_tasks) = (Vec::new(), Vec::new());
    for (at, (bodies, cpu)) in of_lane.into_iter().zip(cpus).enumerate() {
        let thread = rules.thread.clone().pinned(*cpu);
        let (lane, tasks) = match at {
            0 => main.lane(bodies, remote, thread, rules)?,
            _ => {
                let tasks = bodies.iter().map(|(_, task, _)| task.clone()).collect();
                lane((at, thread), tasks, bodies, &[], rules.clone())?
            }
        };
        lanes.push(lane);
        lane_tasks.push(tasks);
    }
    Ok((lanes, lane_tasks))
}

/// One loop: its tasks by rank.
fn lane<'env>(
    (at, thread): (usize, RtThread),
    tasks: Vec<Task>,
    bodies: Vec<Own<'env>>,
    remote: &[Task],
    rules: Rules,
) -> Result<(Lane<'env>, LaneTasks), Error> {
    let plan = rules.periodic(tasks.iter().cloned()).build();
    let plan = plan.map_err(|why| why.on_cpu(thread.pinned_to()))?;
    let mut by_name: HashMap<String, (usize, Body<'env>)> = bodies
        .into_iter()
        .map(|(entry, task, body)| (task.name().to_owned(), (entry, body)))
        .collect();
    let mut lane = Lane::new(at, thread, plan.clone());
    for rank in 0..plan.tasks() {
        let name = plan.name(rank);
        match by_name.remove(name) {
            Some((entry, body)) => lane.push(name, Ranked::Here(body), Some(entry)),
            None => {
                let at = remote.iter().position(|task| task.name() == name).unwrap_or(0);
                lane.push(name, Ranked::Remote(at), None);
            }
        }
    }
    Ok((lane, LaneTasks::new(tasks, plan)))
}

/// The tasks by who does their work.
#[derive(Default)]
struct Sorted<'env> {
    /// The tasks of the executive's own loops.
    bodies: Vec<(usize, Task, Body<'env>)>,
    /// The tasks in threads of their own.
    threads: Vec<(usize, Task, Work<'env>)>,
    processes: Vec<(usize, Task, Process)>,
}

/// Sorts the tasks by who does their work, each with its number; refuses those that cannot be in
/// the place that they name.
fn sort<'env>(
    given: Vec<Given<'env>>,
    entries: &mut Vec<Entry>,
    main: SchedPolicy,
) -> Result<Sorted<'env>, Error> {
    let mut sorted = Sorted::default();
    for Given { task, work } in given {
        let at = entries.len();
        entries.push(Entry::new(task.name().to_owned()));
        let cannot = |why| Err(Error::from(BuildError::Cannot(task.name().to_owned(), why)));
        match (work, task.placement().place()) {
            (Work::Triggered(..), Place::Cpu(_)) => {
                return cannot("a device triggers it: it needs a thread of its own");
            }
            (Work::Triggered(trigger, body), _) => {
                if let Some(why) = never_late(&task) {
                    return cannot(why);
                }
                if let Place::Thread(thread) = task.placement().place() {
                    thread.check_cpu().map_err(|why| why.of_task(task.name()))?;
                }
                sorted.threads.push((at, task, Work::Triggered(trigger, body)));
            }
            (Work::Process(_), Place::Cpu(_) | Place::Thread(_)) => {
                return cannot("it is a process: `Process` says where that runs");
            }
            (Work::Process(process), Place::Inline) => sorted.processes.push((at, task, *process)),
            (Work::Body(_), _) if !task.has_period() => {
                return Err(ExecutiveError::NoPeriod(task.name().to_owned()).into());
            }
            (Work::Body(body), Place::Thread(thread)) => {
                ThreadTask::check(&task, thread, main)?;
                sorted.threads.push((at, task, Work::Body(body)));
            }
            (Work::Body(body), _) => sorted.bodies.push((at, task, body)),
        }
    }
    check_names(&sorted)?;
    Ok(sorted)
}

/// The setting of a task without releases that needs one, in words for the user; `None` for none.
fn never_late(task: &Task) -> Option<&'static str> {
    match (task.overrun_policy(), &task.offset()) {
        (OnOverrun::Burst(_), _) => {
            Some("a device triggers it: it has no releases to catch up with")
        }
        (OnOverrun::Delay, _) => Some("a device triggers it: it has no phase that could move"),
        (OnOverrun::Terminate, _) => Some("a device triggers it: it has no release to be ended at"),
        (OnOverrun::Stop, _) => Some("a device triggers it: it has no release to overrun"),
        (_, Offset::At(_) | Offset::After(..)) => Some("a device triggers it: it has no phase"),
        _ if task.deadline_ns().is_some() || task.start_ns().is_some() => {
            Some("a device triggers it: without a release nothing is late")
        }
        _ => None,
    }
}

/// Checks all that does not depend on the places of tasks: their names above all.
fn check_names(sorted: &Sorted<'_>) -> Result<(), Error> {
    let bodies = sorted.bodies.iter().map(|(_, task, _)| task);
    let threads = sorted.threads.iter().map(|(_, task, _)| task);
    let processes = sorted.processes.iter().map(|(_, task, _)| task);
    let tasks = bodies.chain(threads).chain(processes).cloned();
    Ok(tasks.fold(Periodic::new(), Periodic::task).allow_overload().check().map(drop)?)
}

/// The CPU of each loop, the main one's first, `None` for any. The first `own` are the executive's:
/// the others have the tasks that name them, and no more.
struct Cpus {
    cpus: Vec<Option<u32>>,
    own: usize,
}

/// The CPUs of an executive whose own thread and tasks are these.
fn cpus_of(
    thread: &RtThread,
    cpus: Option<Vec<u32>>,
    bodies: &[(usize, Task, Body<'_>)],
) -> Result<Cpus, Error> {
    let mut lanes: Vec<Option<u32>> = match cpus {
        None => vec![thread.pinned_to()],
        Some(cpus) if cpus.is_empty() => return Err(BuildError::NoCpu.into()),
        Some(cpus) => cpus.into_iter().map(Some).collect(),
    };
    for (at, cpu) in lanes.iter().enumerate() {
        if let Some(cpu) = cpu.filter(|_| lanes[..at].contains(cpu)) {
            return Err(BuildError::SameCpu(cpu).into());
        }
    }
    for cpu in lanes.iter().flatten() {
        RtThread::cpu(*cpu).check_cpu()?;
    }
    let own = lanes.len();
    for (_, task, _) in bodies {
        if let Place::Cpu(cpu) = task.placement().place()
            && !lanes.contains(&Some(*cpu))
        {
            RtThread::cpu(*cpu).check_cpu().map_err(|why| why.of_task(task.name()))?;
            lanes.push(Some(*cpu));
        }
    }
    Ok(Cpus { cpus: lanes, own })
}

/// The loop of each task, beside the budgets of threads: of those that follow one another one, also
/// where that is given for one of them alone.
fn places(
    bodies: &[Own<'_>],
    threads: &[Elsewhere<'_>],
    cpus: &[Option<u32>],
    (budgets, rules): (&Budgets, &Rules),
) -> Vec<usize> {
    let tasks: Vec<Task> = bodies.iter().map(|(_, task, _)| task.clone()).collect();
    let is_thread = |name: &String| threads.iter().any(|(_, task, _)| task.name() == name);
    let fixed = |task: &Task| match (task.placement().place(), task.offset()) {
        (Place::Cpu(cpu), _) => cpus.iter().position(|&lane| lane == Some(*cpu)),
        // The main loop releases it.
        (_, Offset::After(first, _)) if is_thread(first) => Some(0),
        _ => None,
    };
    let mut at: Vec<Option<usize>> = tasks.iter().map(fixed).collect();
    let own = cpus[..rules.own_cpus].iter();
    let taken: Vec<f64> = own.map(|cpu| budgets.load_on(*cpu)).collect();
    if at.iter().all(Option::is_none) {
        return pack(&tasks, &taken, rules.most);
    }
    // One after the other beside those whose place is given.
    let mut lanes: Vec<Vec<Task>> = cpus.iter().map(|_| Vec::new()).collect();
    let together = together(&tasks);
    for group in &together {
        let Some(place) = group.iter().find_map(|&task| at[task]) else { continue };
        for &task in group {
            let place = *at[task].get_or_insert(place);
            lanes[place].push(tasks[task].clone());
        }
    }
    for group in &together {
        if group.iter().any(|&task| at[task].is_some()) {
            continue;
        }
        let beside: Vec<&[Task]> = lanes.iter().map(Vec::as_slice).collect();
        let more: Vec<Task> = group.iter().map(|&task| tasks[task].clone()).collect();
        let place = place(&more, &beside, &taken, rules.most);
        group.iter().for_each(|&task| at[task] = Some(place));
        lanes[place].extend(more);
    }
    at.into_iter().map(|place| place.unwrap_or(0)).collect()
}

/// Units at fixed places of a frame that comes round for ever: for whoever knows at which instant
/// each piece of work has to begin (Maruti, *Temporal accuracy on the Pentium Pro*, §6.1).
///
/// A task with several units may break its work off at the end of one
/// ([`Flow::Break`](crate::Flow::Break)) and go on in the next. A unit that runs longer than its
/// budget is counted as the culprit, and has its cancel token set where its task is to be
/// terminated; the next unit starts late, which is counted too.
pub struct Calendar<'env> {
    frame: Period,
    units: Vec<Unit>,
    /// The name of each task, and its body.
    bodies: Vec<(String, Body<'env>)>,
    gap: Option<Span>,
    is_scheduled: bool,
}

impl fmt::Debug for Calendar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar").field("frame", &self.frame).field("units", &self.units).finish()
    }
}

impl<'env> Calendar<'env> {
    /// A frame of this length, a whole number of nanoseconds, without units.
    ///
    /// # Real-time: setup only
    pub fn frame(frame: Period) -> Self {
        Self { frame, units: Vec::new(), bodies: Vec::new(), gap: None, is_scheduled: false }
    }

    /// One more unit, and the body of its task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn unit<R: IntoFlow>(
        mut self,
        unit: Unit,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.bodies.push((unit.task().to_owned(), boxed(body)));
        self.units.push(unit);
        self
    }

    /// One more unit of a task whose body another unit has ([`Unit::of`]).
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn part(mut self, unit: Unit) -> Self {
        self.units.push(unit);
        self
    }

    /// Has places made for its units, from their periods ([`Unit::every`]), deadlines and order, in
    /// the place of those that [`Unit::at`] and [`Unit::after`] give: Maruti's offline scheduler.
    /// Deadlines and orders that cannot be met are an error of [`ExecutiveBuilder::build`] that
    /// names the units; that no places were found, though there may be some, is another one.
    ///
    /// # Real-time: setup only
    ///
    /// ```
    /// use std::time::Duration;
    /// use punctual::{Calendar, Executive, Period, Unit};
    ///
    /// let us = Duration::from_micros;
    /// let calendar = Calendar::frame(Period::from_ns(4_000_000).expect("in range"))
    ///     .unit(Unit::new("read", us(100)).every(us(1_000)).deadline(us(300)), |_| ())
    ///     .unit(Unit::new("control", us(300)).every(us(1_000)).after("read", us(50)), |_| ())
    ///     .unit(Unit::new("log", us(250)), |_| ())
    ///     .scheduled();
    /// let (executive, _ids) = Executive::builder().calendar(calendar).build()?;
    /// for placed in executive.layout() {
    ///     println!("{} at {:?}", placed.name, placed.phase);
    /// }
    /// # Ok::<(), punctual::Error>(())
    /// ```
    #[must_use]
    pub fn scheduled(mut self) -> Self {
        self.is_scheduled = true;
        self
    }

    /// Sets the time before each unit in which no periodic task runs: that of one turn of the loop
    /// and the start of a wait [default: 2 µs].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap = Some(span(gap));
        self
    }

    /// Puts its tasks before those of the lane's table; true where one may have to be cancelled.
    fn add_to(self, lane: &mut Lane<'env>, entries: &mut Vec<Entry>) -> Result<bool, Error> {
        let Self { frame, units, bodies, gap, is_scheduled } = self;
        let terminates = units.iter().any(|unit| unit.terminates());
        let given = units.into_iter().fold(CalendarBuilder::new(frame), CalendarBuilder::unit);
        let plan = if is_scheduled { given.schedule()?.build()? } else { given.build()? };
        let combined = match gap {
            Some(gap) => Combination::with_gap(&plan, lane.plan(), gap),
            None => Combination::new(&plan, lane.plan()),
        };
        let gap = combined.map_err(|why| why.on_cpu(lane.cpu()))?.gap();
        let mut by_task: HashMap<String, Body<'env>> = HashMap::new();
        for (task, body) in bodies {
            if by_task.insert(task.clone(), body).is_some() {
                return Err(ExecutiveError::TwoBodies(task).into());
            }
        }
        let mut tasks = Vec::new();
        for task in 0..plan.tasks() {
            let name = plan.name(task).to_owned();
            let body = by_task
                .remove(&name)
                .ok_or_else(|| Error::from(ExecutiveError::NoBody(name.clone())))?;
            let own = plan.units().filter(|(_, place)| place.task as usize == task);
            let units = own.map(|(unit, place)| (unit.to_owned(), place.ready_ns));
            tasks.push((name.clone(), body, entries.len()));
            entries.push(Entry::new(name).with_units(units));
        }
        lane.put_units(plan, gap, tasks);
        Ok(terminates)
    }
}
