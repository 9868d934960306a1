//! A supervisor that was built: everything is checked and made, nothing runs yet.
//!
//! [`Ready::run`] brings it up: the executive in a thread of its own, the monitor above it, the
//! lifecycle of the processes in the calling thread, under no real-time policy and aside of the
//! tasks where there is a CPU for that; then everything is put back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::cycle::{Ended, Job, Missed, Observe, Overruns};
use punctual_core::executive::Many;
use punctual_core::stats::{Aggregate, Page, PageKind};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Strategy;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::{process, signal};

use super::super::listener::Listener;
use super::super::shared_memory::SharedMemory;
use super::release_plan::ReleasePlan;
use super::supervisor_loop::{SupervisorLoop, TaskProcess};
use super::threads::Rounds;
use super::time_out::TimeOuts;
use super::{Event, Figures, Finished, Over, Stop, TaskBlock};
use crate::clocks::{MachineClock, monotonic_now};
use crate::counting::Unreleased;
use crate::error::{Error, Kind};
use crate::monitor::{Monitor, RunawayRule, Watched, WatchedProgress, above, aside};
use crate::periodic::Plan;
use crate::release_span::ReleaseSpan;
use crate::remote::RemoteTasks;
use crate::rt_thread::RtThread;
use crate::safety::{self, CpuTaken, Machine};
use crate::session::{Refusal, ThreadSession};
use crate::spawn;

/// Looks of the monitor, one each 2 ms, from one look at a process's other threads to the next.
const THREADS_EVERY: usize = 50;

/// The time before the first release from which the watchdog watches.
const NEAR: Span = Span::from_ms(1);

/// The time between two looks at the stop while the first release is waited for.
const LOOK: Span = Span::from_ms(2);

/// A supervisor that can begin: it has its name, and the tasks their memory.
#[derive(Debug)]
pub struct Ready {
    pub(super) plan: ReleasePlan,
    /// The block of each task, by rank.
    pub(super) blocks: Vec<TaskBlock>,
    pub(super) listener: Option<Listener>,
    pub(super) page: SharedMemory,
    pub(super) thread: RtThread,
    pub(super) epoch: Instant,
    pub(super) warnings: Vec<String>,
}

impl Ready {
    /// The plan of the periodic tasks.
    ///
    /// # Real-time: setup only
    pub fn plan(&self) -> &Plan {
        self.plan.tasks()
    }

    /// The SCHED_FIFO priority of each task, by rank.
    ///
    /// # Real-time: setup only
    pub fn priorities(&self) -> impl Iterator<Item = u8> {
        self.blocks.iter().map(|block| block.fifo)
    }

    /// Warnings for a person: CPUs on which real-time throttling will stop its threads.
    ///
    /// # Real-time: setup only
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The memory of each task's page, by name.
    ///
    /// # Real-time: setup only
    pub fn pages(&self) -> impl Iterator<Item = (&str, Arc<SharedMemory>)> {
        self.blocks.iter().map(|block| (block.spec.task.name(), Arc::clone(&block.page)))
    }

    /// The shortest period.
    ///
    /// # Real-time: setup only
    pub fn shortest(&self) -> Option<Period> {
        self.plan.shortest()
    }

    /// Starts all tasks and stays with them for `duration` from their first release on, or until
    /// `stop` is set, a task that may stops everything, or none is left. What happens goes to
    /// `say`, which must not wait: nobody is ended, reaped or let in meanwhile. `stop` is set at
    /// the end.
    ///
    /// A loop that sleeps sees `stop` at its next release; at once in a process that catches SIGURG
    /// ([`signal::catch_interrupt`]), which is sent to its thread. The calling thread starts the
    /// processes, and the kernel ends them when it ends.
    ///
    /// # Errors
    ///
    /// A thread cannot be started: no process was started then.
    ///
    /// # Real-time: setup only
    pub fn run(
        self,
        wait: Strategy,
        duration: Option<Span>,
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        self.run_over((MachineClock::best(), wait), Extent::Lasting(duration), stop, say)
    }

    /// As [`Ready::run`], on a clock that is made already, with all releases that are due in
    /// `span`.
    ///
    /// # Real-time: setup only
    pub fn run_between(
        self,
        wait: (MachineClock, Strategy),
        span: ReleaseSpan,
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        self.run_over(wait, Extent::Between(span), stop, say)
    }

    fn run_over(
        mut self,
        (clock, wait): (MachineClock, Strategy),
        extent: Extent,
        stop: Stop<'_>,
        say: &mut dyn FnMut(Event),
    ) -> Result<Finished, Error> {
        let listener = self.listener.take();
        let before = affinity::get(0).ok();
        let cpus: Vec<u32> = self
            .blocks
            .iter()
            .filter_map(|block| block.cpu)
            .chain(self.thread.pinned_to())
            .collect();
        let setup = RunSetup {
            stop,
            done: AtomicBool::new(false),
            aside: aside(&cpus),
            extent,
            beats: AtomicU64::new(0),
            watched: Watched::default(),
        };
        let ready = &self;
        let mut processes: Vec<TaskProcess> =
            ready.blocks.iter().map(|block| TaskProcess::new(block, monotonic_now())).collect();
        let executed = std::thread::scope(|scope| {
            let setup = &setup;
            // Also where `say` panics: then the processes end with their occupants.
            let _end = End(setup);
            spawn::scoped(scope, "punctual-watch", move || setup.monitor(ready))?;
            let tasks = remotes(ready, &setup.beats);
            let execute = move || setup.execute(ready, tasks, wait, clock);
            let executive = spawn::scoped(scope, "punctual-loop", execute)?;
            let _beside_them = affinity::set(0, &setup.aside);
            let mut supervision = SupervisorLoop::new(ready, &mut processes, say, stop);
            let gone = supervision.supervise(listener, || executive.is_finished());
            while !executive.is_finished() {
                // Again and again: it may be about to sleep.
                let _awake = setup.watched.thread().map(signal::interrupt);
                supervision.rest(None);
            }
            let mut executed = executive.join().expect("the loop never panics");
            executed.remotes.stopped_by = executed.remotes.stopped_by.or(supervision.stopped_by());
            supervision.wind_down();
            executed.close(monotonic_now());
            let over = ready.over(&executed, gone);
            Ok::<_, std::io::Error>((over, executed.policy, executed.refused, executed.taken))
        });
        if let Some(before) = before {
            let _restored = affinity::set(0, &before);
        }
        let (over, policy, refused, taken) = executed.map_err(Kind::Thread)?;
        let tasks = processes
            .iter()
            .enumerate()
            .map(|(rank, process)| process.outcome(ready, rank))
            .collect();
        let releases = Figures::read(ready.page.words());
        let forced = setup.watched.ended();
        Ok(Finished { over, policy, refused, forced, taken, releases, tasks })
    }

    /// The reason of its end; `gone` where no task was left.
    fn over(&self, executed: &Executed<'_>, gone: bool) -> Over {
        match (executed.remotes.stopped_by, executed.ended) {
            (Some(rank), _) => Over::Overran(self.plan.name(rank).to_owned()),
            (None, _) if gone => Over::AllGone,
            (None, Ended::Finished) => Over::Finished,
            (None, _) => Over::Stopped,
        }
    }
}

/// The state that the threads of a supervisor share: the executive, the monitor above it, and the
/// calling thread, which starts and ends both.
#[derive(Debug)]
struct RunSetup<'s> {
    stop: Stop<'s>,
    /// Set once nothing is to be watched any more.
    done: AtomicBool,
    aside: CpuMask,
    extent: Extent,
    beats: AtomicU64,
    watched: Watched,
}

impl RunSetup<'_> {
    /// The monitor of the executive and of the tasks' threads: of those that registered, and of
    /// those beside them.
    fn monitor(&self, ready: &Ready) {
        let mut rules: Vec<RunawayRule<'_>> = ready.blocks.iter().map(TaskBlock::rule).collect();
        let mut rounds =
            Rounds::new(ready.blocks.iter().map(TaskBlock::watch).collect(), THREADS_EVERY);
        let (watched, bound) = (&self.watched, bound(ready));
        let progress = || self.beats.load(Ordering::Relaxed);
        let loops = [WatchedProgress { watched, progress, bound }];
        let cancels = &AtomicBool::new(false);
        let monitor = Monitor { loops: &loops, rules: &mut rules, tokens: &[], cancels };
        above(&self.aside, || {
            monitor.run(monotonic_now, &self.stop, &self.done, || rounds.call());
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
    fn execute<'p>(
        &self,
        ready: &'p Ready,
        tasks: TimeOuts<'p, Page<'p>>,
        wait: Strategy,
        clock: MachineClock,
    ) -> Executed<'p> {
        let Some(page) = Page::new(ready.page.words(), PageKind::Lateness) else {
            let (ended, policy, refused) = (Ended::Stopped, SchedPolicy::Other, Vec::new());
            let (over, unreleased) = (monotonic_now(), Vec::new());
            return Executed {
                ended,
                policy,
                refused,
                taken: None,
                remotes: tasks.into_tasks(),
                over,
                unreleased,
            };
        };
        let mut starts = vec![None; ready.plan.ranks()];
        let unreleased = Vec::with_capacity(ready.plan.ranks());
        let observe = Releases { aggregate: Aggregate::new(page, &mut starts), unreleased };
        let mut many = Many { clock, wait, tasks, observe };
        let mut storage = ready.plan.storage();
        ready.blocks.iter().for_each(TaskBlock::touch);
        let session = ThreadSession::enter(ready.thread.pinned_to(), ready.thread.policy());
        let times_ns = || (now_ns(ClockId::Monotonic), now_ns(ClockId::ThreadCpu));
        let begin_ns = times_ns();
        let span = match self.extent {
            Extent::Lasting(duration) => {
                ready.plan.length(duration).span(ready.epoch, many.clock.now())
            }
            Extent::Between(span) => span,
        };
        self.rest_until(span.from - NEAR, &mut many.clock);
        self.watched.arm(process::tid());
        let ended = ready.plan.run(&mut many, &mut storage, (ready.epoch, span), &self.stop);
        let over = many.clock.now();
        self.watched.disarm();
        let (policy, refused) = (session.policy(), session.refused().to_vec());
        let cpu = ready.thread.pinned_to().unwrap_or_else(affinity::current_cpu);
        let taken = safety::is_real_time(policy).then(|| CpuTaken {
            cpu,
            share: share(begin_ns, times_ns()),
            period: ready.shortest(),
            throttling: Machine::here().throttling,
        });
        drop(session);
        let (remotes, unreleased) = (many.tasks.into_tasks(), many.observe.unreleased);
        remotes.end();
        Executed { ended, policy, refused, taken, remotes, over, unreleased }
    }
}

/// Ends the threads of a supervisor when it is dropped.
struct End<'s>(&'s RunSetup<'s>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop.set();
        self.0.done.store(true, Ordering::Release);
    }
}

/// The extent of releases in time.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// For so long from the first one on that can be met, or until it is stopped.
    Lasting(Option<Span>),
    /// In this span, on the clock of the machine.
    Between(ReleaseSpan),
}

/// The state that the executive leaves when its loop has ended.
#[derive(Debug)]
struct Executed<'s> {
    ended: Ended,
    policy: SchedPolicy,
    refused: Vec<Refusal>,
    /// The share of its CPU that it took, where it was real-time.
    taken: Option<CpuTaken>,
    remotes: RemoteTasks<'s, Page<'s>>,
    /// The instant at which it was over.
    over: Instant,
    /// Releases that were due and that it never made, by rank.
    unreleased: Vec<Unreleased>,
}

impl Executed<'_> {
    /// Takes the last results of the tasks, which run no more at `now`, and what they missed.
    fn close(&mut self, now: Instant) {
        let over = self.over;
        self.remotes.tasks.iter_mut().for_each(|remote| remote.close(now, over));
        for (rank, missed, end) in self.unreleased.drain(..) {
            if let Some(remote) = self.remotes.tasks.get_mut(rank) {
                remote.never_posted(missed, end);
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

/// The share of its CPU that a thread took. Its begin and its end are each a time on
/// CLOCK_MONOTONIC and the CPU time of the thread, ns.
fn share((begin_ns, cpu_begin_ns): (u64, u64), (end_ns, cpu_end_ns): (u64, u64)) -> f64 {
    let used_ns = cpu_end_ns.saturating_sub(cpu_begin_ns);
    used_ns as f64 / end_ns.saturating_sub(begin_ns).max(1) as f64
}

/// The longest time in which the executive may release nothing before its watchdog ends it: twice
/// the longest that its plan does not, and a second.
fn bound(ready: &Ready) -> Span {
    let ns = ready.plan.longest_rest_ns().saturating_mul(2).saturating_add(1_000_000_000);
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// All remotes, by rank; outputs begin as the safe values.
pub(super) fn remotes<'r>(ready: &'r Ready, beats: &'r AtomicU64) -> TimeOuts<'r, Page<'r>> {
    let remotes = ready.blocks.iter().filter_map(TaskBlock::remote).collect();
    ready.blocks.iter().for_each(TaskBlock::take_over);
    let units = ready.blocks[..ready.plan.units()].iter().map(TaskBlock::guard).collect();
    TimeOuts::new(RemoteTasks { tasks: remotes, beats, stopped_by: None }, units)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use punctual_core::cycle::{Cycle, Flow};
    use punctual_core::executive::Dispatch;
    use punctual_core::stats::View;
    use punctual_core::wait::Sleep;
    use punctual_testkit::sim::SimClock;

    use crate::periodic::{Period, Task};
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
        let task = |name| Task::every(name, period).at(Duration::ZERO);
        let supervisor = ["first", "second", "nobody"]
            .into_iter()
            .fold(Supervisor::new(), |supervisor, name| {
                supervisor.task(Spec::new(task(name), Vec::new()))
            });
        let ready = supervisor.build().expect("fine");
        ready.blocks[..2].iter().for_each(|block| block.admission.open(1));
        let beats = AtomicU64::new(0);
        let remotes = ready.blocks.iter().filter_map(TaskBlock::remote).collect();
        let remotes = RemoteTasks { tasks: remotes, beats: &beats, stopped_by: None };
        let page = Page::new(ready.page.words(), PageKind::Lateness).expect("a page");
        let mut starts = vec![None; ready.plan.ranks()];
        let observe =
            Releases { aggregate: Aggregate::new(page, &mut starts), unreleased: Vec::new() };
        // All three are released once, then the first one again.
        let tasks = StopsAfter(remotes, 4);
        let clock = SimClock::new(ms(10), std::iter::empty());
        let mut many = Many { clock, wait: Sleep, tasks, observe };
        let mut storage = ready.plan.storage();
        let span = ReleaseSpan { from: ms(10), end: ms(20) };
        let (times, stop) = ((ready.epoch, span), AtomicBool::new(false));
        let ended = ready.plan.run(&mut many, &mut storage, times, &stop);
        assert_eq!((ended, many.clock.now), (Ended::Stopped, ms(11)));
        let mut executed = Executed {
            ended,
            policy: SchedPolicy::Other,
            refused: Vec::new(),
            taken: None,
            remotes: many.tasks.0,
            over: ms(11),
            unreleased: many.observe.unreleased,
        };
        executed.close(ms(2_000));
        let missed = |rank: usize| {
            let view = View::open(ready.blocks[rank].page.words()).expect("a page");
            let counts = view.counts();
            (counts.missed, counts.max.map(Span::as_ns))
        };
        assert_eq!(missed(0), (2, Some(1_000_000)), "posted twice, taken by nobody");
        assert_eq!(missed(1), (2, Some(1_000_000)), "posted once");
        assert_eq!(missed(2).0, 0, "nobody was there to miss any");
        let unattended = ready.blocks.iter().map(|block| block.counts.unattended());
        assert_eq!(unattended.collect::<Vec<_>>(), [0, 0, 2], "also the one never posted");
    }

    #[test]
    fn a_share_is_cpu_time_over_wall_time() {
        assert!((share((1_000, 500), (2_000, 1_450)) - 0.95).abs() < 1e-9);
        assert_eq!(share((1_000, 500), (1_000, 500)), 0.0, "no time at all");
    }
}
