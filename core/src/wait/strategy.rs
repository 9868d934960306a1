//! All waits behind one type, for loops that choose when they start.
//!
//! For programs that take the strategy from their user. A match per wait, about a nanosecond; a
//! loop that knows its strategy uses that directly.

use core::sync::atomic::AtomicBool;

use super::{Adaptive, Rearm, Sleep, Spin, Stalls, Wait, WaitStatus};
use crate::clock::Clock;
use crate::time::Instant;

/// A wait, chosen at run time.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "nothing allocates here, and a loop has one of it")]
pub enum Strategy {
    /// An absolute sleep.
    Sleep(Sleep),
    /// A sleep that ends a constant time early, then a spin.
    Spin(Spin),
    /// NIST's early calls, then a spin.
    Rearm(Rearm),
    /// Learned hops and margin, then a spin.
    Adaptive(Adaptive),
}

impl Wait for Strategy {
    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        match self {
            Self::Sleep(wait) => wait.until(clock, release, stop),
            Self::Spin(wait) => wait.until(clock, release, stop),
            Self::Rearm(wait) => wait.until(clock, release, stop),
            Self::Adaptive(wait) => wait.until(clock, release, stop),
        }
    }

    #[inline]
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        match self {
            Self::Sleep(wait) => wait.near(clock, release, stop),
            Self::Spin(wait) => wait.near(clock, release, stop),
            Self::Rearm(wait) => wait.near(clock, release, stop),
            Self::Adaptive(wait) => wait.near(clock, release, stop),
        }
    }

    fn take_stalls(&mut self) -> Stalls {
        match self {
            Self::Sleep(wait) => wait.take_stalls(),
            Self::Spin(wait) => wait.take_stalls(),
            Self::Rearm(wait) => wait.take_stalls(),
            Self::Adaptive(wait) => wait.take_stalls(),
        }
    }

    fn status(&self) -> WaitStatus {
        match self {
            Self::Sleep(wait) => wait.status(),
            Self::Spin(wait) => wait.status(),
            Self::Rearm(wait) => wait.status(),
            Self::Adaptive(wait) => wait.status(),
        }
    }
}
