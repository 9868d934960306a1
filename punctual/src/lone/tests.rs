//! Lone loops on the machine's own clock: counts, never durations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use punctual_core::time::{Instant, Period};
use punctual_core::wait::adaptive::Phase;
use punctual_testkit::skip;

use super::*;
use crate::way::Way;

fn quick(hertz: u64) -> Options {
    let options = Options::new(Period::hz(hertz).expect("in range"));
    options.place(Place::Zero).way(Way::Sleep).policy(Policy::Other)
}

#[test]
fn each_cycle_follows_the_last_or_counts_what_it_missed() {
    let mut storage = Storage::new();
    let mut looped = quick(3_000).place(Place::At(7)).enter(&mut storage).expect("a loop");
    let view = looped.view();
    let mut before: Option<Cycle> = None;
    let mut missed = 0;
    for _ in 0..50 {
        let cycle = looped.wait().expect("not stopped");
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
    let _next = looped.wait().expect("not stopped");
    assert_eq!((view.counts().ran, view.counts().missed), (50, missed));
    assert_eq!(looped.learned(), None);
}

#[test]
fn a_cycle_that_runs_over_its_next_release_is_an_overrun() {
    let mut storage = Storage::new();
    let mut looped = quick(1_000).enter(&mut storage).expect("a loop");
    let first = looped.wait().expect("not stopped");
    let mut clock = crate::clocks::Vdso;
    clock.sleep_until(first.next + Span::from_ms(2));
    let second = looped.wait().expect("not stopped");
    assert!(second.missed >= 2, "{second:?}");
    // Counted at the beginning of the next wait.
    let _next = looped.wait().expect("not stopped");
    let counts = looped.view().counts();
    assert_eq!((counts.missed, counts.over_release), (second.missed, 1));
}

#[test]
fn what_ran_is_counted_when_the_loop_ends_however_it_ends() {
    let mut storage = Storage::new();
    let mut looped = quick(1_000).enter(&mut storage).expect("a loop");
    let view = looped.view();
    let _cycle = looped.wait().expect("not stopped");
    assert_eq!(view.counts().ran, 0, "it runs");
    drop(looped);
    assert_eq!(view.counts().ran, 1);
    let mut storage = Storage::new();
    let mut looped = quick(1_000).enter(&mut storage).expect("a loop");
    let view = looped.view();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _cycle = looped.wait().expect("not stopped");
        panic!("on purpose");
    }));
    assert!(ended.is_err());
    assert_eq!(view.counts().ran, 1);
}

#[test]
fn a_stopped_loop_gives_nothing_more() {
    let fixed = Way::Fixed(Span::from_us(900));
    for way in [Way::Sleep, fixed, Way::Spin, Way::Rearm(None), Way::Adaptive(0.9)] {
        let mut storage = Storage::new();
        let options = quick(1_000).way(way).rehearse(false);
        let mut looped = options.enter(&mut storage).expect("a loop");
        let remote = looped.remote();
        assert!(looped.wait().is_some());
        std::thread::scope(|scope| {
            scope.spawn(|| remote.stop());
        });
        assert!((0..20).all(|_| looped.wait().is_none()), "{way:?}");
        drop(looped);
        assert!(remote.stopped());
    }
}

#[test]
fn a_wait_that_learns_has_learned_before_the_first_cycle() {
    let mut storage = Storage::new();
    let way = Way::Adaptive(0.5);
    // A short period, so that this is over soon: 400 samples of each of two approaches.
    let looped = quick(5_000).way(way).enter(&mut storage).expect("a loop");
    let learned = looped.learned().expect("it learns");
    assert_ne!(learned.phase, Phase::Calibrating);
    assert_eq!(looped.view().counts().ran, 0, "nothing of it is counted");
}

#[test]
fn the_watchdog_ends_a_loop_that_gets_nowhere() {
    if !skip::need_native("real timing") {
        return;
    }
    let mut storage = Storage::new();
    let options = quick(100).watchdog(Span::from_ms(100));
    let mut looped = options.enter(&mut storage).expect("a loop");
    let remote = looped.remote();
    assert!(looped.wait().is_some());
    while !remote.stopped() {
        std::hint::spin_loop();
    }
    assert!(looped.wait().is_none());
    assert!(remote.forced().is_some());
    drop(looped);
    assert!(Arc::strong_count(&remote.shared) == 1, "its thread is gone");
    assert!(remote.shared.stop.load(Ordering::Relaxed));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let ms = Period::hz(1_000).expect("in range");
    let all = |options: Options| options.check().expect_err("refused").to_string();
    let way = |way| all(Options::new(ms).way(way));
    assert!(all(Options::new(ms).place(Place::At(1_000_000))).contains("phase of 1000000 ns"));
    assert!(way(Way::Fixed(Span::from_ms(1))).contains("margin"));
    assert!(way(Way::Fixed(Span::from_ns(-1))).contains("margin"));
    assert!(way(Way::Rearm(Period::from_ns(2_000_000))).contains("early calls"));
    assert!(way(Way::Adaptive(0.0)).contains("budget") && way(Way::Adaptive(1.1)).contains("1.1"));
    assert!(way(Way::Adaptive(f64::NAN)).contains("NaN"));
    assert!(all(Options::new(ms).late_share(1.0)).contains("late wakes"));
    assert!(all(Options::new(ms).policy(Policy::Fifo(0))).contains("1 to 99"));
    assert!(all(Options::new(ms).policy(Policy::Unknown(6))).contains("1 to 99"));
    assert!(all(Options::new(ms).watchdog(Span::from_us(1_999))).contains("watchdog"));
    let short = Options::new(Period::ratio(10_000, 1).expect("in range"));
    assert!(all(short.way(Way::Spin)).contains("rests"));
    assert_eq!(Options::new(ms).check(), Ok(()));
}

#[test]
fn a_loop_on_a_clock_that_is_followed_has_its_releases_on_that_time() {
    use crate::clocks::Vdso;
    use crate::follow::{Follow, Reading, Reference};
    use punctual_os::clock::{ClockId, now_ns};

    // 50 parts in a million fast, and far ahead.
    let made_up = Reference::Callback(Box::new(|| {
        let ns = now_ns(ClockId::Monotonic);
        let reference = Instant::from_ns((1 << 55) + ns + ns / 20_000);
        Some(Reading { monotonic: Instant::from_ns(ns), reference, width: Span::ZERO })
    }));
    let follower = Follow::new(made_up).start().expect("readable");
    let mut storage = Storage::new();
    let options = quick(500).place(Place::Quiet);
    let mut looped = options.enter_on(follower.clock(Vdso), &mut storage).expect("a loop");
    assert_eq!((looped.phase_ns(), looped.quiet()), (0, None));
    for _ in 0..20 {
        let cycle = looped.wait().expect("not stopped");
        let release_ns = cycle.release.as_ns();
        assert!(release_ns > 1 << 55 && release_ns.is_multiple_of(2_000_000), "{release_ns}");
        assert!(cycle.lateness >= Span::ZERO);
    }
    let _next = looped.wait().expect("not stopped");
    assert_eq!(looped.view().counts().ran, 20);
}
