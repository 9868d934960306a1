//! A wait that learns does so before the loop begins.
//!
//! For loops, and for whoever sets up an executive: runs the wait on the loop's releases and
//! keeps nothing.

use std::sync::atomic::AtomicBool;

use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::time::{Period, Span};
use punctual_core::wait::adaptive::LearnPhase;
use punctual_core::wait::{Adaptive, Strategy, Wait};

use super::LEAD;
use super::start::strategy;
use crate::wait_policy::WaitPolicy;

/// The longest that a wait learns before the first cycle; one that takes longer learns in the loop.
pub const WARM_UP_MAX: Span = Span::from_ms(3_000);

/// A wait by this policy for releases of `period` and `phase_ns`, ready to be used on the calling
/// thread: it has learned what it can before the loop begins. And what cannot be kept of the
/// policy, in words. `discipline` takes in what was learned of the clock's rate meanwhile.
pub(crate) fn ready<C: Clock>(
    policy: &WaitPolicy,
    (period, phase_ns): (Period, u64),
    clock: &mut C,
    discipline: impl Fn(&mut C),
) -> (Strategy, Vec<String>) {
    let (mut wait, warnings) = strategy(policy, period, clock);
    discipline(clock);
    if policy.learn_first {
        warm_up(&mut wait, clock, period, phase_ns);
        discipline(clock);
    }
    (wait, warnings)
}

/// Lets a wait that learns do so on the releases of `period` and `phase_ns`, on the calling thread,
/// where that takes no longer than [`WARM_UP_MAX`]. Does nothing to one that learns nothing.
///
/// # Real-time: setup only
pub fn warm_up<C: Clock>(wait: &mut impl Wait<C>, clock: &mut C, period: Period, phase_ns: u64) {
    if Adaptive::calibration(period) > WARM_UP_MAX {
        return;
    }
    let never = AtomicBool::new(false);
    let start = clock.now() + LEAD;
    let releases = Releases::aligned(start, period, phase_ns);
    let mut k = 0;
    // A cycle without a sleep teaches nothing, so that it may take longer than it should.
    while wait.status().learned.is_some_and(|learned| learned.phase == LearnPhase::Calibrating)
        && releases.release(k) < start + WARM_UP_MAX
    {
        let wake = wait.until(clock, releases.release(k), &never);
        k = releases.next(k, wake.unwrap_or(start));
    }
    let _not_counted = wait.take_stalls();
}
