//! The tasks of an executive that have threads of their own, and the slots by which others see
//! them.
//!
//! In their loops no system call is made but futex, by one that the executive releases; sleep, by
//! one that waits for itself; and what its device takes, by one that a device triggers.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use punctual_core::block::{Admission, ClientStep, TaskClient, TaskServer, Terms, end_task, words};
use punctual_core::clock::Clock;
use punctual_core::cycle::{CancelToken, Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Cancelling, Dispatch, Many, Paced, Schedule};
use punctual_core::stats::{Distances, Page, PageKind};
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Strategy, Wait};
use punctual_engine::comb::TickDetector;
use punctual_engine::counting::CycleCounting;
use punctual_engine::error::{Error, ExecutiveError, Kind};
use punctual_engine::file_facts::RunFacts;
use punctual_engine::handover::LOOK;
use punctual_engine::monitor::{Demotable, RunawayRule, Watched, hang_bound};
use punctual_engine::pack::Placed;
use punctual_engine::periodic::Plan;
use punctual_engine::quiet;
use punctual_engine::release_span::ReleaseSpan;
use punctual_engine::remote::{Limits, RemoteCounts, RemoteOverrun, RemoteTask};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::{self, Demand};
use punctual_engine::session::ThreadSession;
use punctual_engine::task::{Place, Task};
use punctual_engine::wait_policy::{LearnPlace, WaitPolicy, WarmUp};
use punctual_os::futex::{self, Scope};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::ending::Ending;
use super::startup::{Startup, in_setup, pause};
use super::work::{Body, Trigger, Work, guarded, panic_text};

/// A task in a thread of its own, but for its work.
#[derive(Debug)]
pub(super) struct ThreadTask {
    entry: usize,
    task: Task,
    cpu: Option<u32>,
    policy: SchedPolicy,
    wait: WaitPolicy,
    released_by: ReleasedBy,
}

/// The source of the releases of a task in a thread of its own.
#[derive(Debug)]
pub(super) enum ReleasedBy {
    /// The main loop, in the order of those that it releases.
    Executive {
        /// The phase of its releases after the epoch, ns.
        phase_ns: u64,
        /// The most cycles that it may catch up with.
        burst: u32,
        /// The effect of an overrun.
        on_overrun: RemoteOverrun,
        /// The time that it keeps its policy after an overrun.
        grace: Span,
        /// The limits of a cycle, beyond which it is counted as late or over.
        limits: Limits,
    },
    /// It waits for its releases itself: its phase may move.
    Itself(Box<Plan>),
    /// Its device triggers it.
    Device,
}

impl ReleasedBy {
    /// The main loop, at this phase; `grace` for one that is to be terminated [default: its
    /// period].
    pub(super) fn executive(task: &Task, phase_ns: u64, grace: Option<Span>) -> Self {
        let (burst, on_overrun) = RemoteOverrun::of(task.overrun_policy());
        let grace = match on_overrun {
            RemoteOverrun::Cancel => grace.unwrap_or(task.period().as_span()),
            _ => hang_bound(task.period().as_ns()),
        };
        let limits = Limits::of(task);
        Self::Executive { phase_ns, burst, on_overrun, grace, limits }
    }
}

impl ThreadTask {
    /// Beside a main loop that runs so, in which it has this rank.
    pub(super) fn new(
        entry: usize,
        task: Task,
        released_by: ReleasedBy,
        (main, rank): (&RtThread, Option<usize>),
    ) -> Self {
        let thread = match task.placement().place() {
            Place::Thread(thread) => thread.clone(),
            _ => RtThread::any(),
        };
        // Below the executive, in the order of the tasks; one without releases comes last.
        let below = rank.map_or(u8::MAX, |rank| u8::try_from(rank + 1).unwrap_or(u8::MAX));
        let policy = thread.named_policy().unwrap_or(match main.policy() {
            SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => {
                SchedPolicy::Fifo(n.saturating_sub(below).max(1))
            }
            ordinary => ordinary,
        });
        let (cpu, wait) = (thread.pinned_to(), *thread.wait_policy());
        Self { entry, task, cpu, policy, wait, released_by }
    }

    /// Checks that a task's thread can run so beside a main loop of this policy.
    pub(super) fn check(task: &Task, thread: &RtThread, main: SchedPolicy) -> Result<(), Error> {
        let fifo = |policy| match policy {
            SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => n,
            _ => 0,
        };
        thread.check(task.period()).map_err(|why| why.of_task(task.name()))?;
        let own = thread.named_policy().map_or(1, fifo);
        if fifo(main) > 0 && own >= fifo(main) {
            return Err(ExecutiveError::NotBelow(task.name().to_owned(), own, fifo(main)).into());
        }
        Ok(())
    }

    /// False for one that a device triggers and that names none.
    pub(super) fn has_period(&self) -> bool {
        self.task.has_period()
    }

    /// Its number among all tasks.
    pub(super) fn entry(&self) -> usize {
        self.entry
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.task.name()
    }

    /// The CPU that its thread is pinned to.
    pub(super) fn cpu(&self) -> Option<u32> {
        self.cpu
    }

    /// Its period.
    pub(super) fn period(&self) -> Period {
        self.task.period()
    }

    /// The share of its CPU that it takes at most.
    pub(super) fn demand(&self) -> Demand {
        let Self { cpu, policy, task, .. } = self;
        let real_time = safety::is_real_time(*policy);
        Demand { cpu: *cpu, real_time, period: task.period(), share: task.load() }
    }

    /// Its period and its phase, ns, where it waits for its releases itself.
    pub(super) fn grid(&self) -> Option<(Period, u64)> {
        match &self.released_by {
            ReleasedBy::Itself(plan) => plan.grids().next(),
            ReleasedBy::Executive { .. } | ReleasedBy::Device => None,
        }
    }

    /// The kind of its statistics: lateness, or the distance of starts for one that a device
    /// triggers.
    pub(super) fn kind(&self) -> PageKind {
        match self.released_by {
            ReleasedBy::Device => PageKind::Distance,
            _ => PageKind::Lateness,
        }
    }

    /// Its place.
    pub(super) fn placed(&self) -> Placed {
        let phase_ns = match &self.released_by {
            ReleasedBy::Executive { phase_ns, .. } => Some(*phase_ns),
            ReleasedBy::Itself(plan) => Some(plan.phase_ns(0)),
            ReleasedBy::Device => None,
        };
        Placed::alone(&self.task, self.cpu, phase_ns)
    }

    /// The facts of it for a sample file; `None` where it has no releases, and no samples.
    pub(super) fn facts(&self) -> Option<RunFacts> {
        let phase_ns = match &self.released_by {
            ReleasedBy::Executive { phase_ns, .. } => *phase_ns,
            ReleasedBy::Itself(plan) => plan.phase_ns(0),
            ReleasedBy::Device => return None,
        };
        Some(RunFacts {
            name: self.name().to_owned(),
            cpu: self.cpu,
            period: self.period(),
            epoch_ns: phase_ns,
            phase_ns,
            policy: self.policy,
            wait: "thread",
            experiment: None,
        })
    }

    /// A warning about its wait, with its name.
    fn with_name(&self, words: &str) -> String {
        format!("task {:?}: {words}", self.name())
    }

    /// Runs the task in its slot to its end, on the calling thread, also where its trigger panics;
    /// `counting` makes the observer of its cycles, once the epoch is known.
    pub(super) fn work<C: Clock + Clone + Send>(
        &self,
        work: &mut Work<'_>,
        startup: &Startup<C>,
        (block, slot): (&ThreadBlock, &ThreadSlot<'_>),
        counting: impl FnOnce(Instant) -> Option<CycleCounting>,
    ) {
        let run = || self.run(work, startup, (block, slot), counting);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            startup.ending().panicked(self.name(), panic_text(&*panic));
        }
    }

    fn run<C: Clock + Clone + Send>(
        &self,
        work: &mut Work<'_>,
        startup: &Startup<C>,
        (block, slot): (&ThreadBlock, &ThreadSlot<'_>),
        counting: impl FnOnce(Instant) -> Option<CycleCounting>,
    ) {
        // One that is added ends nothing of what runs: whoever adds it waits.
        let watched = (!slot.added).then_some(&slot.watched);
        let abort = (!slot.added).then(|| startup.abort_on_panic());
        let enter = || ThreadSession::enter(self.cpu, self.policy);
        let session = in_setup(watched, enter);
        if slot.added && startup.is_strict() && !session.refused().is_empty() {
            return slot.refuse(Kind::Refused(session.refused().to_vec()).into());
        }
        startup.refuse(session.refused());
        let Some((mut clock, likely)) = startup.await_settled(watched) else { return };
        if let SchedPolicy::Fifo(_) = session.policy() {
            block.demotable.arm(process::tid());
        }
        let mut wait = None;
        if let ReleasedBy::Itself(_) = self.released_by {
            let period = self.period();
            let phase_ns = likely.as_ns() % period.as_ns();
            let place = LearnPlace { period, phase_ns, quiet: None };
            // Whoever adds a task waits until it runs: its first cycles teach its wait.
            let policy = if slot.added { self.wait.learn_first(false) } else { self.wait };
            let warm_up = WarmUp { watched, ..WarmUp::until(startup.ending().stop.flag()) };
            let learn = || warm_up.ready(&policy, place, &mut clock, startup.discipline());
            let ready_wait = in_setup(watched, learn);
            startup.warn(ready_wait.warnings.into_iter().map(|words| self.with_name(&words)));
            wait = Some(ready_wait.wait);
        }
        let Some(epoch) = startup.await_epoch(watched) else { return };
        startup.ready();
        drop(abort);
        let go = startup.await_go(false, watched, || Instant::from_ns(0));
        let Some(span) = go else { return };
        slot.runs();
        let ending = startup.ending();
        let (body, trigger) = match work {
            Work::Body(body) => (body, None),
            Work::Triggered(trigger, body) => (body, Some(trigger)),
            Work::Process(_) => return,
        };
        let is_watched = !matches!(self.released_by, ReleasedBy::Executive { .. });
        let watched = is_watched.then_some(&slot.watched);
        let only = OnlyTask { body, name: self.name(), watched, tid: process::tid(), ending };
        let counting = counting(epoch);
        match (&self.released_by, wait, trigger, counting) {
            (ReleasedBy::Itself(plan), Some(wait), _, Some(counting)) => {
                let tasks = Cancelling { tasks: only, token: &slot.token };
                let observe = TickDetector::new(counting, Some(self.period()));
                let mut many = Many { clock, wait, tasks, observe };
                run_itself(&mut many, plan, (epoch, &span), slot);
                let met = many.observe.take_met().map(|tick| quiet::met_words(&tick));
                startup.warn_once(met.map(|words| self.with_name(&words)));
                let reach = self.wait.out_of_reach(&many.wait.status());
                startup.warn(reach.map(|words| self.with_name(&words)));
            }
            (ReleasedBy::Device, _, Some(trigger), Some(counting)) => {
                self.run_triggered(trigger, clock, only, &counting);
            }
            _ => {
                if let Ok(mut client) = TaskClient::open(&block.memory) {
                    client.ask(process::tid().unsigned_abs().into());
                    run_released(&mut client, &mut clock, only);
                    client.leave();
                }
            }
        }
        block.demotable.arm(0);
    }

    /// Runs the cycles that a device triggers.
    fn run_triggered(
        &self,
        trigger: &mut Trigger<'_>,
        clock: impl Clock,
        only: OnlyTask<'_, '_>,
        counting: &CycleCounting,
    ) {
        let stats = counting.stats();
        let Some(page) = Page::resume(&stats) else { return };
        let (ending, period) = (only.ending, self.period());
        let mut paced = Paced {
            clock,
            pacer: || ending.callback(|| trigger.next(ending.stop.flag())),
            tasks: only,
            observe: Distances::new(page),
            period,
            budget_ns: self.task.budget_ns().unwrap_or(u64::MAX),
        };
        if paced.run(ending.stop.flag()) == Ended::Stopped {
            ending.stop();
        }
    }
}

/// Runs the cycles of a task that waits for its releases itself.
fn run_itself<C: Clock>(
    many: &mut Many<C, Strategy, Cancelling<'_, OnlyTask<'_, '_>>, TickDetector<CycleCounting>>,
    plan: &Plan,
    (epoch, span): (Instant, &ReleaseSpan),
    slot: &ThreadSlot<'_>,
) {
    let OnlyTask { ending, name, .. } = many.tasks.tasks;
    let from = if slot.added { many.clock.now() } else { span.from };
    let table = plan.table(epoch);
    let mut storage = plan.storage();
    let Some(mut state) = TableState::begin(&table, storage.lend(), from) else { return };
    let schedule = Schedule::of_table(&table, &mut state);
    let mut schedule = schedule.leave_on(&slot.leave, slot.watched.word(), LOOK);
    let ended = many.obey(&mut schedule, span.end, &ending.stop);
    if schedule.left() {
        // It is removed: what it was due for, it missed.
        many.never_ran(&mut Schedule::of_table(&table, &mut state));
    }
    match ended {
        Ended::Stopped => ending.stop(),
        Ended::Overran(_) => ending.overran(name),
        Ended::Finished => {}
    }
}

/// Runs the cycles that the executive releases, until its block is ended; a body that says stop
/// stops all.
///
/// # Real-time: in loop, waits
fn run_released(client: &mut TaskClient<'_>, clock: &mut impl Clock, mut only: OnlyTask<'_, '_>) {
    loop {
        match client.turn() {
            ClientStep::Ended => return,
            ClientStep::Wait(seen) => futex::wait(client.bell(), seen, Scope::Process),
            ClientStep::Run => {
                let start = clock.wake();
                let flow = only.run(0, &mut client.begin(start));
                client.end(clock);
                if flow == Flow::Stop {
                    return only.ending.stop();
                }
            }
        }
    }
}

/// A body behind rank 0, watched while it runs where no server sees that.
struct OnlyTask<'b, 'env> {
    body: &'b mut Body<'env>,
    name: &'b str,
    watched: Option<&'b Watched>,
    tid: i32,
    ending: &'b Ending,
}

impl Dispatch for OnlyTask<'_, '_> {
    #[inline]
    fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
        if let Some(watched) = self.watched {
            watched.beat();
            watched.arm(self.tid);
        }
        let flow = guarded(self.ending, || self.name.to_owned(), || (self.body)(cycle));
        if let Some(watched) = self.watched {
            watched.disarm();
        }
        flow
    }
}

/// The only thread that is ever released for a task.
const ONLY: u64 = 1;

/// The memory that the thread of a released task shares with its server and its monitor.
#[derive(Debug, Default)]
pub(super) struct ThreadBlock {
    memory: Vec<AtomicU64>,
    admission: Admission,
    counts: RemoteCounts,
    demotable: Demotable,
}

impl ThreadBlock {
    /// Empty, and not open.
    pub(super) fn new() -> Self {
        let memory = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        Self { memory, ..Self::default() }
    }

    /// The task as its server has it; `None` where the main loop does not release it.
    pub(super) fn remote(
        &self,
        task: &ThreadTask,
        epoch: Instant,
        kept: CycleCounting,
    ) -> Option<RemoteTask<'_, CycleCounting>> {
        let ReleasedBy::Executive { phase_ns, burst, on_overrun, limits, .. } = task.released_by
        else {
            return None;
        };
        let releases = task.task.releases(epoch, phase_ns);
        let terms = Terms::even(releases, burst);
        Some(RemoteTask {
            server: TaskServer::new(&self.memory, terms)?,
            kept,
            admission: &self.admission,
            counts: &self.counts,
            limits: vec![limits],
            on_overrun,
            scope: Scope::Process,
        })
    }

    /// The rule by which the monitor demotes it; `None` where the main loop does not release it.
    pub(super) fn rule(&self, task: &ThreadTask, epoch: Instant) -> Option<RunawayRule<'_>> {
        let ReleasedBy::Executive { phase_ns, burst, grace, .. } = task.released_by else {
            return None;
        };
        let releases = task.task.releases(epoch, phase_ns);
        let terms = Terms::even(releases, burst);
        Some(RunawayRule::new(&self.memory, terms, grace, task.policy, &self.demotable))
    }

    /// Lets it be released from now on.
    pub(super) fn open(&self) {
        self.admission.open(ONLY);
    }

    /// Ends its task's loop, also where the loop that released it is gone.
    pub(super) fn end(&self) {
        if let Some(bell) = end_task(&self.memory) {
            let _woken = futex::wake(bell, u32::MAX, Scope::Process);
        }
    }

    /// Times that it lost its real-time policy because it ran on.
    pub(super) fn demotions(&self) -> u64 {
        self.demotable.demotions()
    }
}

/// The state that a task with a thread of its own shares with handles and the monitor.
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(super) struct ThreadSlot<'env> {
    watched: Watched,
    token: CancelToken,
    /// Not 0 once the task shall leave.
    leave: AtomicU64,
    /// True for tasks that come while the executive runs.
    added: bool,
    state: Mutex<SlotState<'env>>,
}

/// The state of a slot's task.
enum SlotState<'env> {
    Free,
    Wanted(Box<(ThreadTask, Body<'env>)>),
    Starting,
    Runs,
    /// It will not run; its thread is about to end.
    Refused(Error),
    /// It did not run, and its thread has ended.
    Failed(Error),
    /// It ran; dropped by whoever clears the slot.
    Over(#[expect(dead_code, reason = "kept until it is dropped")] Body<'env>),
}

impl fmt::Debug for ThreadSlot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadSlot").field("added", &self.added).finish_non_exhaustive()
    }
}

impl<'env> ThreadSlot<'env> {
    /// Free; `added` for one that is for tasks that come while the executive runs.
    #[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
    pub(super) fn new(added: bool) -> Self {
        let (watched, token, leave) = (Watched::default(), CancelToken::new(), AtomicU64::new(0));
        Self { watched, token, leave, added, state: Mutex::new(SlotState::Free) }
    }

    /// The progress that the monitor looks at.
    pub(super) fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The token by which the monitor cancels a cycle that overran.
    pub(super) fn token(&self) -> &CancelToken {
        &self.token
    }

    /// True in the body of a task that was added to it.
    pub(super) fn is_run_by(&self, tid: i32) -> bool {
        self.added && self.watched.thread() == Some(tid)
    }

    /// True where a task can be added to it.
    pub(super) fn is_free(&self) -> bool {
        self.added && matches!(*self.state(), SlotState::Free)
    }

    /// Has a task started in it, which may make no progress for `bound`; `is_over` once nothing is
    /// started any more. Returns when it runs.
    ///
    /// # Errors
    /// The reason why it does not run.
    pub(super) fn start(
        &self,
        (task, body): (ThreadTask, Body<'env>),
        bound: Option<Span>,
        starter: &Starter,
        is_over: impl Fn() -> bool,
    ) -> Result<(), Error> {
        self.watched.allow(bound);
        *self.state() = SlotState::Wanted(Box::new((task, body)));
        starter.ring();
        loop {
            let mut state = self.state();
            let over = starter.is_closed() || is_over();
            match &*state {
                SlotState::Runs | SlotState::Over(_) => return Ok(()),
                SlotState::Starting | SlotState::Refused(_) => {}
                SlotState::Wanted(_) if !over => {}
                _ => {
                    let why = std::mem::replace(&mut *state, SlotState::Free);
                    drop(state);
                    return Err(match why {
                        SlotState::Failed(why) => why,
                        _ => ExecutiveError::NotRunning.into(),
                    });
                }
            }
            drop(state);
            pause();
        }
    }

    /// Has its task leave, waits until its body has returned, and drops that here.
    pub(super) fn remove(&self) {
        self.leave.store(1, Ordering::Release);
        while matches!(*self.state(), SlotState::Runs) {
            pause();
        }
        self.clear();
    }

    /// Drops what is left in it.
    pub(super) fn clear(&self) {
        let left = std::mem::replace(&mut *self.state(), SlotState::Free);
        drop(left);
        self.leave.store(0, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, SlotState<'env>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that its task is set up, and about to begin.
    fn runs(&self) {
        *self.state() = SlotState::Runs;
    }

    /// Notes that its task will not run; called in its own thread.
    fn refuse(&self, why: Error) {
        *self.state() = SlotState::Refused(why);
    }

    /// Notes that its task has no thread, because of this.
    pub(super) fn fail(&self, why: Error) {
        *self.state() = SlotState::Failed(why);
    }

    /// Notes that its thread has ended, and takes the body back.
    pub(super) fn over(&self, body: Body<'env>) {
        let mut state = self.state();
        *state = match std::mem::replace(&mut *state, SlotState::Free) {
            SlotState::Runs => SlotState::Over(body),
            SlotState::Refused(why) => SlotState::Failed(why),
            _ => SlotState::Failed(ExecutiveError::NotRunning.into()),
        };
    }

    /// The task that waits in it to be started.
    pub(super) fn take(&self) -> Option<Box<(ThreadTask, Body<'env>)>> {
        let mut state = self.state();
        if !matches!(*state, SlotState::Wanted(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, SlotState::Starting) {
            SlotState::Wanted(wanted) => Some(wanted),
            _ => None,
        }
    }
}

/// The bell that wakes the thread that starts added tasks, and the flag that ends it.
#[derive(Debug, Default)]
pub(super) struct Starter {
    bell: AtomicU64,
    closed: AtomicBool,
}

impl Starter {
    fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        let _woken = futex::wake(&self.bell, u32::MAX, Scope::Process);
    }

    /// True where nothing is started any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Starts nothing any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.ring();
    }

    /// Times that it was rung, for [`wait`](Self::wait).
    pub(super) fn rung(&self) -> u64 {
        self.bell.load(Ordering::Acquire)
    }

    /// Waits until it is rung once more, or was since `seen`; returns at once when it is closed.
    pub(super) fn wait(&self, seen: u64) {
        if !self.is_closed() {
            futex::wait(&self.bell, seen as u32, Scope::Process);
        }
    }
}
