//! The machine's clocks, ready for a loop: cycle counter where the kernel trusts it, else the vDSO.
//!
//! For sessions and experiments. Chooses once, at setup; never calibrates behind a hot name.

mod anchored;
mod cost;
mod pause;
mod slew;
mod trust;

use punctual_core::clock::Clock;
use punctual_core::time::Instant;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::timed_pause::TimedPause;

pub use anchored::{Anchored, CounterRate};
pub use cost::{StampCost, wake_cost};
pub use pause::{PauseFault, PauseTrial, UsedPause};
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
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
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
    /// counter's rate. Where the processor has timed pauses it tries them, some 5 ms each.
    ///
    /// # Real-time: setup only
    pub fn best() -> Self {
        let mut clock = match counter_trust() {
            Ok(()) => Self::Counter(Anchored::calibrate()),
            Err(why) => Self::Vdso(Vdso, why),
        };
        let all = TimedPause::ALL.iter().copied();
        clock.try_pauses(all.filter(|pause| pause.is_supported()));
        clock
    }

    /// Tries these timed pauses and lets spins use the first that keeps to its deadline; without
    /// any, spins poll. One that the processor lacks ends the process.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn try_pauses(&mut self, pauses: impl Iterator<Item = TimedPause>) {
        if let Self::Counter(anchored) = self {
            anchored.try_pauses(pauses);
        }
    }

    /// What the trial of the processor's timed pauses found; they need the counter.
    ///
    /// # Real-time: setup only
    pub fn pauses(&self) -> PauseTrial {
        match self {
            Self::Counter(anchored) => anchored.pauses(),
            Self::Vdso(..) => PauseTrial::Absent,
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
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }

    #[inline]
    fn relax(&mut self) {
        punctual_os::cycles::relax();
    }

    #[inline]
    fn pause_until(&mut self, at: Instant) -> bool {
        match self {
            Self::Counter(clock) => clock.pause_until(at),
            Self::Vdso(..) => false,
        }
    }
}
