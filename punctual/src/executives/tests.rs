//! Several executives in real threads: who ran where, who was told, who ended whom.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::time::Span;
use punctual_core::wait::Sleep;
use punctual_os::affinity;

use super::*;
use crate::periodic::{OnOverrun, Period, Phase};

fn task(name: &str, period_us: u64) -> Task {
    Task::new(name, Period::ratio(period_us * 1_000, 1).expect("in range"))
}

fn cpus() -> Vec<u32> {
    affinity::get(0).expect("own").iter().take(2).collect()
}

#[test]
fn tasks_run_on_the_cpu_they_were_packed_to() {
    let cpus = cpus();
    let seen: [AtomicU64; 3] = [const { AtomicU64::new(u64::MAX) }; 3];
    let here = |at: usize| {
        let seen = &seen;
        move |_: &mut Cycle<'_>| {
            seen[at].store(u64::from(affinity::current_cpu()), Ordering::Relaxed);
            Flow::Continue
        }
    };
    let fleet = Executives::new(&cpus)
        .task(task("a", 1_000), here(0))
        .task(task("b", 2_000), here(1))
        .task(task("c", 3_000), here(2))
        .build()
        .expect("fine");
    let place: Vec<(u32, Vec<String>)> = fleet
        .plans()
        .map(|(cpu, plan)| (cpu, (0..plan.tasks()).map(|r| plan.name(r).to_owned()).collect()))
        .collect();
    let stop = AtomicBool::new(false);
    let finished = fleet.run(|_| Sleep, Span::from_ms(120), &stop);
    assert_eq!(finished.len(), cpus.len());
    assert!(finished.iter().all(|one| one.ended == Ended::Finished && one.pinned));
    for (cpu, names) in place {
        for name in names {
            let at = ["a", "b", "c"].iter().position(|n| *n == name).expect("one of them");
            assert_eq!(seen[at].load(Ordering::Relaxed), u64::from(cpu), "{name}");
        }
    }
    assert!(finished.iter().flat_map(|one| &one.tasks).all(|(_, counts)| counts.ran > 0));
}

#[test]
fn a_task_that_is_to_be_terminated_is_told_and_others_are_not() {
    let told = AtomicU64::new(0);
    let fleet = Executives::new(&cpus()[..1])
        .task(task("long", 5_000).policy(OnOverrun::Terminate), |cycle| {
            while !cycle.cancelled() {
                std::thread::yield_now();
            }
            told.fetch_add(1, Ordering::Relaxed);
            Flow::Stop
        })
        .build()
        .expect("fine");
    let finished = fleet.run(|_| Sleep, Span::from_ms(60_000), &AtomicBool::new(false));
    assert_eq!(finished[0].ended, Ended::Stopped);
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(finished[0].tasks[0].1.over_release, 1);
}

#[test]
fn one_that_panics_or_stops_ends_all() {
    let cpus = cpus();
    let fleet = Executives::new(&cpus)
        .task(task("broken", 1_000), |_| -> Flow { panic!("on purpose") })
        .task(task("other", 7_001), |_| Flow::Continue)
        .build()
        .expect("fine");
    let finished = fleet.run(|_| Sleep, Span::from_ms(60_000), &AtomicBool::new(false));
    assert_eq!(finished.iter().filter(|one| one.panicked).count(), 1);
}

#[test]
fn what_cannot_be_is_refused() {
    let go = |_: &mut Cycle<'_>| Flow::Continue;
    let big = |name: &str| task(name, 1_000).budget_ns(900_000);
    let two = Executives::new(&[0]).task(big("a"), go).task(big("b"), go).build();
    assert!(two.expect_err("refused").to_string().contains("1.800"));
    let fits = Executives::new(&[0, 1]).task(big("a"), go).task(big("b"), go).build();
    assert_eq!(fits.expect("one each").plans().count(), 2);
    let nowhere = Executives::new(&[]).task(big("a"), go).build();
    assert!(nowhere.expect_err("refused").to_string().contains("no CPU"));
    let refused = |all: Executives<'_>| all.build().expect_err("refused").to_string();
    let one = || Executives::new(&[0]).task(task("a", 1_000), go);
    for priority in [0, 99, 255] {
        let said = refused(one().priority(priority));
        assert_eq!(said, format!("an executive's priority of {priority} is not in [1, 98]"));
    }
    assert!(one().priority(1).build().is_ok() && one().priority(98).build().is_ok());
    for most in [0.0, -0.5, 1.01, f64::NAN] {
        assert_eq!(
            refused(one().most(most)),
            format!("a share of {most} of each CPU: above 0, at most 1")
        );
    }
    let twice = Executives::new(&[3, 0, 3]).task(task("a", 1_000), go);
    assert_eq!(refused(twice), "two executives on CPU 3");
    let same = Executives::new(&[0, 1]).task(big("a"), go).task(big("a"), go).build();
    assert!(same.expect_err("refused").to_string().contains("\"a\""));
}

/// Waits until that is so; false where the executives ended first.
fn until(stop: &AtomicBool, is: impl Fn() -> bool) -> bool {
    while !is() {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn tasks_come_and_go_while_the_others_run() {
    let (steady, added) = (AtomicU64::new(0), AtomicU64::new(0));
    let last = AtomicU64::new(u64::MAX);
    let lost = AtomicU64::new(0);
    let count = |all: &AtomicU64| {
        all.fetch_add(1, Ordering::Relaxed);
        Flow::Continue
    };
    let fleet = Executives::new(&cpus()[..1])
        .task(task("steady", 1_000).phase(Phase::At(300_000)), |cycle| {
            let before = last.swap(cycle.n, Ordering::Relaxed);
            if before != u64::MAX && before + 1 + cycle.missed != cycle.n {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            assert_eq!(cycle.release.as_ns() % 1_000_000, 300_000);
            count(&steady)
        })
        .build()
        .expect("fine");
    let stop = AtomicBool::new(false);
    let (removed, finished) = fleet.run_with(
        |_| Sleep,
        Span::from_ms(60_000),
        &stop,
        |roster| {
            assert_eq!(roster.remove("ghost"), Err(ChangeError::Unknown("ghost".to_owned())));
            let twice = roster.add(task("steady", 500), |_| Flow::Continue);
            let same = BuildError::SameName("steady".to_owned());
            assert_eq!(twice, Err(ChangeError::Cannot(same)));
            let mut removed = 0;
            for turn in 0..20 {
                let before = added.load(Ordering::Relaxed);
                roster.add(task("guest", 2_000), |_| count(&added)).expect("it fits");
                assert!(until(&stop, || added.load(Ordering::Relaxed) > before), "turn {turn}");
                let now = roster.pages();
                let page = now[0].iter().find(|page| page.0 == "guest").expect("there");
                assert!(page.1.is_some());
                removed += roster.remove("guest").expect("it is there").ran;
                assert_eq!(added.load(Ordering::Relaxed), removed, "it runs no more");
            }
            let all = steady.load(Ordering::Relaxed);
            assert!(until(&stop, || steady.load(Ordering::Relaxed) > all + 3));
            assert_eq!(roster.plans().next().map(|(_, plan)| plan.tasks()), Some(1));
            stop.store(true, Ordering::Relaxed);
            removed
        },
    );
    assert_eq!(lost.load(Ordering::Relaxed), 0);
    assert_eq!(removed, added.load(Ordering::Relaxed));
    let Finished { tasks, removed, .. } = &finished[0];
    assert_eq!((tasks.len(), removed.len()), (1, 20));
    assert_eq!(tasks[0].1.ran, steady.load(Ordering::Relaxed));
    assert_eq!(removed.iter().map(|(_, counts)| counts.ran).sum::<u64>(), added.into_inner());
}

#[test]
fn an_executive_without_tasks_waits_for_some_and_one_that_ended_refuses() {
    let ran = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let fleet = Executives::new(&cpus()).build().expect("fine");
    let (late, finished) = fleet.run_with(
        |_| Sleep,
        Span::from_ms(60_000),
        &stop,
        |roster| {
            let body = |_: &mut Cycle<'_>| {
                ran.fetch_add(1, Ordering::Relaxed);
                Flow::Stop
            };
            let cpu = roster.add(task("only", 1_000), body).expect("it fits");
            assert!(cpus().contains(&cpu));
            until(&stop, || false);
            // All have ended, or will at their next look.
            loop {
                match roster.add(task("late", 1_000), |_| Flow::Continue) {
                    Err(why) => return why,
                    Ok(_) => drop(roster.remove("late")),
                }
            }
        },
    );
    assert_eq!(late, ChangeError::Refused(crate::handover::Refused::Ended));
    assert_eq!(ran.into_inner(), 1);
    assert!(finished.iter().any(|one| one.ended == Ended::Stopped));
}

#[test]
fn a_panic_beside_the_executives_ends_them() {
    let stop = AtomicBool::new(false);
    let all = Executives::new(&cpus()[..1]).task(task("a", 1_000), |_| Flow::Continue);
    let fleet = all.build().expect("fine");
    let run = || fleet.run_with(|_| Sleep, Span::from_ms(60_000), &stop, |_| panic!("on purpose"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert!(panicked.is_err() && stop.load(Ordering::Relaxed));
}
