//! What is refused, and how a calendar is laid out.

use super::*;
use crate::periodic::{Period, Periodic, Task};
use punctual_core::time::{Instant, Span};
use std::time::Duration;

fn frame(ns: u64) -> Period {
    Period::from_ns(ns).expect("positive")
}

fn said(calendar: &CalendarBuilder) -> String {
    calendar.build().expect_err("refused").to_string()
}

fn of(units: impl IntoIterator<Item = Unit>) -> CalendarBuilder {
    units.into_iter().fold(CalendarBuilder::new(frame(1_000)), CalendarBuilder::unit)
}

#[test]
fn each_refusal_names_what_it_is_about() {
    assert_eq!(said(&of([])), "no unit was given: a calendar needs at least one");
    assert_eq!(
        said(&of([Unit::new("", Duration::from_nanos(1))])),
        "a unit's name must not be empty"
    );
    assert_eq!(
        said(&of([Unit::new("a", Duration::ZERO)])),
        "unit \"a\": budget must be greater than 0"
    );
    let twice = of([
        Unit::new("a", Duration::from_nanos(1)),
        Unit::new("a", Duration::from_nanos(1)).at(Duration::from_nanos(5)),
    ]);
    assert_eq!(said(&twice), "two units are named \"a\"");
    let outside = of([Unit::new("a", Duration::from_nanos(101)).at(Duration::from_nanos(900))]);
    assert_eq!(said(&outside), "unit \"a\" at 900 to 1001 ns must lie within the frame of 1000 ns");
    let far = of([Unit::new("a", Duration::from_nanos(1)).at(Duration::MAX)]);
    assert!(said(&far).ends_with("must lie within the frame of 1000 ns"));
    let before = of([Unit::new("a", Duration::from_nanos(100)).deadline(Duration::from_nanos(99))]);
    let deadline = "from its budget of 100 ns to the frame of 1000 ns (got 99 ns)";
    assert!(said(&before).contains(deadline), "{}", said(&before));
    assert!(
        said(&of(
            [Unit::new("a", Duration::from_nanos(100)).deadline(Duration::from_nanos(1_001))]
        ))
        .contains("1001 ns")
    );
    let over = of([
        Unit::new("b", Duration::from_nanos(100)).at(Duration::from_nanos(250)),
        Unit::new("a", Duration::from_nanos(251)),
    ]);
    assert_eq!(said(&over), "unit \"a\" at 0 to 251 ns and unit \"b\" at 250 to 350 ns overlap");
    let unknown = of([Unit::new("a", Duration::from_nanos(1)).after("b", Duration::ZERO)]);
    assert_eq!(said(&unknown), "unit \"a\" is after \"b\", and no unit has that name");
    let circle = of([
        Unit::new("a", Duration::from_nanos(1)).after("b", Duration::ZERO),
        Unit::new("b", Duration::from_nanos(1)).after("a", Duration::ZERO),
    ]);
    assert_eq!(said(&circle), "unit \"a\" is after itself");
    assert!(
        said(&of([Unit::new("a", Duration::from_nanos(1)).on_overrun(OnOverrun::Delay)]))
            .contains("would move its place")
    );
    let two = |one, other| {
        let second = Unit::new("b", Duration::from_nanos(1))
            .at(Duration::from_nanos(5))
            .of("t")
            .on_overrun(other);
        of([Unit::new("a", Duration::from_nanos(1)).of("t").on_overrun(one), second])
    };
    assert!(two(OnOverrun::Stop, OnOverrun::Stop).build().is_ok());
    let differ = "units \"a\" and \"b\" of task \"t\" have different policies";
    assert_eq!(said(&two(OnOverrun::Stop, OnOverrun::Skip)), differ);
    let third = CalendarBuilder::new(Period::hz(3).expect("in range"))
        .unit(Unit::new("a", Duration::from_nanos(1)));
    assert!(said(&third).contains("1000000000/3 ns"));
    let many = (0..=UNITS_MAX).map(|n| Unit::new(n.to_string(), Duration::from_nanos(1)));
    assert_eq!(said(&of(many)), "a calendar has at most 65536 units (got 65537)");
}

#[test]
fn units_are_laid_out_in_the_order_of_the_frame() {
    let plan = of([
        Unit::new("write", Duration::from_nanos(50))
            .after("compute", Duration::from_nanos(100))
            .of("control")
            .start_within(Duration::from_nanos(7)),
        Unit::new("compute", Duration::from_nanos(200))
            .after("read", Duration::from_nanos(10))
            .of("control")
            .on_overrun(OnOverrun::Terminate),
        Unit::new("read", Duration::from_nanos(40))
            .at(Duration::from_nanos(100))
            .deadline(Duration::from_nanos(300)),
    ])
    .build()
    .expect("a plan");
    let laid: Vec<_> = plan.units().map(|(name, unit)| (name, unit.ready_ns, unit.task)).collect();
    assert_eq!(laid, [("read", 100, 0), ("compute", 150, 1), ("write", 450, 1)]);
    assert_eq!((plan.tasks(), plan.name(0), plan.name(1)), (2, "read", "control"));
    let deadlines: Vec<_> = plan.units().map(|(_, unit)| unit.deadline_ns).collect();
    assert_eq!(deadlines, [400, 350, 500]);
    assert_eq!(plan.longest_gap_ns(), 600);
    assert!((plan.load() - 0.29).abs() < 1e-9);
    assert_eq!(plan.calendar(Instant::from_ns(3)).units(), 3);
    assert_eq!(plan.storage().len(), 2);
}

#[test]
fn a_long_chain_is_laid_out_whichever_end_comes_first() {
    let chain = |n: u64| {
        let first = Unit::new("0", Duration::from_nanos(1));
        let others = (1..n).map(|k| {
            Unit::new(k.to_string(), Duration::from_nanos(1))
                .after((k - 1).to_string(), Duration::ZERO)
        });
        let mut all: Vec<Unit> = std::iter::once(first).chain(others).collect();
        all.reverse();
        of(all)
    };
    let plan = chain(1_000).build().expect("it fits exactly");
    assert!(plan.units().enumerate().all(|(k, (_, unit))| unit.ready_ns == k as u64));
    assert_eq!(plan.longest_gap_ns(), 0);
    assert!(said(&chain(1_001)).contains("must lie within the frame"));
}

fn task(name: &str, period_ns: u64) -> Task {
    Task::every(name, Period::ratio(period_ns, 1).expect("in range"))
}

#[test]
fn periodic_tasks_fit_between_the_units_or_are_refused() {
    let calendar = of([
        Unit::new("a", Duration::from_nanos(100)),
        Unit::new("b", Duration::from_nanos(100)).at(Duration::from_nanos(500)),
    ])
    .build();
    let calendar = calendar.expect("a plan");
    let beside = |task: Task, gap_ns: i64| {
        let periodic = Periodic::new().task(task).build().expect("a plan");
        let combined = Combination::with_gap(&calendar, &periodic, Span::from_ns(gap_ns));
        combined.map(|combined| combined.name(2).to_owned()).map_err(|why| why.to_string())
    };
    assert_eq!(beside(task("c", 2_000).budget(Duration::from_nanos(400)), 0), Ok("c".to_owned()));
    let gap = "task \"c\": a budget of 400 ns fits nowhere between the units; the longest gap is";
    assert_eq!(
        beside(task("c", 2_000).budget(Duration::from_nanos(400)), 1),
        Err(format!("{gap} 399 ns"))
    );
    let negative = beside(task("c", 2_000).budget(Duration::from_nanos(1)), -1);
    assert_eq!(negative, Err("gap before each unit must not be negative (got -1 ns)".to_owned()));
    assert!(beside(task("c", 2_000), 0).is_err_and(|why| why.contains("no budget")));
    assert!(
        beside(task("b", 2_000).budget(Duration::from_nanos(1)), 0)
            .is_err_and(|why| why.contains("both named"))
    );
    let full = beside(task("c", 400).budget(Duration::from_nanos(330)), 0);
    assert!(full.is_err_and(|why| why.contains("1.025 of the CPU")));
}
