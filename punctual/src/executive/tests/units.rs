//! Units of a calendar in a simulated clock: how often they run, and what their counts mean.

use punctual_core::time::Span;
use punctual_engine::calendar::Unit;

use super::stops::{Simulated, ordinary};
use super::*;

/// Runs, with nothing late, units at 1 and 5 ms of a frame of 10 ms from this instant on; with
/// tasks of 10 and 5 ms beside them where `mixed`. How often each ran.
fn run_units(start_ns: u64, duration: Duration, mixed: bool) -> Vec<(u64, u64)> {
    let clock = Simulated::default();
    clock.now_ns.store(start_ns, Ordering::Relaxed);
    let unit = |name: &str, at| Unit::new(name, Duration::from_micros(500)).at(ms(at));
    let frame = Calendar::frame(Period::from_ns(10_000_000).expect("in range"));
    let frame = frame.unit(unit("read", 1), |_| ()).unit(unit("write", 5), |_| ());
    let thread = ordinary(WaitPolicy::sleep());
    let mut executive = Executive::builder().clock(clock).thread(thread).calendar(frame);
    if mixed {
        let plain = |name: &str, us| task(name, us).budget(Duration::from_micros(10));
        executive =
            executive.task(plain("slow", 10_000), |_| ()).task(plain("fast", 5_000), |_| ());
    }
    let (plan, _) = executive.build().expect("fine");
    let summary = plan.run_for(duration).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    summary.tasks.iter().map(|task| (task.counts.ran, task.counts.missed)).collect()
}

#[test]
fn the_time_of_a_calendar_begins_with_its_first_place_wherever_that_is_in_a_frame() {
    for start_us in (0..10_000).step_by(250) {
        let ran = |for_ms, mixed| run_units(1_000_000_000 + start_us * 1_000, ms(for_ms), mixed);
        assert_eq!(ran(30, false), [(3, 0), (3, 0)], "{start_us} us into a frame");
        let mut mixed = ran(30, true);
        mixed.sort_unstable();
        assert_eq!(mixed, [(3, 0), (3, 0), (3, 0), (6, 0)], "{start_us} us into a frame");
        // From the first place on: that of 35 ms later is no longer within.
        assert_eq!(ran(34, false), [(4, 0), (3, 0)], "{start_us} us into a frame");
    }
}

#[test]
fn units_that_were_scheduled_run_once_in_each_of_their_periods() {
    let unit = |name: &str, us| Unit::new(name, Duration::from_micros(us));
    let calendar = |frame: Calendar<'static>| {
        frame
            .unit(unit("read", 200).every(ms(2)).deadline(Duration::from_micros(600)), |_| ())
            .unit(unit("control", 500).every(ms(2)).after("read", ms(0)), |_| ())
            .unit(unit("log", 900).every(ms(5)), |_| ())
    };
    let (clock, frame) = at_a_second();
    let builder = Executive::builder().clock(clock).thread(ordinary(WaitPolicy::sleep()));
    let (plan, _) = builder.calendar(calendar(frame).scheduled()).build().expect("0.53 of the CPU");
    let summary = plan.run_for(ms(30)).expect("it starts");
    let ran = |name: &str| {
        let task = summary.tasks.iter().find(|task| task.name == name).expect(name);
        (task.counts.ran, task.counts.missed)
    };
    assert_eq!(["read", "control", "log"].map(ran), [(15, 0), (15, 0), (6, 0)], "{summary}");

    let (_, frame) = at_a_second();
    let refused = Executive::builder().calendar(calendar(frame)).build().expect_err("no places");
    assert!(refused.to_string().contains("must be scheduled"), "{refused}");
    let (_, frame) = at_a_second();
    let crowded = calendar(frame).unit(unit("all", 4_000).every(ms(5)), |_| ()).scheduled();
    let refused = Executive::builder().calendar(crowded).build().expect_err("4.3 of 4 ms");
    assert!(refused.to_string().contains("of the frame"), "{refused}");
}

/// On the machine's clock: more than the duration has room for is too many however late it is.
#[test]
fn a_process_is_released_within_the_duration_from_the_first_frame_on() {
    let frame = Calendar::frame(Period::from_ns(1_000_000_000).expect("in range"));
    let frame = frame.unit(Unit::new("unit", Duration::from_micros(500)).at(ms(0)), |_| ());
    // One that nobody joins: each of its releases finds nobody.
    let executive = quick().calendar(frame).external(task("process", 2_000), Process::joining());
    let summary = run(executive, 50);
    let [process] = &summary.processes[..] else { panic!("one: {summary}") };
    assert!((1..=25).contains(&process.unattended), "{}: {summary}", process.unattended);
}

#[test]
fn the_time_of_a_process_begins_with_the_first_of_its_releases() {
    // Its next release may be long after the setup: the time begins there.
    let summary = run(quick().external(task("process", 300_000), Process::joining()), 50);
    let [process] = &summary.processes[..] else { panic!("one: {summary}") };
    assert_eq!(process.unattended, 1, "{summary}");
}

/// A clock at a second, and a frame of 10 ms.
fn at_a_second<'env>() -> (Simulated, Calendar<'env>) {
    let clock = Simulated::default();
    clock.now_ns.store(1_000_000_000, Ordering::Relaxed);
    (clock, Calendar::frame(Period::from_ns(10_000_000).expect("in range")))
}

#[test]
fn a_cycle_of_several_units_is_one_cycle_in_counts_and_samples() {
    let path = std::env::temp_dir().join(format!("punctual-units-{}", std::process::id()));
    let (clock, frame) = at_a_second();
    let part = |n: u64| {
        Unit::new(format!("part {n}"), Duration::from_micros(500)).at(ms(2 * n)).of("long")
    };
    let calendar = frame.unit(
        part(0),
        |cycle: &mut Cycle<'_>| {
            if cycle.part < 3 { Flow::Break } else { Flow::Continue }
        },
    );
    let calendar = (1..4).fold(calendar, |calendar, n| calendar.part(part(n)));
    let thread = ordinary(WaitPolicy::sleep());
    let executive =
        Executive::builder().clock(clock).thread(thread).calendar(calendar).record(&path);
    let summary = executive.build().expect("fine").0.run_for(ms(50)).expect("it starts");
    std::fs::remove_file(&path).expect("ours");
    let counts = stats(&summary, "long").counts;
    assert_eq!((counts.ran, counts.missed, counts.sum_ns), (5, 0, 0), "{summary}");
    assert!(summary.units.iter().all(|unit| unit.counts.ran == 5), "{summary}");
    assert_eq!(summary.units.len(), 4);
    assert_eq!(summary.samples.map(|samples| samples.written), Some(5));
}

#[test]
fn a_unit_that_runs_beyond_its_next_is_an_overrun_and_no_other_is() {
    let (clock, frame) = at_a_second();
    let (beyond, time) = (AtomicU64::new(0), clock.clone());
    let body = |cycle: &mut Cycle<'_>| {
        // Of a budget of 1 ms, in a place of 5.
        let took = Span::from_us(if cycle.n.is_multiple_of(3) { 1_700 } else { 400 });
        let now = cycle.release + cycle.lateness + took;
        time.pass(now);
        beyond.fetch_add(u64::from(cycle.overran(now)), Ordering::Relaxed);
    };
    // The one after it is kept from its place by it, and does not overrun.
    let after = |cycle: &mut Cycle<'_>| {
        let finish = cycle.release + cycle.lateness + Span::from_us(900);
        time.pass(finish);
        assert!(!cycle.overran(finish));
    };
    let calendar = frame
        .unit(Unit::new("a", ms(1)).at(ms(1)).deadline(ms(8)), body)
        .unit(Unit::new("b", ms(1)).at(ms(2)).deadline(ms(7)), after)
        .unit(Unit::new("c", ms(1)).at(ms(3)).deadline(ms(6)), |_| ());
    let thread = ordinary(WaitPolicy::sleep());
    let executive = Executive::builder().clock(clock).thread(thread).calendar(calendar);
    let summary = executive.build().expect("fine").0.run_for(ms(90)).expect("it starts");
    let [a, b] = ["a", "b"].map(|name| stats(&summary, name).counts);
    assert_eq!((a.ran, a.over_release, a.over_budget), (9, 3, 3), "{summary}");
    assert_eq!(beyond.load(Ordering::Relaxed), 3);
    assert_eq!((b.ran, b.over_release, b.max), (9, 0, Some(Span::from_us(700))), "{summary}");
}
