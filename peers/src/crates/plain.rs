//! A plain loop: `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)` to each release, nothing else.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::time::Instant;
use punctual_core::wait::Wait;
use punctual_os::clock::sleep_until_ns;

/// One absolute sleep a cycle.
pub(crate) struct Plain;

impl Wait for Plain {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        // No signal is sent to this thread, and an early return would be seen as negative lateness.
        let _interrupted = sleep_until_ns(release.as_ns());
        Some(clock.wake())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::tests::is_there_at_each_release;
    use punctual_core::time::Period;

    #[test]
    fn it_is_there() {
        is_there_at_each_release(Plain, Period::from_ns(1_000_000).expect("positive"));
    }
}
