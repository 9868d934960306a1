//! tokio's `interval` on its runtime of one thread. Its timer counts whole milliseconds and rounds
//! up, so that a grid off those milliseconds, or a shorter period, is late by design.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period};
use punctual_core::wait::Wait;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{MissedTickBehavior, interval_at};

use super::{Std, std_period};

/// `interval.tick().await` to each release; ticks that passed are skipped, as releases are here.
pub(crate) struct Interval {
    std: Std,
    period: Period,
    runtime: Runtime,
    interval: Option<tokio::time::Interval>,
}

impl Interval {
    /// A runtime of the calling thread alone.
    ///
    /// # Errors
    /// The runtime could not be had.
    pub(crate) fn new(std: Std, period: Period) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { std, period, runtime, interval: None })
    }
}

impl Wait for Interval {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let at = tokio::time::Instant::from_std(self.std.at(release));
        let Self { period, runtime, interval, .. } = self;
        let interval = interval.get_or_insert_with(|| {
            let _entered = runtime.enter();
            let mut interval = interval_at(at, std_period(*period));
            interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
            interval
        });
        // After a pause of the loop the first tick is one that passed.
        while !stop.load(Ordering::Relaxed) {
            if runtime.block_on(interval.tick()) >= at {
                return Some(clock.wake());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crates::tests::is_there_at_each_release;

    #[test]
    fn it_is_there() {
        let period = Period::from_ns(2_000_000).expect("positive");
        is_there_at_each_release(Interval::new(Std::new(), period).expect("a runtime"), period);
    }
}
