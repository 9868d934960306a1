//! Spins that pause by TPAUSE and MWAITX, on an emulated processor: exact at the release whatever
//! the processor does, and off where it does not keep to its deadline.
//!
//! One test alone in its process, whose code and handler of SIGTRAP are the emulator's. Asserts no
//! time but that no wake comes before its release.
#![cfg(target_arch = "x86_64")]

use std::sync::atomic::AtomicBool;

use punctual_core::clock::Clock;
use punctual_core::time::Span;
use punctual_core::wait::{PausedSpin, Spin, Wait, WaitStatus};
use punctual_engine::clocks::{
    MachineClock, PauseFault, PauseTrial, counter_rate, pause_trial, try_pauses,
};
use punctual_os::emulated_pause::{EXACT, Played, executed, install, play};
use punctual_os::timed_pause::TimedPause;

const MARGIN: Span = Span::from_us(400);
const WAITS: u64 = 50;
/// The longest time of the tries: beside loops of high priority hardly a try is undisturbed.
const PATIENCE: Span = Span::from_ms(60_000);

/// Tries one until it is used: on a busy machine the emulator itself is late.
fn used(clock: &mut MachineClock, pause: TimedPause) {
    let end = clock.wake() + PATIENCE;
    while clock.wake() < end {
        try_pauses(clock, [pause].into_iter());
        if matches!(pause_trial(clock), PauseTrial::Used(used) if used.instruction() == pause) {
            return;
        }
    }
    panic!("{pause:?} was never in time: {:?}", pause_trial(clock));
}

/// Tries until it holds: on a busy machine some waits find their release passed, and pause less.
fn holds(clock: &mut MachineClock, mut trial: impl FnMut(&mut MachineClock) -> Result<(), String>) {
    let end = clock.wake() + PATIENCE;
    while let Err(why) = trial(clock) {
        assert!(clock.wake() < end, "{why}");
    }
}

/// Waits by a spin of 400 µs, without a sleep; pauses, those that the limit ended, and how much was
/// paused.
fn waits(clock: &mut MachineClock, played: Played) -> (u64, u64, PausedSpin) {
    let mut wait = Spin::new(MARGIN);
    play(played);
    for _ in 0..WAITS {
        let release = clock.wake() + MARGIN;
        let wake = wait.until(clock, release, &AtomicBool::new(false)).expect("not stopped");
        assert!(wake >= release, "{} before the release", release - wake);
    }
    let WaitStatus { paused, .. } = wait.status();
    let (pauses, limited) = executed();
    (pauses, limited, paused)
}

#[test]
fn a_timed_pause_never_moves_the_end_of_a_spin() {
    install().expect("code that can be written");
    play(EXACT);
    let mut clock = MachineClock::best();
    if counter_rate(&clock).is_none() {
        return; // Without a trusted counter nothing pauses.
    }
    let supported = TimedPause::ALL.iter().filter(|pause| pause.is_supported()).count();
    let (executed_by_best, _) = executed();
    assert_eq!(executed_by_best == 0, supported == 0, "what CPUID does not show is not executed");

    try_pauses(&mut clock, std::iter::empty());
    let (pauses, _, paused) = waits(&mut clock, EXACT);
    assert_eq!((pauses, paused.share(), pause_trial(&clock)), (0, None, PauseTrial::Absent));

    for pause in TimedPause::ALL.iter().copied() {
        play(EXACT);
        used(&mut clock, pause);
        holds(&mut clock, |clock| {
            let (exact, _, paused) = waits(clock, EXACT);
            let share = paused.share().unwrap_or(0.0);
            if exact < WAITS || share <= 0.0 || share > 1.0 {
                return Err(format!("{pause:?}: {exact} pauses, {share} of the spin"));
            }
            // Interrupts.
            let (early, ..) = waits(clock, Played { early: 2, ..EXACT });
            if early > exact { Ok(()) } else { Err(format!("{pause:?}: {early} and {exact}")) }
        });
        // The kernel's limit, which MWAITX does not know.
        let (pauses, limited, _) = waits(&mut clock, Played { limit: 50_000, ..EXACT });
        assert_eq!(limited > 0, pause != TimedPause::Mwaitx, "{pause:?}: {limited} of {pauses}");
        // Late after it was found in time.
        let hz = counter_rate(&clock).expect("a counter").hz;
        let late = Played { late: (hz * 2e-6) as u64, ..EXACT };
        waits(&mut clock, late);

        play(late);
        try_pauses(&mut clock, [pause].into_iter());
        let off = pause_trial(&clock);
        assert!(
            matches!(off, PauseTrial::Off(tried, PauseFault::Late(_)) if tried == pause),
            "{off:?}"
        );
        assert_eq!(waits(&mut clock, EXACT).0, 0, "one that is off is not executed");

        play(Played { intercepted: true, ..EXACT });
        try_pauses(&mut clock, [pause].into_iter());
        assert!(matches!(pause_trial(&clock), PauseTrial::Off(tried, _) if tried == pause));
    }
}
