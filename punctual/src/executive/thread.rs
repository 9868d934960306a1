//! The tasks of an executive that have threads of their own.
//!
//! In their loops no system call is made but futex, by one that the executive releases; sleep, by
//! one that waits for itself; and what its device takes, by one that a device triggers.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::block::{Admission, ClientStep, TaskClient, TaskServer, Terms, words};
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Cancelling, Dispatch, Many, Paced, Schedule};
use punctual_core::stats::{Distances, Page, PageKind};
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Strategy;
use punctual_engine::counting::CycleCounting;
use punctual_engine::error::Kind;
use punctual_engine::handover::LOOK;
use punctual_engine::monitor::{Guarded, RunawayRule, Watched, hang_bound};
use punctual_engine::periodic::Plan;
use punctual_engine::remote::{Limits, RemoteCounts, RemoteOverrun, RemoteTask};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::{self, Demand};
use punctual_engine::session::ThreadSession;
use punctual_engine::task::{Place, Task};
use punctual_engine::wait_policy::{WaitPolicy, ready};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::events::{Interest, wait_until};
use punctual_os::futex::{self, Scope};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::{Errno, process};

use super::builder::Work;
use super::ending::Ending;
use super::lane::{Body, guarded};
use super::run::{Run, Times};
use super::slot::Slot;

impl ThreadTask {
    /// Runs it to its end, on the calling thread.
    pub(super) fn run<C: Clock + Clone + Send>(
        &self,
        work: &mut Work<'_>,
        run: &Run<'_, '_, C>,
        released: &Released,
        slot: &Slot<'_>,
    ) {
        let session = ThreadSession::enter(self.cpu, self.policy);
        if slot.late && run.strict && !session.refused().is_empty() {
            return slot.refuse(Kind::Refused(session.refused().to_vec()).into());
        }
        run.refuse(session.refused());
        let Some((mut clock, epoch)) = run.await_settled() else { return };
        if let SchedPolicy::Fifo(_) = session.policy() {
            released.guarded.arm(process::tid());
        }
        let mut wait = None;
        if let Pace::Own(_) = self.pace {
            let period = self.task.period();
            let at = (period, epoch.as_ns() % period.as_ns());
            let (own, warnings) = ready(&self.wait, at, &mut clock, run.discipline);
            run.warn(warnings);
            wait = Some(own);
        }
        run.ready();
        let Some(times) = run.await_go(false, || Instant::from_ns(0)) else { return };
        slot.runs();
        let ending = &run.shared.ending;
        let (body, trigger) = match work {
            Work::Body(body) => (body, None),
            Work::Triggered(trigger, body) => (body, Some(trigger)),
            Work::Process(_) => return,
        };
        let name = self.task.name();
        let watched = (!matches!(self.pace, Pace::Remote { .. })).then_some(&slot.watched);
        let only = Only { body, name, watched, tid: process::tid(), ending };
        let counting = run.counting(self.entry, epoch);
        match (&self.pace, wait, trigger, counting) {
            (Pace::Own(plan), Some(wait), _, Some(counting)) => {
                let tasks = Cancelling { tasks: only, token: &slot.token };
                own(
                    &mut Many { clock, wait, tasks, observe: counting },
                    plan,
                    (epoch, &times),
                    slot,
                );
            }
            (Pace::Triggered, _, Some(trigger), Some(counting)) => {
                self.triggered(trigger, clock, only, &counting);
            }
            _ => {
                if let Ok(mut client) = TaskClient::open(&released.memory) {
                    client.ask(process::tid().unsigned_abs().into());
                    released_remotely(&mut client, &mut clock, only);
                    client.leave();
                }
            }
        }
        released.guarded.arm(0);
    }

    /// The cycles that a device triggers.
    fn triggered(
        &self,
        Trigger(wait): &mut Trigger<'_>,
        clock: impl Clock,
        only: Only<'_, '_>,
        counting: &CycleCounting,
    ) {
        let stats = counting.stats();
        let Some(page) = Page::resume(&stats) else { return };
        let (ending, period) = (only.ending, self.task.period());
        let mut paced = Paced {
            clock,
            pacer: || ending.callback(|| wait(ending.stop.flag())),
            tasks: only,
            observe: Distances::new(page),
            period,
            budget_ns: self.task.budget_in_ns().unwrap_or(u64::MAX),
        };
        if paced.run(ending.stop.flag()) == Ended::Stopped {
            ending.stop();
        }
    }
}

/// The cycles of a task that waits for its releases itself.
fn own<C: Clock>(
    many: &mut Many<C, Strategy, Cancelling<'_, Only<'_, '_>>, CycleCounting>,
    plan: &Plan,
    (epoch, times): (Instant, &Times),
    slot: &Slot<'_>,
) {
    let Only { ending, name, .. } = many.tasks.tasks;
    let from = if slot.late { many.clock.now() } else { times.from };
    let table = plan.table(epoch);
    let mut storage = plan.storage();
    let Some(mut state) = TableState::begin(&table, storage.lend(), from) else { return };
    let schedule = Schedule::of_table(&table, &mut state);
    let mut schedule = schedule.leave_on(&slot.leave, slot.watched.word(), LOOK);
    let ended = many.obey(&mut schedule, times.end, &ending.stop);
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

/// The cycles that the executive releases, until its block is ended; a body that says stop stops
/// all.
///
/// # Real-time: in loop, waits
fn released_remotely(client: &mut TaskClient<'_>, clock: &mut impl Clock, mut only: Only<'_, '_>) {
    loop {
        match client.turn() {
            ClientStep::Ended => return,
            ClientStep::Wait(seen) => futex::wait(client.bell(), seen, Scope::Process),
            ClientStep::Run => {
                let start = clock.wake();
                let flow = only.run(0, &mut client.begin(start));
                client.done(clock.now());
                if flow == Flow::Stop {
                    return only.ending.stop();
                }
            }
        }
    }
}

/// A body behind rank 0, watched while it runs where no server sees that.
struct Only<'b, 'env> {
    body: &'b mut Body<'env>,
    name: &'b str,
    watched: Option<&'b Watched>,
    tid: i32,
    ending: &'b Ending,
}

impl Dispatch for Only<'_, '_> {
    #[inline]
    fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
        if let Some(watched) = self.watched {
            watched.beat();
            watched.arm(self.tid);
        }
        let flow = guarded(self.body, cycle, || self.name.to_owned(), self.ending);
        if let Some(watched) = self.watched {
            watched.disarm();
        }
        flow
    }
}

/// Runs a task's thread to its end, also where its trigger panics.
pub(super) fn work<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    (at, of): (usize, &ThreadTask),
    work: &mut Work<'_>,
    released: &Released,
) {
    let slot = &run.shared.threads[at];
    let ran = catch_unwind(AssertUnwindSafe(|| of.run(work, run, released, slot)));
    if ran.is_err() {
        run.shared.ending.panicked(of.task.name(), "while it waited for its trigger");
    }
}

/// Ends the loops of all released tasks and wakes them. One that is to be cancelled at an overrun
/// is cancelled now too, for it may go on until it is.
pub(super) fn end(remotes: &[RemoteTask<'_, CycleCounting>]) {
    for post in remotes {
        if post.on_overrun == RemoteOverrun::Cancel {
            post.server.cancel();
        }
        post.server.end();
        let _woken = futex::wake(post.server.bell(), u32::MAX, post.scope);
    }
}

/// A task in a thread of its own, but for its work.
#[derive(Debug)]
pub(super) struct ThreadTask {
    pub(super) entry: usize,
    pub(super) task: Task,
    pub(super) cpu: Option<u32>,
    pub(super) policy: SchedPolicy,
    pub(super) wait: WaitPolicy,
    pub(super) pace: Pace,
}

impl ThreadTask {
    /// Beside a main loop that runs so, in which it has this rank.
    pub(super) fn new(
        entry: usize,
        task: Task,
        pace: Pace,
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
            other => other,
        });
        Self { entry, task, cpu: thread.pinned_to(), policy, wait: *thread.wait_policy(), pace }
    }

    /// What it may take of its CPU.
    pub(super) fn demand(&self) -> Demand {
        let Self { cpu, policy, task, .. } = self;
        let real_time = safety::is_real_time(*policy);
        Demand { cpu: *cpu, real_time, period: task.period(), share: task.load() }
    }

    /// Its period and its phase, ns, where it waits for its releases itself.
    pub(super) fn grid(&self) -> Option<(Period, u64)> {
        match &self.pace {
            Pace::Own(plan) => Some((plan.period(0), plan.phase_ns(0))),
            Pace::Remote { .. } | Pace::Triggered => None,
        }
    }

    /// What its statistics are of.
    pub(super) fn kind(&self) -> PageKind {
        match self.pace {
            Pace::Triggered => PageKind::Distance,
            _ => PageKind::Lateness,
        }
    }
}

/// What says when a task runs.
#[derive(Debug)]
pub(super) enum Pace {
    /// The main loop releases it, in the order of those that it releases.
    Remote { phase_ns: u64, burst: u32, on_overrun: RemoteOverrun, grace: Span, limits: Limits },
    /// It waits for its releases itself: its phase may move.
    Own(Box<Plan>),
    /// Its device does.
    Triggered,
}

impl Pace {
    /// Released by the main loop.
    pub(super) fn remote(task: &Task, phase_ns: u64, grace: Option<Span>) -> Self {
        let period = Span::from_ns(i64::try_from(task.period().as_ns()).unwrap_or(i64::MAX));
        let (burst, on_overrun) = RemoteOverrun::of(task.overrun_policy());
        let grace = match on_overrun {
            RemoteOverrun::Cancel => grace.unwrap_or(period),
            _ => hang_bound(task.period().as_ns()),
        };
        let limits = Limits::of(task);
        Pace::Remote { phase_ns, burst, on_overrun, grace, limits }
    }
}

/// The only thread that is ever released for a task.
const ONLY: u64 = 1;

/// What the thread of a released task shares with its server and its monitor.
#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) memory: Vec<AtomicU64>,
    pub(super) door: Admission,
    pub(super) counts: RemoteCounts,
    pub(super) guarded: Guarded,
}

impl Released {
    pub(super) fn new() -> Self {
        let memory = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        Self { memory, ..Self::default() }
    }

    /// Who releases it.
    pub(super) fn post(
        &self,
        of: &ThreadTask,
        epoch: Instant,
        kept: CycleCounting,
    ) -> Option<RemoteTask<'_, CycleCounting>> {
        let Pace::Remote { phase_ns, burst, on_overrun, limits, .. } = of.pace else { return None };
        let terms = Terms { releases: of.task.releases(epoch, phase_ns), burst, output_words: 0 };
        Some(RemoteTask {
            server: TaskServer::new(&self.memory, terms)?,
            kept,
            door: &self.door,
            counts: &self.counts,
            limits,
            on_overrun,
            scope: Scope::Process,
        })
    }

    /// As its monitor sees it.
    pub(super) fn guard(&self, of: &ThreadTask, epoch: Instant) -> Option<RunawayRule<'_>> {
        let Pace::Remote { phase_ns, grace, .. } = of.pace else { return None };
        let releases = of.task.releases(epoch, phase_ns);
        Some(RunawayRule::new(&self.memory, releases, grace, of.policy, &self.guarded))
    }

    /// Has it released from now on.
    pub(super) fn open(&self) {
        self.door.open(ONLY);
    }

    /// How often it lost its real-time policy because it ran on.
    pub(super) fn demotions(&self) -> u64 {
        self.guarded.demotions()
    }
}

/// How often a wait for a descriptor looks whether it is to stop.
const FD_LOOK: Span = Span::from_ms(100);

/// Blocks until the next cycle; false for none any more.
type Waits<'env> = Box<dyn FnMut(&AtomicBool) -> bool + Send + 'env>;

/// What triggers a task.
pub struct Trigger<'env>(pub(super) Waits<'env>);

impl fmt::Debug for Trigger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger").finish_non_exhaustive()
    }
}

impl<'env> Trigger<'env> {
    /// A cycle each time that this descriptor is readable, until it is closed at its other end. The
    /// body reads what is there: as long as it does not, the next cycle follows at once.
    ///
    /// # Real-time: setup only
    pub fn fd(descriptor: impl AsFd + Send + 'env) -> Self {
        Self(Box::new(move |stop| {
            let mut interest = [Interest::new(descriptor.as_fd().as_raw_fd())];
            while !stop.load(Ordering::Relaxed) {
                let until_ns = now_ns(ClockId::Monotonic) + FD_LOOK.as_ns().unsigned_abs();
                match wait_until(&mut interest, until_ns) {
                    Ok(0) => {}
                    Ok(_) => return interest[0].is_readable(),
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
            false
        }))
    }

    /// A cycle each time that `wait` returns true; it blocks until then. False ends the task: at
    /// the latest when the executive is to stop, which `wait` finds out by itself.
    ///
    /// # Real-time: setup only
    pub fn wait(mut wait: impl FnMut() -> bool + Send + 'env) -> Self {
        Self(Box::new(move |_| wait()))
    }
}
