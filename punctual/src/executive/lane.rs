//! One loop of an executive: a thread with a table of tasks, and the calendar where it is the main
//! one.
//!
//! Everything before the loop is setup; in the loop bodies are called, and statistics kept.

use std::sync::Arc;

use punctual_core::clock::Clock;
use punctual_core::cycle::Ended;
use punctual_core::executive::{Cancelling, Many};
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Strategy, Wait, WaitStatus};
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::comb::TickDetector;
use punctual_engine::counting::{ByRank, CycleCounting, Keep, Unreleased};
use punctual_engine::file_facts::RunFacts;
use punctual_engine::handover::{LoopRun, RunningPlan, RunningUnits};
use punctual_engine::monitor::Watched;
use punctual_engine::pack::Placed;
use punctual_engine::periodic::Plan;
use punctual_engine::quiet::{self, Quiet};
use punctual_engine::release_span::ReleaseSpan;
use punctual_engine::remote::{RemoteOverrun, RemoteTask};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::Demand;
use punctual_engine::session::{Neighbour, ThreadSession};
use punctual_engine::wait_policy::{LearnPlace, WarmUp};
use punctual_os::futex;
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use super::bodies::{Bodies, Ranked};
use super::idle::{Filling, Idle};
use super::inline::InlineTask;
use super::run::Run;
use super::shared::IDLE;
use super::work::Body;

/// The task behind a rank.
struct LaneRank<'env> {
    name: String,
    body: Ranked<'env>,
    /// The number of the task whose cycles the loop counts; none where its server does.
    entry: Option<usize>,
}

/// One loop: a thread, its table of tasks, and the calendar where it is the main one.
pub(super) struct Lane<'env> {
    at: usize,
    thread: RtThread,
    plan: Plan,
    /// The calendar, and the time before each unit in which nothing else runs.
    calendar: Option<(Arc<CalendarPlan>, Span)>,
    /// The calendar's tasks, then the table's.
    ranks: Vec<LaneRank<'env>>,
    idle: Option<Idle<'env>>,
}

/// The state of a loop's thread while it runs: its policy and CPU, and its place among the loops of
/// that CPU.
pub(super) struct LaneSession {
    session: ThreadSession,
    _neighbour: Neighbour,
}

/// The state in which a loop ended.
pub(super) struct LoopEnd {
    /// The policy that it had.
    pub(super) policy: SchedPolicy,
    /// The state of its wait, with its knowledge of this machine.
    pub(super) wait: WaitStatus,
    /// The quiet phase that it found; `None` where it looked for none.
    pub(super) quiet: Option<Quiet>,
}

/// A loop that has ended, with the tasks that it released.
pub(super) struct EndedLoop<'r> {
    end: LoopEnd,
    /// The instant at which it was over.
    over: Instant,
    remotes: Vec<RemoteTask<'r, CycleCounting>>,
    /// Releases that were due and that it never made, by the number of their remote task.
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

    /// The tasks of its table that it runs itself.
    pub(super) fn inline_tasks(&self) -> Vec<InlineTask> {
        let tasks = self.plan.tasks();
        let ranks = self.ranks[self.ranks.len() - tasks..].iter().enumerate();
        let inline = ranks.filter(|(_, rank)| matches!(rank.body, Ranked::Here(_)));
        let inline = inline.map(|(at, rank)| {
            let has_budget = self.plan.budget_ns(at).is_some();
            InlineTask::new(&rank.name, self.plan.period(at), has_budget)
        });
        inline.collect()
    }

    /// The calendar, and the time before each unit in which nothing else runs.
    pub(super) fn calendar(&self) -> Option<&(Arc<CalendarPlan>, Span)> {
        self.calendar.as_ref()
    }

    /// The CPU that it is pinned to.
    pub(super) fn cpu(&self) -> Option<u32> {
        self.thread.pinned_to()
    }

    /// Its progress, which the monitor looks at.
    pub(super) fn watched<'r, C: Clock + Clone + Send>(
        &self,
        run: &'r Run<'_, '_, C>,
    ) -> &'r Watched {
        &run.shared().lanes[self.at].watched
    }

    /// Gives the calling thread its CPU and its policy; notes refusals of the kernel.
    pub(super) fn enter<C: Clock + Clone + Send>(&self, run: &Run<'_, '_, C>) -> LaneSession {
        let enter = || ThreadSession::enter(self.cpu(), self.thread.policy());
        let session = self.watched(run).in_setup(enter);
        run.startup().refuse(session.refused());
        let (neighbour, beside) = Neighbour::enter(self.cpu());
        run.startup().warn(beside);
        LaneSession { session, _neighbour: neighbour }
    }

    /// Makes its wait, which learns on the calling thread before all begin; returns it, and the
    /// place that the grid of all tasks was moved to, away from the kernel's tick, where `quiet`
    /// has that and the grid's period.
    pub(super) fn learn<C: Clock + Clone + Send>(
        &self,
        run: &Run<'_, '_, C>,
        clock: &mut C,
        (epoch, quiet): (Instant, Option<(Quiet, Period)>),
    ) -> (Strategy, Option<Quiet>) {
        let (startup, period) = (run.startup(), self.adapts_to());
        let place = LearnPlace { period, phase_ns: epoch.as_ns() % period.as_ns(), quiet };
        let (watched, stop) = (self.watched(run), startup.ending().stop.flag());
        let warm_up = WarmUp { watched: Some(watched), ..WarmUp::until(stop) };
        let learn = || warm_up.ready(self.thread.wait_policy(), place, clock, startup.discipline());
        let ready = watched.in_setup(learn);
        startup.warn(ready.warnings);
        (ready.wait, ready.moved)
    }

    /// The period of the task of this rank, and the phase of its releases in it, ns; of a
    /// calendar's task that of its first unit.
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

    /// The places of its own tasks, without those in threads that it only releases.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let (plan, cpu) = (&self.plan, self.cpu());
        let calendar = self.calendar.as_ref().map(|(calendar, _)| calendar);
        let units = calendar.map_or(0, |calendar| calendar.tasks());
        let in_calendar = calendar.into_iter().flat_map(|calendar| {
            (0..units).map(move |task| Placed::in_calendar(calendar, task, cpu))
        });
        let own = (0..plan.tasks()).filter(|&rank| !plan.is_remote(rank));
        let in_table = own.map(|rank| Placed::in_table(plan, rank, units, cpu));
        in_calendar.chain(in_table).collect()
    }

    /// The facts for a sample file of the tasks whose cycles it counts, each with its number.
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

    /// The numbers of the tasks whose cycles the loop counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = usize> {
        self.ranks.iter().filter_map(|rank| rank.entry)
    }

    /// The period that its wait adapts to: the shortest time between two wakes that is certain.
    pub(super) fn adapts_to(&self) -> Period {
        self.periods().min().unwrap_or(IDLE)
    }

    /// The share of its CPU that it takes at most.
    pub(super) fn demand(&self) -> Demand {
        let demand = Demand::waiting(&self.thread, self.adapts_to());
        let units = self.calendar.as_ref().map_or(0.0, |(units, _)| units.load());
        Demand { share: (demand.share + self.plan.load() + units).min(1.0), ..demand }
    }

    /// The longest time that it may make no progress; `None` without a watchdog.
    pub(super) fn bound(&self) -> Option<Span> {
        self.thread.bound(self.adapts_to())
    }

    /// The periods of all that it runs.
    pub(super) fn periods(&self) -> impl Iterator<Item = Period> {
        let periods = (0..self.plan.tasks()).map(|rank| self.plan.period(rank));
        periods.chain(self.calendar.iter().map(|(plan, _)| plan.frame()))
    }

    /// Period and phase, ns, of all tasks that it runs or releases; of units that of the first one.
    pub(super) fn grids(&self) -> impl Iterator<Item = (Period, u64)> {
        self.plan.grids().chain(self.calendar.iter().filter_map(|(plan, _)| plan.grid()))
    }

    /// Runs it to its end, on the calling thread. The main loop, which has the `remotes`, says when
    /// all begin.
    pub(super) fn run<'r, C: Clock + Clone + Send>(
        self,
        run: &'r Run<'_, 'env, C>,
        (clock, epoch, quiet): (C, Instant, Option<Quiet>),
        (wait, remotes): (Strategy, Vec<RemoteTask<'r, CycleCounting>>),
        LaneSession { session, _neighbour }: LaneSession,
    ) -> EndedLoop<'r> {
        let Self { at, thread, plan, calendar, ranks, idle } = self;
        let (shared, startup) = (run.shared(), run.startup());
        let lane = &shared.lanes[at];
        let ending = &*shared.ending;
        let (mut ranked, mut names, mut counting) = (Vec::new(), Vec::new(), Vec::new());
        for LaneRank { name, body, entry } in ranks {
            ranked.push(body);
            names.push(name);
            counting.push(entry.and_then(|entry| run.counting(entry, epoch)));
        }
        let wait = Filling { wait, idle, counts: &shared.idle, ending };
        let elsewhere = remotes.len();
        let bodies = Bodies { ranked, names, remotes, watched: &lane.watched, ending };
        let tasks = Cancelling { tasks: bodies, token: &lane.token };
        // Of several tasks one may be late by another's period.
        let alone = (counting.len() == 1 && calendar.is_none()).then(|| plan.period(0));
        let observe = ByRank::new(counting, elsewhere);
        let observe = TickDetector::new(observe, alone);
        let mut many = Many { clock, wait, tasks, observe };
        startup.ready();
        let go = startup.await_go(at == 0, Some(&lane.watched), || many.clock.now());
        if let Some(span) = go {
            if at == 0 {
                shared.begin(epoch);
            }
            lane.watched.arm(process::tid());
            let (ReleaseSpan { from, end }, turns) = (span, lane.watched.word());
            let units = calendar.as_ref();
            let units = units.map(|(units, gap)| RunningUnits::new(units, epoch, from, *gap));
            let mut running = RunningPlan::new(plan, epoch, from);
            let limits = LoopRun { from, end, stop: &ending.stop, turns };
            let ended = lane.handover.run_with(&mut many, &mut running, units, &limits);
            lane.watched.disarm();
            run.rest(&ended, &span, &mut many.clock);
            match ended {
                Ended::Finished if at == 0 => ending.time_is_up(),
                Ended::Finished => {}
                Ended::Stopped => ending.stop(),
                Ended::Overran(rank) => ending.overran(&many.tasks.tasks.names[rank]),
            }
        }
        let over = many.clock.now();
        let policy = scheduler::get(0).unwrap_or(SchedPolicy::Other);
        drop(session);
        let wait = many.wait.status();
        startup.warn(thread.wait_policy().out_of_reach(&wait));
        let met = many.observe.take_met().map(|tick| quiet::met_words(&tick));
        startup.warn_once(met);
        let Bodies { ranked, remotes, .. } = many.tasks.tasks;
        let unreleased = many.observe.into_inner().into_unreleased().into_iter();
        let unreleased = unreleased.filter_map(|(rank, missed, end)| match ranked.get(rank) {
            Some(Ranked::Remote(at)) => Some((*at, missed, end)),
            _ => None,
        });
        let end = LoopEnd { policy, wait, quiet };
        EndedLoop { end, over, remotes, unreleased: unreleased.collect() }
    }
}
