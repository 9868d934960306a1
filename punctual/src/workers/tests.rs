//! Workers in real threads: nothing here asserts a time, only who ran, missed and was told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::page::PageKind;
use punctual_core::wait::Sleep;
use punctual_testkit::skip;

use super::*;
use crate::periodic::{OnOverrun, Period, Phase};

fn task(name: &str, period_us: u64) -> Task {
    Task::new(name, Period::ratio(period_us * 1_000, 1).expect("in range"))
}

fn run(workers: Workers<'_>, ms: i64) -> Finished {
    workers.build().expect("fine").run(Sleep, Span::from_ms(ms), &AtomicBool::new(false))
}

#[test]
fn each_worker_runs_its_cycles_and_none_is_lost_from_the_count() {
    let (fast, slow) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |all: &AtomicU64, cycle: &Cycle<'_>| {
        all.fetch_add(cycle.missed + 1, Ordering::Relaxed);
        Flow::Continue
    };
    let workers = Workers::new()
        .task(task("slow", 5_000), |cycle| count(&slow, cycle))
        .task(task("fast", 1_000), |cycle| count(&fast, cycle));
    let crew = workers.build().expect("fine");
    let places: Vec<_> = crew.places().map(|(name, _, priority)| (name, priority)).collect();
    assert_eq!(places, [("slow", PRIORITY - 2), ("fast", PRIORITY - 1)]);
    let pages = crew.pages();
    let finished = crew.run(Sleep, Span::from_ms(200), &AtomicBool::new(false));
    assert_eq!(finished.why, Why::Finished);
    for (at, all) in [(0, slow), (1, fast)] {
        let outcome = &finished.tasks[at];
        let told = all.load(Ordering::Relaxed);
        assert!(outcome.counts.ran > 0 && outcome.counts.consistent, "{outcome:?}");
        // What was posted after the last cycle is missed too, and told to nobody.
        assert!(outcome.counts.ran + outcome.counts.missed >= told, "{outcome:?} of {told}");
        assert!(told >= outcome.counts.ran);
    }
    let shown = pages.iter().filter(|(_, page)| page.is_some_and(|page| page.counts().ran > 0));
    assert_eq!(shown.count(), 2);
}

#[test]
fn a_stop_of_one_ends_all_and_so_does_an_overrun_of_the_stop_policy() {
    let stops = |cycle: &mut Cycle<'_>| {
        if cycle.missed + cycle.n > 0 { Flow::Stop } else { Flow::Continue }
    };
    let other = |_: &mut Cycle<'_>| Flow::Continue;
    let all = Workers::new().task(task("a", 1_000), stops).task(task("b", 1_000), other);
    assert_eq!(run(all, 60_000).why, Why::Stopped);
    let stop = AtomicBool::new(false);
    let all = Workers::new()
        .task(task("long", 1_000).policy(OnOverrun::Stop), |_| {
            // Until the executive has seen it and ended.
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Flow::Continue
        })
        .task(task("b", 1_000), other);
    let finished = all.build().expect("fine").run(Sleep, Span::from_ms(60_000), &stop);
    assert_eq!(finished.why, Why::Overran("long".to_owned()));
    assert_eq!(finished.tasks[0].overran, 1);
}

#[test]
fn a_runaway_alone_is_cancelled_demoted_and_put_back() {
    let (cancelled, others) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut first = true;
    let stop = AtomicBool::new(false);
    let finished = Workers::new()
        .grace(Span::from_ms(4))
        .task(task("runaway", 2_000).policy(OnOverrun::Terminate), |cycle| {
            // Once: until it is told, and then until another had its turns all the same.
            while first && !(cycle.cancelled() && others.load(Ordering::Relaxed) >= 20) {
                std::hint::spin_loop();
            }
            if first {
                cancelled.fetch_add(1, Ordering::Relaxed);
            } else if cycle.n % 16 == 0 && others.load(Ordering::Relaxed) >= 60 {
                return Flow::Stop;
            }
            first = false;
            Flow::Continue
        })
        .task(task("other", 1_000), |_| {
            others.fetch_add(1, Ordering::Relaxed);
            Flow::Continue
        })
        .build()
        .expect("fine")
        .run(Sleep, Span::from_ms(60_000), &stop);
    let runaway = &finished.tasks[0];
    assert_eq!(finished.why, Why::Stopped);
    assert_eq!(cancelled.load(Ordering::Relaxed), 1);
    assert!(runaway.overran > 0 && runaway.counts.over_release > 0, "{runaway:?}");
    assert_eq!(finished.tasks[1].demoted, (0, 0), "{finished:?}");
    if runaway.policy != Granted::Other && skip::need_native("real timing") {
        // A machine that stood still may demote it again; each time it came back.
        assert!(runaway.demoted.0 >= 1, "{runaway:?}");
        assert!(runaway.demoted.1 + 1 >= runaway.demoted.0, "{runaway:?}");
    }
}

#[test]
fn delay_keeps_a_phase_of_its_own_and_a_device_paces_what_has_none() {
    let delayed = AtomicU64::new(0);
    let mut left = 25u64;
    let crew = Workers::new()
        .task(task("delayed", 1_000).policy(OnOverrun::Delay), |cycle| {
            assert_eq!(cycle.missed, 0);
            delayed.fetch_add(1, Ordering::Relaxed);
            Flow::Continue
        })
        .external(
            task("device", 1_000),
            || {
                left = left.saturating_sub(1);
                std::thread::yield_now();
                left > 0
            },
            |_| Flow::Continue,
        )
        .build()
        .expect("fine");
    let pages = crew.pages();
    let finished = crew.run(Sleep, Span::from_ms(100), &AtomicBool::new(false));
    assert_eq!(finished.why, Why::Finished);
    assert!(finished.tasks[0].counts.ran > 0 && finished.tasks[0].counts.missed == 0);
    assert_eq!(finished.tasks[1].counts.ran, 23, "24 cycles, 23 distances");
    let kinds: Vec<_> = pages.iter().map(|(_, page)| page.expect("it ran").kind()).collect();
    assert_eq!(kinds, [PageKind::Lateness, PageKind::Distance]);
    assert_eq!(delayed.load(Ordering::Relaxed), finished.tasks[0].counts.ran);
}

#[test]
fn a_task_that_goes_on_until_it_is_told_is_told_of_the_end() {
    // Its next release is far away when all ends.
    let long = task("long", 500_000).policy(OnOverrun::Terminate);
    let begun = AtomicBool::new(false);
    let all = Workers::new().task(long, |cycle| {
        begun.store(true, Ordering::Relaxed);
        while !cycle.cancelled() {
            std::hint::spin_loop();
        }
        Flow::Continue
    });
    let waits = task("waits", 1_000);
    let all = all.task(waits, |_| match begun.load(Ordering::Relaxed) {
        true => Flow::Stop,
        false => Flow::Continue,
    });
    let stop = AtomicBool::new(false);
    let finished = all.build().expect("fine").run(Sleep, Span::from_ms(50_000), &stop);
    assert_eq!((finished.why, finished.tasks[0].counts.ran), (Why::Stopped, 1));
}

#[test]
fn a_second_crew_keeps_its_figures_where_the_first_ones_are_read() {
    let crew = |name: &str| {
        let all = Workers::new().task(task(name, 1_000), |_| Flow::Continue);
        all.build().expect("fine")
    };
    let (first, other) = (crew("a").pages(), crew("b").pages());
    let ran = |pages: &crate::pages::Pages| {
        pages.iter().next().and_then(|(_, page)| page).map(|page| page.counts().ran)
    };
    let again = crew("a").keep_on(&other).keep_on(&first);
    let finished = again.run(Sleep, Span::from_ms(30), &AtomicBool::new(false));
    assert_eq!((finished.forced, ran(&first)), (None, Some(finished.tasks[0].counts.ran)));
    assert_eq!(ran(&other), None, "another task's");
}

#[test]
fn a_panic_ends_its_worker_and_nobody_else() {
    let others = AtomicU64::new(0);
    let finished = Workers::new()
        .task(task("broken", 1_000), |_| -> Flow { panic!("on purpose") })
        .task(task("other", 1_000), |_| {
            let stop = others.fetch_add(1, Ordering::Relaxed) > 10;
            if stop { Flow::Stop } else { Flow::Continue }
        });
    let finished = run(finished, 60_000);
    assert!(finished.tasks[0].panicked && !finished.tasks[1].panicked);
    assert!(others.load(Ordering::Relaxed) > 10);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let refused = |task: Task| {
        let all = Workers::new().external(task, || false, |_| Flow::Continue);
        all.build().expect_err("refused").to_string()
    };
    for (task, why) in [
        (task("a", 1).policy(OnOverrun::Burst(2)), "catch up"),
        (task("a", 1).policy(OnOverrun::Delay), "phase"),
        (task("a", 1).policy(OnOverrun::Terminate), "no release"),
        (task("a", 1).policy(OnOverrun::Stop), "no release"),
        (task("a", 1).phase(Phase::At(0)), "no phase"),
        (task("a", 1).deadline_ns(5), "late"),
    ] {
        let said = refused(task);
        assert!(said.contains(why) && said.contains("\"a\""), "{why:?} in {said:?}");
    }
    let twice = Workers::new().task(task("a", 1), |_| Flow::Continue).external(
        task("a", 1),
        || false,
        |_| Flow::Continue,
    );
    assert!(twice.build().expect_err("refused").to_string().contains("two tasks"));
    let refused = |all: Workers<'_>| all.build().expect_err("refused").to_string();
    let one = || Workers::new().task(task("a", 1_000), |_| Flow::Continue);
    for priority in [0, 1, 99] {
        let said = refused(one().priority(priority));
        assert_eq!(said, format!("an executive's priority of {priority} is not in [2, 98]"));
    }
    assert!(one().priority(2).build().is_ok() && one().priority(98).build().is_ok());
    assert!(refused(one().grace(Span::from_ns(-1))).contains("a grace of -1 ns"));
    let half = |name: &str| task(name, 1_000).budget_ns(600_000);
    let both = || {
        let go = |_: &mut Cycle<'_>| Flow::Continue;
        Workers::new().task(half("a"), go).task(half("b"), go)
    };
    assert!(refused(both()).contains("1.200"), "the sum");
    assert!(both().allow_overload().build().is_ok());
}
