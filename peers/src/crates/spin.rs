//! The crate `spin_sleep` with its defaults: a sleep that ends 125 µs early, then a spin that
//! yields.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::time::Instant;
use punctual_core::wait::Wait;

use super::Std;

/// `spin_sleep::sleep_until` to each release.
pub(crate) struct SpinSleep(pub(crate) Std);

impl Wait for SpinSleep {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        spin_sleep::sleep_until(self.0.at(release));
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
        let period = Period::from_ns(1_000_000).expect("positive");
        is_there_at_each_release(SpinSleep(Std::new()), period);
    }
}
