//! Schedules: when one is left to be changed, and that a warm-up is a turn of the same kind.

use std::vec::Vec;

use super::*;
use crate::calendar::TaskProgress;
use crate::dispatch::warm_up::{OneTask, table};
use crate::table::{Mask, PeriodClass, PhaseGroup, Slot};
use crate::time::Period;

/// A task that is released every 500 µs and ends the loop when it overruns; its budget is 20 µs.
const SLOT: Slot = Slot {
    class: 0,
    run: 0,
    deadline_ns: u64::MAX,
    budget_ns: 20_000,
    start_ns: u64::MAX,
    policy: OnOverrun::Stop,
};

fn every_500_us(classes: &[PeriodClass; 1]) -> Table<'_> {
    const RUNS: &[PhaseGroup] = &[PhaseGroup { phase_ns: 0, masks: (0, 1) }];
    const MASKS: &[Mask] = &[Mask { word: 0, bits: 1 }];
    let epoch = Instant::from_ns(0);
    Table { epoch, classes, runs: RUNS, masks: MASKS, slots: &[SLOT] }
}

fn class() -> [PeriodClass; 1] {
    let period = Period::from_ns(500_000).expect("in range");
    [PeriodClass { period, runs: (0, 1), moves: false }]
}

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

#[test]
fn it_is_left_with_enough_idle_time_or_after_a_poll_in_any_case() {
    let (request, idles) = (AtomicU64::new(0), AtomicU64::new(0));
    let classes = class();
    let table = every_500_us(&classes);
    let mut storage = OneTask::default();
    let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
    let mut all =
        Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_us(100));
    assert!(matches!(all.step::<false, true>(at(0)), Decision::Run(_)));
    assert_eq!(idles.load(Ordering::Relaxed), 0);
    assert_eq!(all.step::<false, true>(at(20)), Decision::Idle(at(120)), "no longer than a poll");
    assert_eq!(all.step::<false, true>(at(450)), Decision::Idle(at(500)));
    assert_eq!(idles.load(Ordering::Relaxed), 2);
    request.store(60_000, Ordering::Relaxed);
    assert_eq!(all.step::<false, true>(at(450)), Decision::Idle(at(500)), "too little time");
    assert!(matches!(all.step::<false, true>(at(500)), Decision::Run(_)));
    assert!(!all.left());
    assert_eq!((all.step::<false, true>(at(501)), all.left()), (NEVER, true));
    assert_eq!(all.never_ran(0, at(5_000)), None, "the loop goes on");

    // A task that is due at each step keeps the loop busy.
    let mut storage = OneTask::default();
    let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
    let mut busy =
        Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_us(900));
    assert!(matches!(busy.step::<false, true>(at(0)), Decision::Run(_)));
    assert!(matches!(busy.step::<false, true>(at(500)), Decision::Run(_)));
    assert_eq!((busy.step::<false, true>(at(1_000)), busy.left()), (NEVER, true), "always busy");
}

#[test]
fn a_schedule_to_be_changed_runs_what_it_holds() {
    let (request, idles) = (AtomicU64::new(0), AtomicU64::new(0));
    let classes = class();
    let table = every_500_us(&classes);
    let mut storage = OneTask::default();
    let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
    let mut all =
        Schedule::of_table(&table, &mut state).leave_on(&request, &idles, Span::from_ms(100));
    assert_eq!(
        (all.coming(), all.ranks(), all.policy::<false, true>(0)),
        (Some(0), 1, OnOverrun::Stop)
    );
    let Decision::Run(job) = all.step::<false, true>(at(0)) else { panic!("there is a job") };
    let in_time = all.finish::<false, true>(&job, at(0), at(1), Flow::Continue);
    assert_eq!((in_time, all.overran(&job, in_time)), Default::default());
    let late = all.finish::<false, true>(&job, at(0), at(600), Flow::Continue);
    assert!(all.overran(&job, late));
    let missed = all.never_ran(0, at(1_400)).expect("one at 500, one at 1 000");
    assert_eq!((missed.first, missed.count), (1, 2));

    // A warm-up reads a request of its own, and polls as often.
    for (poll, idle) in [(Span::from_ms(100), at(100_300)), (Span::from_us(100), at(400))] {
        let mut storage = OneTask::default();
        let mut state = TableState::begin(&table, storage.lend(), at(0)).expect("its own storage");
        let request = AtomicU64::new(1);
        let all = Schedule::of_table(&table, &mut state).leave_on(&request, &idles, poll);
        all.warm_up(at(300), |warm| {
            assert!(matches!(warm.step::<false, true>(at(300)), Decision::Run(_)));
            assert_eq!(warm.step::<false, true>(at(300)), Decision::Idle(idle));
        });
    }
}

/// The steps of a turn at its instant, until there is nothing to do.
fn steps<const UNITS: bool, const TASKS: bool>(
    all: &Schedule<'_, '_>,
    now: Instant,
) -> Vec<Decision> {
    let mut steps = Vec::new();
    all.warm_up(now, |warm| {
        loop {
            let step = warm.step::<UNITS, TASKS>(now);
            steps.push(step);
            let Decision::Run(job) = step else { return };
            let overruns = warm.finish::<UNITS, TASKS>(&job, now, now, Flow::Continue);
            assert_eq!((overruns, warm.overran(&job, overruns)), Default::default());
        }
    });
    steps
}

#[test]
fn a_warm_up_has_one_task_that_is_due_and_then_idles() {
    let now = Instant::from_ns(1_234_567);
    let (table, calendar) = (table(now), calendar::warm_up::calendar(now));
    for kind in 0..3 {
        let (mut storage, mut progress) = (OneTask::default(), [TaskProgress::default()]);
        let mut state = TableState::begin(&table, storage.lend(), now).expect("its own storage");
        let mut units =
            calendar::CalendarState::begin(&calendar, &mut progress, now).expect("its own storage");
        let steps = match kind {
            0 => steps::<false, true>(&Schedule::of_table(&table, &mut state), now),
            1 => steps::<true, false>(&Schedule::of_calendar(&calendar, &mut units), now),
            _ => steps::<true, true>(
                &Schedule::of_calendar(&calendar, &mut units).with_table(
                    &table,
                    &mut state,
                    Span::ZERO,
                ),
                now,
            ),
        };
        assert!(matches!(steps[0], Decision::Run(Job { rank: 0, release, missed: 0, .. })
            if release == now));
        assert!(matches!(steps[1], Decision::Idle(until) if until > now));
        assert_eq!(steps.len(), 2);
    }
}
