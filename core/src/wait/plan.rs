//! The sleeps before a release, and how late the last of them came back.
//!
//! For the waits that spin at their end. Computes instants and sleeps; never spins, never learns.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::time::{Instant, Span};

/// The sleeps before a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakePlan {
    /// A short sleep, ns; 0 for one sleep however long it is.
    pub hop_ns: u64,
    /// How many short sleeps there are at the end, after one as long as it may be: `u32::MAX` for
    /// short ones all the way.
    pub hops: u32,
    /// How long before the release the last sleep ends, ns.
    pub margin_ns: u64,
}

impl WakePlan {
    /// When the next sleep ends, from `now` on; `None` when the margin has begun.
    ///
    /// # Real-time: in loop
    #[inline]
    pub(super) fn next(self, now: Instant, release: Instant) -> Option<Instant> {
        let last = release.as_ns().saturating_sub(self.margin_ns);
        let away = last.checked_sub(now.as_ns()).filter(|&ns| ns > 0)?;
        if self.hop_ns == 0 {
            return Some(Instant::from_ns(last));
        }
        // A first hop of less than a quarter is joined to the one after it.
        let hops = (away - away.min(self.hop_ns / 4)) / self.hop_ns;
        Some(Instant::from_ns(last - hops.min(u64::from(self.hops)) * self.hop_ns))
    }

    /// Sleeps until the margin has begun; when that was over, and how late the last sleep came back
    /// (`None` where there was no time to sleep). `None` when `stop` was set first.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub(super) fn sleep<C: Clock>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_end_at_the_margin() {
        let approach = WakePlan { hop_ns: 100, hops: u32::MAX, margin_ns: 20 };
        let next = |now| approach.next(Instant::from_ns(now), Instant::from_ns(1_000));
        let at = |ns| Some(Instant::from_ns(ns));
        assert_eq!(next(0), at(80));
        assert_eq!(next(70), at(180));
        assert_eq!(next(880), at(980));
        assert_eq!(next(979), at(980));
        assert_eq!(next(980), None);
        let nap = WakePlan { hops: 1, ..approach };
        let then = |now| nap.next(Instant::from_ns(now), Instant::from_ns(1_000));
        assert_eq!([0, 870, 880, 980].map(then), [at(880), at(980), at(980), None]);
        let once = WakePlan { hop_ns: 0, ..approach };
        assert_eq!(once.next(Instant::from_ns(0), Instant::from_ns(1_000)), at(980));
    }
}
