//! One loop of an executive: a thread with a table of tasks, and the calendar where it is the main
//! one.
//!
//! Everything before the loop is setup; in the loop bodies are called, and statistics kept.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::executive::{Cancelling, Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Wait, WaitStatus};
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::counting::{ByRank, CycleCounting, Unreleased};
use punctual_engine::handover::{Exchange, LoopRun, RunningPlan, RunningUnits};
use punctual_engine::monitor::Watched;
use punctual_engine::periodic::Plan;
use punctual_engine::quiet::Quiet;
use punctual_engine::remote::RemoteTask;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::Demand;
use punctual_engine::session::Neighbour;
use punctual_engine::session::ThreadSession;
use punctual_engine::wait_policy::ready;
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use super::ending::Ending;
use super::idle::{Filling, Idle};
use super::run::{Run, Times};
use super::shared::IDLE;

/// What is behind a rank.
pub(super) struct RankOf<'env> {
    pub(super) name: String,
    pub(super) body: Ranked<'env>,
    /// The task whose cycles the loop counts; none where its server does.
    pub(super) entry: Option<usize>,
}

/// One loop.
pub(super) struct Lane<'env> {
    pub(super) at: usize,
    pub(super) thread: RtThread,
    pub(super) plan: Plan,
    /// And how long before each unit nothing else runs.
    pub(super) calendar: Option<(Arc<CalendarPlan>, Span)>,
    /// The calendar's tasks, then the table's.
    pub(super) ranks: Vec<RankOf<'env>>,
    pub(super) idle: Option<Idle<'env>>,
}

/// What a loop leaves, with those that it released.
pub(super) type LaneEnd<'r> = (LoopEnd, Vec<RemoteTask<'r, CycleCounting>>);

/// What a loop leaves.
pub(super) struct LoopEnd {
    pub(super) policy: SchedPolicy,
    pub(super) wait: WaitStatus,
    pub(super) quiet: Option<Quiet>,
    /// When it was over.
    pub(super) over: Instant,
    /// By its remote task what it never released and should have.
    pub(super) unreleased: Vec<Unreleased>,
}

impl<'env> Lane<'env> {
    pub(super) fn new(at: usize, thread: RtThread, plan: Plan) -> Self {
        Self { at, thread, plan, calendar: None, ranks: Vec::new(), idle: None }
    }

    pub(super) fn push(&mut self, name: &str, body: Ranked<'env>, entry: Option<usize>) {
        self.ranks.push(RankOf { name: name.to_owned(), body, entry });
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
    ) -> LaneEnd<'r> {
        let period = self.adapts_to();
        let Self { at, thread, plan, calendar, ranks, idle } = self;
        let shared = &run.shared.lanes[at];
        let (_neighbour, beside) = Neighbour::enter(thread.pinned_to());
        let phase_ns = epoch.as_ns() % period.as_ns();
        let (wait, warnings) =
            ready(thread.wait_policy(), (period, phase_ns), &mut clock, run.discipline);
        run.warn(beside.into_iter().chain(warnings));
        let (mut ranked, mut names, mut counting) = (Vec::new(), Vec::new(), Vec::new());
        for RankOf { name, body, entry } in ranks {
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
        (LoopEnd { policy, wait, quiet, over, unreleased: unreleased.collect() }, remotes)
    }
}

/// What runs in each cycle.
pub(crate) type Body<'env> = Box<dyn FnMut(&mut Cycle<'_>) -> Flow + Send + 'env>;

/// A body as the executive has it.
pub(super) fn boxed<'env, R: Into<Flow>>(
    mut body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
) -> Body<'env> {
    Box::new(move |cycle| body(cycle).into())
}

/// A body that does nothing, in no memory.
pub(super) fn nothing<'env>() -> Ranked<'env> {
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
pub(super) struct Bodies<'r, 'env> {
    pub(super) ranked: Vec<Ranked<'env>>,
    pub(super) names: Vec<String>,
    pub(super) remotes: Vec<RemoteTask<'r, CycleCounting>>,
    pub(super) watched: &'r Watched,
    pub(super) ending: &'r Ending,
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
    pub(super) units: usize,
    /// Of a task that goes on one that does nothing: its own is where it runs.
    pub(super) ranked: Vec<Ranked<'env>>,
    pub(super) names: Vec<String>,
    /// Of a task that goes on none: its own is where it runs.
    pub(super) counting: Vec<Option<CycleCounting>>,
    /// How long an executive of that plan may make no progress.
    pub(super) bound: Option<Span>,
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
