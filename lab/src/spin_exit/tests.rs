//! The corrected exit in clocks that are made up: counters of coarse steps, and stalls.

use super::*;

/// A clock that shows each `step`th unit only, and moves on by `poll` at each look.
struct Steps {
    now: u64,
    poll: u64,
    step: u64,
    /// At this look it moves on by so much.
    stall: (u64, u64),
    looks: u64,
}

impl Steps {
    fn new(now: u64, poll: u64, step: u64) -> Self {
        Self { now, poll, step, stall: (u64::MAX, 0), looks: 0 }
    }
}

impl Clock for Steps {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.fine_now() / FINE)
    }
    fn poll(&mut self) -> Instant {
        Instant::from_ns(self.fine() / FINE)
    }
    fn fine(&mut self) -> u64 {
        self.looks += 1;
        self.now += self.poll;
        if self.looks == self.stall.0 {
            self.now += self.stall.1;
        }
        self.fine_now()
    }
    fn fine_now(&mut self) -> u64 {
        self.now - self.now % self.step
    }
    fn sleep_until(&mut self, at: Instant) {
        self.now = self.now.max(at.as_ns() * FINE);
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

fn exit(poll: u64, quantum: u64, reach: u64) -> SpinExit {
    SpinExit { poll, quantum, fixed: reach, links: 1 << 32, reach, plain: 0, corrected: 0 }
}

#[test]
fn a_coarse_counter_is_read_sharper_than_its_step_and_never_ahead() {
    let mut seed = 1u64;
    for case in 0..2_000u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = |shift: u32, below: u64| (seed >> shift) % below;
        let poll = 1_000 + random(20, 2_000);
        let step = 1 + random(33, 9_000);
        let mut clock = Steps::new((1 << 40) + random(40, 50_000), poll, step);
        // A hundredth short, as it is calibrated.
        let exit = exit(poll - poll / 100, step, 20_000);
        let target = clock.now + 400_000;
        let Left { now, left, .. } = exit.approach(&mut clock, target);
        assert!(now <= clock.now, "{case}: ahead by {}", now - clock.now);
        assert!((0..=20_000).contains(&left), "{case}: {left}");
        // Somewhere on the way a poll met an edge within a step of the pattern of both: what was
        // lost since is the hundredth of each poll.
        let behind = clock.now - now;
        assert!(behind < step.max(1), "{case}: {behind} behind with a step of {step}");
        if poll > 1_100 && step > 6_000 {
            assert!(behind < poll + 100 * (poll / 100), "{case}: {behind} behind, poll {poll}");
        }
    }
}

#[test]
fn a_clock_that_the_delay_does_not_move_cannot_be_calibrated() {
    let mut clock = Steps::new(1 << 40, 2_560, 1);
    assert_eq!(SpinExit::calibrate(&mut clock), Err(Uncorrected::Unsteady));
}
