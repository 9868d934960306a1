//! Tasks with threads of their own.
#![expect(clippy::disallowed_types, reason = "what a test hands to a body may make it wait")]

use std::sync::OnceLock;

use punctual_core::stats::PageKind;
use punctual_testkit::skip;

use super::*;

fn own(name: &str, period_us: u64) -> Task {
    task(name, period_us).placed(Placement::thread(RtThread::any()))
}

#[test]
fn each_thread_runs_its_cycles_and_none_is_lost_from_the_count() {
    let (fast, slow) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |counter: &AtomicU64, cycle: &Cycle<'_>| {
        counter.fetch_add(cycle.missed + 1, Ordering::Relaxed);
    };
    let (plan, ids) = quick()
        .task(own("slow", 5_000), |cycle| count(&slow, cycle))
        .task(own("fast", 1_000), |cycle| count(&fast, cycle))
        .build()
        .expect("fine");
    let facts = plan.assembly.threads.iter().filter_map(|(task, _)| task.facts());
    let policies: Vec<_> = facts.map(|facts| (facts.name, facts.policy)).collect();
    let [slower, faster] = [SchedPolicy::Fifo(78), SchedPolicy::Fifo(79)];
    assert_eq!(policies, [("slow".to_owned(), slower), ("fast".to_owned(), faster)]);
    let handle = plan.handle();
    let summary = plan.run_for(ms(200)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    for (id, missed) in [(ids[0], &slow), (ids[1], &fast)] {
        let counts = handle.counts(id).expect("there");
        let missed_in_cycles = missed.load(Ordering::Relaxed);
        assert!(counts.ran > 0 && counts.consistent, "{counts:?}");
        // What was released after the last cycle is missed too, and no cycle tells of it.
        assert!(counts.ran + counts.missed >= missed_in_cycles, "{counts:?} of {missed_in_cycles}");
        assert!(missed_in_cycles >= counts.ran);
    }
}

#[test]
fn a_stop_of_one_ends_all_and_so_does_an_overrun_of_the_stop_policy() {
    let stops = |cycle: &mut Cycle<'_>| {
        if cycle.missed + cycle.n > 0 { Flow::Stop } else { Flow::Continue }
    };
    let executive = quick().task(own("a", 1_000), stops).task(own("b", 1_000), |_| ());
    assert_eq!(run(executive, 60_000).end, End::Stopped);
    let stop = Arc::new(OnceLock::<StopHandle>::new());
    let stopped = Arc::clone(&stop);
    let (plan, _) = quick()
        .task(own("long", 1_000).on_overrun(OnOverrun::Stop), move |_| {
            // Until the executive has seen it and ended.
            while !stopped.get().is_some_and(StopHandle::stopped) {
                std::thread::yield_now();
            }
        })
        .task(own("b", 1_000), |_| ())
        .build()
        .expect("fine");
    assert!(stop.set(plan.stop_handle()).is_ok());
    let summary = plan.run_for(ms(60_000)).expect("it starts");
    assert_eq!(summary.end, End::Overran("long".to_owned()));
}

#[test]
fn a_runaway_alone_is_cancelled_demoted_and_put_back() {
    let (cancelled, others) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut first = true;
    let executive = quick()
        .grace(ms(4))
        .task(own("runaway", 2_000).on_overrun(OnOverrun::Terminate), |cycle| {
            // Once: until it is cancelled, and then until another had its turns all the same.
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
        .task(own("other", 1_000), |_| {
            others.fetch_add(1, Ordering::Relaxed);
        });
    let summary = run(executive, 60_000);
    let runaway = stats(&summary, "runaway");
    assert_eq!(summary.end, End::Stopped);
    assert_eq!(cancelled.load(Ordering::Relaxed), 1);
    assert!(runaway.counts.over_release > 0, "{runaway:?}");
    assert_eq!(stats(&summary, "other").demotions, 0, "{summary}");
    if summary.policy != SchedPolicy::Other && skip::need_native("real timing") {
        // A machine that stood still may demote it again.
        assert!(runaway.demotions >= 1, "{runaway:?}");
    }
}

#[test]
fn delay_keeps_a_phase_of_its_own_and_a_device_triggers_what_has_none() {
    let delayed = AtomicU64::new(0);
    let mut left = 25u64;
    let trigger = Trigger::wait(|| {
        left = left.saturating_sub(1);
        std::thread::yield_now();
        left > 0
    });
    let wait = RtThread::any().wait(WaitPolicy::sleep());
    let delays = task("delayed", 1_000).on_overrun(OnOverrun::Delay);
    let (plan, _) = quick()
        .task(delays.placed(Placement::thread(wait)), |cycle| {
            assert_eq!(cycle.missed, 0);
            delayed.fetch_add(1, Ordering::Relaxed);
        })
        .triggered(trigger, task("device", 1_000), |_| ())
        .build()
        .expect("fine");
    let kinds: Vec<_> = plan.assembly.threads.iter().map(|(task, _)| task.kind()).collect();
    assert_eq!(kinds, [PageKind::Lateness, PageKind::Distance]);
    let summary = plan.run_for(ms(100)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    let counts = stats(&summary, "delayed").counts;
    assert!(counts.ran > 0 && counts.missed == 0);
    assert_eq!(stats(&summary, "device").counts.ran, 23, "24 cycles, 23 distances");
    assert_eq!(delayed.load(Ordering::Relaxed), counts.ran);
}

#[test]
fn the_watchdog_gives_a_task_in_its_own_thread_three_of_its_own_periods() {
    // Longer than three periods of the main loop, and than its least bound of two seconds.
    let slow = own("slow", 10_000_000).on_overrun(OnOverrun::Delay).at(Duration::ZERO);
    let executive = quick().task(task("fast", 1_000), |_| ()).task(slow, |_| {
        let _signal = sleep_until_ns(now_ns(ClockId::Monotonic) + 2_600_000_000);
        Flow::Stop
    });
    let summary = run(executive, 60_000);
    assert_eq!((&summary.end, stats(&summary, "slow").counts.ran), (&End::Stopped, 1));
    // One without a period is held to what the main loop is held to.
    let never = quick().task(task("fast", 1_000), |_| ()).triggered(
        Trigger::wait(|| true),
        Task::named("device"),
        |cycle| {
            let begun_ns = now_ns(ClockId::Monotonic);
            while !cycle.cancelled() && now_ns(ClockId::Monotonic) < begun_ns + 20_000_000_000 {
                let _signal = sleep_until_ns(now_ns(ClockId::Monotonic) + 50_000_000);
            }
        },
    );
    let began_ns = now_ns(ClockId::Monotonic);
    let end = run(never, 60_000).end;
    assert!(matches!(end, End::Blocked | End::Stuck), "{end:?}");
    assert!(now_ns(ClockId::Monotonic) >= began_ns + 2_000_000_000);
}

#[test]
fn a_task_that_goes_on_until_it_is_told_is_told_of_the_end() {
    // Its next release is far away when all ends.
    let long = own("long", 500_000).on_overrun(OnOverrun::Terminate);
    let begun = AtomicBool::new(false);
    let executive = quick().task(long, |cycle| {
        begun.store(true, Ordering::Relaxed);
        while !cycle.cancelled() {
            std::hint::spin_loop();
        }
    });
    let executive = executive.task(own("waits", 1_000), |_| match begun.load(Ordering::Relaxed) {
        true => Flow::Stop,
        false => Flow::Continue,
    });
    let summary = run(executive, 50_000);
    assert_eq!((&summary.end, stats(&summary, "long").counts.ran), (&End::Stopped, 1));
}

#[test]
fn a_panic_in_a_thread_is_the_end_of_all_and_named() {
    let executive = quick()
        .task(own("broken", 1_000), |_| -> Flow { panic!("on purpose") })
        .task(own("other", 1_000), |_| ());
    let (task, text) = ("broken".to_owned(), "on purpose".to_owned());
    assert_eq!(run(executive, 60_000).end, End::Panicked { task, text });
}
