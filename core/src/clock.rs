//! The contract of a clock: the only source of time in this crate.
//!
//! For waits, the gate and the executive, which run on the machine's clock and in a simulated one
//! alike.
//! Touches nothing itself.

use crate::time::{Instant, Span};

/// As [`Spin::ADRIFT`](crate::wait::Spin::ADRIFT), of a body, which takes longer than a gap between
/// polls.
const BODY_ADRIFT: Span = Span::from_ms(100);

/// The end, stamped as `end`, of what began at `start`. In a suspend of the machine a counter goes
/// on and CLOCK_MONOTONIC does not: after a time that may have held one the clock is anchored anew,
/// lest releases be missed that have not passed.
///
/// # Real-time: in loop
#[inline]
pub fn end_of<C: Clock>(clock: &mut C, start: Instant, end: Instant) -> Instant {
    if end - start > BODY_ADRIFT { anchor_anew(clock, start) } else { end }
}

#[cold]
fn anchor_anew<C: Clock>(clock: &mut C, start: Instant) -> Instant {
    clock.wake().max(start)
}

/// A clock that can be read and slept on. Its instants are on CLOCK_MONOTONIC, on the clock that it
/// follows, or simulated: a loop mixes no two.
///
/// An implementation MUST be monotonic as seen from one thread between two calls of `wake`; MUST
/// NOT allocate, lock or fail; and MUST return from `sleep_until` no earlier than its argument,
/// unless a signal interrupted it.
pub trait Clock {
    /// A stamp in order: no instruction before it is stamped later, none after it earlier. On the
    /// processor's counter this is Maruti's `readtsc`, in nanoseconds of CLOCK_MONOTONIC.
    ///
    /// # Real-time: in loop
    fn now(&mut self) -> Instant;

    /// The cheapest stamp, for polling; the processor may reorder it by a few nanoseconds.
    ///
    /// # Real-time: in loop
    fn poll(&mut self) -> Instant;

    /// As `poll`, in 256ths of a nanosecond, modulo 2⁶⁴ (two years): for those who compute with
    /// less than a nanosecond.
    ///
    /// # Real-time: in loop
    #[inline]
    fn fine(&mut self) -> u64 {
        self.poll().as_ns() << 8
    }

    /// As `now`, in 256ths of a nanosecond, modulo 2⁶⁴.
    ///
    /// # Real-time: in loop
    #[inline]
    fn fine_now(&mut self) -> u64 {
        self.now().as_ns() << 8
    }

    /// Sleeps until `at`; returns at once when that has passed, and early on a signal.
    ///
    /// # Real-time: in loop, waits
    fn sleep_until(&mut self, at: Instant);

    /// A stamp in order, taken first of all; then anchors the clock anew to CLOCK_MONOTONIC, so
    /// that no error of its rate accumulates. Called once each time that the loop wakes.
    ///
    /// # Real-time: in loop
    fn wake(&mut self) -> Instant;

    /// The instant of this clock when CLOCK_MONOTONIC is at `at`, which is not far from now; `None`
    /// for a clock that has no relation to it, a simulated one.
    ///
    /// # Real-time: in loop
    fn at_monotonic(&mut self, _at: Instant) -> Option<Instant> {
        None
    }

    /// The time by which a change of its pace is known before it takes effect: no sleep on it may
    /// be longer. `None` for a clock whose pace does not change.
    ///
    /// # Real-time: in loop
    fn lead(&self) -> Option<Span> {
        None
    }

    /// Tells the processor that the caller spins.
    ///
    /// # Real-time: in loop
    fn relax(&mut self);

    /// Lets the processor pause until `at`, in a state meant to take less power and to leave more
    /// of the core to its other thread; whether it did. An interrupt ends a pause early, and so may
    /// the kernel. `false` at once where the processor has no instruction for it, or `at` is near.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    fn pause_until(&mut self, _at: Instant) -> bool {
        false
    }
}
