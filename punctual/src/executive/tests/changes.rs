//! Tasks that come and go while an executive runs.
#![expect(clippy::disallowed_types, reason = "what a test hands to a body may make it wait")]

use std::sync::OnceLock;

use punctual_engine::calendar::Unit;

use super::*;

/// Waits until that is so; false where the executive ended first.
fn until(handle: &Handle<'_>, is: impl Fn() -> bool) -> bool {
    while !is() {
        if handle.stopped() {
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
    let (plan, ids) = quick()
        .thread(sleeping().pinned(Some(cpus()[0])))
        .task(task("steady", 1_000).at(Duration::from_micros(300)), |cycle| {
            let before = last.swap(cycle.n, Ordering::Relaxed);
            if before != u64::MAX && before + 1 + cycle.missed != cycle.n {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            assert_eq!(cycle.release.as_ns() % 1_000_000, 300_000);
            steady.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .expect("fine");
    assert_eq!(plan.task_named("steady"), Some(ids[0]));
    let (removed, summary) = plan
        .run_with(ms(60_000), |handle| {
            let twice = handle.add(task("steady", 500), |_| ()).expect_err("refused");
            assert!(twice.to_string().contains("two tasks are named \"steady\""), "{twice}");
            let mut removed = 0;
            for turn in 0..20 {
                let before = added.load(Ordering::Relaxed);
                let guest = handle
                    .add(task("guest", 2_000), |_| {
                        added.fetch_add(1, Ordering::Relaxed);
                    })
                    .expect("it fits");
                assert!(until(handle, || added.load(Ordering::Relaxed) > before), "turn {turn}");
                assert_eq!(handle.task(guest).expect("there").name, "guest");
                assert_eq!(handle.task_named("guest"), Some(guest));
                removed += handle.remove(guest).expect("it is there").counts.ran;
                assert_eq!(added.load(Ordering::Relaxed), removed, "it runs no more");
                let gone = handle.remove(guest).expect_err("gone").to_string();
                assert_eq!(gone, "the executive has no such task");
                assert_eq!(handle.task_named("guest"), None);
            }
            let before = steady.load(Ordering::Relaxed);
            assert!(until(handle, || steady.load(Ordering::Relaxed) > before + 3));
            assert!(handle.counts(ids[0]).expect("there").ran > 0);
            handle.stop();
            removed
        })
        .expect("it starts");
    assert_eq!(lost.load(Ordering::Relaxed), 0);
    assert_eq!(removed, added.load(Ordering::Relaxed));
    assert_eq!(summary.end, End::Stopped);
    assert_eq!(summary.tasks.len(), 21);
    assert_eq!(summary.tasks[0].counts.ran, steady.load(Ordering::Relaxed));
    let guests: u64 = summary.tasks[1..].iter().map(|task| task.counts.ran).sum();
    assert_eq!(guests, added.into_inner());
}

#[test]
fn an_executive_whose_tasks_have_left_waits_for_some_and_one_that_ended_refuses() {
    let ran = AtomicU64::new(0);
    let first = quick().cpus(cpus()).task(task("first", 1_000), |_| ());
    let (plan, ids) = first.build().expect("fine");
    let (late, summary) = plan
        .run_with(ms(60_000), |handle| {
            let body = |_: &mut Cycle<'_>| {
                ran.fetch_add(1, Ordering::Relaxed);
                Flow::Stop
            };
            handle.remove(ids[0]).expect("it is there");
            handle.add(task("only", 1_000), body).expect("it fits");
            until(handle, || false);
            // All have ended, or will at their next look.
            loop {
                match handle.add(task("late", 1_000), |_| ()) {
                    Err(why) => return why.to_string(),
                    Ok(id) => drop(handle.remove(id)),
                }
            }
        })
        .expect("it starts");
    assert!(late == "the executive has ended" || late == "the executive does not run", "{late}");
    assert_eq!(ran.into_inner(), 1);
    assert_eq!(summary.end, End::Stopped);
}

#[test]
fn tasks_come_and_go_between_the_units_of_a_calendar() {
    let (units, guests) = (AtomicU64::new(0), AtomicU64::new(0));
    let us = Duration::from_micros;
    let frame = Period::from_ns(4_000_000).expect("in range");
    let last = AtomicU64::new(u64::MAX);
    let lost = AtomicU64::new(0);
    let calendar = Calendar::frame(frame)
        .unit(Unit::new("read", us(300)), |cycle| {
            let before = last.swap(cycle.n, Ordering::Relaxed);
            if before != u64::MAX && before + 1 + cycle.missed != cycle.n {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            units.fetch_add(1, Ordering::Relaxed);
        })
        .unit(Unit::new("write", us(300)).after("read", us(500)), |_| ());
    let (plan, ids) = quick().calendar(calendar).build().expect("it fits");
    assert!(!plan.handle().started());
    let ((), summary) = plan
        .run_with(ms(60_000), |handle| {
            let guest = || task("guest", 8_000).budget(us(100));
            let too_long = handle.add(task("long", 8_000).budget(us(3_000)), |_| ());
            let message = too_long.expect_err("no gap is as long").to_string();
            assert!(handle.started() && message.contains("\"long\""), "{message}");
            assert!(handle.add(task("no budget", 8_000), |_| ()).is_err());
            assert!(handle.add(task("read", 8_000).budget(us(100)), |_| ()).is_err(), "a name");
            for turn in 0..5 {
                let before = guests.load(Ordering::Relaxed);
                let body = |_: &mut Cycle<'_>| {
                    guests.fetch_add(1, Ordering::Relaxed);
                };
                let id = handle.add(guest(), body).expect("it fits");
                assert_eq!(handle.peak(), 1);
                let placed = handle.placed(id).expect("there").expect("in the loop");
                assert_eq!(placed.rank, Some(2), "behind the calendar's tasks");
                assert!(until(handle, || guests.load(Ordering::Relaxed) > before), "turn {turn}");
                let seen = units.load(Ordering::Relaxed);
                assert!(until(handle, || units.load(Ordering::Relaxed) > seen), "turn {turn}");
                assert!(handle.remove(id).expect("there").counts.ran > 0);
                assert_eq!(handle.peak(), 0);
            }
            let message = handle.remove(ids[0]).expect_err("a unit").to_string();
            assert!(message.contains("belongs to the calendar"), "{message}");
            handle.stop();
        })
        .expect("it starts");
    assert_eq!((summary.end, lost.into_inner()), (End::Stopped, 0));
    assert_eq!(summary.tasks[0].counts.ran, units.into_inner());
    let ran: u64 = summary.tasks[2..].iter().map(|task| task.counts.ran).sum();
    assert_eq!(ran, guests.into_inner());
}

#[test]
fn a_task_of_another_executive_is_none_of_this_one() {
    let (one, ids) = quick().task(task("a", 1_000), |_| ()).build().expect("fine");
    let (other, _) = quick().task(task("b", 1_000), |_| ()).build().expect("fine");
    assert!(one.handle().task(ids[0]).is_ok() && other.handle().task(ids[0]).is_err());
    let ((), summary) = other
        .run_with(ms(60_000), |handle| {
            let message = handle.remove(ids[0]).expect_err("refused").to_string();
            assert_eq!(message, "the executive has no such task");
            handle.stop();
        })
        .expect("it starts");
    assert_eq!(summary.tasks.len(), 1);
}

#[test]
fn a_panic_beside_the_executive_ends_it() {
    let (plan, _) = quick().task(task("a", 1_000), |_| ()).build().expect("fine");
    let handle = plan.handle();
    let run = || plan.run_with(ms(60_000), |_| panic!("on purpose"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert!(panicked.is_err() && handle.stopped());
}

#[test]
fn a_body_cannot_change_the_executive_that_runs_it() {
    let message = Arc::new(OnceLock::new());
    let own = Arc::new(OnceLock::<Handle<'static>>::new());
    let (handle, say) = (Arc::clone(&own), Arc::clone(&message));
    let (plan, ids) = quick()
        .task(task("a", 1_000), move |_| {
            let Some(handle) = handle.get() else { return Flow::Continue };
            let added = handle.add(task("b", 1_000), |_| ());
            let _first = say.set(added.expect_err("refused").to_string());
            Flow::Stop
        })
        .build()
        .expect("fine");
    assert!(own.set(plan.handle()).is_ok() && ids.len() == 1);
    let summary = plan.run().expect("it starts");
    assert_eq!(summary.end, End::Stopped);
    assert!(message.get().is_some_and(|message| message.contains("another thread")), "{message:?}");
}

#[test]
fn one_that_runs_in_threads_of_its_own_is_stopped_and_joined() {
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let (plan, ids) = Executive::builder()
        .thread(sleeping())
        .phase(Phase::Zero)
        .task(task("a", 1_000), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .expect("fine");
    let running = plan.start().expect("a thread");
    let more = running.add(task("b", 1_000), |_| ()).expect("it fits");
    while running.counts(more).expect("there").ran < 5 {
        std::thread::yield_now();
    }
    assert!(running.remove(more).expect("there").counts.ran >= 5);
    assert!(running.task(ids[0]).expect("there").counts.ran > 0);
    let summary = running.finish().expect("it ran");
    assert_eq!(summary.end, End::Stopped);
    assert_eq!(stats(&summary, "a").counts.ran, ran.load(Ordering::Relaxed));
}

#[test]
fn what_a_removed_task_was_due_for_and_did_not_run_is_missed() {
    for placement in [Placement::inline(), Placement::thread(RtThread::any())] {
        let begun = AtomicBool::new(false);
        let (plan, _) = quick().task(task("stays", 7_000), |_| ()).build().expect("fine");
        let (removed, _) = plan
            .run_with(ms(60_000), |handle| {
                let body = |cycle: &mut Cycle<'_>| {
                    if !begun.swap(true, Ordering::Relaxed) {
                        // 5 releases pass.
                        let until = cycle.release + cycle.lateness;
                        sleep_until_ns(until.as_ns() + 55_000_000).expect("no signal");
                    }
                };
                let goes = task("goes", 10_000).placed(placement.clone());
                let id = handle.add(goes, body).expect("it runs");
                while !begun.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                let removed = handle.remove(id).expect("it is there");
                handle.stop();
                removed
            })
            .expect("it starts");
        let Counts { ran, missed, .. } = removed.counts;
        assert!(ran >= 1 && missed >= 5, "{placement:?}: {removed}");
    }
}
