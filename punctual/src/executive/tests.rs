//! Executives in real threads: nothing here asserts a time, only what ran where, what was missed,
//! what was cancelled, and what ended what.

mod added;
mod changes;
mod kinds;
mod refused;
mod stops;
mod threads;
mod units;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::cycle::{Cycle, Flow};
use punctual_core::stats::Counts;
use punctual_core::time::Period;
use punctual_os::affinity;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;

use super::*;
use crate::loops::Phase;
use crate::summary::Summary;
use punctual_core::table::OnOverrun;
use punctual_engine::outcome::{End, Stats};
use punctual_engine::periodic::Response;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::task::{Placement, Task};
use punctual_engine::wait_policy::WaitPolicy;

fn task(name: &str, period_us: u64) -> Task {
    Task::every(name, Period::ratio(period_us * 1_000, 1).expect("in range"))
}

fn cpus() -> Vec<u32> {
    affinity::get(0).expect("own").iter().take(2).collect()
}

/// A thread that is quick to start.
fn sleeping() -> RtThread {
    let thread = RtThread::any().fifo(80).wait(WaitPolicy::sleep());
    thread.lock_memory(false).hold_idle_states(false)
}

fn quick<'env>() -> ExecutiveBuilder<'env> {
    Executive::builder().thread(sleeping()).phase(Phase::Zero)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn run(builder: ExecutiveBuilder<'_>, for_ms: u64) -> Summary {
    builder.build().expect("fine").0.run_for(ms(for_ms)).expect("it starts")
}

fn stats<'s>(summary: &'s Summary, name: &str) -> &'s Stats {
    summary.task(name).expect("there")
}

#[test]
fn tasks_run_on_the_cpu_they_were_packed_to() {
    let cpus = cpus();
    let seen: [AtomicU64; 3] = [const { AtomicU64::new(u64::MAX) }; 3];
    let stores_cpu = |at: usize| {
        let seen = &seen;
        move |_: &mut Cycle<'_>| {
            seen[at].store(u64::from(affinity::current_cpu()), Ordering::Relaxed);
        }
    };
    let (plan, ids) = quick()
        .cpus(cpus.iter().copied())
        .task(task("a", 1_000), stores_cpu(0))
        .task(task("b", 2_000), stores_cpu(1))
        .task(task("c", 3_000), stores_cpu(2))
        .build()
        .expect("fine");
    assert_eq!(ids.len(), 3);
    let layout = plan.layout();
    let summary = plan.run_for(ms(120)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    for placed in layout {
        let at = ["a", "b", "c"].iter().position(|n| *n == placed.name).expect("one of them");
        assert_eq!(Some(seen[at].load(Ordering::Relaxed)), placed.cpu.map(u64::from));
    }
    assert!(summary.tasks.iter().all(|task| task.counts.ran > 0), "{summary}");
    assert!(!summary.refused.iter().any(|refusal| {
        matches!(refusal.attempt, punctual_engine::session::Attempt::Affinity(_))
    }));
}

#[test]
fn a_task_that_names_no_cpu_stays_on_those_of_the_executive() {
    let [.., last] = cpus()[..] else { return };
    let others = cpus().into_iter().filter(|cpu| *cpu != last).collect::<Vec<u32>>();
    let Some(other) = others.first().copied() else { return };
    let on_last_cpu = RtThread::cpu(last).wait(WaitPolicy::sleep());
    let elsewhere = task("elsewhere", 1_000).placed(Placement::cpu(other));
    let built =
        quick().thread(on_last_cpu).task(task("own", 1_000), |_| ()).task(elsewhere, |_| ());
    let (executive, _ids) = built.build().expect("fine");
    let cpu = |name: &str, layout: &[Placed]| {
        layout.iter().find(|placed| placed.name == name).and_then(|placed| placed.cpu)
    };
    let layout = executive.layout();
    assert_eq!((cpu("own", &layout), cpu("elsewhere", &layout)), (Some(last), Some(other)));
    let run = executive.run_with(ms(60_000), |handle| {
        let added = handle.add(task("added", 3_000), |_| ()).expect("it fits");
        let placed = handle.placed(added).expect("it runs");
        handle.stop();
        placed.and_then(|placed| placed.cpu)
    });
    assert_eq!(run.expect("it starts").0, Some(last));
}

#[test]
fn a_layout_says_which_deadlines_are_guaranteed() {
    let us = Duration::from_micros;
    let fast = task("fast", 1_000).budget(us(200)).deadline(us(400));
    let slow = task("slow", 4_000).budget(us(300));
    let apart = task("apart", 2_000).placed(Placement::thread(RtThread::any()));
    let built = quick().task(fast.clone(), |_| ()).task(slow, |_| ()).task(apart, |_| ()).build();
    let (plan, ids) = built.expect("fine");
    let guaranteed = |layout: &[Placed], name: &str| {
        let placed = layout.iter().find(|placed| placed.name == name).expect(name);
        (placed.response, placed.deadline, placed.is_guaranteed())
    };
    let layout = plan.layout();
    // 300 µs behind the slow one that has begun, and its own.
    let late = (Response::AtMost(us(500)), Some(us(400)), Some(false));
    assert_eq!(guaranteed(&layout, "fast"), late);
    // With the post of the one elsewhere.
    let fits = (Response::AtMost(us(505)), Some(us(4_000)), Some(true));
    assert_eq!(guaranteed(&layout, "slow"), fits);
    let apart = layout.iter().find(|placed| placed.name == "apart").expect("it is there");
    assert_eq!((apart.rank, apart.cpu, apart.deadline), (None, None, Some(us(2_000))));
    assert_eq!((apart.response, apart.is_guaranteed()), (Response::Unknown, None));
    let run = plan.run_with(ms(50), |handle| {
        assert_eq!(handle.placed(ids[2]).expect("it runs").as_ref(), Some(apart));
        let placed = handle.placed(ids[0]).expect("it runs").expect("it is there");
        assert_eq!((placed.response, placed.deadline, placed.is_guaranteed()), late);
    });
    let ((), summary) = run.expect("it starts");
    assert_eq!(summary.end, End::Finished, "{summary}");
    // Beside one without a budget nothing is known.
    let open = quick().task(fast, |_| ()).task(task("open", 9_000), |_| ()).build();
    let open = open.expect("fine").0.layout();
    let unknown = (Response::Unknown, Some(us(400)), None);
    assert_eq!(guaranteed(&open, "fast"), unknown);
}

#[test]
fn a_task_that_names_its_cpu_has_a_loop_there() {
    let cpus = cpus();
    let last = *cpus.last().expect("one at least");
    let seen = AtomicU64::new(u64::MAX);
    let (plan, _) = quick()
        .thread(sleeping().pinned(Some(cpus[0])))
        .task(task("main", 1_000), |_| ())
        .task(task("there", 1_000).placed(Placement::cpu(last)), |_| {
            seen.store(u64::from(affinity::current_cpu()), Ordering::Relaxed);
        })
        .build()
        .expect("fine");
    let summary = plan.run_for(ms(50)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    assert_eq!(seen.into_inner(), u64::from(last));
}

#[test]
fn a_task_that_is_to_be_terminated_is_cancelled_and_others_are_not() {
    let cancelled = AtomicU64::new(0);
    let long = task("long", 5_000).on_overrun(OnOverrun::Terminate);
    let summary = run(
        quick().task(long, |cycle| {
            while !cycle.cancelled() {
                std::thread::yield_now();
            }
            cancelled.fetch_add(1, Ordering::Relaxed);
            Flow::Stop
        }),
        60_000,
    );
    assert_eq!(summary.end, End::Stopped);
    assert_eq!(cancelled.load(Ordering::Relaxed), 1);
    assert_eq!(stats(&summary, "long").counts.over_release, 1);
}

#[test]
fn one_that_panics_ends_all_and_what_did_not_run_is_counted() {
    let mut builder = quick().cpus(cpus());
    builder = builder.task(task("other", 7_001), |_| ());
    let summary =
        run(builder.task(task("broken", 1_000), |_| -> Flow { panic!("on purpose") }), 60_000);
    let (task, text) = ("broken".to_owned(), "on purpose".to_owned());
    assert_eq!(summary.end, End::Panicked { task, text });
    assert_eq!(stats(&summary, "broken").counts.ran, 1, "its cycle began");
    let failed = summary.ok().expect_err("a bad end");
    let message = failed.to_string();
    assert!(message.contains("broken") && message.contains("on purpose"), "{message}");
    // The counts are kept, and stand below the reason.
    assert_eq!(failed.summary().task("broken").map(|task| task.counts.ran), Some(1));
    let shown = format!("{failed:?}");
    assert!(shown.starts_with(&message) && shown.contains("other: "), "{shown}");
    let (why, summary) = failed.into_parts();
    assert_eq!((why.kind(), summary.tasks.len()), (crate::ErrorKind::Panicked, 2));
    // A `main` that returns an `Error` prints both too.
    let through_main = || -> Result<Summary, Error> { Ok(summary.ok()?) };
    let returned = through_main().expect_err("a bad end");
    assert_eq!((returned.to_string(), format!("{returned:?}")), (message, shown));
}

/// As long as it takes a watchdog of 300 ms to see it.
fn spin_until_watched() {
    let until_ns = now_ns(ClockId::Monotonic) + 600_000_000;
    while now_ns(ClockId::Monotonic) < until_ns {
        std::hint::spin_loop();
    }
}

#[test]
fn a_loop_that_does_not_yield_is_forced_and_its_end_says_so() {
    let stuck = AtomicBool::new(false);
    let thread = sleeping().watchdog(ms(300));
    let (plan, _) = quick()
        .thread(thread)
        .task(task("stuck", 1_000), |_| {
            stuck.store(true, Ordering::Relaxed);
            spin_until_watched();
        })
        .task(task("victim", 10_000), |_| ())
        .build()
        .expect("fine");
    let summary = plan.run_for(ms(60_000)).expect("it starts");
    assert!(matches!(summary.end, End::Forced | End::Starved), "{summary}");
    assert_eq!(summary.policy, SchedPolicy::Other);
    let Counts { ran, missed, .. } = stats(&summary, "stuck").counts;
    // Up to its stop.
    assert!(ran == 1 && missed >= 299, "{ran} ran, {missed} missed");
    assert!(stats(&summary, "victim").counts.missed >= 29, "{summary}");
}

#[test]
fn a_body_that_blocks_is_the_reason_and_no_lack_of_a_cpu() {
    for placement in [Placement::inline(), Placement::thread(RtThread::any())] {
        let (plan, _) = quick()
            // The second half of it is long enough to be asleep in also on a busy machine.
            .thread(sleeping().watchdog(ms(1_000)))
            .task(task("victim", 10_000), |_| ())
            .task(task("waits", 10_000).on_overrun(OnOverrun::Delay).placed(placement), |_| {
                sleep_until_ns(now_ns(ClockId::Monotonic) + 4_000_000_000).expect("no signal");
            })
            .build()
            .expect("fine");
        let summary = plan.run_for(ms(60_000)).expect("it starts");
        assert_eq!(summary.end, End::Blocked, "{summary}");
        let message = summary.ok().expect_err("a bad end").to_string();
        assert!(message.contains("a body blocked"), "{message}");
    }
}

#[test]
fn a_panic_is_the_reason_also_where_the_watchdog_acted_before() {
    let (plan, _) = quick()
        .thread(sleeping().watchdog(ms(300)))
        .task(task("broken", 1_000), |_| -> Flow {
            spin_until_watched();
            panic!("on purpose")
        })
        .build()
        .expect("fine");
    let summary = plan.run_for(ms(60_000)).expect("it starts");
    let (task, text) = ("broken".to_owned(), "on purpose".to_owned());
    assert_eq!(summary.end, End::Panicked { task, text });
    assert_eq!(summary.policy, SchedPolicy::Other);
}

#[test]
fn a_stall_is_as_late_as_it_was_whatever_runs_the_task() {
    for placement in [Placement::inline(), Placement::thread(RtThread::any())] {
        let mut stalled = false;
        let summary = run(
            quick().task(task("a", 1_000).placed(placement.clone()), |cycle| {
                if !stalled && cycle.n % 8 == 0 {
                    stalled = true;
                    sleep_until_ns(now_ns(ClockId::Monotonic) + 50_000_000).expect("no signal");
                }
            }),
            200,
        );
        let counts = stats(&summary, "a").counts;
        // A body that overran forty-nine periods has missed them, each with its own lateness: the
        // first of them waited longest.
        assert!(counts.missed >= 48, "{placement:?}: {summary}");
        assert!(counts.max.is_some_and(|max| max.as_ns() >= 48_000_000), "{summary}");
    }
}
