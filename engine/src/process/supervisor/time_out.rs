//! Units of a calendar that run in processes: what still runs when the place of another one begins
//! is timed out.
//!
//! For the supervisor's loop, at each place: a unit that ran beyond its own place loses its
//! real-time policy until its next release, so that the one whose place begins gets the CPU; it is
//! counted, and ended where its policy says so. No system call but for one that ran over.

use std::sync::atomic::AtomicU64;

use punctual_core::block::{TaskState, look};
use punctual_core::cycle::{Cycle, Flow};
use punctual_core::executive::Dispatch;
use punctual_os::scheduler::SchedPolicy;

use crate::counting::Keep;
use crate::monitor::Demotable;
use crate::remote::{RemoteOverrun, RemoteTasks};

/// The tasks of a supervisor, of which the first ones are those of a calendar.
#[derive(Debug)]
pub(super) struct TimeOuts<'a, K> {
    tasks: RemoteTasks<'a, K>,
    /// By rank, of the tasks of the calendar.
    units: Vec<UnitGuard<'a>>,
    /// Their ranks that were released and may not have ended: no more than `units`.
    open: Vec<usize>,
}

impl<'a, K> TimeOuts<'a, K> {
    /// All of `tasks`, of which the first ones are the `units` of a calendar.
    pub(super) fn new(tasks: RemoteTasks<'a, K>, units: Vec<UnitGuard<'a>>) -> Self {
        let open = Vec::with_capacity(units.len());
        Self { tasks, units, open }
    }

    /// The tasks, once no unit is timed out any more.
    pub(super) fn into_tasks(self) -> RemoteTasks<'a, K> {
        self.tasks
    }

    /// Times out what still runs where a place of the unit of rank `next` begins. The rank of one
    /// whose policy ends everything then.
    #[inline]
    fn time_out(&mut self, next: usize) -> Option<usize> {
        let mut stopped_by = None;
        let Self { tasks, units, open } = self;
        open.retain(|&rank| match units[rank].progress() {
            Progress::Ended => false,
            Progress::Waits => true,
            Progress::Runs => {
                units[rank].demote();
                // That its own release finds it running is counted where that is posted.
                if rank != next
                    && let Some(task) = tasks.tasks.get(rank)
                {
                    task.counts.note_overrun();
                    if task.on_overrun == RemoteOverrun::Stop {
                        stopped_by = stopped_by.or(Some(rank));
                    }
                }
                true
            }
        });
        stopped_by
    }
}

impl<K: Keep> Dispatch for TimeOuts<'_, K> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        if rank < self.units.len() {
            if let Some(culprit) = self.time_out(rank) {
                self.tasks.stopped_by = Some(culprit);
                return Flow::Stop;
            }
            self.units[rank].release(cycle.n);
            if !self.open.contains(&rank) {
                self.open.push(rank);
            }
        }
        self.tasks.run(rank, cycle)
    }
}

/// The progress of the last release of a unit's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It has not begun.
    Waits,
    /// It runs, or an earlier one still does.
    Runs,
    /// It has ended, or no process is there.
    Ended,
}

/// The process of a calendar's task, as the loop times it out.
#[derive(Debug)]
pub(super) struct UnitGuard<'a> {
    /// Its block.
    words: &'a [AtomicU64],
    demotable: &'a Demotable,
    policy: SchedPolicy,
    /// The cycle that was released last.
    released: u64,
    /// The thread that lost its policy and has not got it back.
    demoted: Option<i32>,
}

impl<'a> UnitGuard<'a> {
    /// The task whose block is in `words`, and which has `policy`.
    pub(super) fn new(
        words: &'a [AtomicU64],
        demotable: &'a Demotable,
        policy: SchedPolicy,
    ) -> Self {
        Self { words, demotable, policy, released: 0, demoted: None }
    }

    fn progress(&self) -> Progress {
        let seen = look(self.words).unwrap_or_default();
        match seen.state {
            TaskState::Running => Progress::Runs,
            TaskState::Idle | TaskState::Asking => match seen.cycle {
                Some(cycle) if cycle >= self.released => Progress::Ended,
                _ => Progress::Waits,
            },
            TaskState::Empty | TaskState::Gone | TaskState::Unknown => Progress::Ended,
        }
    }

    /// Takes its real-time policy away, also where it got it back meanwhile.
    #[cold]
    fn demote(&mut self) {
        let thread = self.demotable.thread();
        if thread != 0 && self.demotable.set(thread, SchedPolicy::Other, self.demoted.is_none()) {
            self.demoted = Some(thread);
        }
    }

    /// Gives its policy back where it has ended, right before `cycle` is released.
    #[inline]
    fn release(&mut self, cycle: u64) {
        if self.demoted.is_some() && self.progress() != Progress::Runs {
            self.restore();
        }
        self.released = cycle;
    }

    #[cold]
    fn restore(&mut self) {
        let thread = self.demotable.thread();
        // Another process that came meanwhile has its policy from its registration.
        if self.demoted.take() == Some(thread) {
            let _gone = self.demotable.set(thread, self.policy, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use punctual_core::block::{ClientStep, TaskClient};
    use punctual_core::cycle::{Ended, Job, Missed, Observe, Overruns};
    use punctual_core::executive::Many;
    use punctual_core::stats::Page;
    use punctual_core::time::{Instant, Period};
    use punctual_core::wait::Sleep;
    use punctual_testkit::sim::SimClock;

    use super::super::Supervisor;
    use super::super::ready::{Ready, remotes};
    use super::*;
    use crate::calendar::{CalendarBuilder, Unit};
    use crate::periodic::{OnOverrun, Task};
    use crate::process::Spec;
    use crate::release_span::ReleaseSpan;

    /// The processes behind the blocks: each takes its release at once and runs for as long as its
    /// script says, by frame; nothing there means that it ends before the next place.
    struct Processes<'p> {
        tasks: TimeOuts<'p, Page<'p>>,
        clients: Vec<TaskClient<'p>>,
        /// By rank: until when it runs, while it does.
        until: Vec<Option<Instant>>,
        /// Rank, cycle, and what that takes, where it is long.
        long: Vec<(usize, u64, Instant)>,
        /// Cycles that began: rank and number.
        began: Vec<(usize, u64)>,
    }

    impl Dispatch for Processes<'_> {
        fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
            let now = cycle.release + cycle.lateness;
            for (client, until) in self.clients.iter_mut().zip(&mut self.until) {
                if let Some(end) = until.filter(|end| *end <= now) {
                    client.done(end);
                    *until = None;
                }
            }
            let flow = self.tasks.run(rank, cycle);
            if flow == Flow::Continue && self.until[rank].is_none() {
                let client = &mut self.clients[rank];
                if client.turn() == ClientStep::Run {
                    let began = client.begin(now).n;
                    self.began.push((rank, began));
                    let long = self.long.iter().find(|(at, n, _)| (*at, *n) == (rank, began));
                    self.until[rank] = Some(long.map_or(now, |(_, _, end)| *end));
                }
            }
            flow
        }
    }

    struct Nobody;

    impl Observe for Nobody {
        fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {}
        fn never_ran(&mut self, _: usize, _: Missed, _: Instant) {}
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    /// A frame of 1 ms from 10 ms on: "first" at 0 and 500 µs, "second" at 200 µs.
    fn ready(on_overrun: OnOverrun) -> Ready {
        let us = Duration::from_micros;
        let plan = CalendarBuilder::new(Period::from_ns(1_000_000).expect("in range"))
            .unit(Unit::new("first", us(100)))
            .unit(Unit::new("second", us(100)).at(us(200)))
            .unit(Unit::new("again", us(100)).at(us(500)).of("first"))
            .build()
            .expect("apart");
        let spec = |name: &str, period_ns: u64| {
            let period = Period::from_ns(period_ns).expect("in range");
            Spec::new(Task::every(name, period).on_overrun(on_overrun), Vec::new())
        };
        let supervisor = Supervisor::new().epoch(at(10_000)).calendar(plan);
        let specs = [spec("second", 1_000_000), spec("first", 500_000)];
        let ready = specs.into_iter().fold(supervisor, Supervisor::task).build().expect("fine");
        ready.blocks.iter().for_each(|block| block.admission.open(1));
        ready
    }

    /// The outcome of a simulated run.
    struct Simulated {
        ended: Ended,
        stopped_by: Option<usize>,
        /// Cycles that began: rank and number.
        began: Vec<(usize, u64)>,
        /// Times that it ran over, by rank.
        overran: Vec<u64>,
    }

    /// Runs frames until `end`, with processes that run long where `long` says.
    fn simulated(ready: &Ready, long: Vec<(usize, u64, Instant)>, end: Instant) -> Simulated {
        let beats = AtomicU64::new(0);
        // It clears the blocks.
        let tasks = remotes(ready, &beats);
        let clients = ready.blocks.iter().map(|block| {
            let mut client = TaskClient::open(block.memory.words()).expect("a task block");
            client.ask(1);
            client
        });
        let clients: Vec<TaskClient<'_>> = clients.collect();
        let until = vec![None; clients.len()];
        let tasks = Processes { tasks, clients, until, long, began: Vec::new() };
        let clock = SimClock::new(at(10_000), std::iter::empty());
        let mut many = Many { clock, wait: Sleep, tasks, observe: Nobody };
        let (mut storage, stop) = (ready.plan.storage(), AtomicBool::new(false));
        let times = (ready.epoch, ReleaseSpan { from: at(10_000), end });
        let ended = ready.plan.run(&mut many, &mut storage, times, &stop);
        let Processes { tasks, began, .. } = many.tasks;
        let overran = tasks.tasks.tasks.iter().map(|task| task.counts.overran()).collect();
        Simulated { ended, stopped_by: tasks.tasks.stopped_by, began, overran }
    }

    #[test]
    fn each_place_is_a_cycle_and_whoever_ends_in_time_is_left_alone() {
        let ready = ready(OnOverrun::Skip);
        let Simulated { ended, stopped_by, began, overran } =
            simulated(&ready, Vec::new(), at(12_000));
        assert_eq!((ended, stopped_by), (Ended::Finished, None));
        assert_eq!(began, [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3)]);
        assert_eq!(overran, [0, 0]);
    }

    #[test]
    fn a_unit_that_runs_over_is_counted_at_its_neighbours_place_which_begins_all_the_same() {
        let ready = ready(OnOverrun::Skip);
        // The first one runs until 450 µs, over the place of the second at 200.
        let long = vec![(0, 0, at(10_450))];
        let Simulated { ended, stopped_by, began, overran } = simulated(&ready, long, at(11_000));
        assert_eq!((ended, stopped_by), (Ended::Finished, None));
        assert_eq!(began, [(0, 0), (1, 0), (0, 1)]);
        assert_eq!(overran, [1, 0]);
        // Over its own next place too: that is missed, and both places have found it running.
        let ready = self::ready(OnOverrun::Skip);
        let long = vec![(0, 0, at(10_700))];
        let Simulated { began, overran, .. } = simulated(&ready, long, at(12_000));
        assert_eq!(began, [(0, 0), (1, 0), (0, 2), (1, 1), (0, 3)]);
        assert_eq!(overran, [2, 0]);
    }

    #[test]
    fn a_unit_that_may_stop_everything_does_so_at_its_neighbours_place() {
        let ready = ready(OnOverrun::Stop);
        let Simulated { ended, stopped_by, began, .. } =
            simulated(&ready, vec![(0, 0, at(10_450))], at(12_000));
        assert_eq!((ended, stopped_by), (Ended::Stopped, Some(0)));
        assert_eq!(began, [(0, 0)]);
    }
}
