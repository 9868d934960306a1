//! A calendar on the loop, in a simulated clock: against a model that looks at each nanosecond.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use punctual_core::calendar::CalendarState;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many, Schedule};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Sleep;
use punctual_engine::calendar::{CalendarBuilder, CalendarPlan, Combination, Unit};
use punctual_engine::periodic::{self, OnOverrun, Periodic, Task};

const FRAME_NS: u64 = 1_000;

/// A clock that stands still but for sleeps and tasks.
struct Still<'c>(&'c Cell<u64>);

impl Clock for Still<'_> {
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

/// Execution times of the runs in order, ns, and true for one that breaks off.
type Scripted = Vec<(u64, bool)>;

fn nth(script: &Scripted, n: usize) -> (u64, Flow) {
    let (ns, breaks) = script[n % script.len()];
    (ns, if breaks { Flow::Break } else { Flow::Continue })
}

/// A run of a unit or a task, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    rank: usize,
    cycle: u64,
    part: u32,
    start: u64,
    finish: u64,
}

struct Script<'c> {
    now: &'c Cell<u64>,
    script: &'c Scripted,
    ran: Vec<Ran>,
}

impl Dispatch for Script<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let (ns, flow) = nth(self.script, self.ran.len());
        let start = self.now.get();
        assert_eq!(cycle.lateness.as_ns(), (start - cycle.release.as_ns()).cast_signed());
        self.now.set(start + ns);
        self.ran.push(Ran { rank, cycle: cycle.n, part: cycle.part, start, finish: start + ns });
        flow
    }
}

fn run(schedule: &mut Schedule<'_, '_>, script: &Scripted, end: u64) -> (Ended, Vec<Ran>) {
    let now = Cell::new(0);
    let mut many = Many {
        clock: Still(&now),
        wait: Sleep,
        tasks: Script { now: &now, script, ran: Vec::new() },
        observe: (),
    };
    let ended = many.obey(schedule, Instant::from_ns(end), &AtomicBool::new(false));
    (ended, many.tasks.ran)
}

/// A unit to be laid out, ns.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Between the unit before and this one.
    gap: u64,
    budget: u64,
    task: u8,
}

/// These units, as many as fit into the frame.
fn calendar(parts: &[Part], deadline_ns: u64) -> CalendarPlan {
    let mut builder = CalendarBuilder::new(Period::from_ns(FRAME_NS).expect("positive"));
    let mut at = 0;
    for (n, &Part { gap, budget, task }) in parts.iter().enumerate() {
        if at + gap + budget > FRAME_NS {
            break;
        }
        let deadline = (budget + deadline_ns).min(FRAME_NS);
        let unit = Unit::new(n.to_string(), Duration::from_nanos(budget))
            .at(Duration::from_nanos(at + gap))
            .deadline(Duration::from_nanos(deadline));
        builder = builder.unit(unit.of(format!("task {}", task % 3)));
        at += gap + budget;
    }
    builder.build().expect("laid out without overlap")
}

fn alone(plan: &CalendarPlan, script: &Scripted, end: u64) -> Vec<Ran> {
    let table = plan.calendar(Instant::from_ns(0));
    let mut storage = plan.storage();
    let mut state =
        CalendarState::begin(&table, &mut storage, Instant::from_ns(0)).expect("its own storage");
    run(&mut Schedule::of_calendar(&table, &mut state), script, end).1
}

/// The tasks between the units: period, budget; the shortest period is the most urgent.
fn tasks(parts: &[(u64, u64)]) -> Option<periodic::Plan> {
    let task = |(n, &(period, budget)): (usize, &(u64, u64))| {
        let period = Period::ratio(period, 1).expect("in range");
        Task::every(format!("periodic {n}"), period)
            .budget(Duration::from_nanos(budget))
            .at(Duration::ZERO)
    };
    parts.iter().enumerate().map(task).fold(Periodic::new(), Periodic::task).build().ok()
}

/// A place of a unit.
#[derive(Clone, Copy)]
struct Place {
    frame: u64,
    /// From here on the unit may start, ns.
    ready: u64,
    task: usize,
}

/// Looks at each nanosecond: which unit's place it is, who is released, who fits.
struct Slow<'p> {
    calendar: &'p CalendarPlan,
    periodic: &'p [(u64, u64)],
    guard: u64,
    /// By task of the calendar: done with this frame, and the cycle that was broken off.
    done: Vec<Option<u64>>,
    broken: Vec<Option<(u64, u32)>>,
    waiting: Vec<Option<u64>>,
}

impl Slow<'_> {
    /// The next place at or after `from` that its task has use for.
    fn next(&self, from: u64) -> Place {
        let mut places = (from / FRAME_NS..).flat_map(|frame| {
            self.calendar.units().map(move |(_, unit)| Place {
                frame,
                ready: frame * FRAME_NS + unit.ready_ns,
                task: unit.task as usize,
            })
        });
        let wanted = |&Place { frame, ready, task }: &Place| {
            let used = self.done[task] == Some(frame) && self.broken[task].is_none();
            ready >= from && !used
        };
        places.find(wanted).expect("endless")
    }

    fn run(&mut self, script: &Scripted, end: u64) -> Vec<Ran> {
        let units = self.calendar.tasks();
        let mut ran: Vec<Ran> = Vec::new();
        let mut until: Option<(u64, usize, Flow)> = None;
        let mut from = 0;
        let mut now = 0;
        // What was due before the end, and finds time at once, runs after it.
        loop {
            for (rank, &(period, _)) in self.periodic.iter().enumerate() {
                let runs = until.is_some_and(|(_, ending, _)| ending == units + rank);
                if now < end && now % period == 0 && !runs {
                    // The oldest that waits runs.
                    self.waiting[rank].get_or_insert(now / period);
                }
            }
            if let Some((at, rank, flow)) = until
                && at == now
            {
                until = None;
                let &Ran { cycle, part, .. } = ran.last().expect("it runs");
                if rank < units {
                    self.broken[rank] = (flow == Flow::Break).then_some((cycle, part + 1));
                }
            }
            if until.is_none() {
                let Place { frame, ready, task } = self.next(from);
                let fits = |ns: u64| now + ns + self.guard <= ready;
                let first = (0..self.periodic.len()).find(|&rank| self.waiting[rank].is_some());
                let turn = if ready == now && now < end {
                    from = now + 1;
                    let (cycle, part) = self.broken[task].unwrap_or((frame, 0));
                    self.done[task] = Some(frame);
                    Some((task, cycle, part))
                } else {
                    first.filter(|&rank| fits(self.periodic[rank].1)).and_then(|rank| {
                        self.waiting[rank].take().map(|cycle| (units + rank, cycle, 0))
                    })
                };
                if turn.is_none() && now >= end {
                    return ran;
                }
                if let Some((rank, cycle, part)) = turn {
                    let (ns, flow) = nth(script, ran.len());
                    ran.push(Ran { rank, cycle, part, start: now, finish: now + ns });
                    until = Some((now + ns, rank, flow));
                    // What takes no time is over before the next look.
                    if ns == 0 {
                        continue;
                    }
                }
            }
            now += 1;
        }
    }
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (0..150u64, 5..120u64, 0..3u8);
    prop::collection::vec(part.prop_map(|(gap, budget, task)| Part { gap, budget, task }), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn units_and_tasks_agree_with_a_look_at_each_nanosecond(
        units in parts(),
        periodic in prop::collection::vec((100..2_000u64, 5..60u64), 1..5),
        guard in 0..20u64,
        script in prop::collection::vec((1..=5u64, prop::bool::weighted(0.3)), 1..20),
    ) {
        let mut periodic = periodic;
        periodic.sort();
        periodic.dedup_by_key(|task| task.0);
        let plan = calendar(&units, 0);
        let Some(table) = tasks(&periodic) else { return Ok(()) };
        let gap = Span::from_ns(guard.cast_signed());
        let Ok(combination) = Combination::with_gap(&plan, &table, gap) else {
            return Ok(());
        };
        let zero = Instant::from_ns(0);
        let (places, tasks) = (plan.calendar(zero), table.table(zero));
        let (mut progress, mut storage) = (plan.storage(), table.storage());
        let mut unit_state = CalendarState::begin(&places, &mut progress, zero).expect("its own");
        let mut state = TableState::begin(&tasks, storage.lend(), zero).expect("its own");
        let mut schedule = combination.schedule((&places, &mut unit_state), (&tasks, &mut state));
        let (ended, ran) = run(&mut schedule, &script, 8 * FRAME_NS);
        let mut slow = Slow {
            calendar: &plan,
            periodic: &periodic,
            guard,
            done: vec![None; plan.tasks()],
            broken: vec![None; plan.tasks()],
            waiting: vec![None; periodic.len()],
        };
        let model = slow.run(&script, 8 * FRAME_NS);
        prop_assert_eq!(ended, Ended::Finished);
        prop_assert_eq!(&ran, &model);
        // All kept their budgets: each unit began on time, whatever else there was to do.
        let late = |&&Ran { rank, start, .. }: &&Ran| rank < plan.tasks()
            && !plan.units().any(|(_, unit)| unit.ready_ns == start % FRAME_NS);
        prop_assert_eq!(ran.iter().find(late), None);
    }

    #[test]
    fn what_is_late_starts_when_the_one_before_is_over_and_in_order(
        units in parts(),
        script in prop::collection::vec((0..400u64, Just(false)), 1..20),
        deadline in 0..1_000u64,
    ) {
        let plan = calendar(&units, deadline);
        let ran = alone(&plan, &script, 20 * FRAME_NS);
        let mut free = 0;
        let mut runs = ran.iter().peekable();
        let mut done = vec![None; plan.tasks()];
        for frame in 0..20 {
            for (_, unit) in plan.units() {
                let task = unit.task as usize;
                let start = free.max(frame * FRAME_NS + unit.ready_ns);
                let over = start >= frame * FRAME_NS + unit.deadline_ns;
                if over || done[task] == Some(frame) || start >= 20 * FRAME_NS {
                    continue;
                }
                done[task] = Some(frame);
                let &ran = runs.next().expect("it ran");
                let expected =
                    Ran { rank: task, cycle: frame, part: 0, start, finish: ran.finish };
                prop_assert_eq!(ran, expected);
                free = ran.finish;
            }
        }
        let rest = runs.find(|ran| ran.start < 20 * FRAME_NS);
        prop_assert_eq!(rest, None);
    }
}

#[test]
fn a_time_out_stops_everything_where_that_is_asked() {
    let unit = |name: &str, ready| {
        Unit::new(name, Duration::from_nanos(100))
            .at(Duration::from_nanos(ready))
            .deadline(Duration::from_nanos(900))
    };
    let plan = CalendarBuilder::new(Period::from_ns(FRAME_NS).expect("positive"))
        .unit(unit("culprit", 0).on_overrun(OnOverrun::Skip))
        .unit(unit("victim", 100).on_overrun(OnOverrun::Stop))
        .build()
        .expect("a plan");
    let ran = |script: &Scripted| {
        let table = plan.calendar(Instant::from_ns(0));
        let mut storage = plan.storage();
        let mut state =
            CalendarState::begin(&table, &mut storage, Instant::from_ns(0)).expect("its own");
        let (ended, ran) = run(&mut Schedule::of_calendar(&table, &mut state), script, 5_000);
        (ended, ran.len(), *state.counters(0), *state.counters(1))
    };
    // The culprit is timed out, the victim starts late and is not blamed.
    let (ended, n, culprit, victim) = ran(&vec![(150, false), (100, false)]);
    assert_eq!((ended, n), (Ended::Finished, 10));
    assert_eq!((culprit.over_budget, culprit.over_release, culprit.missed), (5, 5, 0));
    assert_eq!((victim.over_budget, victim.over_deadline, victim.ran), (0, 0, 5));
    // The same overrun of the one that stops.
    let (ended, n, ..) = ran(&vec![(100, false), (101, false)]);
    assert_eq!((ended, n), (Ended::Overran(1), 2));
    // Kept from running for a whole frame: its missed cycle ends it too.
    let (ended, n, ..) = ran(&vec![(100, false), (100, false), (1_950, false)]);
    assert_eq!((ended, n), (Ended::Overran(1), 3));
}

#[test]
fn what_never_idles_ends_all_the_same() {
    // Four times as long as there is time for; each as late as its deadline lets it be.
    let units = [0, 1, 2].map(|task| Part { gap: 0, budget: 50, task });
    let ran = alone(&calendar(&units, FRAME_NS), &vec![(400, false)], 20 * FRAME_NS);
    assert!(ran.iter().all(|ran| ran.start < 21 * FRAME_NS), "{ran:?}");
    let task = |name: &str, budget| {
        let period = Period::ratio(100, 1).expect("in range");
        Task::every(name, period)
            .budget(Duration::from_nanos(budget))
            .at(Duration::ZERO)
            .on_overrun(OnOverrun::Burst(9))
    };
    let tasks = Periodic::new().task(task("a", 90)).task(task("b", 90)).allow_overload();
    let plan = tasks.build().expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let mut state =
        TableState::begin(&table, storage.lend(), Instant::from_ns(0)).expect("its own");
    let mut schedule = Schedule::of_table(&table, &mut state);
    let (ended, ran) = run(&mut schedule, &vec![(90, false)], 10_000);
    assert_eq!(ended, Ended::Finished);
    // All releases before the end, and none after it, have run or are missed.
    for rank in 0..2 {
        let counters = state.counters(rank);
        assert_eq!(counters.ran + counters.missed, 100, "{rank}: {counters:?}");
        assert_eq!(counters.ran, ran.iter().filter(|ran| ran.rank == rank).count() as u64);
    }
}
