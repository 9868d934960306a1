//! One loop of an executive: a thread with a table of tasks, and the calendar where it is the main
//! one.
//!
//! Everything before the loop is setup; in the loop bodies are called, and statistics kept.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::executive::{Cancelling, Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Stalls, Strategy, Wait, WaitStatus};
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::counting::{ByRank, CycleCounting, Keep, Unreleased, Words};
use punctual_engine::file_facts::RunFacts;
use punctual_engine::handover::{Exchange, LoopRun, RunningPlan, RunningUnits};
use punctual_engine::monitor::Watched;
use punctual_engine::periodic::{Plan, Response};
use punctual_engine::quiet::Quiet;
use punctual_engine::remote::{RemoteOverrun, RemoteTask};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::Demand;
use punctual_engine::session::Neighbour;
use punctual_engine::session::ThreadSession;
use punctual_engine::wait_policy::ready;
use punctual_os::futex;
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use super::handle::Placed;
use super::run::{Run, Times};
use super::shared::{Ending, IDLE};
use super::thread::ThreadTask;

/// The task behind a rank.
struct LaneRank<'env> {
    name: String,
    body: Ranked<'env>,
    /// The task whose cycles the loop counts; none where its server does.
    entry: Option<usize>,
}

/// One loop: a thread, its table of tasks, and the calendar where it is the main one.
pub(super) struct Lane<'env> {
    at: usize,
    thread: RtThread,
    plan: Plan,
    /// The calendar, and how long before each unit nothing else runs.
    calendar: Option<(Arc<CalendarPlan>, Span)>,
    /// The calendar's tasks, then the table's.
    ranks: Vec<LaneRank<'env>>,
    idle: Option<Idle<'env>>,
}

/// The state in which a loop ended.
pub(super) struct LoopEnd {
    /// The policy that it had.
    pub(super) policy: SchedPolicy,
    /// What its wait did and learned.
    pub(super) wait: WaitStatus,
    /// The quiet phase that it found; `None` where it looked for none.
    pub(super) quiet: Option<Quiet>,
}

/// A loop that has ended, with the tasks that it released.
pub(super) struct EndedLoop<'r> {
    end: LoopEnd,
    /// When it was over.
    over: Instant,
    remotes: Vec<RemoteTask<'r, CycleCounting>>,
    /// By its remote task what it never released and should have.
    unreleased: Vec<Unreleased>,
}

impl EndedLoop<'_> {
    /// Ends the loops of all tasks that it released and wakes them. One that is to be cancelled at
    /// an overrun is cancelled now too, for it may go on until it is.
    pub(super) fn end_remotes(&self) {
        for remote in &self.remotes {
            if remote.on_overrun == RemoteOverrun::Cancel {
                remote.server.cancel();
            }
            remote.server.end();
            let _woken = futex::wake(remote.server.bell(), u32::MAX, remote.scope);
        }
    }

    /// Takes the last results of the tasks that it released, which run no more at `now`, and what
    /// they missed.
    pub(super) fn close_remotes(&mut self, now: Instant) {
        let Self { over, remotes, unreleased, .. } = self;
        remotes.iter_mut().for_each(|remote| remote.close(now, *over));
        // What came after the last one that it released.
        for (at, missed, end) in unreleased {
            remotes[*at].kept.end(*missed, *end);
        }
    }

    /// The state in which it ended.
    pub(super) fn into_end(self) -> LoopEnd {
        self.end
    }
}

impl<'env> Lane<'env> {
    /// Loop number `at`, without bodies yet.
    pub(super) fn new(at: usize, thread: RtThread, plan: Plan) -> Self {
        Self { at, thread, plan, calendar: None, ranks: Vec::new(), idle: None }
    }

    /// The task of the next rank; its number where this loop counts its cycles.
    pub(super) fn push(&mut self, name: &str, body: Ranked<'env>, entry: Option<usize>) {
        self.ranks.push(LaneRank { name: name.to_owned(), body, entry });
    }

    /// Sets its background work.
    pub(super) fn set_idle(&mut self, idle: Option<Idle<'env>>) {
        self.idle = idle;
    }

    /// Puts the tasks of a calendar before those of the table, each with its number; nothing else
    /// runs for `gap` before each unit.
    pub(super) fn put_units(
        &mut self,
        calendar: CalendarPlan,
        gap: Span,
        tasks: Vec<(String, Body<'env>, usize)>,
    ) {
        let tasks = tasks.into_iter().map(|(name, body, entry)| LaneRank {
            name,
            body: Ranked::Here(body),
            entry: Some(entry),
        });
        self.ranks.splice(0..0, tasks);
        self.calendar = Some((Arc::new(calendar), gap));
    }

    /// Its table's plan.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The calendar, and how long before each unit nothing else runs.
    pub(super) fn calendar(&self) -> Option<&(Arc<CalendarPlan>, Span)> {
        self.calendar.as_ref()
    }

    /// The CPU that it is pinned to.
    pub(super) fn cpu(&self) -> Option<u32> {
        self.thread.pinned_to()
    }

    /// Makes the calling thread run as it is to; what the kernel refuses is noted.
    pub(super) fn enter<C: Clock + Clone + Send>(&self, run: &Run<'_, '_, C>) -> ThreadSession {
        let session = ThreadSession::enter(self.cpu(), self.thread.policy());
        run.refuse(session.refused());
        session
    }

    /// The period of the task of this rank, and where its releases lie in it, ns; of a calendar's
    /// task its first unit.
    fn grid_of(&self, rank: usize) -> (Period, Option<u64>) {
        match &self.calendar {
            Some((calendar, _)) if rank < calendar.tasks() => {
                (calendar.period(rank), calendar.ready_ns(rank))
            }
            calendar => {
                let units = calendar.as_ref().map_or(0, |(calendar, _)| calendar.tasks());
                (self.plan.period(rank - units), Some(self.plan.phase_ns(rank - units)))
            }
        }
    }

    /// Where its tasks are; one that it releases is where its thread is, one of `threads`.
    pub(super) fn placed(&self, threads: &[&ThreadTask]) -> Vec<Placed> {
        let units = self.calendar.as_ref().map_or(0, |(calendar, _)| calendar.tasks());
        // Units of a calendar keep tasks waiting too.
        let responses = if units == 0 { self.plan.responses() } else { Vec::new() };
        let placed = |(rank, task): (usize, &LaneRank<'_>)| {
            let thread = threads.iter().find(|thread| thread.name() == task.name);
            let in_table = rank.checked_sub(units).filter(|&rank| !self.plan.is_remote(rank));
            let deadline_ns = in_table.map(|rank| self.plan.deadline_ns(rank));
            Placed {
                name: task.name.clone(),
                cpu: thread.map_or(self.cpu(), |thread| thread.cpu()),
                phase: self.grid_of(rank).1.map(Duration::from_nanos),
                rank: Some(rank),
                response: responses.get(rank).copied().unwrap_or(Response::Unknown),
                deadline: deadline_ns.map(Duration::from_nanos),
            }
        };
        self.ranks.iter().enumerate().map(placed).collect()
    }

    /// What a sample file says of the tasks whose cycles it counts, each with its number.
    pub(super) fn facts(&self) -> impl Iterator<Item = (usize, RunFacts)> {
        self.ranks.iter().enumerate().filter_map(|(rank, task)| {
            let (period, phase_ns) = self.grid_of(rank);
            let phase_ns = phase_ns.unwrap_or(0);
            let facts = RunFacts {
                name: task.name.clone(),
                cpu: self.cpu(),
                period,
                epoch_ns: phase_ns,
                phase_ns,
                policy: self.thread.policy(),
                wait: self.thread.wait_policy().name(),
                experiment: None,
            };
            Some((task.entry?, facts))
        })
    }

    /// The tasks whose cycles the loop counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = usize> {
        self.ranks.iter().filter_map(|rank| rank.entry)
    }

    /// What its wait adapts to: the shortest time between two wakes that is certain.
    pub(super) fn adapts_to(&self) -> Period {
        self.periods().min().unwrap_or(IDLE)
    }

    /// What it may take of its CPU.
    pub(super) fn demand(&self) -> Demand {
        let demand = self.thread.demand(self.adapts_to());
        let units = self.calendar.as_ref().map_or(0.0, |(units, _)| units.load());
        Demand { share: (demand.share + self.plan.load() + units).min(1.0), ..demand }
    }

    /// How long it may make no progress; `None` without a watchdog.
    pub(super) fn bound(&self) -> Option<Span> {
        self.thread.bound(self.adapts_to())
    }

    /// The periods of all that it runs.
    pub(super) fn periods(&self) -> impl Iterator<Item = Period> {
        let periods = (0..self.plan.tasks()).map(|rank| self.plan.period(rank));
        periods.chain(self.calendar.iter().map(|(plan, _)| plan.frame()))
    }

    /// The periods and the phases of all that it runs or releases, ns; of units the first one's.
    pub(super) fn grids(&self) -> impl Iterator<Item = (Period, u64)> {
        let tasks = (0..self.plan.tasks()).map(|at| (self.plan.period(at), self.plan.phase_ns(at)));
        let units = self.calendar.iter().filter_map(|(plan, _)| {
            let (_, first) = plan.units().next()?;
            Some((plan.frame(), first.ready_ns))
        });
        tasks.chain(units)
    }

    /// Runs it to its end, on the calling thread. The main loop, which has the `remotes`, says when
    /// all begin.
    pub(super) fn run<'r, C: Clock + Clone + Send>(
        self,
        run: &'r Run<'_, 'env, C>,
        (mut clock, epoch, quiet): (C, Instant, Option<Quiet>),
        remotes: Vec<RemoteTask<'r, CycleCounting>>,
        session: ThreadSession,
    ) -> EndedLoop<'r> {
        let period = self.adapts_to();
        let Self { at, thread, plan, calendar, ranks, idle } = self;
        let shared = &run.shared.lanes[at];
        let (_neighbour, beside) = Neighbour::enter(thread.pinned_to());
        let phase_ns = epoch.as_ns() % period.as_ns();
        let (wait, warnings) =
            ready(thread.wait_policy(), (period, phase_ns), &mut clock, run.discipline);
        run.warn(beside.into_iter().chain(warnings));
        let (mut ranked, mut names, mut counting) = (Vec::new(), Vec::new(), Vec::new());
        for LaneRank { name, body, entry } in ranks {
            ranked.push(body);
            names.push(name);
            counting.push(entry.and_then(|entry| run.counting(entry, epoch)));
        }
        let ending = &run.shared.ending;
        let wait = Filling { wait, idle, counts: &run.shared.idle, ending };
        let elsewhere = remotes.len();
        let bodies = Bodies { ranked, names, remotes, watched: &shared.watched, ending };
        let tasks = Cancelling { tasks: bodies, token: &shared.token };
        let observe = ByRank { tasks: counting, unreleased: Vec::with_capacity(elsewhere) };
        let mut many = Many { clock, wait, tasks, observe };
        run.ready();
        if let Some(times) = run.await_go(at == 0, || many.clock.now()) {
            shared.watched.arm(process::tid());
            let (Times { from, end }, turns) = (times, shared.watched.word());
            let units = calendar.as_ref();
            let units = units.map(|(units, gap)| RunningUnits::new(units, epoch, from, *gap));
            let mut running = RunningPlan::new(plan, epoch, from);
            let limits = LoopRun { from, end, stop: &ending.stop, turns };
            let ended = shared.handover.run_with(&mut many, &mut running, units, &limits);
            shared.watched.disarm();
            run.rest(&ended, &times, &mut many.clock);
            match ended {
                Ended::Finished => {}
                Ended::Stopped => ending.stop(),
                Ended::Overran(rank) => ending.overran(&many.tasks.tasks.names[rank]),
            }
        }
        let over = many.clock.now();
        let policy = scheduler::get(0).unwrap_or(SchedPolicy::Other);
        drop(session);
        let wait = many.wait.status();
        let Bodies { ranked, remotes, .. } = many.tasks.tasks;
        let unreleased = many.observe.unreleased.into_iter();
        let unreleased = unreleased.filter_map(|(rank, missed, end)| match ranked.get(rank) {
            Some(Ranked::Remote(at)) => Some((*at, missed, end)),
            _ => None,
        });
        let end = LoopEnd { policy, wait, quiet };
        EndedLoop { end, over, remotes, unreleased: unreleased.collect() }
    }
}

/// The body of a task, which runs in each cycle.
pub(super) type Body<'env> = Box<dyn FnMut(&mut Cycle<'_>) -> Flow + Send + 'env>;

/// A body as the executive has it.
pub(super) fn boxed<'env, R: Into<Flow>>(
    mut body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
) -> Body<'env> {
    Box::new(move |cycle| body(cycle).into())
}

/// A body that does nothing, in no memory.
fn nothing<'env>() -> Ranked<'env> {
    Ranked::Here(Box::new(|_| Flow::Continue))
}

/// Where the body of a rank is.
pub(super) enum Ranked<'env> {
    /// Here.
    Here(Body<'env>),
    /// Elsewhere: released by the post of this number.
    Remote(usize),
}

/// Runs a body's cycle; one that panics ends the executive, which goes on to its end in order.
#[inline]
pub(super) fn guarded(
    body: &mut Body<'_>,
    cycle: &mut Cycle<'_>,
    name: impl FnOnce() -> String,
    ending: &Ending,
) -> Flow {
    // Only its owner uses the body again, who learns of the panic by the end.
    let ended = catch_unwind(AssertUnwindSafe(|| ending.callback(|| body(cycle))));
    match ended {
        Ok(flow) => flow,
        Err(panic) => {
            ending.panicked(&name(), panic_text(&*panic));
            Flow::Stop
        }
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a payload that is no text")
}

/// The bodies of one loop, by rank.
struct Bodies<'r, 'env> {
    ranked: Vec<Ranked<'env>>,
    names: Vec<String>,
    remotes: Vec<RemoteTask<'r, CycleCounting>>,
    watched: &'r Watched,
    ending: &'r Ending,
}

impl Dispatch for Bodies<'_, '_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.watched.beat();
        match self.ranked.get_mut(rank) {
            Some(Ranked::Here(body)) => {
                guarded(body, cycle, || self.names[rank].clone(), self.ending)
            }
            Some(Ranked::Remote(at)) => {
                let Some(post) = self.remotes.get_mut(*at) else { return Flow::Continue };
                let flow = post.post(cycle.n, cycle.release + cycle.lateness);
                if flow == Flow::Stop {
                    self.ending.overran(&self.names[rank]);
                }
                flow
            }
            None => Flow::Continue,
        }
    }
}

/// Bodies and statistics of a plan to come, by rank; then of the one that was.
pub(super) struct Parts<'env> {
    /// The ranks before those of the plan: the calendar's tasks, which stay.
    units: usize,
    /// Of a task that goes on one that does nothing: its own is where it runs.
    ranked: Vec<Ranked<'env>>,
    names: Vec<String>,
    /// Of a task that goes on none: its own is where it runs.
    counting: Vec<Option<CycleCounting>>,
    /// How long an executive of that plan may make no progress.
    bound: Option<Span>,
}

impl<'env> Parts<'env> {
    /// Tasks of these names by rank, all of which go on; the first `units` are the calendar's. They
    /// may make no progress for `bound`.
    pub(super) fn new(units: usize, names: Vec<String>, bound: Option<Span>) -> Self {
        let ranked = names.iter().map(|_| nothing()).collect();
        let counting = names.iter().map(|_| None).collect();
        Self { units, ranked, names, counting, bound }
    }

    /// The task of this rank of the plan is new, and counted on this page.
    pub(super) fn begin(&mut self, rank: usize, body: Body<'env>, page: Words) {
        self.ranked[self.units + rank] = Ranked::Here(body);
        self.counting[self.units + rank] = Some(CycleCounting::on(page, None));
    }
}

impl<'env> Exchange<Cancelling<'_, Bodies<'_, 'env>>, ByRank> for Parts<'env> {
    fn exchange(
        &mut self,
        tasks: &mut Cancelling<'_, Bodies<'_, 'env>>,
        counting: &mut ByRank,
        ranks: &[Option<u32>],
    ) {
        let Bodies { ranked, names, watched, .. } = &mut tasks.tasks;
        let stay = (0..self.units).map(|at| (at, at));
        let go_on = ranks
            .iter()
            .enumerate()
            .filter_map(|(at, from)| Some((self.units + at, self.units + (*from)? as usize)));
        for (at, from) in stay.chain(go_on) {
            if let (Some(next), Some(own)) = (self.ranked.get_mut(at), ranked.get_mut(from)) {
                std::mem::swap(next, own);
            }
            let own = counting.tasks.get_mut(from);
            if let (Some(next), Some(own)) = (self.counting.get_mut(at), own) {
                std::mem::swap(next, own);
            }
        }
        std::mem::swap(&mut self.ranked, ranked);
        std::mem::swap(&mut self.names, names);
        std::mem::swap(&mut self.counting, &mut counting.tasks);
        watched.allow(self.bound);
    }
}

/// From the end of a slice to the release at least: what a wait needs to begin, and the turn of the
/// loop to come.
const MARGIN: Span = Span::from_us(20);

/// Background work and how long a slice of it takes at most.
pub(super) struct Idle<'env> {
    slice: Span,
    body: Box<dyn FnMut() -> Flow + Send + 'env>,
}

impl<'env> Idle<'env> {
    /// Slices of at most this length.
    pub(super) fn new(slice: Span, body: impl FnMut() -> Flow + Send + 'env) -> Self {
        Self { slice, body: Box::new(body) }
    }
}

/// Counts of background work.
#[derive(Debug, Default)]
pub(super) struct IdleCounts {
    ran: AtomicU64,
    over: AtomicU64,
}

impl IdleCounts {
    /// Slices that ran, and those of them that took longer than they may.
    pub(super) fn read(&self) -> (u64, u64) {
        (self.ran.load(Ordering::Relaxed), self.over.load(Ordering::Relaxed))
    }
}

/// One more. One writer, so that no locked instruction is needed.
#[inline]
fn add(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// A wait that runs background work first, where there is any.
struct Filling<'r, 'env> {
    wait: Strategy,
    idle: Option<Idle<'env>>,
    counts: &'r IdleCounts,
    ending: &'r Ending,
}

impl Filling<'_, '_> {
    /// Runs slices while there is time for one more.
    #[inline]
    fn fill<C: Clock>(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) {
        let Some(idle) = &mut self.idle else { return };
        let mut now = clock.now();
        while now + idle.slice + MARGIN <= release && !stop.load(Ordering::Relaxed) {
            let flow = self.ending.callback(&mut idle.body);
            let end = clock.now();
            add(&self.counts.ran);
            if end - now > idle.slice {
                add(&self.counts.over);
            }
            match flow {
                Flow::Continue => now = end,
                Flow::Break => return,
                Flow::Stop => return self.ending.stop(),
            }
        }
    }
}

impl Wait for Filling<'_, '_> {
    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.wait.until(clock, release, stop)
    }

    #[inline]
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.fill(clock, release, stop);
        self.wait.near(clock, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        self.wait.take_stalls()
    }

    fn status(&self) -> WaitStatus {
        self.wait.status()
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::stop::StopRequest;
    use punctual_core::wait::Sleep;

    use super::*;

    /// A clock that stands still but for sleeps and work.
    struct Made<'t>(&'t AtomicU64);

    impl Clock for Made<'_> {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.0.load(Ordering::Relaxed))
        }
        fn poll(&mut self) -> Instant {
            self.now()
        }
        fn sleep_until(&mut self, at: Instant) {
            self.0.fetch_max(at.as_ns(), Ordering::Relaxed);
        }
        fn wake(&mut self) -> Instant {
            self.now()
        }
        fn relax(&mut self) {}
    }

    fn slices(takes_us: u64, flow: Flow, until_us: u64) -> (u64, u64, u64) {
        let (time, counts, ending) = (AtomicU64::new(0), IdleCounts::default(), Ending::default());
        let body = || {
            time.fetch_add(takes_us * 1_000, Ordering::Relaxed);
            flow
        };
        let idle = Some(Idle::new(Span::from_us(100), body));
        let wait = Strategy::Sleep(Sleep);
        let mut filling = Filling { wait, idle, counts: &counts, ending: &ending };
        let release = Instant::from_ns(until_us * 1_000);
        let mut clock = Made(&time);
        let _near = filling.near(&mut clock, release, ending.stop.flag());
        let (ran, over) = counts.read();
        (ran, over, time.load(Ordering::Relaxed) / 1_000)
    }

    #[test]
    fn slices_run_only_where_one_more_ends_before_the_release() {
        // 100 µs and a margin of 20 µs each.
        assert_eq!(slices(100, Flow::Continue, 119), (0, 0, 0));
        assert_eq!(slices(100, Flow::Continue, 120), (1, 0, 100));
        assert_eq!(slices(100, Flow::Continue, 1_000), (9, 0, 900));
        assert_eq!(slices(60, Flow::Continue, 1_000), (15, 0, 900));
        assert_eq!(slices(150, Flow::Continue, 1_000), (6, 6, 900));
        assert_eq!(slices(100, Flow::Break, 1_000), (1, 0, 100));
        assert_eq!(slices(100, Flow::Stop, 1_000), (1, 0, 100));
    }
}
