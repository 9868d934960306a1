//! When to spin and when to rest: the same windows on every CPU, so that what comes on all of them
//! at once is seen.
//!
//! Pure arithmetic.

use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};

/// From one window to the next. Long enough for any usual gap; short enough that other work waits
/// no longer than a window; and no round number, so that what comes every second, or at each tick,
/// falls into a rest one time and into a window another.
const FRAME_NS: u64 = 97_310_000;

/// The windows of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Windows {
    /// The length of each.
    pub(super) width: Span,
    /// How many there are.
    pub(super) count: u64,
}

impl Windows {
    /// As many as `duration` has room for, one at least, each `duty` of its frame, in (0, 1].
    pub(super) fn of(duration: Span, duty: f64) -> Self {
        let width = Span::from_ns((FRAME_NS as f64 * duty.clamp(0.0, 1.0)) as i64);
        let count = duration.as_ns().max(1).unsigned_abs().div_ceil(FRAME_NS);
        Self { width, count }
    }

    /// From one window to the next.
    pub(super) fn frame() -> Period {
        const FRAME: Option<Period> = Period::from_ns(FRAME_NS);
        FRAME.expect("positive")
    }

    /// The grid of windows, the first one soon after `now`.
    pub(super) fn grid(now: Instant) -> Releases {
        Releases::new(now + Span::from_ms(5), Self::frame())
    }

    /// How long all of it takes.
    pub(super) fn length(&self) -> Span {
        Span::from_ns(i64::try_from(FRAME_NS.saturating_mul(self.count)).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fill_the_duration_and_rest_as_they_should() {
        let windows = Windows::of(Span::from_ms(1_000), 0.5);
        assert_eq!((windows.count, windows.width), (11, Span::from_ns(48_655_000)));
        assert!(windows.length() >= Span::from_ms(1_000));
        assert_eq!(Windows::of(Span::from_ns(1), 1.0).count, 1);
        assert_eq!(Windows::of(Span::from_ms(1), 1.0).width.as_ns().unsigned_abs(), FRAME_NS);
    }

    #[test]
    fn nothing_that_comes_regularly_hides_in_the_rests() {
        let windows = Windows::of(Span::from_ms(60_000), 0.5);
        let grid = Windows::grid(Instant::from_ns(0));
        for every_ms in [1, 4, 10, 20, 50, 100, 250, 500, 1_000] {
            for phase_ms in [0, 13, 49, 77, 98] {
                let seen = (0..60_000 / every_ms).filter(|k| {
                    let at_ns: u64 = (k * every_ms + phase_ms % every_ms) * 1_000_000;
                    let since_ns = at_ns.checked_sub(grid.first().as_ns());
                    since_ns.is_some_and(|ns| ns % FRAME_NS < windows.width.as_ns().unsigned_abs())
                });
                let share = seen.count() as f64 / (60_000 / every_ms) as f64;
                assert!((0.4..0.6).contains(&share), "{every_ms} ms at {phase_ms}: {share}");
            }
        }
    }
}
