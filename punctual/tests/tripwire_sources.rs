//! The laws of the loop, held for a calendar with periodic tasks beside it, and for loops on a
//! clock that follows another: no allocation and no page fault between the first cycles and the
//! last.
//!
//! One test alone, so that nothing else of the process disturbs it. Asserts no time.

use std::alloc::System;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual::follow::{ClockReading, Follow, Follower, Reference};
use punctual_core::calendar::CalendarState;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Sleep, Wait};
use punctual_engine::calendar::{CalendarBuilder, Combination, Unit};
use punctual_engine::clocks::MachineClock;
use punctual_engine::periodic::{Periodic, Task};
use punctual_engine::session::{ProcessSession, ThreadSession};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::threads;
use punctual_os::tripwire::Counting;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

/// Counts its cycles; one task breaks off once, and one overruns now and then.
struct Counts<C> {
    clock: C,
    ran: Vec<u64>,
    breaks: Option<usize>,
    overruns: Option<usize>,
}

impl<C: Clock> Dispatch for Counts<C> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.ran[rank] += 1;
        let long = self.overruns == Some(rank) && cycle.n.is_multiple_of(20);
        while long && !cycle.overran(self.clock.now()) {}
        if self.breaks == Some(rank) && cycle.part == 0 { Flow::Break } else { Flow::Continue }
    }
}

/// Runs a loop to an instant, and then watched to another; allocations and page faults of that.
fn watched(mut to: impl FnMut(Span) -> Ended) -> (u64, u64) {
    // Paid here: the first use of the code.
    assert_eq!(to(Span::from_ms(15)), Ended::Finished);
    let faults = || {
        let usage = threads::usage().expect("own usage");
        usage.minor_faults + usage.major_faults
    };
    let before = faults();
    ALLOCATOR.arm();
    let ended = to(Span::from_ms(300));
    let allocations = ALLOCATOR.disarm();
    let faulted = faults() - before;
    assert_eq!(ended, Ended::Finished);
    (allocations, faulted)
}

fn period(us: u64) -> Period {
    Period::ratio(us * 1_000, 1).expect("in range")
}

/// A calendar whose second task has two units, with two tasks in its gaps, one of which overruns.
fn both<W: Wait>(wait: W) -> (u64, u64) {
    let unit = |name: &str| {
        Unit::new(name, Duration::from_micros(100)).deadline(Duration::from_micros(1_500))
    };
    let units = CalendarBuilder::new(Period::from_ns(2_000_000).expect("positive"))
        .unit(unit("read"))
        .unit(unit("filter 1").after("read", Duration::from_micros(100)).of("filter"))
        .unit(unit("filter 2").after("filter 1", Duration::from_micros(200)).of("filter"))
        .build()
        .expect("a calendar");
    let periodic = Periodic::new()
        .task(Task::every("watch", period(3_000)).budget(Duration::from_micros(50)))
        .task(Task::every("log", period(7_000)).budget(Duration::from_micros(100)))
        .build()
        .expect("a plan");
    let together = Combination::new(&units, &periodic).expect("they fit");
    let (places, table) =
        (units.calendar(Instant::from_ns(0)), periodic.table(Instant::from_ns(0)));
    let (mut progress, mut storage) = (units.storage(), periodic.storage());
    let mut clock = MachineClock::best();
    let start = clock.now();
    let mut unit_state =
        CalendarState::begin(&places, &mut progress, start).expect("its own storage");
    let mut state = TableState::begin(&table, storage.lend(), start).expect("its own storage");
    let mut schedule = together.schedule((&places, &mut unit_state), (&table, &mut state));
    let tasks =
        Counts { clock: clock.clone(), ran: vec![0; 4], breaks: Some(1), overruns: Some(2) };
    let mut many = Many { clock, wait, tasks, observe: () };
    let stop = AtomicBool::new(false);
    let found = watched(|span| many.obey(&mut schedule, start + span, &stop));
    assert!(many.tasks.ran.iter().all(|&ran| ran > 10), "{:?}", many.tasks.ran);
    found
}

/// A reference that runs 50 parts in a million fast, read so often that the map bends while a loop
/// runs on it.
fn followed() -> Follower {
    let reference = Reference::Callback(Box::new(|| {
        let ns = now_ns(ClockId::Monotonic);
        let reference = Instant::from_ns(ns + ns / 1_000_000 * 50);
        Some(ClockReading::new(Instant::from_ns(ns), reference, Span::ZERO))
    }));
    let follow = Follow::new(reference).every(Span::from_ms(5), Span::from_ms(2));
    follow.start().expect("readable")
}

/// Tasks on the grid of a reference.
fn on_a_followed_clock() -> (u64, u64) {
    let follower = followed();
    let plan = Periodic::new()
        .task(Task::every("fast", period(1_000)))
        .task(Task::every("slow", period(5_000)))
        .build()
        .expect("a plan");
    let (table, mut storage) = (plan.table(Instant::from_ns(0)), plan.storage());
    let mut clock = follower.clock();
    let (start, map) = (clock.now(), clock.map());
    let mut state = TableState::begin(&table, storage.lend(), start).expect("its own storage");
    let tasks = Counts { clock: clock.clone(), ran: vec![0; 2], breaks: None, overruns: Some(1) };
    let mut many = Many { clock, wait: Sleep, tasks, observe: () };
    let stop = AtomicBool::new(false);
    let found = watched(|span| many.run(&table, &mut state, start + span, &stop));
    assert!(many.tasks.ran.iter().all(|&ran| ran > 10), "{:?}", many.tasks.ran);
    assert_ne!(many.clock.map(), map, "it went on by other maps than the first");
    found
}

#[test]
fn neither_a_calendar_beside_tasks_nor_a_followed_clock_allocates_or_faults() {
    ALLOCATOR.arm();
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATOR.disarm(), 2, "the tripwire sees what it should");
    let process = ProcessSession::enter();
    let _thread = ThreadSession::enter(None, SchedPolicy::Fifo(10));
    let period = Period::from_ns(500_000).expect("positive");
    for (name, (allocations, faults)) in [
        ("both, sleep", both(Sleep)),
        ("both, adaptive", both(Adaptive::new(Target::of(period)))),
        ("followed", on_a_followed_clock()),
    ] {
        assert_eq!(allocations, 0, "{name}: allocations");
        // Where locking was refused a page may be taken away at any time.
        assert!(faults == 0 || !process.memory_locked(), "{name}: {faults} faults");
    }
}
