//! The loop of many tasks in a simulated clock: order, lateness, overruns, stops.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{CancelToken, Cycle, Ended, Flow, Job, Missed, Observe, Overruns};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Cancelling, Dispatch, Many, Schedule};
use punctual_core::stats::{Page, PageKind, View, WORDS};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Sleep;
use punctual_engine::periodic::{OnOverrun, Periodic, Task};
use punctual_testkit::sim::{SimClock, SleepNoise};

/// A simulated clock that the tasks move on too.
struct Shared<'c>(&'c Cell<u64>, SimClock<std::vec::IntoIter<SleepNoise>>);

impl Clock for Shared<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }
    fn poll(&mut self) -> Instant {
        self.now()
    }
    fn sleep_until(&mut self, at: Instant) {
        self.1.now = self.now();
        self.1.sleep_until(at);
        self.0.set(self.1.now.as_ns());
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

/// A cycle as its task got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    rank: usize,
    cycle: u64,
    lateness_ns: i64,
    missed: u64,
    dt_ns: i64,
}

impl Given {
    /// A cycle after one that ended before this release.
    const fn on_time(rank: usize, cycle: u64, dt_ns: i64) -> Self {
        Self { rank, cycle, lateness_ns: 0, missed: 0, dt_ns }
    }
}

/// Takes from a script how long each cycle of each task is, and keeps what it was given.
struct Script<'c> {
    now: &'c Cell<u64>,
    /// (rank, cycle) → ns; 10 ns otherwise.
    long: Vec<((usize, u64), u64)>,
    seen: Vec<Given>,
    stop_at: Option<(usize, u64)>,
}

impl Dispatch for Script<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.seen.push(Given {
            rank,
            cycle: cycle.n,
            lateness_ns: cycle.lateness.as_ns(),
            missed: cycle.missed,
            dt_ns: cycle.dt.as_ns(),
        });
        let long = self.long.iter().find(|(at, _)| *at == (rank, cycle.n)).map_or(10, |l| l.1);
        self.now.set(self.now.get() + long);
        let late = cycle.overran(Instant::from_ns(self.now.get()));
        assert_eq!(late, self.now.get() >= cycle.next.as_ns());
        if self.stop_at == Some((rank, cycle.n)) { Flow::Stop } else { Flow::Continue }
    }
}

/// The overruns of all cycles, in the order in which they ended.
#[derive(Default)]
struct Observed(Vec<Overruns>);

impl Observe for Observed {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        assert!(job.release <= start && start <= finish);
        self.0.push(overruns);
    }
}

fn task(name: &str, period_ns: u64) -> Task {
    Task::every(name, Period::ratio(period_ns, 1).expect("in range")).at(Duration::ZERO)
}

/// A run of the loop of many.
struct Run {
    ended: Ended,
    seen: Vec<Given>,
    overruns: Vec<Overruns>,
}

fn run(
    tasks: Periodic,
    noise: Vec<SleepNoise>,
    long: Vec<((usize, u64), u64)>,
    stop_at: Option<(usize, u64)>,
) -> Run {
    let plan = tasks.build().expect("a plan");
    let table = plan.table(Instant::from_ns(1_000));
    let mut storage = plan.storage();
    let now = Cell::new(500);
    let from = Instant::from_ns(500);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let mut many = Many {
        clock: Shared(&now, SimClock::new(from, noise.into_iter())),
        wait: Sleep,
        tasks: Script { now: &now, long, seen: Vec::new(), stop_at },
        observe: Observed::default(),
    };
    let end = Instant::from_ns(2_000);
    let ended = many.run(&table, &mut state, end, &AtomicBool::new(false));
    Run { ended, seen: many.tasks.seen, overruns: many.observe.0 }
}

#[test]
fn the_urgent_one_first_and_each_at_its_release() {
    let tasks = Periodic::new().task(task("slow", 400)).task(task("fast", 200));
    let noise = vec![SleepNoise::Late(Span::from_ns(7))];
    let Run { ended, seen, overruns } = run(tasks, noise, vec![], None);
    assert_eq!(ended, Ended::Finished);
    let first = [
        Given { lateness_ns: 7, ..Given::on_time(0, 0, 200) },
        Given { lateness_ns: 17, ..Given::on_time(1, 0, 400) },
        Given::on_time(0, 1, 200),
        Given::on_time(0, 2, 200),
        Given { lateness_ns: 10, ..Given::on_time(1, 1, 400) },
    ];
    assert_eq!(seen[..5], first);
    assert_eq!(seen.len(), 5 + 3);
    assert!(overruns.iter().all(|overruns| !overruns.over_release));
}

#[test]
fn an_overrun_misses_what_passed_and_the_next_cycle_is_told() {
    let tasks = Periodic::new().task(task("a", 200));
    let Run { seen, overruns, .. } = run(tasks, vec![], vec![((0, 1), 450)], None);
    // Cycle 1 starts at 1200 and ends at 1650: the releases at 1400 and 1600 are missed.
    let late = Given { missed: 2, ..Given::on_time(0, 4, 600) };
    assert_eq!(seen[1..3], [Given::on_time(0, 1, 200), late]);
    assert!(overruns[1].over_release && overruns[1].over_deadline);
}

#[test]
fn a_task_of_the_stop_policy_ends_everything() {
    let tasks =
        Periodic::new().task(task("a", 200).on_overrun(OnOverrun::Stop)).task(task("b", 400));
    let Run { ended, seen, .. } = run(tasks, vec![], vec![((0, 1), 250)], None);
    assert_eq!(ended, Ended::Overran(0));
    assert_eq!(seen.last().map(|given| (given.rank, given.cycle)), Some((0, 1)));
    // Kept from running for a whole period by another: its release was missed all the same.
    let tasks =
        Periodic::new().task(task("a", 200).on_overrun(OnOverrun::Stop)).task(task("b", 400));
    let Run { ended, seen, .. } = run(tasks, vec![], vec![((1, 0), 450)], None);
    assert_eq!(ended, Ended::Overran(0));
    assert_eq!(seen.last().map(|given| (given.rank, given.cycle)), Some((1, 0)));
}

#[test]
fn a_task_can_end_the_loop_and_so_can_the_flag() {
    let tasks = || Periodic::new().task(task("a", 200));
    let Run { ended, seen, .. } = run(tasks(), vec![], vec![], Some((0, 2)));
    assert_eq!((ended, seen.len()), (Ended::Stopped, 3));
    let plan = tasks().build().expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let from = Instant::from_ns(1);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let now = Cell::new(1);
    let stop = AtomicBool::new(false);
    stop.store(true, Ordering::Relaxed);
    let tasks = Script { now: &now, long: vec![], seen: vec![], stop_at: None };
    let clock = SimClock::new(from, std::iter::empty());
    let mut many = Many { clock, wait: Sleep, tasks, observe: () };
    let ended = many.run(&table, &mut state, Instant::from_ns(u64::MAX), &stop);
    assert_eq!((ended, many.tasks.seen.len()), (Ended::Stopped, 0));
}

#[test]
fn a_task_that_is_to_be_terminated_hears_of_it_from_its_watchdog() {
    #[derive(Debug, PartialEq)]
    struct Polled {
        rank: usize,
        cycle: u64,
        steps: u64,
    }
    /// Runs long at cycle 1, and has its watchdog look at each step.
    struct Polling<'c>(&'c Cell<u64>, &'c CancelToken, Vec<Polled>);
    impl Dispatch for Polling<'_> {
        fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
            let mut steps = 0;
            while !cycle.cancelled() && steps < if cycle.n == 1 { 50 } else { 1 } {
                self.0.set(self.0.get() + 10);
                self.1.cancel_overrun(Instant::from_ns(self.0.get()));
                steps += 1;
            }
            self.2.push(Polled { rank, cycle: cycle.n, steps });
            Flow::Continue
        }
    }
    for (policy, steps) in [(OnOverrun::Terminate, 20), (OnOverrun::Skip, 50)] {
        let plan = Periodic::new().task(task("a", 200).on_overrun(policy)).build().expect("a plan");
        let table = plan.table(Instant::from_ns(0));
        let mut storage = plan.storage();
        let from = Instant::from_ns(0);
        let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
        let (now, token) = (Cell::new(0), CancelToken::new());
        let tasks = Cancelling { tasks: Polling(&now, &token, Vec::new()), token: &token };
        let clock = Shared(&now, SimClock::new(from, Vec::new().into_iter()));
        let mut many = Many { clock, wait: Sleep, tasks, observe: () };
        let stop = AtomicBool::new(false);
        let ended = many.run(&table, &mut state, Instant::from_ns(1_000), &stop);
        assert_eq!(ended, Ended::Finished);
        let ran = &many.tasks.tasks.2;
        let polled = |cycle, steps| Polled { rank: 0, cycle, steps };
        assert_eq!(ran[..2], [polled(0, 1), polled(1, steps)], "{policy:?}");
        assert!(ran[2..].iter().all(|polled| polled.steps == 1), "a new cycle has a new token");
    }
}

/// Releases in a row that never ran.
#[derive(Debug, PartialEq, Eq)]
struct Passed {
    rank: usize,
    first: u64,
    count: u64,
}

#[derive(Default)]
struct NeverRan(Vec<Passed>);

impl Observe for NeverRan {
    fn ran(&mut self, _: &Job, _: Instant, _: Instant, _: Overruns) {}
    fn never_ran(&mut self, rank: usize, missed: Missed, _: Instant) {
        self.0.push(Passed { rank, first: missed.first, count: missed.count });
    }
}

/// Panics in its fifth cycle, 450 ns late.
struct Panics<'c>(&'c Cell<u64>, u64);

impl Dispatch for Panics<'_> {
    fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.1 += 1;
        if self.1 == 5 {
            self.0.set(cycle.release.as_ns() + 450);
            panic!("the fifth cycle");
        }
        Flow::Continue
    }
}

#[test]
fn after_a_panic_the_releases_that_never_ran_can_still_be_observed() {
    let plan = Periodic::new().task(task("a", 100)).build().expect("a plan");
    let table = plan.table(Instant::from_ns(1_000));
    let mut storage = plan.storage();
    let (now, from) = (Cell::new(500), Instant::from_ns(500));
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let mut many = Many {
        clock: Shared(&now, SimClock::new(from, Vec::new().into_iter())),
        wait: Sleep,
        tasks: Panics(&now, 0),
        observe: NeverRan::default(),
    };
    let mut schedule = Schedule::of_table(&table, &mut state);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        many.obey(&mut schedule, Instant::from_ns(9_000), &AtomicBool::new(false))
    }));
    assert!(caught.is_err());
    many.never_ran(&mut schedule);
    let passed = Passed { rank: 0, first: 5, count: 4 };
    assert_eq!(many.observe.0, [passed], "cycle 4 began, 5 to 8 passed");
    many.never_ran(&mut schedule);
    assert_eq!(many.observe.0.len(), 1, "once");
}

/// The figures of a task on its page.
#[derive(Debug, PartialEq)]
struct Figures {
    ran: u64,
    missed: u64,
    latest_ns: i64,
}

/// Of `policy`, a task that waits behind the first cycle of another for 950 ns; by rank its
/// figures.
fn behind_a_hog(policy: OnOverrun, stop_at: Option<(usize, u64)>) -> (Ended, [Figures; 2]) {
    let hog = Task::every("hog", Period::ratio(100_000, 1).expect("in range"));
    let tasks = Periodic::new().task(task("a", 100).on_overrun(policy).priority(1));
    let plan = tasks.task(hog.at(Duration::ZERO).priority(2)).build().expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let (now, from) = (Cell::new(99_950), Instant::from_ns(99_950));
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let words: Vec<_> = (0..2 * WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut pages: Vec<_> = words
        .chunks(WORDS)
        .map(|words| Page::new(words, PageKind::Lateness).expect("large enough"))
        .collect();
    let long = vec![((0, 1), 950)];
    let mut many = Many {
        clock: Shared(&now, SimClock::new(from, Vec::new().into_iter())),
        wait: Sleep,
        tasks: Script { now: &now, long, seen: Vec::new(), stop_at },
        observe: &mut pages[..],
    };
    let end = Instant::from_ns(101_500);
    let ended = many.run(&table, &mut state, end, &AtomicBool::new(false));
    let counts = [0, 1].map(|rank| {
        let page = View::open(&words[rank * WORDS..][..WORDS]).expect("a page").counts();
        let counters = state.counters(rank);
        assert_eq!((counters.ran, counters.missed), (page.ran, page.missed), "{rank}");
        let latest_ns = page.max.map_or(0, Span::as_ns);
        Figures { ran: page.ran, missed: page.missed, latest_ns }
    });
    (ended, counts)
}

#[test]
fn a_release_over_which_everything_ends_is_missed_with_the_others() {
    // 10 releases passed while the hog ran; the oldest one is 950 ns late.
    let ten_missed = || Figures { ran: 0, missed: 10, latest_ns: 950 };
    let (ended, [_, behind]) = behind_a_hog(OnOverrun::Stop, None);
    assert_eq!((ended, behind), (Ended::Overran(1), ten_missed()));
    let (ended, [_, behind]) = behind_a_hog(OnOverrun::Stop, Some((0, 1)));
    assert_eq!((ended, behind), (Ended::Stopped, ten_missed()));
    // The others go on.
    let (ended, [_, behind]) = behind_a_hog(OnOverrun::Skip, None);
    assert_eq!((ended, behind), (Ended::Finished, Figures { ran: 6, missed: 9, latest_ns: 950 }));
}
