//! Waits for a release: sleep, or sleep and spin at the end.
//!
//! [`Sleep`] is what a plain loop does, [`Spin`] wakes early by a constant, [`Rearm`] is NIST's
//! method, [`Adaptive`] learns what this machine needs.
//!
//! For the gate of a loop and for the executive, over any [`Clock`]. Each wait is absolute;
//! relative sleeps exist nowhere. Never decides which release is next, never records.

pub mod adaptive;
mod spin;

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::time::{Instant, Period, Span};
use spin::Spinner;

pub use adaptive::{Adaptive, Learned};
pub use spin::Spin;

/// Waits for releases.
pub trait Wait {
    /// Waits until `release` and returns the wake, a stamp that is no earlier than that (Maruti's
    /// `mdelay`, with a sleep where there is time for one); returns at once when `release` has
    /// passed already. `None` when `stop` was set first: a wait that sleeps finds that out at its
    /// next wake only.
    ///
    /// # Real-time: in loop, waits
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant>;

    /// Sleeps as far as [`Wait::until`] would, and returns the instant at which that was over: from
    /// then up to the release there is time in hand. A wait that leaves none returns the release at
    /// once and sleeps in `until`. `None` when `stop` was set first.
    ///
    /// # Real-time: in loop, waits
    fn near<C: Clock>(&mut self, _: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        Some(release)
    }

    /// Returns the gaps seen inside spins since this was last called, and forgets them. None for a
    /// wait that does not spin.
    ///
    /// # Real-time: in loop
    fn take_stalls(&mut self) -> Stalls {
        Stalls::default()
    }

    /// Its present plan of sleeps, and its knowledge of this machine. For reports: a wait that
    /// learns computes this anew each time.
    ///
    /// # Real-time: in loop
    fn status(&self) -> WaitStatus {
        WaitStatus::default()
    }
}

impl<W: Wait> Wait for &mut W {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        (**self).until(clock, release, stop)
    }

    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        (**self).near(clock, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        (**self).take_stalls()
    }

    fn status(&self) -> WaitStatus {
        (**self).status()
    }
}

/// The state of a wait, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WaitStatus {
    /// The sleeps before a release.
    pub plan: WakePlan,
    /// Its knowledge of this machine; `None` for a wait that learns nothing.
    pub learned: Option<Learned>,
    /// The part of its spins in which the processor paused.
    pub paused: PausedSpin,
}

/// The time that the processor paused in spins ([`Clock::pause_until`]), of those that paused at
/// all. Sums, saturating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PausedSpin {
    /// The time in pauses.
    pub paused: Span,
    /// The time from the first pause of a spin to its release.
    pub spun: Span,
}

impl PausedSpin {
    /// Counts a spin.
    #[inline]
    pub(crate) fn add(&mut self, paused: Span, spun: Span) {
        let sum = |a: Span, b: Span| Span::from_ns(a.as_ns().saturating_add(b.as_ns()));
        (self.paused, self.spun) = (sum(self.paused, paused), sum(self.spun, spun));
    }

    /// The share of the spins that was paused, in [0, 1]; `None` where no spin paused.
    ///
    /// # Real-time: setup only
    pub fn share(self) -> Option<f64> {
        let spun_ns = self.spun.as_ns();
        (spun_ns > 0).then(|| self.paused.as_ns() as f64 / spun_ns as f64)
    }
}

/// Gaps between two polls of a spin that were longer than [`Spin::STALL`]: the CPU was elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalls {
    /// The number of gaps.
    pub count: u64,
    /// The longest one.
    pub longest: Span,
    /// All of them together.
    pub sum: Span,
}

impl Stalls {
    /// This many gaps, the longest one, and all of them together.
    ///
    /// # Real-time: in loop
    pub const fn new(count: u64, longest: Span, sum: Span) -> Self {
        Self { count, longest, sum }
    }
}

/// An absolute sleep, nothing else: the wait of a plain loop. Takes the least CPU, and is as late
/// as the kernel's timer and the idle state of the CPU make it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep;

impl Wait for Sleep {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            clock.sleep_until(release);
            let wake = clock.wake();
            // Early only when a signal interrupted the sleep.
            if wake >= release {
                return Some(wake);
            }
        }
    }
}

/// The sleeps before a release, for the waits that spin at their end. Zero in all is one sleep up
/// to the release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WakePlan {
    /// The length of a short sleep, ns; 0 for one sleep however long it is.
    pub hop_ns: u64,
    /// The number of short sleeps at the end, after one as long as it may be: `u32::MAX` for short
    /// ones all the way.
    pub hops: u32,
    /// The time from the end of the last sleep to the release, ns: what is spun.
    pub margin_ns: u64,
}

impl WakePlan {
    /// So many short sleeps of this length, and this margin.
    ///
    /// # Real-time: setup only
    pub const fn new(hop_ns: u64, hops: u32, margin_ns: u64) -> Self {
        Self { hop_ns, hops, margin_ns }
    }

    /// The end of the next sleep, from `now` on; `None` when the margin has begun.
    ///
    /// # Real-time: in loop
    #[inline]
    fn next(self, now: Instant, release: Instant) -> Option<Instant> {
        let last = release.as_ns().saturating_sub(self.margin_ns);
        let away = last.checked_sub(now.as_ns()).filter(|&ns| ns > 0)?;
        if self.hop_ns == 0 {
            return Some(Instant::from_ns(last));
        }
        // A first hop of less than a quarter is joined to the one after it.
        let hops = (away - away.min(self.hop_ns / 4)) / self.hop_ns;
        Some(Instant::from_ns(last - hops.min(u64::from(self.hops)) * self.hop_ns))
    }

    /// Sleeps until the margin has begun. Returns the instant after that, and the lateness of the
    /// last sleep's return (`None` where there was no time to sleep). `None` when `stop` was set
    /// first.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    fn sleep<C: Clock>(
        self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<(Instant, Option<Span>)> {
        let last = release - Span::from_ns(i64::try_from(self.margin_ns).unwrap_or(i64::MAX));
        let mut now = clock.poll();
        let mut slept = false;
        while let Some(at) = self.next(now, release) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            clock.sleep_until(at);
            now = clock.wake();
            slept = true;
        }
        if !slept {
            // Anchored here, in time to spare, so that no stamp after the spin costs anything.
            now = clock.wake();
        }
        Some((now, slept.then(|| (now - last).max(Span::ZERO))))
    }
}

/// NIST's wait: short sleeps on a grid of their own, then a spin of at most one of them.
///
/// For comparison. *Timing jitter of real-time Linux and its effect on motor control*, §3: a task
/// of a short period A looks whether its release is more than A away, sleeps again if so, and
/// else polls. The short sleeps keep the CPU awake; on average half of A is spun.
#[derive(Clone, Copy, Debug)]
pub struct Rearm {
    every: Period,
    spinner: Spinner,
}

impl Rearm {
    /// A wait that is called every `every`.
    ///
    /// # Real-time: setup only
    pub fn new(every: Period) -> Self {
        Self { every, spinner: Spinner::default() }
    }

    /// The A that costs the least CPU, √(T·S), for a period T and a cost S of one early call (NIST,
    /// equation 2); at least 1 ns.
    ///
    /// # Real-time: setup only
    pub fn best(period: Period, cost: Span) -> Period {
        let cost_ns = u128::from(cost.as_ns().unsigned_abs());
        let best = (u128::from(period.as_ns()) * cost_ns).isqrt();
        let ns = u64::try_from(best).unwrap_or(u64::MAX).clamp(1, period.as_ns());
        Period::from_ns(ns).unwrap_or(period)
    }
}

impl Wait for Rearm {
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        let every_ns = self.every.as_ns();
        let mut now = clock.wake();
        while (release - now).as_ns() > 0 && (release - now).as_ns().unsigned_abs() > every_ns {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let next_ns = now.as_ns() - now.as_ns() % every_ns + every_ns;
            clock.sleep_until(Instant::from_ns(next_ns));
            now = clock.wake();
        }
        if now >= release {
            return Some(now);
        }
        self.spinner.spin(clock, now, release, stop)
    }

    fn status(&self) -> WaitStatus {
        let every_ns = self.every.as_ns();
        let plan = WakePlan { hop_ns: every_ns, hops: u32::MAX, margin_ns: every_ns };
        WaitStatus { plan, learned: None, paused: self.spinner.paused }
    }

    fn take_stalls(&mut self) -> Stalls {
        core::mem::take(&mut self.spinner.stalls)
    }
}

/// A wait, chosen at run time.
///
/// For programs that take the strategy from their user. A match per wait, about a nanosecond; a
/// loop that knows its strategy uses that directly.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_end_at_the_margin() {
        let plan = WakePlan { hop_ns: 100, hops: u32::MAX, margin_ns: 20 };
        let next = |now| plan.next(Instant::from_ns(now), Instant::from_ns(1_000));
        let at = |ns| Some(Instant::from_ns(ns));
        assert_eq!(next(0), at(80));
        assert_eq!(next(70), at(180));
        assert_eq!(next(880), at(980));
        assert_eq!(next(979), at(980));
        assert_eq!(next(980), None);
        let nap = WakePlan { hops: 1, ..plan };
        let then = |now| nap.next(Instant::from_ns(now), Instant::from_ns(1_000));
        assert_eq!([0, 870, 880, 980].map(then), [at(880), at(980), at(980), None]);
        let once = WakePlan { hop_ns: 0, ..plan };
        assert_eq!(once.next(Instant::from_ns(0), Instant::from_ns(1_000)), at(980));
    }

    #[test]
    fn the_best_interval_is_nists() {
        let best = |t, s| Rearm::best(Period::from_ns(t).expect("positive"), Span::from_ns(s));
        assert_eq!(best(500_000, 5_000).as_ns(), 50_000);
        assert_eq!(best(1_000, 0).as_ns(), 1);
        assert_eq!(best(1_000, i64::MAX).as_ns(), 1_000);
    }
}
