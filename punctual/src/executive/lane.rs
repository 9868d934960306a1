//! One loop of an executive: a thread with a table of tasks, and the calendar where it is the main
//! one.
//!
//! Everything before the loop is setup; in the loop bodies are called, and statistics kept.

use std::sync::Arc;

use punctual_core::clock::Clock;
use punctual_core::executive::Ended;
use punctual_core::executive::cancelling::Cancelling;
use punctual_core::executive::many::Many;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Wait, WaitStatus};
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use super::body::{Bodies, Ranked};
use super::idle::{Filling, Idle};
use super::run::{Run, Times};
use super::shared::IDLE;
use crate::calendar::CalendarPlan;
use crate::counting::{ByRank, Counting, Unreleased};
use crate::handover::{LoopRun, RunningPlan, RunningUnits};
use crate::neighbours::Neighbour;
use crate::periodic::Plan;
use crate::quiet::Quiet;
use crate::remote::RemoteTask;
use crate::rt_thread::RtThread;
use crate::safety::Demand;
use crate::session::ThreadSession;
use crate::wait_policy::ready;

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
pub(super) type LaneEnd<'r> = (LoopEnd, Vec<RemoteTask<'r, Counting>>);

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
        remotes: Vec<RemoteTask<'r, Counting>>,
        session: ThreadSession,
    ) -> LaneEnd<'r> {
        let period = self.adapts_to();
        let Self { at, thread, plan, calendar, ranks, idle } = self;
        let shared = &run.shared.lanes[at];
        let (_neighbour, beside) = Neighbour::enter(thread.cpu);
        let phase_ns = epoch.as_ns() % period.as_ns();
        let (wait, warnings) = ready(&thread.wait, (period, phase_ns), &mut clock, run.discipline);
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
        let wait = Wait::<C>::status(&many.wait);
        let Bodies { ranked, remotes, .. } = many.tasks.tasks;
        let unreleased = many.observe.unreleased.into_iter();
        let unreleased = unreleased.filter_map(|(rank, missed, end)| match ranked.get(rank) {
            Some(Ranked::Remote(at)) => Some((*at, missed, end)),
            _ => None,
        });
        (LoopEnd { policy, wait, quiet, over, unreleased: unreleased.collect() }, remotes)
    }
}
