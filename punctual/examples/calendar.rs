//! A calendar and periodic tasks in one loop, for two seconds:
//! `cargo run --release -p punctual --example calendar`.
//!
//! Three units in a frame of a millisecond (read, control, write) keep their places; a filter of
//! two units breaks off and goes on; a log and a watch run where they fit in between.

use std::io::Write;
use std::sync::atomic::AtomicBool;

use punctual::calendar::{Beside, Calendar, Unit};
use punctual::clocks::MachineClock;
use punctual::core::calendar::State as UnitState;
use punctual::core::clock::Clock;
use punctual::core::dispatch::{Job, Overruns, State};
use punctual::core::executive::many::{Cycle, Dispatch, Flow, Many, Observe};
use punctual::core::time::{Instant, Period, Span};
use punctual::core::wait::{Adaptive, adaptive::Target};
use punctual::os::scheduler::SchedPolicy;
use punctual::periodic::{Periodic, Task};
use punctual::session;

/// Work that takes a while: the filter is done after three units, one and a half frames.
struct Work {
    sum: f64,
}

impl Dispatch for Work {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        for k in 0..200 {
            self.sum = (self.sum + f64::from(k)).sqrt();
        }
        let filter = rank == FILTER;
        if filter && cycle.part < 2 { Flow::Break } else { Flow::Continue }
    }
}

/// The rank of the filter: the tasks are numbered as they come in the frame.
const FILTER: usize = 2;

/// The worst lateness of each rank.
struct Worst(Vec<Span>);

impl Observe for Worst {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        let worst = &mut self.0[job.rank];
        *worst = (*worst).max(start - job.release);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frame = Period::from_ns(1_000_000).ok_or("a frame of nothing")?;
    let unit = |name: &str| Unit::new(name, 60_000).deadline_ns(150_000);
    let units = Calendar::new(frame)
        .unit(unit("read"))
        .unit(unit("control").after("read", 40_000))
        .unit(unit("filter 1").after("control", 40_000).of("filter"))
        .unit(unit("write").after("filter 1", 100_000))
        .unit(unit("filter 2").after("write", 100_000).of("filter"))
        .build()?;
    let task = |name: &str, hertz| Period::hz(hertz).map(|period| Task::new(name, period));
    let periodic = Periodic::new()
        .task(task("watch", 300).ok_or("no such period")?.budget_ns(30_000))
        .task(task("log", 70).ok_or("no such period")?.budget_ns(200_000))
        .build()?;
    let both = Beside::new(&units, &periodic)?;

    let _process = session::Process::enter();
    let _thread = session::Thread::enter(None, SchedPolicy::Fifo(50));
    let mut clock = MachineClock::best();
    let from = clock.now() + Span::from_ms(5);
    let (places, table) =
        (units.calendar(Instant::from_ns(0)), periodic.table(Instant::from_ns(0)));
    let (mut progress, mut storage) = (units.storage(), periodic.storage());
    let mut unit_state = UnitState::begin(&places, &mut progress, from).ok_or("no room")?;
    let mut state = State::begin(&table, storage.lend(), from).ok_or("no room")?;
    let mut schedule = both.schedule((&places, &mut unit_state), (&table, &mut state));
    let ranks = units.tasks() + periodic.tasks();
    let aim = Target::of(Period::from_ns(200_000).ok_or("a period of nothing")?);
    let mut many = Many {
        clock,
        wait: Adaptive::new(aim),
        tasks: Work { sum: 0.0 },
        observe: Worst(vec![Span::ZERO; ranks]),
    };
    let ended = many.obey(&mut schedule, from + Span::from_ms(2_000), &AtomicBool::new(false));

    let mut out = std::io::stdout().lock();
    writeln!(out, "{ended:?}")?;
    for task in 0..units.tasks() {
        let did = unit_state.counters(task);
        let worst = many.observe.0[task];
        writeln!(
            out,
            "{:8} units {} breaks {} cycles missed {} units missed {} late at most {worst}",
            units.name(task),
            did.ran,
            did.breaks,
            did.missed,
            did.missed_units
        )?;
    }
    for rank in 0..periodic.tasks() {
        let did = state.counters(rank);
        let worst = many.observe.0[units.tasks() + rank];
        let name = periodic.name(rank);
        writeln!(out, "{name:8} cycles {} missed {} late at most {worst}", did.ran, did.missed)?;
    }
    Ok(())
}
