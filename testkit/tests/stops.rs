//! Stops at any instant, in a simulated clock: what was due before the stop ran or was missed, and
//! what is due after it is no release of the run.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_core::calendar::CalendarState;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow, Job, Missed, Observe, Overruns};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many, Schedule};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::calendar::{CalendarBuilder, Unit};
use punctual_engine::periodic::{OnOverrun, Periodic, Task};
use punctual_engine::wait_policy::{WaitKind, strategy_of};

const PERIOD_NS: u64 = 1_000_000;
const FIRST_NS: u64 = 5_000_000;
const WAITS: [WaitKind; 7] = [
    WaitKind::Sleep,
    WaitKind::Spin,
    WaitKind::Fixed(Span::from_us(100)),
    WaitKind::Hop(Span::from_us(200), Span::from_us(50)),
    WaitKind::Rearm(None),
    WaitKind::Adaptive(0.1),
    WaitKind::Adaptive(1.0),
];

/// A clock whose sleeps are late, and a stop that somebody requests at an instant of it.
struct Stopping<'w, S> {
    now: &'w Cell<u64>,
    stop: &'w S,
    at_ns: u64,
    late_ns: u64,
    /// True where it is known when CLOCK_MONOTONIC shows an instant.
    related: bool,
}

impl<S: StopRequest> Stopping<'_, S> {
    fn pass(&self, to_ns: u64) {
        self.now.set(self.now.get().max(to_ns));
        if self.now.get() >= self.at_ns {
            self.stop.request(Instant::from_ns(self.at_ns));
        }
    }
}

impl<S: StopRequest> Clock for Stopping<'_, S> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.now.get())
    }
    fn poll(&mut self) -> Instant {
        self.pass(self.now.get() + 500);
        self.now()
    }
    fn sleep_until(&mut self, at: Instant) {
        if at.as_ns() > self.now.get() {
            self.pass(at.as_ns() + self.late_ns);
        }
    }
    fn wake(&mut self) -> Instant {
        self.poll()
    }
    fn relax(&mut self) {}
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        self.related.then_some(at)
    }
}

/// Work of a constant length; a task may end it by what it returns.
struct Work<'w, S> {
    clock: Stopping<'w, S>,
    ns: u64,
    stops: bool,
}

impl<S: StopRequest> Dispatch for Work<'_, S> {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        self.clock.pass(self.clock.now.get() + self.ns);
        if self.stops { Flow::Stop } else { Flow::Continue }
    }
}

/// By rank: how many ran, and how many were missed.
#[derive(Debug, Default)]
struct Tally(Vec<(u64, u64)>);

impl Tally {
    fn of(&mut self, rank: usize) -> &mut (u64, u64) {
        self.0.resize(self.0.len().max(rank + 1), (0, 0));
        &mut self.0[rank]
    }
}

impl Observe for Tally {
    fn ran(&mut self, job: &Job, _: Instant, _: Instant, _: Overruns) {
        self.of(job.rank).0 += 1;
        self.of(job.rank).1 += job.missed;
    }
    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        assert!(missed.releases.release(missed.first + missed.count - 1) <= end);
        self.of(rank).1 += missed.count;
    }
}

fn period() -> Period {
    Period::from_ns(PERIOD_NS).expect("in range")
}

/// The circumstances of a stop.
#[derive(Clone, Copy, Debug)]
struct Situation {
    /// The instant of the request.
    at_ns: u64,
    /// The lateness of each sleep.
    late_ns: u64,
    /// The execution time of each body.
    work_ns: u64,
    /// True where it is known when CLOCK_MONOTONIC shows an instant.
    related: bool,
    /// True where the bodies end the loop.
    stops: bool,
}

impl Situation {
    /// A request of another thread.
    fn at(at_ns: u64, late_ns: u64, work_ns: u64) -> Self {
        Self { at_ns, late_ns, work_ns, related: true, stops: false }
    }
}

/// One task of the period and one of twice that; what was due by the stop of each.
fn many(wait: WaitKind, stop: &impl StopRequest, with: Situation) -> [u64; 2] {
    let Situation { at_ns, late_ns, work_ns, related, stops } = with;
    let task = |name: &str, n| {
        let period = Period::from_ns(n * PERIOD_NS).expect("in range");
        Task::every(name, period).at(Duration::ZERO)
    };
    let plan = Periodic::new().task(task("a", 1)).task(task("b", 2)).build().expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let from = Instant::from_ns(FIRST_NS - 1_000);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let now = Cell::new(from.as_ns());
    let clock = || Stopping { now: &now, stop, at_ns, late_ns, related };
    let mut many = Many {
        clock: clock(),
        wait: strategy_of(wait, period(), || Span::from_us(3)),
        tasks: Work { clock: clock(), ns: work_ns, stops },
        observe: Tally::default(),
    };
    let ended = many.run(&table, &mut state, Instant::from_ns(u64::MAX), stop);
    assert_eq!(ended, Ended::Stopped);
    many.observe.of(1);
    for (rank, (ran, missed)) in many.observe.0.iter().enumerate() {
        let counters = state.counters(rank);
        assert_eq!((counters.ran, counters.missed), (*ran, *missed), "{wait:?} {with:?}");
    }
    [0, 1].map(|rank| many.observe.0[rank].0 + many.observe.0[rank].1)
}

fn due(at_ns: u64, n: u64) -> u64 {
    // Of twice the period the first one at or after the beginning.
    let first = FIRST_NS.next_multiple_of(n * PERIOD_NS);
    (at_ns + 1).saturating_sub(first).div_ceil(n * PERIOD_NS)
}

/// Instants of a stop: around releases and between them.
fn stops() -> impl Iterator<Item = u64> {
    let around = [0, 1, 700, 20_000, 200_000, 500_000, 900_000, 999_300, 999_999];
    (0..5).flat_map(move |n| around.map(|ns| FIRST_NS + n * PERIOD_NS + ns))
}

#[test]
fn what_was_due_before_a_stop_ran_or_was_missed_and_nothing_else() {
    for wait in WAITS {
        for at_ns in stops() {
            for (late_ns, work_ns) in [(0, 10_000), (40_000, 10_000), (2_300_000, 50_000)] {
                let with = Situation::at(at_ns, late_ns, work_ns);
                let right = [due(at_ns, 1), due(at_ns, 2)];
                assert_eq!(many(wait, &StopFlag::default(), with), right, "{wait:?} {with:?}");
                // A body that runs meanwhile for periods.
                let with = Situation::at(at_ns, late_ns, 2_600_000);
                assert_eq!(many(wait, &StopFlag::default(), with), right, "{wait:?} {with:?}");
            }
        }
    }
}

#[test]
fn where_nobody_knows_when_it_was_a_stop_in_a_sleep_is_one_before_its_release() {
    for wait in WAITS {
        // Between two releases, and when the tasks of the one before are over.
        for at_ns in stops().filter(|ns| (100_000..999_000).contains(&(ns % PERIOD_NS))) {
            let right = [due(at_ns, 1), due(at_ns, 2)];
            for late_ns in [0, 40_000] {
                let with = Situation::at(at_ns, late_ns, 1_000);
                assert_eq!(many(wait, &AtomicBool::new(false), with), right, "{wait:?} {with:?}");
                let with = Situation { related: false, ..with };
                assert_eq!(many(wait, &StopFlag::default(), with), right, "{wait:?} {with:?}");
            }
        }
    }
}

#[test]
fn a_task_that_stops_it_does_so_at_its_end() {
    for wait in WAITS {
        for work_ns in [10_000, 400_000, 3_200_000] {
            let with = Situation { stops: true, ..Situation::at(u64::MAX, 0, work_ns) };
            let stop = StopFlag::default();
            // At the end of the first cycle of all.
            let right = [due(FIRST_NS + work_ns, 1), due(FIRST_NS + work_ns, 2)];
            assert_eq!(many(wait, &stop, with), right, "{wait:?} {with:?}");
        }
    }
}

/// The end of a calendar: by a stop at an instant, or before one; or by a body, the nth that runs.
#[derive(Clone, Copy, Debug)]
enum UnitsEnd {
    Stop(u64),
    Before(u64),
    Flow(usize),
}

/// Bodies of which each fifth overruns.
struct Overrunning<'w> {
    work: Work<'w, StopFlag>,
    long_ns: u64,
    ran: usize,
    last: Option<usize>,
}

impl Dispatch for Overrunning<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.ran += 1;
        self.work.ns = if self.ran.is_multiple_of(5) { self.long_ns } else { 10_000 };
        let _flow = self.work.run(rank, cycle);
        if self.last == Some(self.ran) { Flow::Stop } else { Flow::Continue }
    }
}

/// A calendar of two units, at 100 and 500 us of a frame of the period; what was counted of each
/// and what was due when it was over.
fn units(end: UnitsEnd, long_ns: u64, policy: OnOverrun) -> ([u64; 2], [u64; 2]) {
    let unit = |name: &str, us| {
        Unit::new(name, Duration::from_micros(100)).at(Duration::from_micros(us)).on_overrun(policy)
    };
    let builder = CalendarBuilder::new(period()).unit(unit("a", 100)).unit(unit("b", 500));
    let plan = builder.build().expect("a plan");
    let table = plan.calendar(Instant::from_ns(0));
    let (mut storage, now, stop) = (plan.storage(), Cell::new(FIRST_NS), StopFlag::default());
    let from = Instant::from_ns(FIRST_NS);
    let mut state = CalendarState::begin(&table, &mut storage, from).expect("its own storage");
    let (at_ns, before_ns, last) = match end {
        UnitsEnd::Stop(at_ns) => (at_ns, u64::MAX, None),
        UnitsEnd::Before(end_ns) => (u64::MAX, end_ns, None),
        UnitsEnd::Flow(last) => (u64::MAX, u64::MAX, Some(last)),
    };
    let clock = || Stopping { now: &now, stop: &stop, at_ns, late_ns: 0, related: true };
    let work = Work { clock: clock(), ns: 0, stops: false };
    let mut many = Many {
        clock: clock(),
        wait: strategy_of(WaitKind::Sleep, period(), || Span::from_us(3)),
        tasks: Overrunning { work, long_ns, ran: 0, last },
        observe: Tally::default(),
    };
    let mut schedule = Schedule::of_calendar(&table, &mut state);
    let _why = many.obey(&mut schedule, Instant::from_ns(before_ns), &stop);
    many.observe.of(1);
    let over_ns = now.get().min(at_ns).min(before_ns - 1);
    let due = |ready_ns| (over_ns + PERIOD_NS - FIRST_NS).saturating_sub(ready_ns) / PERIOD_NS;
    let counted = [0, 1].map(|rank| many.observe.0[rank].0 + many.observe.0[rank].1);
    (counted, [due(100_000), due(500_000)])
}

#[test]
fn each_place_of_a_calendar_ran_or_was_missed_however_it_ends() {
    for policy in [OnOverrun::Skip, OnOverrun::Terminate, OnOverrun::Stop] {
        for long_ns in [10_000, 99_000, 450_000, 900_000, 1_600_000, 3_000_000, 25_000_000] {
            let at = (0..10u64).flat_map(|n| stops().map(move |ns| ns + n * PERIOD_NS / 3));
            let ends = at.flat_map(|ns| [UnitsEnd::Stop(ns), UnitsEnd::Before(ns)]);
            for end in ends.chain((1..20).map(UnitsEnd::Flow)) {
                let (counted, due) = units(end, long_ns, policy);
                assert_eq!(counted, due, "{end:?}, {long_ns} ns, {policy:?}");
            }
        }
    }
}

/// A loop of one period; what was due by the stop.
fn gate(wait: WaitKind, with: Situation, ask: bool) -> u64 {
    let Situation { at_ns, late_ns, work_ns, related, .. } = with;
    let (now, stop) = (Cell::new(FIRST_NS - 1_000), StopFlag::default());
    let clock = || Stopping { now: &now, stop: &stop, at_ns, late_ns, related };
    let releases = Releases::new(Instant::from_ns(FIRST_NS), period());
    let wait = strategy_of(wait, period(), || Span::from_us(3));
    let mut gate = Gate::new(clock(), wait, Tally::default(), releases, 0);
    while let Ok(cycle) = gate.wait(&stop) {
        assert!(cycle.release.as_ns() <= at_ns || !stop.flag().load(Ordering::Relaxed));
        clock().pass(now.get() + work_ns);
        if !ask && stop.flag().load(Ordering::Relaxed) {
            // Broken off, and ended some time later.
            now.set(now.get() + 7_000_000);
            gate.finish(&stop);
            break;
        }
    }
    let (ran, missed) = *gate.observe.of(0);
    ran + missed
}

#[test]
fn a_loop_of_one_period_counts_what_was_due_before_its_stop() {
    for wait in WAITS {
        for at_ns in stops() {
            for (late_ns, work_ns) in [(0, 10_000), (40_000, 10_000), (2_300_000, 2_600_000)] {
                for ask in [true, false] {
                    let with = Situation::at(at_ns, late_ns, work_ns);
                    let counted = gate(wait, with, ask);
                    assert_eq!(counted, due(at_ns, 1), "{wait:?} {with:?} {ask}");
                }
            }
        }
    }
}
