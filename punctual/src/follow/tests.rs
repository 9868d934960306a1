//! References that are followed by a real thread: what drifts, steps, stops, or comes too late.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;

use super::*;
use crate::clocks::Vdso;

/// A clock 30 000 parts in 10⁹ fast that steps once, by a second.
fn made_up(stepped: Arc<AtomicBool>) -> Reference {
    Reference::Callback(Box::new(move || {
        let ns = now_ns(ClockId::Monotonic);
        let step = if stepped.load(Ordering::Relaxed) { 1_000_000_000 } else { 0 };
        let reference = Instant::from_ns(ns + ns / 1_000_000 * 30 + (1 << 55) + step);
        Some(ClockReading { monotonic: Instant::from_ns(ns), reference, width: Span::ZERO })
    }))
}

/// Waits until the follower has reached this status.
fn until(follower: &Follower, reached: impl Fn(ServoStatus) -> bool) -> ServoStatus {
    let end = monotonic() + Span::from_ms(60_000);
    while !reached(follower.status()) && monotonic() < end {
        let _interrupted = sleep_until_ns((monotonic() + Span::from_ms(1)).as_ns());
    }
    follower.status()
}

#[test]
fn a_thread_follows_what_it_is_given_and_counts_its_step() {
    let stepped = Arc::new(AtomicBool::new(false));
    let follow = Follow::new(made_up(Arc::clone(&stepped)));
    let follower = follow.every(Span::from_ms(2), Span::from_ms(1)).start().expect("a thread");
    let status = until(&follower, |status| status.readings > 40);
    assert!((status.drift_ppb - 30_000.0).abs() < 3_000.0, "{status:?}");
    assert_eq!(status.steps, 0);
    let mut clock = follower.over(Vdso);
    let before = (clock.wake(), monotonic());
    stepped.store(true, Ordering::Relaxed);
    let status = until(&follower, |status| status.steps > 0);
    assert_eq!(status.steps, 1);
    let after = (clock.wake(), monotonic());
    let apart = (after.0 - before.0).as_ns() - (after.1 - before.1).as_ns();
    // A part in ten thousand of what has passed, and the time between the two looks.
    assert!(apart.abs() < 500_000_000, "the grid has not stepped: {apart}");
}

#[test]
fn what_cannot_be_read_is_refused_and_what_cannot_any_more_is_counted() {
    let never = Follow::new(Reference::Callback(Box::new(|| None)));
    let refusal = never.start().expect_err("unreadable").to_string();
    assert_eq!(refusal, "Callback cannot be read");
    let mut first = true;
    let once = Reference::Callback(Box::new(move || {
        let ns = now_ns(ClockId::Monotonic);
        let at = Instant::from_ns(ns);
        let reading = ClockReading { monotonic: at, reference: at, width: Span::ZERO };
        std::mem::take(&mut first).then_some(reading)
    }));
    let follower = Follow::new(once).every(Span::from_ms(1), Span::ZERO).start();
    let follower = follower.expect("read once");
    let end = monotonic() + Span::from_ms(60_000);
    while follower.unread() == 0 && monotonic() < end {
        let _interrupted = sleep_until_ns((monotonic() + Span::from_ms(1)).as_ns());
    }
    assert!(follower.unread() > 0);
    assert_eq!(follower.status().readings, 0);
}

#[test]
fn what_was_set_and_cannot_be_is_refused_before_anything_is_read() {
    let unread = || Follow::new(Reference::Callback(Box::new(|| panic!("read"))));
    let refused = |follow: Follow| follow.start().expect_err("refused").to_string();
    let every = |every_ns, lead_ns| {
        refused(unread().every(Span::from_ns(every_ns), Span::from_ns(lead_ns)))
    };
    assert_eq!(
        every(500_000, 0),
        "time between two readings must be at least 1.00 ms (got 500 µs)"
    );
    let lead = "lead must be from 0 to below the time between two readings of 2.00 ms";
    assert_eq!(every(2_000_000, -1), format!("{lead} (got -1 ns)"));
    assert_eq!(every(2_000_000, 2_000_000), format!("{lead} (got 2.00 ms)"));
    let usual = Settings::default();
    for (settings, said) in [
        (Settings { limit_ppb: -1, ..usual }, "parts in 10^9 (got -1)"),
        (Settings { limit_ppb: 100_000_001, ..usual }, "parts in 10^9 (got 100000001)"),
        (Settings { step: Span::from_ns(-1), ..usual }, "step must not be negative (got -1 ns)"),
        (Settings { period_ns: Some(0), ..usual }, "period must be greater than 0"),
    ] {
        let is = refused(unread().settings(settings));
        assert!(is.contains(said), "{is}");
    }
}

#[test]
fn a_reference_that_stops_is_counted_once() {
    let (stopped, still) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (theirs, at) = (Arc::clone(&stopped), Arc::clone(&still));
    let reference = Reference::Callback(Box::new(move || {
        let ns = now_ns(ClockId::Monotonic);
        if !theirs.load(Ordering::Relaxed) {
            at.store(ns, Ordering::Relaxed);
        }
        let reference = Instant::from_ns(at.load(Ordering::Relaxed));
        Some(ClockReading { monotonic: Instant::from_ns(ns), reference, width: Span::ZERO })
    }));
    let follow = Follow::new(reference).every(Span::from_ms(5), Span::from_ms(1));
    let follower = follow.start().expect("a thread");
    let before = until(&follower, |status| status.readings > 3);
    assert_eq!((before.stops, before.steps), (0, 0));
    stopped.store(true, Ordering::Relaxed);
    let after = until(&follower, |status| status.stops > 0);
    assert_eq!((after.stops, after.steps), (1, 0), "{after:?}");
}

#[test]
fn what_was_thought_of_too_late_is_not_published() {
    let common = Common::new(Settings::default());
    let reading = |ns: u64| {
        let at = Instant::from_ns(ns);
        ClockReading {
            monotonic: at,
            reference: at + Span::from_ns(ns.cast_signed() / 50_000),
            width: Span::ZERO,
        }
    };
    let mut servo = Servo::new(Settings::default(), reading(1_000_000_000));
    common.shared.publish(&servo);
    let (map, turn) = (servo.map(), common.shared.turn());
    // No thread is as quick as this lead asks for.
    common.follow(&mut servo, reading(2_000_000_000), Span::from_ns(2));
    assert_eq!((servo.map(), common.shared.turn()), (map, turn));
    assert_eq!(common.unread.load(Ordering::Relaxed), 1);
    common.follow(&mut servo, reading(2_000_000_000), Span::from_ms(60_000));
    assert_ne!(servo.map(), map);
    assert_eq!(common.shared.view().map(|view| view.map), Some(servo.map()));
    let counts = (common.unread.load(Ordering::Relaxed), common.late.load(Ordering::Relaxed));
    assert_eq!(counts, (1, 0));
}
