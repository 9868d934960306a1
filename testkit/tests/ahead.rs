//! Tasks that the loop of many releases ahead of time, while it waits, run as if they had been
//! released at the wake, in a simulated clock.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow, Job, Missed, Observe, Overruns};
use punctual_core::dispatch::{Counters, TableState};
use punctual_core::executive::{Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Wait;
use punctual_engine::periodic::{OnOverrun, Periodic, Task};

/// A clock that sleeps and tasks move on.
#[derive(Clone, Copy)]
struct Shared<'c>(&'c Cell<u64>);

impl Clock for Shared<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }
    fn poll(&mut self) -> Instant {
        self.now()
    }
    fn sleep_until(&mut self, at: Instant) {
        self.0.set(self.0.get().max(at.as_ns()));
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

/// Sleeps, each this late, which may say that it has so much time in hand before; stopped after so
/// many of them.
struct Script {
    late_ns: Vec<u64>,
    sleeps: usize,
    in_hand: Span,
    stop_after: usize,
}

impl Wait for Script {
    fn near<C: Clock>(&mut self, _: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        Some(release - self.in_hand)
    }
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        _: &AtomicBool,
    ) -> Option<Instant> {
        let late_ns = self.late_ns.get(self.sleeps).copied().unwrap_or(0);
        self.sleeps += 1;
        if self.sleeps > self.stop_after {
            return None;
        }
        clock.sleep_until(release + Span::from_ns(late_ns as i64));
        Some(clock.wake())
    }
}

/// A cycle that ran.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    rank: usize,
    cycle: u64,
    release_ns: u64,
    start_ns: u64,
    missed: u64,
}

/// Releases in a row that never ran.
#[derive(Debug, PartialEq, Eq)]
struct Passed {
    rank: usize,
    first: u64,
    count: u64,
}

/// A run of the loop.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    ended: Ended,
    ran: Vec<Ran>,
    never_ran: Vec<Passed>,
    /// By rank.
    counters: Vec<Counters>,
}

struct Bodies<'c> {
    now: &'c Cell<u64>,
    long_ns: &'c [u64],
    ran: Vec<Ran>,
}

impl Dispatch for Bodies<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let (start_ns, release_ns) = (self.now.get(), cycle.release.as_ns());
        self.ran.push(Ran { rank, cycle: cycle.n, release_ns, start_ns, missed: cycle.missed });
        self.now.set(start_ns + self.long_ns.get(self.ran.len()).copied().unwrap_or(5_000));
        Flow::Continue
    }
}

#[derive(Default)]
struct NeverRan(Vec<Passed>);

impl Observe for NeverRan {
    fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {}
    fn never_ran(&mut self, rank: usize, missed: Missed, _: Instant) {
        self.0.push(Passed { rank, first: missed.first, count: missed.count });
    }
}

/// Runs these tasks, by period and policy, on a machine of this noise.
fn run(
    tasks: &[(u64, OnOverrun)],
    (late_ns, long_ns): (&[u64], &[u64]),
    in_hand: Span,
    stop_after: usize,
) -> Seen {
    let named = tasks.iter().enumerate().map(|(at, (us, policy))| {
        let period = Period::ratio(us * 1_000, 1).expect("in range");
        Task::every(format!("{at}"), period)
            .on_overrun(*policy)
            .at(Duration::from_nanos(at as u64 * 7))
    });
    let plan = named.fold(Periodic::new(), Periodic::task).build().expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let (mut storage, now) = (plan.storage(), Cell::new(50));
    let from = Instant::from_ns(50);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let mut many = Many {
        clock: Shared(&now),
        wait: Script { late_ns: late_ns.to_vec(), sleeps: 0, in_hand, stop_after },
        tasks: Bodies { now: &now, long_ns, ran: Vec::new() },
        observe: NeverRan::default(),
    };
    let end = Instant::from_ns(9_000_000);
    let ended = many.run(&table, &mut state, end, &AtomicBool::new(false));
    let counters = (0..table.tasks()).map(|rank| state.counters(rank)).collect();
    Seen { ended, ran: many.tasks.ran, never_ran: many.observe.0, counters }
}

fn policy() -> impl Strategy<Value = OnOverrun> {
    prop_oneof![
        Just(OnOverrun::Skip),
        Just(OnOverrun::Burst(3)),
        Just(OnOverrun::Delay),
        Just(OnOverrun::Stop),
        Just(OnOverrun::Terminate),
    ]
}

proptest! {
    #[test]
    fn it_runs_as_what_is_released_at_the_wake(
        tasks in prop::collection::vec((100u64..900, policy()), 1..5),
        late_ns in prop::collection::vec(prop_oneof![5 => 0u64..2_000, 1 => 0u64..2_500_000], 60),
        long_ns in prop::collection::vec(prop_oneof![5 => 0u64..9_000, 1 => 0u64..700_000], 60),
        stop_after in prop_oneof![Just(usize::MAX), 0usize..60],
    ) {
        let noise = (&late_ns[..], &long_ns[..]);
        let at_the_wake = run(&tasks, noise, Span::ZERO, stop_after);
        let ahead = run(&tasks, noise, Span::from_us(20), stop_after);
        prop_assert_eq!(at_the_wake, ahead);
    }
}

#[test]
fn what_is_still_to_come_at_a_stop_was_not_missed() {
    let tasks = [(200, OnOverrun::Skip)];
    let seen = run(&tasks, (&[], &[]), Span::from_us(20), 3);
    assert_eq!((seen.ended, seen.ran.len(), seen.never_ran.len()), (Ended::Stopped, 3, 0));
    assert_eq!((seen.counters[0].ran, seen.counters[0].missed), (3, 0));
}
