//! Loops on the machine's own clock: counts, never durations.

use std::sync::Arc;

use punctual_core::time::{Instant, Period};
use punctual_core::wait::adaptive::LearnPhase;
use punctual_core::wait::{Learned, WakePlan};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::rt_thread::spawn_elsewhere;
use punctual_engine::safety::Throttling;
use punctual_engine::session::Attempt;
use punctual_engine::task::{Placement, Task};
use punctual_engine::wait_policy::{WaitKind, WaitPolicy, strategy};
use punctual_os::Errno;
use punctual_os::affinity;
use punctual_os::scheduler::SchedPolicy;
use punctual_testkit::skip;

use super::*;
use crate::executive::Executive;
use crate::sim::SimulatedClock;
use punctual_engine::quiet::{self, Gap};

/// A loop that is quick to start and needs no rights.
fn quick(hertz: u64, wait: WaitPolicy) -> LoopBuilder {
    let builder = Loop::builder(Period::hz(hertz).expect("in range"));
    builder.phase(Phase::Zero).thread(thread(wait))
}

fn thread(wait: WaitPolicy) -> RtThread {
    RtThread::any().other().lock_memory(false).hold_idle_states(false).wait(wait)
}

fn sleeping(hertz: u64) -> LoopBuilder {
    quick(hertz, WaitPolicy::sleep())
}

#[test]
fn each_cycle_follows_the_last_or_counts_what_it_missed() {
    let mut control_loop = sleeping(3_000).phase(Phase::At(7)).start().expect("a loop");
    let view = control_loop.handle();
    let mut before: Option<Cycle> = None;
    let mut missed = 0;
    for _ in 0..50 {
        let cycle = control_loop.wait().expect("not stopped");
        assert!(cycle.lateness >= Span::ZERO && cycle.next > cycle.release);
        match before {
            None => assert_eq!((cycle.n, cycle.missed), (0, 0)),
            Some(before) => {
                assert_eq!(cycle.n, before.n + 1 + cycle.missed);
                assert_eq!(cycle.dt, cycle.release - before.release);
            }
        }
        // 3 kHz is no whole number of nanoseconds.
        let periods = (cycle.release.as_ns() - 7) as f64 * 3e-6;
        assert!((periods - periods.round()).abs() < 1e-3, "{periods}");
        missed += cycle.missed;
        before = Some(cycle);
    }
    // Counted at the beginning of the next wait.
    let _next = control_loop.wait().expect("not stopped");
    assert_eq!((view.counts().ran, view.counts().missed), (50, missed));
    assert_eq!(control_loop.wait_status().learned, None);
}

#[test]
fn a_cycle_that_runs_over_its_next_release_is_an_overrun() {
    let mut control_loop = sleeping(1_000).start().expect("a loop");
    let first = control_loop.wait().expect("not stopped");
    let mut clock = punctual_engine::clocks::Vdso;
    clock.sleep_until(first.next + Span::from_ms(2));
    let second = control_loop.wait().expect("not stopped");
    assert!(second.missed >= 2, "{second:?}");
    // Counted at the beginning of the next wait.
    let _next = control_loop.wait().expect("not stopped");
    let counts = control_loop.handle().counts();
    assert_eq!((counts.missed, counts.over_release), (second.missed, 1));
}

#[test]
fn what_ran_is_counted_when_the_loop_ends_however_it_ends() {
    let mut control_loop = sleeping(1_000).start().expect("a loop");
    let view = control_loop.handle();
    let _cycle = control_loop.wait().expect("not stopped");
    assert_eq!(view.counts().ran, 0, "it runs");
    drop(control_loop);
    assert_eq!(view.counts().ran, 1);
    let mut control_loop = sleeping(1_000).start().expect("a loop");
    let view = control_loop.handle();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _cycle = control_loop.wait().expect("not stopped");
        panic!("on purpose");
    }));
    assert!(ended.is_err());
    assert_eq!(view.counts().ran, 1);
}

#[test]
fn a_stopped_loop_gives_nothing_more() {
    let fixed = WaitPolicy::fixed(Duration::from_micros(900));
    let adaptive = WaitPolicy::adaptive().cpu_budget(0.9).learn_first(false);
    let waits = [WaitPolicy::sleep(), fixed, WaitPolicy::spin(), WaitPolicy::rearm(None), adaptive];
    for wait in waits {
        let mut control_loop = quick(1_000, wait).start().expect("a loop");
        let handle = control_loop.handle();
        assert!(control_loop.wait().is_some());
        std::thread::scope(|scope| {
            scope.spawn(|| handle.stop());
        });
        assert!((0..20).all(|_| control_loop.wait().is_none()), "{wait:?}");
        assert_eq!(control_loop.finish().end, End::Stopped);
        assert!(handle.stopped());
    }
}

#[test]
fn a_wait_that_learns_has_learned_before_the_first_cycle() {
    // On a machine that is never busy: on others a warm-up may end before enough is learned.
    let wait = WaitPolicy::adaptive().cpu_budget(0.5);
    let clock = |_, _: &AtomicBool| (SimulatedClock::new(), None);
    let control_loop = quick(5_000, wait).start_with(clock, |_| {}).expect("a loop");
    let learned = control_loop.wait_status().learned.expect("it learns");
    assert_ne!(learned.phase, LearnPhase::Calibrating);
    assert_eq!(control_loop.handle().counts().ran, 0, "nothing of it is counted");
}

#[test]
fn what_is_refused_stands_in_the_summary_with_its_way_out() {
    let mut summary = sleeping(1_000).start().expect("a loop").finish();
    let absent = Refusal::new(Attempt::Affinity(4_000), Errno::INVAL);
    summary.refused = vec![Refusal::new(Attempt::HoldIdleStates, Errno::ACCES), absent];
    let text = summary.to_string();
    let idle_states = "\nrefused by the kernel: hold idle states off (EACCES): run it as root, or \
                       give a group the right: ";
    assert!(text.contains(idle_states), "{text}");
    assert!(text.ends_with("\nrefused by the kernel: pin to CPU 4000 (EINVAL)"), "{text}");
}

#[test]
fn a_loop_within_another_of_its_thread_warns_and_one_after_it_does_not() {
    let warns = |summary: &Summary| summary.warnings.iter().any(|w| w.contains("one Executive"));
    let mut outer = sleeping(1_000).start().expect("a loop");
    // Until it waits it is no more in the way than one that has ended.
    assert!(!warns(&sleeping(1_000).start().expect("a loop").run_for(Duration::ZERO, |_| ())));
    assert!(outer.wait().is_some());
    let mut inner = sleeping(1_000).start().expect("a loop");
    assert!(inner.wait().is_some() && outer.wait().is_some());
    assert!(warns(&inner.finish()));
    assert!(!warns(&outer.finish()));
    // One that was stopped is in nobody's way.
    let mut stopped = sleeping(1_000).start().expect("a loop");
    assert!(stopped.wait().is_some());
    stopped.handle().stop();
    let mut after = sleeping(1_000).start().expect("a loop");
    assert!(after.wait().is_some());
    assert!(!warns(&after.finish()));
}

#[test]
fn throttling_is_judged_by_the_cpu_time_since_the_first_wait() {
    // Its setup spun for 0.4 s before that.
    let began = CpuTime { used_ns: 400_000_000, at_ns: 7_000_000_000 };
    let now = |used_ms: u64, ran_ms: u64| CpuTime {
        used_ns: began.used_ns + used_ms * 1_000_000,
        at_ns: began.at_ns + ran_ms * 1_000_000,
    };
    let named = |used_ms, ran_ms| {
        let (share, ran) = now(used_ms, ran_ms).share_since(began);
        let (period, throttling) = (Period::from_ns(1_000), Throttling::of(950_000, 1_000_000));
        let mut counts = Counts::default();
        (counts.max, counts.missed) = (Some(Span::from_ms(49)), 50_000 * ran_ms / 1_000);
        let stopped = CpuTaken { cpu: 1, share, period, throttling }.stopped(ran, &counts);
        stopped.is_some_and(|words| words.contains("it stood still"))
    };
    // From 93 % on, and off its CPU for 35 ms at least of each second.
    assert!(!named(1_859, 2_000) && named(1_861, 2_000));
    assert!(named(1_929, 2_000) && !named(1_931, 2_000));
    // A single gap may be a stall of the machine.
    assert!(!named(950, 1_000) && !named(1_850, 1_990));
    assert_eq!(began.share_since(began), (0.0, Span::ZERO));
}

#[test]
fn the_watchdog_ends_a_loop_that_gets_nowhere_and_the_end_says_so() {
    if !skip::need_native("real timing") {
        return;
    }
    let builder = Loop::builder(Period::hz(100).expect("in range")).phase(Phase::Zero);
    let watched = thread(WaitPolicy::sleep()).watchdog(Duration::from_millis(100));
    let mut control_loop = builder.thread(watched).start().expect("a loop");
    let handle = control_loop.handle();
    assert!(control_loop.wait().is_some());
    while !handle.stopped() {
        std::hint::spin_loop();
    }
    assert!(control_loop.wait().is_none());
    let summary = control_loop.finish();
    assert!(matches!(summary.end, End::Forced | End::Starved), "{summary:?}");
    assert_eq!(summary.policy, SchedPolicy::Other);
    let counts = summary.tasks[0].counts;
    assert!(counts.ran == 1 && counts.missed >= 10 && counts.over_release == 1, "{counts:?}");
    // Nothing started after the body: what it kept from running is censored.
    assert!(counts.censored >= 10, "{counts:?}");
    let why = summary.ok().expect_err("not as planned").to_string();
    assert!(why.contains("the watchdog stopped the loop"), "{why}");
    assert_eq!(Arc::strong_count(&handle.shared), 1, "its thread is gone");
}

#[test]
fn what_cannot_be_is_refused_with_the_value_and_what_is_accepted() {
    let ms = Period::hz(1_000).expect("in range");
    let refusal = |builder: LoopBuilder| builder.check().expect_err("refused").to_string();
    let wait = |wait: WaitPolicy| refusal(Loop::builder(ms).thread(RtThread::any().wait(wait)));
    let kind = |kind: WaitKind| wait(WaitPolicy::from(kind));
    assert!(refusal(Loop::builder(ms).phase(Phase::At(1_000_000))).contains("got 1000000 ns"));
    assert!(kind(WaitKind::Fixed(Span::from_ms(1))).contains("margin must be from 0"));
    assert!(kind(WaitKind::Fixed(Span::from_ns(-1))).contains("got -1 ns"));
    let rearm = wait(WaitPolicy::rearm(Period::from_ns(2_000_000)));
    assert!(rearm.contains("exceeds the period of 1000000 ns (got 2000000 ns)"), "{rearm}");
    let budget = |share| wait(WaitPolicy::adaptive().cpu_budget(share));
    assert!(budget(0.0).contains("budget") && budget(1.1).contains("got 1.1"));
    assert!(budget(f64::NAN).contains("NaN"));
    assert!(wait(WaitPolicy::adaptive().late_share(1.0)).contains("late wakes"));
    let thread = |thread: RtThread| refusal(Loop::builder(ms).thread(thread));
    assert!(thread(RtThread::any().fifo(0)).contains("from 1 to 98 (got 0)"));
    let short = Duration::from_micros(1_999);
    assert!(thread(RtThread::any().watchdog(short)).contains("two periods"));
    let quick = Loop::builder(Period::from_ns(10_000).expect("in range"));
    assert!(refusal(quick.thread(RtThread::any().wait(WaitPolicy::spin()))).contains("40.0 µs"));
    assert!(Loop::builder(ms).check().is_ok());
    let missing = sleeping(1_000).record("/nonexistent/directory/run.punctual").start();
    assert!(missing.expect_err("no such place").to_string().contains("run.punctual"));
}

#[test]
fn a_period_that_the_clock_fills_is_refused() {
    let short = Loop::builder(Period::from_ns(1).expect("in range")).phase(Phase::Zero);
    let why = short.thread(thread(WaitPolicy::sleep())).start().expect_err("refused").to_string();
    assert!(why.contains("at least 4 of the clock's stamps") && why.contains("1 ns"), "{why}");
}

#[test]
fn two_loops_of_one_thread_keep_theirs_until_their_own_end() {
    let policy = || punctual_os::scheduler::get(0).expect("own");
    let before = policy();
    let fifo = |priority| {
        let thread = thread(WaitPolicy::sleep()).without_watchdog();
        let thread = thread.fifo(priority);
        sleeping(1_000).thread(thread).start().expect("a loop")
    };
    let (first, mut second) = (fifo(5), fifo(6));
    let granted = second.policy();
    drop(first);
    assert_eq!(policy(), granted, "the second one lives");
    assert!(second.wait().is_some());
    let _summary = second.finish();
    assert_eq!(policy(), before);
}

#[test]
fn every_cycle_is_in_the_sample_file() {
    let path = std::env::temp_dir().join(format!("punctual-loop-{}", std::process::id()));
    let mut control_loop = sleeping(1_000).record(&path).start().expect("a loop");
    for _ in 0..50 {
        assert!(control_loop.wait().is_some());
    }
    let summary = control_loop.finish();
    let samples = summary.samples.as_ref().expect("recorded");
    assert_eq!((samples.written, samples.unrecorded, &samples.failed), (50, 0, &None));
    assert_eq!(samples.path, path);
    let bytes = std::fs::read(&path).expect("written");
    std::fs::remove_file(&path).expect("ours");
    assert!(bytes.starts_with(b"PUNCTUAL"));
    assert!(summary.to_string().contains("50 samples in"), "{summary}");
}

#[test]
fn a_loop_ends_by_itself_or_by_its_body() {
    let ms = Duration::from_millis;
    let mut cycles = Vec::new();
    let control_loop = sleeping(1_000).start().expect("a loop");
    let summary = control_loop.run_for(ms(50), |cycle| cycles.push(cycle.n));
    let counts = summary.tasks[0].counts;
    assert_eq!(summary.end, End::Finished);
    assert_eq!((counts.ran, counts.ran + counts.missed), (cycles.len() as u64, 50));
    assert!(cycles.iter().all(|&n| n < 50), "{cycles:?}");
    let control_loop = sleeping(1_000).start().expect("a loop");
    let stopping = |cycle: &mut Cycle<'_>| if cycle.n < 9 { Flow::Continue } else { Flow::Stop };
    assert_eq!(control_loop.run_for(ms(60_000), stopping).end, End::Stopped);
    // One that has run already runs for so long from now on.
    let mut control_loop = sleeping(1_000).start().expect("a loop");
    assert!(control_loop.wait().is_some());
    assert_eq!(control_loop.run_for(ms(5), |_| ()).end, End::Finished);
}

#[test]
fn a_handle_says_so_once_its_loop_cannot_run_any_more() {
    let start = || {
        let control_loop = sleeping(1_000).start().expect("a loop");
        let handle = control_loop.handle();
        assert!(!handle.stopped());
        (control_loop, handle)
    };
    let (control_loop, handle) = start();
    drop(control_loop);
    assert!(handle.stopped(), "dropped unrun");
    let (control_loop, handle) = start();
    assert_eq!(control_loop.finish().end, End::Stopped);
    assert!(handle.stopped(), "finished");
    let (control_loop, handle) = start();
    assert_eq!(control_loop.run_for(Duration::from_millis(5), |_| ()).end, End::Finished);
    assert!(handle.stopped(), "its time was up");
    let (mut control_loop, handle) = start();
    let body = std::panic::AssertUnwindSafe(move || {
        let _cycle = control_loop.wait();
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(body).is_err() && handle.stopped(), "its body panicked");
}

#[test]
fn a_loop_whose_body_blocks_is_not_said_to_lack_the_cpu() {
    let builder = Loop::builder(Period::hz(100).expect("in range")).phase(Phase::Zero);
    let watched = thread(WaitPolicy::sleep()).watchdog(Duration::from_millis(300));
    let mut control_loop = builder.thread(watched).start().expect("a loop");
    let handle = control_loop.handle();
    assert!(control_loop.wait().is_some());
    // A lock that another thread has, say.
    let (held, waits) = std::sync::mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        while !handle.stopped() {
            std::thread::yield_now();
        }
        drop(held);
    });
    let _released = waits.recv();
    holder.join().expect("no panic");
    let summary = control_loop.finish();
    assert_eq!(summary.end, End::Blocked, "{summary}");
}

/// A thread on the loop's own CPU would get none of it: its request came when real-time throttling
/// let it run, two thirds of a second later.
#[test]
fn a_thread_elsewhere_stops_a_body_that_never_lets_go_of_its_cpu() {
    let cpus = affinity::get(0).expect("own");
    if !skip::need_fifo() || !skip::need("two CPUs", cpus.iter().count() >= 2) {
        return;
    }
    let last = cpus.iter().last().expect("two at least");
    // Below the 950 ms after which throttling would let the other one run.
    let watched = thread(WaitPolicy::sleep()).pinned(Some(last)).fifo(10);
    let watched = watched.watchdog(Duration::from_millis(800));
    let builder = Loop::builder(Period::hz(100).expect("in range")).phase(Phase::Zero);
    let mut each_10_ms = builder.thread(watched).start().expect("a loop");
    let (handle, stops) = (each_10_ms.handle(), each_10_ms.handle());
    let (spins, begun) = std::sync::mpsc::channel();
    let other = spawn_elsewhere("stops", move || {
        begun.recv().expect("the body says so");
        stops.stop();
    });
    let other = other.expect("there are threads");
    assert!(each_10_ms.wait().is_some());
    assert_eq!(each_10_ms.policy(), SchedPolicy::Fifo(10));
    spins.send(()).expect("it waits");
    // The watchdog stops it otherwise.
    while !handle.stopped() {
        std::hint::spin_loop();
    }
    let summary = each_10_ms.finish();
    other.join().expect("no panic");
    assert_eq!(summary.end, End::Stopped, "the request came after the watchdog: {summary}");
}

/// Without an end to it the start would last as long as the thread above does.
#[test]
fn a_thread_above_that_keeps_the_cpu_does_not_hold_up_a_start() {
    let cpus = affinity::get(0).expect("own");
    let may = skip::need_native("real timing") && skip::need_fifo();
    if !may || !skip::need("two CPUs", cpus.iter().count() >= 2) {
        return;
    }
    let mut ends = cpus.iter();
    let (first, last) = (ends.next().expect("two"), ends.last().expect("two"));
    let (is_done, is_late) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (begins, begun) = std::sync::mpsc::channel();
        let (is_done, is_late) = (&is_done, &is_late);
        scope.spawn(move || {
            let _above = ThreadSession::enter(Some(last), SchedPolicy::Fifo(3));
            let ends_ns = now_ns(ClockId::Monotonic) + 60_000_000_000;
            begins.send(()).expect("it waits");
            while !is_done.load(Ordering::Acquire) && now_ns(ClockId::Monotonic) < ends_ns {
                std::hint::spin_loop();
            }
            is_late.store(!is_done.load(Ordering::Acquire), Ordering::Release);
        });
        begun.recv().expect("it begins");
        let below = || thread(WaitPolicy::adaptive()).pinned(Some(last)).fifo(1);
        let alone = scope.spawn(move || {
            let each_ms = Loop::builder(Period::hz(1_000).expect("in range")).thread(below());
            let mut each_ms = each_ms.start().expect("a loop");
            while each_ms.wait().is_some() {}
            each_ms.finish().end
        });
        let servo = || Task::every("servo", Period::hz(1_000).expect("in range"));
        let main = scope.spawn(move || {
            let executive = Executive::builder().thread(below()).task(servo(), |_| ());
            executive.build().expect("a plan").0.run().expect("it starts")
        });
        // A loop and a thread beside the main one, which others wait for.
        let elsewhere = || thread(WaitPolicy::sleep()).pinned(Some(first)).fifo(2);
        let placed = |placement| {
            let executive = Executive::builder().thread(elsewhere());
            let executive = executive.task(servo().placed(Placement::inline()), |_| ());
            let slow = Task::every("slow", Period::hz(100).expect("in range"));
            let executive = executive.task(slow.placed(placement), |_| ());
            scope.spawn(move || executive.build().expect("a plan").0.run().expect("it starts"))
        };
        let beside = [placed(Placement::cpu(last)), placed(Placement::thread(below()))];
        let alone = alone.join();
        let runs = [main].into_iter().chain(beside).map(|run| run.join()).collect::<Vec<_>>();
        is_done.store(true, Ordering::Release);
        assert_eq!(alone.expect("no panic"), End::Starved);
        for summary in runs {
            let summary = summary.expect("no panic");
            assert_eq!(summary.end, End::Starved, "{summary}");
            // The last of each is below the one above. The kernel's fair server may lend its thread
            // the CPU until it is ready, so that the first one begins.
            assert!(summary.tasks.last().is_some_and(|task| task.counts.ran == 0), "{summary}");
        }
    });
    assert!(!is_late.load(Ordering::Acquire), "they ended before the thread above did");
}

/// A directory of a test's own.
fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("writable");
    dir
}

#[test]
fn an_older_sample_file_stays_until_there_are_samples() {
    let dir = scratch("older");
    let (path, link) = (dir.join("run"), dir.join("link"));
    std::fs::write(&path, "older").expect("writable");
    std::os::unix::fs::symlink(&path, &link).expect("writable");
    let unused = sleeping(1_000).record(&link).start().expect("a loop");
    assert_eq!(std::fs::read(&path).expect("there"), b"older");
    assert_eq!(unused.finish().samples, None, "nothing was recorded");
    assert_eq!(std::fs::read(&path).expect("there"), b"older");
    let mut control_loop = sleeping(1_000).record(&link).start().expect("a loop");
    assert!(control_loop.wait().is_some());
    assert_eq!(control_loop.finish().samples.expect("recorded").written, 1);
    assert!(std::fs::read(&path).expect("there").starts_with(b"PUNCTUAL"));
    assert_eq!(std::fs::read_link(&link).expect("still a link"), path);
    let left = std::fs::read_dir(&dir).expect("readable").count();
    assert_eq!(left, 2, "no other name is left");
    let why = sleeping(1_000).record(&dir).start().expect_err("a directory").to_string();
    assert!(why.contains("directory"), "{why}");
    std::fs::remove_dir_all(&dir).expect("ours");
}

#[test]
fn a_sample_file_that_is_removed_or_cut_off_is_an_error_at_the_end() {
    let dir = scratch("cut");
    let damaged = |damage: fn(&std::path::Path)| {
        let path = dir.join("run");
        let mut control_loop = sleeping(1_000).record(&path).start().expect("a loop");
        while !path.exists() {
            assert!(control_loop.wait().is_some());
        }
        damage(&path);
        let summary = control_loop.finish();
        let why = summary.samples.as_ref().and_then(|samples| samples.failed.clone());
        let message = summary.ok().expect_err("the samples are lost").to_string();
        let _removed = std::fs::remove_file(&path);
        assert!(
            message.contains("run") && why.is_some_and(|why| message.contains(&why)),
            "{message}"
        );
        message
    };
    let removed = damaged(|path| std::fs::remove_file(path).expect("there"));
    assert!(removed.contains("removed or replaced"), "{removed}");
    let cut = damaged(|path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("there");
        file.set_len(100).expect("writable");
    });
    assert!(cut.contains("another program changed it"), "{cut}");
    std::fs::remove_dir_all(&dir).expect("ours");
}

#[test]
fn a_budget_that_cannot_be_kept_is_said_with_its_price() {
    let mut clock = MachineClock::best();
    let wait = WaitPolicy::adaptive().cpu_budget(0.1);
    let warnings = |ns| strategy(&wait, Period::from_ns(ns).expect("in range"), &mut clock).1;
    let [short, long] = [1_000, 1_000_000_000].map(warnings);
    // A sleep takes some hundred nanoseconds at least, and never a tenth of a second.
    assert!(short.len() == 1 && short[0].contains("budget of 10 %"), "{short:?}");
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn a_loop_on_a_clock_that_is_followed_has_its_releases_on_that_time() {
    use punctual_engine::clocks::Vdso;
    use punctual_engine::follow::{ClockReading, Follow, Reference};
    use punctual_os::clock::{ClockId, now_ns};

    // 50 parts in a million fast, and far ahead.
    let made_up = Reference::Callback(Box::new(|| {
        let ns = now_ns(ClockId::Monotonic);
        let reference = Instant::from_ns((1 << 55) + ns + ns / 20_000);
        Some(ClockReading::new(Instant::from_ns(ns), reference, Span::ZERO))
    }));
    let follower = Follow::new(made_up).start().expect("readable");
    // Of a change of its pace a loop of 5 Hz would hear when it is over.
    let why = sleeping(5).start_on(follower.over(Vdso)).expect_err("too long");
    for part in ["known ahead, 100 ms", "a period of 200 ms", "`Follow::every`"] {
        assert!(why.to_string().contains(part), "{part}: {why}");
    }
    let plan = Executive::builder().clock(follower.over(Vdso)).thread(thread(WaitPolicy::sleep()));
    let (plan, _) = plan
        .task(Task::every("slow", Period::hz(5).expect("in range")), |_| Flow::Stop)
        .build()
        .expect("fine");
    assert_eq!(plan.run().expect("it looks every 100 ms").tasks[0].counts.ran, 1);
    let builder = sleeping(500).phase(Phase::Quiet);
    let mut control_loop = builder.start_on(follower.over(Vdso)).expect("a loop");
    assert_eq!((control_loop.phase_ns(), control_loop.quiet()), (0, None));
    for _ in 0..20 {
        let cycle = control_loop.wait().expect("not stopped");
        let release_ns = cycle.release.as_ns();
        assert!(release_ns > 1 << 55 && release_ns.is_multiple_of(2_000_000), "{release_ns}");
        assert!(cycle.lateness >= Span::ZERO);
    }
    let _next = control_loop.wait().expect("not stopped");
    assert_eq!(control_loop.handle().counts().ran, 20);
}

/// A clock on which a tick of 17 µs comes every 4 ms.
fn ticking() -> SimulatedClock {
    SimulatedClock::new().stall_every(Duration::from_millis(4), Duration::from_micros(17))
}

/// The place on that tick which listening gives where it takes something else for it: half a
/// period from a tick at 437.5 µs.
fn mistaken(period: Period) -> Quiet {
    let detected = (0..75).map(|turn| Gap {
        at: Instant::from_ns(turn * 4_000_000 + 437_500),
        length: Span::from_us(3),
    });
    let mut place = quiet::place(&detected.collect::<Vec<_>>(), period).expect("a place");
    (place.phase_ns, place.tick_ns, place.tick_phase_ns) = (0, 4_000_000, 437_500);
    place
}

#[test]
fn releases_that_meet_the_tick_all_the_same_are_moved_and_it_warns() {
    let period = Period::hz(1_000).expect("in range");
    let place = mistaken(period);
    let adaptive = || Loop::builder(period).thread(thread(WaitPolicy::adaptive()));
    let mut moved = adaptive().start_with(|_, _| (ticking(), Some(place)), |_| {}).expect("a loop");
    assert_eq!(
        (moved.phase_ns(), moved.quiet().map(|quiet| quiet.clear_ns)),
        (781_250, Some(218_750))
    );
    let words = moved.warnings().join("\n");
    assert!(words.contains(" met what comes every 4.00 ms, as the"), "{words}");
    for _ in 0..100 {
        let cycle = moved.wait().expect("not stopped");
        assert!(cycle.lateness < Span::from_us(1), "{cycle:?}");
    }
    drop(moved);
    // A phase that was given stays where it is, with a warning.
    let given = adaptive().phase(Phase::At(0)).start_with(|_, _| (ticking(), None), |_| {});
    let given = given.expect("a loop");
    let words = given.warnings().join("\n");
    assert_eq!(given.phase_ns(), 0);
    assert!(words.contains("releases meet what comes every 4.00 ms"), "{words}");
    let summary = given.run_for(Duration::from_millis(600), |_| {});
    assert_eq!((summary.warnings.len(), summary.moves), (1, 0), "{summary}");
}

#[test]
fn a_loop_that_meets_the_tick_while_it_runs_is_moved_whatever_it_waits_by() {
    let period = Period::hz(1_000).expect("in range");
    let place = mistaken(period);
    let known = quick(1_000, WaitPolicy::adaptive().learn_first(false)).start().expect("a loop");
    let known = known.finish().learned().expect("it learns");
    let known = Learned::kept(WakePlan::new(0, 0, 20_000), known.late);
    let waits = [
        WaitPolicy::fixed(Duration::from_micros(50)),
        WaitPolicy::sleep(),
        WaitPolicy::rearm(Some(Period::from_ns(100_000).expect("positive"))),
        WaitPolicy::adaptive().learn_first(false),
        WaitPolicy::adaptive().learned(known),
    ];
    for wait in waits {
        let builder = Loop::builder(period).thread(thread(wait));
        let mut control_loop =
            builder.start_with(|_, _| (ticking(), Some(place)), |_| {}).expect("a loop");
        assert_eq!((control_loop.phase_ns(), control_loop.moves()), (0, 0));
        let (mut last, mut late) = (None, 0);
        for n in 0..800 {
            let cycle = control_loop.wait().expect("not stopped");
            assert_eq!(cycle.n, n, "{wait:?}: no number is left out");
            let dt = last.map_or(cycle.dt, |last| cycle.release - last);
            assert_eq!(cycle.dt, dt, "{wait:?}: by the releases");
            last = Some(cycle.release);
            late += u64::from(n >= 500 && cycle.lateness > Span::from_us(10));
        }
        assert_eq!(
            (control_loop.moves(), late, control_loop.phase_ns()),
            (1, 0, 781_250),
            "{wait:?}"
        );
        let summary = control_loop.finish();
        let counts = summary.tasks[0].counts;
        assert_eq!((counts.ran, counts.missed, counts.censored), (800, 0, 0));
        let words = summary.warnings.join("\n");
        assert!(words.contains(" met what comes every 4.00 ms, as the"), "{wait:?} {words}");
        assert_eq!((summary.moves, summary.quiet.map(|quiet| quiet.phase_ns)), (1, Some(781_250)));
    }
}

#[test]
fn an_end_holds_for_releases_that_were_moved() {
    let period = Period::hz(1_000).expect("in range");
    let wait = WaitPolicy::fixed(Duration::from_micros(50));
    let builder = Loop::builder(period).thread(thread(wait));
    let control_loop = builder.start_with(|_, _| (ticking(), Some(mistaken(period))), |_| {});
    let (mut first, mut last) = (None, None);
    let summary = control_loop.expect("a loop").run_for(Duration::from_millis(1_000), |cycle| {
        first.get_or_insert(cycle.release);
        last = Some(cycle.release);
    });
    let (first, last) = (first.expect("it ran"), last.expect("it ran"));
    assert_eq!((summary.moves, summary.tasks[0].counts.ran), (1, 1_000), "{summary}");
    assert_eq!(last - first, Span::from_ns(999_000_000 + 781_250));
}

#[test]
fn a_stop_in_the_setup_ends_what_is_left_of_it() {
    let builder = quick(1_000, WaitPolicy::adaptive());
    let clock = |_, stop: &AtomicBool| {
        // As a signal that comes while the clock is made.
        stop.store(true, Ordering::Relaxed);
        (SimulatedClock::new(), None)
    };
    let mut stopped = builder.start_with(clock, |_| {}).expect("a loop");
    let learned = stopped.wait_status().learned.expect("it learns");
    assert_eq!((learned.phase, learned.cycles), (LearnPhase::Calibrating, 0));
    assert!(stopped.wait().is_none());
    let Counts { ran, missed, censored, .. } = stopped.finish().tasks[0].counts;
    assert_eq!((ran, missed, censored), (0, 0, 0));
}

#[test]
fn what_one_loop_learned_the_next_one_begins_with() {
    let plan = WakePlan::new(100_000, 1, 20_000);
    let first = quick(1_000, WaitPolicy::adaptive().learn_first(false)).start().expect("a loop");
    let learned = first.finish().learned().expect("it learns");
    let known = Learned::kept(plan, learned.late);
    // Without a warm-up: there is nothing to be learned first. Half a CPU pays this plan's two
    // wakes on any machine.
    let wait = WaitPolicy::adaptive().cpu_budget(0.5).learned(known);
    let second = quick(1_000, wait).start().expect("a loop");
    let learned = second.wait_status().learned.expect("it learns");
    assert_eq!((learned.phase, learned.plan.hop_ns), (LearnPhase::Following, 100_000));
    assert_eq!(learned.cycles, 0);
    assert!(sleeping(1_000).start().expect("a loop").finish().learned().is_none());
}
