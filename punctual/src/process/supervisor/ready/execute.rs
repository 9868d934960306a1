//! The executive of a supervisor, in its thread, and the monitor that watches it.
//!
//! The loop of many tasks with remotes behind its ranks; nothing else is in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::dispatch::{Job, Overruns, TableState};
use punctual_core::executive::Ended;
use punctual_core::executive::many::{Many, Observe};
use punctual_core::stats::{Aggregate, Missed, Page, PageKind};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Strategy;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::super::stop::Stop;
use super::super::task_block::TaskBlock;
use super::super::threads::Rounds;
use super::Ready;
use crate::clocks::MachineClock;
use crate::counting::Unreleased;
use crate::monitor::{Monitor, Progress, RunawayRule, Watched, above};
use crate::remote::RemoteTasks;
use crate::safety::{self, Caution, Machine, Throttling};
use crate::session::{Refusal, ThreadSession};

/// Looks of the guard, one each 2 ms, from one look at a process's other threads to the next.
const THREADS_EVERY: usize = 50;

/// What the threads of a supervisor share.
#[derive(Debug)]
pub(super) struct RunSetup<'s> {
    pub(super) stop: Stop<'s>,
    /// Set once nothing is to be guarded any more.
    pub(super) done: AtomicBool,
    pub(super) aside: CpuMask,
    pub(super) extent: Extent,
    pub(super) beats: AtomicU64,
    pub(super) watched: Watched,
}

/// When releases come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// For so long, or until it is stopped, from the first on that can be met.
    Lasting(Option<Span>),
    /// From this instant on and before that one, on the clock of the machine.
    Between(Instant, Instant),
}

impl Extent {
    /// From when on releases come, and before when, where it begins at `now`.
    fn at(self, now: Instant) -> (Instant, Instant) {
        match self {
            Self::Lasting(None) => (now, Instant::from_ns(u64::MAX)),
            Self::Lasting(Some(duration)) => (now, now + duration),
            Self::Between(from, end) => (from, end),
        }
    }
}

/// What the executive leaves.
#[derive(Debug)]
pub(super) struct Executed<'s> {
    pub(super) ended: Ended,
    pub(super) policy: SchedPolicy,
    pub(super) refused: Vec<Refusal>,
    /// What throttling did to it.
    pub(super) throttled: Option<Caution>,
    pub(super) remotes: RemoteTasks<'s, Page<'s>>,
    /// When it was over.
    over: Instant,
    /// By rank what it never released and should have.
    unreleased: Vec<Unreleased>,
}

impl Executed<'_> {
    /// Takes the last results of the tasks, which run no more at `now`, and what they missed.
    pub(super) fn close(&mut self, now: Instant) {
        let over = self.over;
        self.remotes.all.iter_mut().for_each(|post| post.close(now, over));
        for (rank, missed, end) in self.unreleased.drain(..) {
            // Without a process there it is none that one missed.
            let post = self.remotes.all.get_mut(rank);
            if let Some(post) = post.filter(|post| post.counts.is_attended()) {
                post.kept.end(missed, end);
            }
        }
    }
}

/// All tasks on the page of the supervisor; what was never released is of a task's own page too.
struct Releases<'p, 's> {
    aggregate: Aggregate<'p, 's>,
    unreleased: Vec<Unreleased>,
}

impl Observe for Releases<'_, '_> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        self.aggregate.ran(job, start, finish, overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        self.aggregate.never_ran(rank, missed, end);
        self.unreleased.push((rank, missed, end));
    }
}

impl RunSetup<'_> {
    /// The monitor of the executive and of the tasks' threads: of those that registered, and of
    /// those beside them.
    pub(super) fn monitor(&self, ready: &Ready) {
        let mut guards: Vec<RunawayRule<'_>> = ready.blocks.iter().map(TaskBlock::guard).collect();
        let mut rounds =
            Rounds::new(ready.blocks.iter().map(TaskBlock::watch).collect(), THREADS_EVERY);
        let (watched, bound) = (&self.watched, bound(ready));
        let progress = || self.beats.load(Ordering::Relaxed);
        let loops = [Progress { watched, progress, bound }];
        let cancels = &AtomicBool::new(false);
        let monitor = Monitor { loops: &loops, guards: &mut guards, tokens: &[], cancels };
        let now = || Instant::from_ns(now_ns(ClockId::Monotonic));
        above(&self.aside, || {
            monitor.run(now, &self.stop, &self.done, || rounds.call());
        });
    }

    /// Sleeps until `at`, or until it is stopped.
    fn rest_until(&self, at: Instant, clock: &mut impl Clock) {
        let mut now = clock.now();
        while now < at && !self.stop.is_set() {
            clock.sleep_until(at.min(now + LOOK));
            now = clock.now();
        }
    }

    /// Runs the executive to its end; then ends all tasks.
    pub(super) fn execute<'p>(
        &self,
        ready: &'p Ready,
        tasks: RemoteTasks<'p, Page<'p>>,
        wait: Strategy,
        clock: MachineClock,
    ) -> Executed<'p> {
        let Some(page) = Page::new(ready.page.mapping.words(), PageKind::Lateness) else {
            let (ended, policy, refused) = (Ended::Stopped, SchedPolicy::Other, Vec::new());
            let (over, unreleased) = (Instant::from_ns(now_ns(ClockId::Monotonic)), Vec::new());
            return Executed {
                ended,
                policy,
                refused,
                throttled: None,
                remotes: tasks,
                over,
                unreleased,
            };
        };
        let mut starts = vec![None; ready.plan.tasks()];
        let unreleased = Vec::with_capacity(ready.plan.tasks());
        let observe = Releases { aggregate: Aggregate::new(page, &mut starts), unreleased };
        let mut many = Many { clock, wait, tasks, observe };
        let table = ready.plan.table(ready.epoch);
        let mut storage = ready.plan.storage();
        ready.blocks.iter().for_each(TaskBlock::touch);
        let session = ThreadSession::enter(ready.thread.cpu, ready.thread.policy());
        let times_ns = || (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCpu));
        let begin_ns = times_ns();
        let (from, end) = self.extent.at(many.clock.now());
        self.rest_until(from - NEAR, &mut many.clock);
        let state = TableState::begin(&table, storage.lend(), from);
        self.watched.arm(process::tid());
        let ended =
            state.map_or(Ended::Stopped, |mut state| many.run(&table, &mut state, end, &self.stop));
        let over = many.clock.now();
        self.watched.disarm();
        let (policy, refused) = (session.policy(), session.refused().to_vec());
        let cpu = ready.thread.cpu.unwrap_or_else(affinity::current_cpu);
        let throttling = Machine::here().throttling.filter(|_| safety::is_real_time(policy));
        let throttled = throttling.and_then(|of| throttled(cpu, of, begin_ns, times_ns()));
        drop(session);
        many.tasks.end();
        let (remotes, unreleased) = (many.tasks, many.observe.unreleased);
        Executed { ended, policy, refused, throttled, remotes, over, unreleased }
    }
}

/// So long before its first release a loop is watched.
const NEAR: Span = Span::from_ms(1);

/// From one look at the stop to the next in a rest.
const LOOK: Span = Span::from_ms(2);

/// Whether a real-time loop met this throttling that began and ended at these times: on
/// CLOCK_MONOTONIC, and of its own CPU time.
fn throttled(
    cpu: u32,
    throttling: Throttling,
    (begin_ns, cpu_begin_ns): (u64, u64),
    (end_ns, cpu_end_ns): (u64, u64),
) -> Option<Caution> {
    let used_ns = cpu_end_ns.saturating_sub(cpu_begin_ns);
    let share = used_ns as f64 / end_ns.saturating_sub(begin_ns).max(1) as f64;
    throttling.is_met_by(share).then_some(Caution { cpu, share, throttling })
}

/// How long the executive may post nothing.
fn bound(ready: &Ready) -> Span {
    let shortest_ns = (0..ready.plan.tasks()).map(|rank| ready.plan.period_ns(rank)).min();
    let ns = shortest_ns.unwrap_or(0).saturating_mul(2).saturating_add(1_000_000_000);
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use punctual_core::executive::many::{Cycle, Dispatch, Flow};
    use punctual_core::stats::View;
    use punctual_core::wait::Sleep;
    use punctual_testkit::sim::SimClock;

    use super::*;
    use crate::periodic::{Offset, Period, Task};
    use crate::process::{Spec, Supervisor};

    /// Stops everything after so many releases.
    struct StopsAfter<'s>(RemoteTasks<'s, Page<'s>>, usize);

    impl Dispatch for StopsAfter<'_> {
        fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
            self.1 -= 1;
            match self.0.run(rank, cycle) {
                Flow::Continue if self.1 > 0 => Flow::Continue,
                _ => Flow::Stop,
            }
        }
    }

    #[test]
    fn what_was_due_and_never_released_is_missed_by_the_task_until_the_end() {
        let ms = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let period = Period::hz(1_000).expect("in range");
        let task = |name| Task::every(name, period).phase(Offset::At(0));
        let supervisor = ["first", "second", "nobody"]
            .into_iter()
            .fold(Supervisor::new(), |all, name| all.task(Spec::new(task(name), Vec::new())));
        let ready = supervisor.build().expect("fine");
        ready.blocks[..2].iter().for_each(|block| block.door.open(1));
        let beats = AtomicU64::new(0);
        let all = ready.blocks.iter().filter_map(TaskBlock::post).collect();
        let remotes = RemoteTasks { all, beats: &beats, stopped_by: None };
        let page = Page::new(ready.page.mapping.words(), PageKind::Lateness).expect("a page");
        let mut starts = vec![None; ready.plan.tasks()];
        let observe =
            Releases { aggregate: Aggregate::new(page, &mut starts), unreleased: Vec::new() };
        // All three are released once, then the first one again.
        let tasks = StopsAfter(remotes, 4);
        let clock = SimClock::new(ms(10), std::iter::empty());
        let mut many = Many { clock, wait: Sleep, tasks, observe };
        let table = ready.plan.table(ready.epoch);
        let mut storage = ready.plan.storage();
        let mut state = TableState::begin(&table, storage.lend(), ms(10)).expect("room");
        let ended = many.run(&table, &mut state, ms(20), &AtomicBool::new(false));
        assert_eq!((ended, many.clock.now), (Ended::Stopped, ms(11)));
        let mut executed = Executed {
            ended,
            policy: SchedPolicy::Other,
            refused: Vec::new(),
            throttled: None,
            remotes: many.tasks.0,
            over: ms(11),
            unreleased: many.observe.unreleased,
        };
        executed.close(ms(2_000));
        let missed = |rank: usize| {
            let view = View::open(ready.blocks[rank].page.mapping.words()).expect("a page");
            let counts = view.counts();
            (counts.missed, counts.max.map(Span::as_ns))
        };
        assert_eq!(missed(0), (2, Some(1_000_000)), "posted twice, taken by nobody");
        assert_eq!(missed(1), (2, Some(1_000_000)), "posted once");
        assert_eq!(missed(2).0, 0, "nobody was there to miss any");
    }

    #[test]
    fn a_loop_that_took_all_that_it_may_met_throttling() {
        let throttling = Throttling::of(950_000, 1_000_000).expect("a limit");
        let after = |used_ns: u64| throttled(1, throttling, (1_000, 500), (2_000, 500 + used_ns));
        assert_eq!(after(900), None);
        let met = after(950).expect("all of it");
        assert_eq!((met.cpu, met.throttling), (1, throttling));
        assert!((met.share - 0.95).abs() < 1e-9);
        assert_eq!(throttled(1, throttling, (1_000, 500), (1_000, 500)), None, "no time at all");
    }
}
