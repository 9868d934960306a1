//! The system calls of the loop of many tasks, alone, beside a calendar and on a followed clock:
//! between its first cycles and its last none but the wait's own, as strace saw it from outside.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual::follow::{ClockReading, Follow, Reference};
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
use punctual_engine::handover::{Change, Handover, LoopRun, RunningPlan};
use punctual_engine::periodic::{OnOverrun, Periodic, Task};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::pi_mutex::PiMutex;
use punctual_os::threads;
use punctual_testkit::skip;

/// The system calls that a loop that runs its tasks to their end may make (none of it where it only
/// spins).
const ALLOWED: [&str; 1] = ["clock_nanosleep"];
/// The system call that the child makes in the second cycle of a loop and in its last, and nothing
/// else of it makes.
const MARK: &str = "getrusage";

/// Set for the child, which is this test again.
const CHILD: &str = "PUNCTUAL_TRACED";

/// Cycles of each loop: on a busy machine many are late and need no sleep before them.
const CYCLES: u64 = 100;
/// The longest that a loop may take for them, on a machine that is busy and traces it.
const AT_MOST: Span = Span::from_ms(60_000);

/// The mutex that each cycle of a marked loop locks: a free one takes no system call.
static SHARED: PiMutex<u64> = PiMutex::new(0);

/// Marks its second cycle and its last, which ends the loop.
struct Marked(u64);

impl Dispatch for Marked {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        self.0 += 1;
        *SHARED.lock() += 1;
        if self.0 == 2 || self.0 == CYCLES {
            let _marked = threads::usage();
        }
        if self.0 < CYCLES { Flow::Continue } else { Flow::Stop }
    }
}

fn tasks<W: Wait>(wait: W) {
    let task = |name: &str, ms: u64, policy| {
        Task::every(name, Period::ratio(ms * 1_000_000, 1).expect("in range")).on_overrun(policy)
    };
    let plan = Periodic::new()
        .task(task("fast", 1, OnOverrun::Skip))
        .task(task("burst", 2, OnOverrun::Burst(3)))
        .task(task("delay", 5, OnOverrun::Delay))
        .build()
        .expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let mut clock = MachineClock::best();
    let start = clock.now();
    let mut state = TableState::begin(&table, storage.lend(), start).expect("its own storage");
    let stop = AtomicBool::new(false);
    let mut many = Many { clock, wait, tasks: Marked(0), observe: () };
    assert_eq!(many.run(&table, &mut state, start + AT_MOST, &stop), Ended::Stopped);
}

/// A calendar, and a task in its gaps.
fn loops_and_tables() {
    let units = CalendarBuilder::new(Period::from_ns(2_000_000).expect("positive"))
        .unit(Unit::new("read", Duration::from_micros(100)).deadline(Duration::from_micros(1_500)))
        .unit(
            Unit::new("write", Duration::from_micros(100))
                .after("read", Duration::from_micros(700))
                .deadline(Duration::from_micros(1_000)),
        )
        .build()
        .expect("a calendar");
    let task = Task::every("log", Period::ratio(3_000_000, 1).expect("in range"))
        .budget(Duration::from_micros(50));
    let periodic = Periodic::new().task(task).build().expect("a plan");
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
    let stop = AtomicBool::new(false);
    let mut many = Many { clock, wait: Sleep, tasks: Marked(0), observe: () };
    assert_eq!(many.obey(&mut schedule, start + AT_MOST, &stop), Ended::Stopped);
}

/// A task on the grid of a reference, whose map bends meanwhile.
fn followed() {
    let reference = Reference::Callback(Box::new(|| {
        let ns = now_ns(ClockId::Monotonic);
        let reference = Instant::from_ns(ns + ns / 1_000_000 * 50);
        Some(ClockReading::new(Instant::from_ns(ns), reference, Span::ZERO))
    }));
    let follow = Follow::new(reference).every(Span::from_ms(5), Span::from_ms(2));
    let follower = follow.start().expect("readable");
    let task = Task::every("fast", Period::ratio(1_000_000, 1).expect("in range"));
    let plan = Periodic::new().task(task).build().expect("a plan");
    let (table, mut storage) = (plan.table(Instant::from_ns(0)), plan.storage());
    let mut clock = follower.clock();
    let start = clock.now();
    let mut state = TableState::begin(&table, storage.lend(), start).expect("its own storage");
    let stop = AtomicBool::new(false);
    let mut many = Many { clock, wait: Sleep, tasks: Marked(0), observe: () };
    assert_eq!(many.run(&table, &mut state, start + AT_MOST, &stop), Ended::Stopped);
}

/// Marks its second cycle, and the first one after all changes, which stops the loop.
struct MarkedChanges<'m> {
    cycles: u64,
    seen: &'m AtomicU64,
    done: &'m AtomicBool,
    stop: &'m AtomicBool,
}

impl Dispatch for MarkedChanges<'_> {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        self.cycles += 1;
        let is_changed = self.done.load(Ordering::Acquire) && self.cycles >= CYCLES;
        let over = is_changed && !self.stop.load(Ordering::Relaxed);
        if self.cycles == 2 || over {
            let _marked = threads::usage();
        }
        self.stop.fetch_or(over, Ordering::Relaxed);
        self.seen.store(self.cycles, Ordering::Release);
        Flow::Continue
    }
}

/// A loop whose tasks another thread changes all the time.
fn changed() {
    let task =
        |name: &str, ms: u64| Task::every(name, Period::ratio(ms * 1_000_000, 1).expect("fine"));
    let steady = Periodic::new().task(task("steady", 1));
    let (first, epoch) = (steady.build().expect("a plan"), Instant::from_ns(0));
    let (seen, turns) = (AtomicU64::new(0), AtomicU64::new(0));
    let (done, stop, handover) = (AtomicBool::new(false), AtomicBool::new(false), Handover::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while seen.load(Ordering::Acquire) < 5 {
                std::thread::yield_now();
            }
            let mut plan = first.clone();
            for turn in 0..20 {
                let guest = task("guest", 2);
                let tasks = if turn % 2 == 0 { steady.clone().task(guest) } else { steady.clone() };
                let next = tasks.build_after(&plan).expect("a plan");
                plan = next.plan.clone();
                handover.publish(Change::new(next, epoch, ())).expect("taken");
            }
            done.store(true, Ordering::Release);
        });
        let mut clock = MachineClock::best();
        let from = clock.now();
        let mut running = RunningPlan::new(first.clone(), epoch, from);
        let tasks = MarkedChanges { cycles: 0, seen: &seen, done: &done, stop: &stop };
        let mut many = Many { clock, wait: Sleep, tasks, observe: () };
        let end = from + AT_MOST;
        let run = LoopRun { from, end, stop: &stop, turns: &turns };
        assert_eq!(handover.run(&mut many, &mut running, &run), Ended::Stopped);
    });
}

/// The place of the loop that waits adaptively among those of [`traced`].
const ADAPTIVE: usize = 4;

/// The body of the traced child.
fn traced() {
    loops_and_tables();
    followed();
    tasks(Sleep);
    changed();
    // Last: where wakes are late it learns to spin all the time, and calls nothing.
    tasks(Adaptive::new(Target::of(Period::from_ns(1_000_000).expect("positive"))));
}

#[test]
fn the_loop_of_many_tasks_makes_no_system_call_but_its_sleep() {
    if std::env::var_os(CHILD).is_some() {
        return traced();
    }
    if !skip::need_program("strace") {
        return;
    }
    let log = std::env::temp_dir().join(format!("punctual-many-{}.strace", std::process::id()));
    let out = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_loop_of_many_tasks_makes_no_system_call_but_its_sleep"])
        .env(CHILD, "1")
        .output()
        .expect("strace starts");
    let text = fs::read_to_string(&log).unwrap_or_default();
    let _gone = fs::remove_file(&log);
    if !skip::need("the right to trace (ptrace)", out.status.code() == Some(0) || !text.is_empty())
    {
        return;
    }
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let child = text
        .lines()
        .find(|line| line.contains(MARK))
        .and_then(|line| line.split_whitespace().next())
        .expect("the child marks its loop");
    let calls: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(' ').filter(|(tid, _)| *tid == child))
        .map(|(_, call)| call.trim_start())
        // The second half of a call in which another thread had its turn.
        .filter(|call| !call.starts_with("<... "))
        .map(|call| call.split(['(', ' ']).next().unwrap_or(call))
        .collect();
    let marks: Vec<usize> = (0..calls.len()).filter(|&at| calls[at] == MARK).collect();
    assert_eq!(marks.len(), 10, "five loops, begun and ended");
    for (at, ends) in marks.chunks(2).enumerate() {
        let within = &calls[ends[0] + 1..ends[1]];
        assert!(within.len() > 20 || at == ADAPTIVE, "loop {at}: {within:?}");
        let others: Vec<_> = within.iter().filter(|call| !ALLOWED.contains(call)).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
