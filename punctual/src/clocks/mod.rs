//! The machine's clocks, ready for a loop: cycle counter where the kernel trusts it, else the vDSO.
//!
//! For sessions and experiments. Chooses once, at setup; never calibrates behind a hot name.

mod anchored;
mod cost;
mod slew;
mod trust;

use punctual_core::clock::Clock;
use punctual_core::time::Instant;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

pub use anchored::{Anchored, CounterRate};
pub use cost::{StampCost, wake_cost};
pub use slew::{Reading, Slew};
pub use trust::{Untrusted, counter_trust};

/// CLOCK_MONOTONIC by clock_gettime: what is used where the counter is not trusted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vdso;

impl Clock for Vdso {
    #[inline]
    fn now(&mut self) -> Instant {
        Instant::from_ns(now_ns(ClockId::Monotonic))
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        self.now()
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        sleep_until(at);
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        self.now()
    }

    #[inline]
    fn relax(&mut self) {
        punctual_os::cycles::relax();
    }
}

/// An interrupted sleep is no error here: whoever waits looks at the clock again.
#[inline]
fn sleep_until(at: Instant) {
    let _interrupted = sleep_until_ns(at.as_ns());
}

/// The clock to stamp with on this machine.
#[derive(Clone, Debug)]
pub enum MachineClock {
    /// The processor's counter, anchored to CLOCK_MONOTONIC at each wake.
    Counter(Anchored),
    /// CLOCK_MONOTONIC itself, and why not the counter.
    Vdso(Vdso, Untrusted),
}

impl MachineClock {
    /// The counter where the kernel trusts it, else the vDSO. Takes about 50 ms: it measures the
    /// counter's rate.
    ///
    /// # Real-time: setup only
    pub fn best() -> Self {
        match counter_trust() {
            Ok(()) => Self::Counter(Anchored::calibrate()),
            Err(why) => Self::Vdso(Vdso, why),
        }
    }

    /// What stamps are taken with: `tsc`, `cntvct` or `vdso`.
    ///
    /// # Real-time: setup only
    pub fn name(&self) -> &'static str {
        match self {
            Self::Counter(_) => punctual_os::cycles::NAME,
            Self::Vdso(..) => "vdso",
        }
    }

    /// The counter's rate and how well it is known; `None` without counter.
    ///
    /// # Real-time: setup only
    pub fn rate(&self) -> Option<CounterRate> {
        match self {
            Self::Counter(anchored) => Some(anchored.rate()),
            Self::Vdso(..) => None,
        }
    }

    /// Takes the counter's rate anew over all the time since calibration, which bounds it ever
    /// tighter. Between segments, never inside one.
    ///
    /// # Real-time: setup only
    pub fn discipline(&mut self) {
        if let Self::Counter(anchored) = self {
            anchored.discipline();
        }
    }
}

impl Clock for MachineClock {
    #[inline]
    fn now(&mut self) -> Instant {
        match self {
            Self::Counter(clock) => clock.now(),
            Self::Vdso(clock, _) => clock.now(),
        }
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        match self {
            Self::Counter(clock) => clock.poll(),
            Self::Vdso(clock, _) => clock.poll(),
        }
    }

    #[inline]
    fn fine(&mut self) -> u64 {
        match self {
            Self::Counter(clock) => clock.fine(),
            Self::Vdso(clock, _) => clock.fine(),
        }
    }

    #[inline]
    fn fine_now(&mut self) -> u64 {
        match self {
            Self::Counter(clock) => clock.fine_now(),
            Self::Vdso(clock, _) => clock.fine_now(),
        }
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        sleep_until(at);
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        match self {
            Self::Counter(clock) => clock.wake(),
            Self::Vdso(clock, _) => clock.wake(),
        }
    }

    #[inline]
    fn relax(&mut self) {
        punctual_os::cycles::relax();
    }
}
