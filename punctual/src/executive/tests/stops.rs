//! Ways to stop an executive: what was due before it ran or was missed, and nothing else counts.

#[expect(clippy::disallowed_types, reason = "set once, before the loop begins")]
use std::sync::OnceLock;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::adaptive::LearnPhase;

use super::*;

/// A simulated clock, and an executive that is stopped when it passes an instant.
#[derive(Clone, Default)]
#[expect(clippy::disallowed_types, reason = "set once, before the loop begins")]
pub(super) struct Simulated {
    pub(super) now_ns: Arc<AtomicU64>,
    /// 0 for none.
    stop_ns: Arc<AtomicU64>,
    stop: Arc<OnceLock<StopHandle>>,
}

impl Simulated {
    pub(super) fn pass(&self, to: Instant) {
        self.now_ns.fetch_max(to.as_ns(), Ordering::Relaxed);
        let stop_ns = self.stop_ns.load(Ordering::Relaxed);
        if stop_ns != 0
            && stop_ns <= to.as_ns()
            && let Some(stop) = self.stop.get()
        {
            stop.stop();
        }
    }
}

impl Clock for Simulated {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.now_ns.load(Ordering::Relaxed))
    }
    fn poll(&mut self) -> Instant {
        let to = self.now() + Span::from_us(1);
        self.pass(to);
        to
    }
    fn sleep_until(&mut self, at: Instant) {
        self.pass(at);
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

/// A way in which an executive ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Handle,
    Flow,
    Panic,
}

pub(super) fn ordinary(wait: WaitPolicy) -> RtThread {
    RtThread::any().other().wait(wait).lock_memory(false).hold_idle_states(false)
}

/// Runs one task of 20 Hz that is stopped 5 ms after its fourth release or by its fourth cycle.
fn simulated(wait: WaitPolicy, way: Way) -> Summary {
    let (clock, mut cycles) = (Simulated::default(), 0);
    clock.now_ns.store(1_000_000_001, Ordering::Relaxed);
    let stop_ns = Arc::clone(&clock.stop_ns);
    let set = Arc::clone(&clock.stop);
    let (plan, _) = Executive::builder()
        .clock(clock)
        .thread(ordinary(wait))
        .task(task("a", 50_000), |cycle: &mut Cycle<'_>| {
            cycles += 1;
            if cycles < 4 {
                return Flow::Continue;
            }
            match way {
                Way::Flow => return Flow::Stop,
                Way::Panic => panic!("the fourth cycle"),
                Way::Handle => stop_ns.store(cycle.release.as_ns() + 5_000_000, Ordering::Relaxed),
            }
            Flow::Continue
        })
        .build()
        .expect("fine");
    assert!(set.set(plan.stop_handle()).is_ok());
    plan.run().expect("it starts")
}

#[test]
fn a_stop_in_a_sleep_misses_nothing_however_it_waits() {
    let waits = [
        WaitPolicy::sleep(),
        WaitPolicy::fixed(Duration::from_micros(100)),
        WaitPolicy::fixed(ms(1)),
        WaitPolicy::rearm(None),
        WaitPolicy::adaptive(),
        WaitPolicy::spin(),
    ];
    for wait in waits {
        for way in [Way::Handle, Way::Flow, Way::Panic] {
            let summary = simulated(wait, way);
            let Counts { ran, missed, censored, .. } = stats(&summary, "a").counts;
            assert_eq!((ran, missed, censored), (4, 0, 0), "{wait:?} {way:?}: {summary}");
        }
    }
}

#[test]
fn a_stop_in_the_setup_ends_what_is_left_of_it_and_misses_nothing() {
    let apart = task("apart", 2_000).on_overrun(OnOverrun::Delay);
    let apart = apart.placed(Placement::thread(ordinary(WaitPolicy::adaptive())));
    let (plan, _) = Executive::builder()
        .thread(ordinary(WaitPolicy::adaptive()))
        .task(task("a", 1_000), |_| ())
        .task(apart, |_| ())
        .build()
        .expect("fine");
    plan.stop_handle().stop();
    let summary = plan.run().expect("it starts");
    assert_eq!(summary.end, End::Stopped);
    // It neither listened for the tick nor learned.
    assert!(summary.quiet.is_some_and(|quiet| !quiet.is_detected()), "{summary}");
    let learned = summary.wait.learned.expect("it learns");
    assert_eq!((learned.phase, learned.cycles), (LearnPhase::Calibrating, 0));
    for task in &summary.tasks {
        let Counts { ran, missed, censored, .. } = task.counts;
        assert_eq!((ran, missed, censored), (0, 0, 0), "{summary}");
    }
}

/// On the machine's clock: how many releases were due is between two readings of it.
#[test]
fn a_clean_stop_counts_the_releases_before_it() {
    for wait in [WaitPolicy::sleep(), WaitPolicy::fixed(Duration::from_micros(100))] {
        for placement in [Placement::inline(), Placement::thread(ordinary(wait))] {
            let first_ns = Arc::new(AtomicU64::new(0));
            let first = Arc::clone(&first_ns);
            let (plan, ids) = Executive::builder()
                .thread(ordinary(wait).fifo(2))
                .phase(Phase::Zero)
                .task(task("a", 40_000).placed(placement), move |cycle: &mut Cycle<'_>| {
                    let ns = cycle.release.as_ns() - cycle.missed * 40_000_000;
                    let _later =
                        first.compare_exchange(0, ns, Ordering::Relaxed, Ordering::Relaxed);
                })
                .build()
                .expect("fine");
            let running = plan.start().expect("it starts");
            while running.counts(ids[0]).expect("its own").ran < 3 {
                std::thread::yield_now();
            }
            let due = |now_ns: u64| (now_ns - first_ns.load(Ordering::Relaxed)) / 40_000_000 + 1;
            let before = due(now_ns(ClockId::Monotonic));
            running.stop();
            let after = due(now_ns(ClockId::Monotonic));
            let summary = running.join().expect("it ran");
            let Counts { ran, missed, .. } = stats(&summary, "a").counts;
            assert!((before..=after).contains(&(ran + missed)), "{before} to {after}: {summary}");
        }
    }
}

#[test]
fn each_handle_says_so_once_an_executive_cannot_run_any_more() {
    let built = || {
        let (plan, _) = quick().task(task("a", 1_000), |_| ()).build().expect("fine");
        let (handle, stop) = (plan.handle(), plan.stop_handle());
        assert!(!handle.stopped() && !stop.stopped());
        (plan, handle, stop)
    };
    let (plan, handle, stop) = built();
    drop(plan);
    assert!(handle.stopped() && stop.stopped(), "dropped unrun");
    let (plan, handle, stop) = built();
    assert_eq!(plan.run_for(ms(5)).expect("it starts").end, End::Finished);
    assert!(handle.stopped() && stop.stopped(), "its time was up");
    let (plan, handle, stop) = built();
    drop(plan.start().expect("it starts"));
    assert!(handle.stopped() && stop.stopped(), "dropped while it ran");
}

#[test]
fn what_runs_beside_sees_that_the_time_is_up() {
    let (plan, _) = quick().task(task("a", 1_000), |_| ()).build().expect("fine");
    let stop = plan.stop_handle();
    let beside = |handle: &Handle<'_>| {
        let is_over = || handle.stopped() && stop.stopped();
        let last_ns = now_ns(ClockId::Monotonic) + 60_000_000_000;
        while !is_over() && now_ns(ClockId::Monotonic) < last_ns {
            std::thread::yield_now();
        }
        is_over()
    };
    let (is_over, summary) = plan.run_with(ms(20), beside).expect("it starts");
    assert!(is_over, "a minute later");
    assert_eq!(summary.end, End::Finished, "nobody stopped it");
}

#[test]
fn what_a_task_elsewhere_was_due_for_is_missed_where_nobody_released_it() {
    // Behind a body of 60 ms that ends all.
    let until = |cycle: &mut Cycle<'_>| {
        sleep_until_ns((cycle.release + cycle.lateness).as_ns() + 60_000_000).expect("no signal");
        Flow::Stop
    };
    let own = Placement::thread(RtThread::any());
    let executive = quick().task(task("hog", 10_000).placed(Placement::inline()), until);
    let summary = run(executive.task(task("own", 5_000).placed(own), |_| ()), 60_000);
    let Counts { ran, missed, .. } = stats(&summary, "own").counts;
    assert!(ran + missed >= 12, "{summary}");
    let Counts { ran, missed, .. } = stats(&summary, "hog").counts;
    assert!(ran == 1 && missed >= 6, "{summary}");
}

#[test]
fn the_time_of_tasks_begins_with_the_first_of_their_releases() {
    for start_us in (0..10_000).step_by(700) {
        let clock = Simulated::default();
        clock.now_ns.store(1_000_000_000 + start_us * 1_000, Ordering::Relaxed);
        let thread = ordinary(WaitPolicy::sleep());
        let executive = Executive::builder().clock(clock).thread(thread);
        let (plan, _) = executive.task(task("a", 10_000), |_| ()).build().expect("fine");
        let summary = plan.run_for(ms(35)).expect("it starts");
        assert_eq!(stats(&summary, "a").counts.ran, 4, "{start_us} us into a period");
    }
}
