//! The lateness of the units of a calendar:
//! `cargo bench -p punctual --bench calendar [-- SECONDS]`.
//!
//! Four units in a frame of a millisecond, on the quiet phase, alone and beside periodic tasks that
//! fill gaps, with three ways to wait, in interleaved blocks of a second. Asserts nothing.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_core::calendar::CalendarState;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Flow, Job, Observe, Overruns};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many, Schedule};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Spin, Strategy};
use punctual_engine::calendar::{CalendarBuilder, CalendarPlan, Combination, Unit};
use punctual_engine::clocks::MachineClock;
use punctual_engine::periodic::{self, Periodic, Task};
use punctual_engine::{quiet, session};
use punctual_os::affinity;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;

const FRAME_NS: u64 = 1_000_000;
const BLOCK: Span = Span::from_ms(1_000);
const WAYS: [&str; 3] = ["adaptive", "fixed 125 µs", "spin 190 µs"];

/// Tasks that keep the CPU for a part of their budget.
struct Busy;

impl Dispatch for Busy {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        let end = now_ns(ClockId::Monotonic) + 5_000;
        while now_ns(ClockId::Monotonic) < end {
            std::hint::spin_loop();
        }
        Flow::Continue
    }
}

/// Start − ready of each unit, and how often a periodic task ran.
struct Seen {
    units: usize,
    late_ns: Vec<i64>,
    between: u64,
    missed: u64,
    cpu_ns: u64,
    wall_ns: u64,
}

impl Observe for &mut Seen {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        if job.rank >= self.units {
            self.between += 1;
        } else if self.late_ns.len() < self.late_ns.capacity() {
            self.late_ns.push((start - job.release).as_ns());
        }
    }
}

fn calendar() -> CalendarPlan {
    let unit = |name: &str, ready_us: u64| {
        Unit::new(name, Duration::from_micros(30))
            .at(Duration::from_micros(ready_us))
            .deadline(Duration::from_micros(200))
    };
    CalendarBuilder::new(Period::from_ns(FRAME_NS).expect("positive"))
        .unit(unit("read", 100))
        .unit(unit("control", 350))
        .unit(unit("write", 600))
        .unit(unit("check", 850))
        .build()
        .expect("no overlap")
}

fn tasks() -> periodic::Plan {
    let task = |name: &str, hertz| {
        Task::every(name, Period::hz(hertz).expect("in range")).budget(Duration::from_micros(40))
    };
    Periodic::new().task(task("watch", 700)).task(task("log", 90)).build().expect("a plan")
}

fn strategy(way: usize) -> Strategy {
    // A wait is from one unit to the next: a quarter of the frame.
    let gap = Period::from_ns(FRAME_NS / 4).expect("positive");
    match way {
        0 => Strategy::Adaptive(Adaptive::new(Target { budget: 0.2, ..Target::of(gap) })),
        1 => Strategy::Spin(Spin::new(Spin::FIXED)),
        // Nearly the whole gap: the kernel leaves a real-time task 95 % of the CPU.
        _ => Strategy::Spin(Spin::new(Span::from_us(190))),
    }
}

fn block(
    wait: &mut Strategy,
    seen: &mut Seen,
    clock: &mut MachineClock,
    epoch: Instant,
    both: bool,
) {
    let (units, periodic) = (calendar(), tasks());
    let beside = Combination::new(&units, &periodic).expect("they fit");
    clock.discipline();
    let from = clock.now() + Span::from_ms(2);
    let (places, table) = (units.calendar(epoch), periodic.table(epoch));
    let (mut progress, mut storage) = (units.storage(), periodic.storage());
    let mut unit_state = CalendarState::begin(&places, &mut progress, from).expect("its own");
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own");
    let before = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
    let mut many = Many { clock: clock.clone(), wait, tasks: Busy, observe: &mut *seen };
    let (end, stop) = (from + BLOCK, AtomicBool::new(false));
    let mut schedule = if both {
        beside.schedule((&places, &mut unit_state), (&table, &mut state))
    } else {
        Schedule::of_calendar(&places, &mut unit_state)
    };
    let _ended = many.obey(&mut schedule, end, &stop);
    seen.cpu_ns += now_ns(ClockId::ThreadCpu) - before.0;
    seen.wall_ns += now_ns(ClockId::Monotonic) - before.1;
    seen.missed += (0..units.tasks()).map(|t| unit_state.counters(t).missed_units).sum::<u64>();
}

fn main() -> std::io::Result<()> {
    // cargo bench passes --bench along.
    let rounds_arg = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok());
    let rounds = rounds_arg.unwrap_or(60).div_ceil(2 * WAYS.len()).max(2);
    let _process = session::ProcessSession::enter();
    let cpu = affinity::get(0).ok().and_then(|cpus| cpus.iter().last());
    let thread = session::ThreadSession::enter(cpu, SchedPolicy::Fifo(90));
    let mut clock = MachineClock::best();
    let gaps = quiet::listen(&mut clock, Span::from_ms(300), &AtomicBool::new(false));
    let place = quiet::place(&gaps, Period::from_ns(FRAME_NS / 4).expect("positive"));
    // The first unit is 100 µs into the frame.
    let epoch_ns = place.map_or(0, |at| (at.phase_ns + FRAME_NS - 100_000) % FRAME_NS);
    let mut out = std::io::stdout().lock();
    writeln!(out, "cpu {cpu:?}, policy {:?}, quiet place {place:?}", thread.policy())?;
    for both in [false, true] {
        let fresh = || Seen {
            units: 4,
            late_ns: Vec::with_capacity(rounds * 4_100),
            between: 0,
            missed: 0,
            cpu_ns: 0,
            wall_ns: 0,
        };
        let mut ways: Vec<_> = (0..WAYS.len()).map(|way| (strategy(way), fresh())).collect();
        for round in 0..=rounds {
            for (wait, seen) in &mut ways {
                block(wait, seen, &mut clock, Instant::from_ns(epoch_ns), both);
                if round == 0 {
                    // The first block of each is for learning.
                    *seen = fresh();
                }
            }
        }
        writeln!(out, "{}", if both { "beside periodic tasks" } else { "units alone" })?;
        for (name, (_, seen)) in WAYS.iter().zip(&mut ways) {
            show(&mut out, name, seen)?;
        }
    }
    Ok(())
}

fn show(out: &mut impl Write, name: &str, seen: &mut Seen) -> std::io::Result<()> {
    seen.late_ns.sort_unstable();
    let n = seen.late_ns.len();
    let at = |p: f64| seen.late_ns[((n as f64 * p) as usize).min(n - 1)];
    writeln!(
        out,
        "  {name:13} n {n} p50 {} ns p90 {} ns p99 {} ns p99.9 {} ns max {} ns, missed {}, tasks \
         between {}, cpu {:.3}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        seen.missed,
        seen.between,
        seen.cpu_ns as f64 / seen.wall_ns as f64
    )
}
