//! Where in the kernel's tick stalls lie, and the phase that keeps a grid away from them.
//!
//! For whoever places a grid. The tick interrupts every CPU that is not told otherwise, at one
//! place in its own period; a release there waits for it. [`listen`] spins for a moment and keeps
//! the gaps, on the calling thread, with the CPU and policy that the loop will have; [`place`] is
//! pure.

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Spin;

/// A gap in a spin: the CPU was elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began.
    pub at: Instant,
    /// How long it was.
    pub length: Span,
}

/// A place for a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quiet {
    /// The offset of the grid from multiples of its period on CLOCK_MONOTONIC, ns.
    pub phase_ns: u64,
    /// How far each release is from the nearest tick, ns.
    pub clear_ns: u64,
    /// The tick's period, ns, and where in it the stalls begin.
    pub tick_ns: u64,
    /// Offset of the tick from multiples of its period on CLOCK_MONOTONIC, ns.
    pub tick_phase_ns: u64,
    /// The share of all gaps that began there.
    pub share: f64,
}

/// Periods of the tick that Linux can be built with: CONFIG_HZ of 1000, 300, 250 and 100.
const TICKS_NS: [u64; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];
/// Gaps that begin within this of each other are at one place, ns.
const WIDE_NS: u64 = 40_000;
/// The least number of gaps, and the least share of them at one place, that make a tick.
const GAPS_MIN: usize = 8;
const SHARE_MIN: f64 = 0.3;
/// Closer than this to a tick there is no quiet place, ns.
const CLEAR_MIN_NS: u64 = 50_000;
/// How long a stretch of listening is, and the sleep after it, so that throttling and other tasks
/// have their share.
const STRETCH: Span = Span::from_ms(20);
const REST: Span = Span::from_ms(2);
/// The most gaps that are kept.
const GAPS_MAX: usize = 4_096;

/// Listens for about `length`, nine tenths of it spinning; the gaps above [`Spin::STALL`].
///
/// # Real-time: setup only
pub fn listen<C: Clock>(clock: &mut C, length: Span) -> Vec<Gap> {
    let mut gaps = Vec::with_capacity(GAPS_MAX);
    let end = clock.now() + length;
    while clock.now() < end {
        let mut last = clock.wake();
        let until = last + STRETCH;
        while last < until {
            let now = clock.poll();
            if now - last > Spin::STALL && gaps.len() < GAPS_MAX {
                gaps.push(Gap { at: last, length: now - last });
            }
            last = now;
            clock.relax();
        }
        let rest = clock.now() + REST;
        clock.sleep_until(rest);
    }
    gaps
}

/// The quiet place for a grid of `period`; `None` when the gaps show no tick, or when the grid
/// comes near it at any phase.
///
/// # Real-time: setup only
pub fn place(gaps: &[Gap], period: Period) -> Option<Quiet> {
    let (tick_ns, tick_phase_ns, share) = tick(gaps)?;
    // Releases and ticks are at all distances that are multiples of this.
    let common = gcd(period.as_ns(), tick_ns);
    let clear_ns = common / 2;
    if clear_ns < CLEAR_MIN_NS {
        return None;
    }
    let phase_ns = (tick_phase_ns + clear_ns) % common;
    Some(Quiet { phase_ns, clear_ns, tick_ns, tick_phase_ns, share })
}

/// The tick: its period, its phase and the share of the gaps at it.
fn tick(gaps: &[Gap]) -> Option<(u64, u64, f64)> {
    if gaps.len() < GAPS_MIN {
        return None;
    }
    let places = TICKS_NS.map(|tick_ns| (tick_ns, densest(gaps, tick_ns)));
    // What a tick explains, each part of it does too: the longest is the one that is there.
    let best = places.iter().map(|(_, (_, share))| *share).fold(0.0, f64::max);
    let told = |(_, (_, share)): &&(u64, (u64, f64))| *share >= 0.85 * best;
    let &(tick_ns, (phase_ns, share)) = places.iter().rfind(told)?;
    // Chance alone puts a part of the gaps into any window.
    let chance = WIDE_NS as f64 / tick_ns as f64;
    (share >= SHARE_MIN + chance).then_some((tick_ns, phase_ns, share))
}

/// The middle of the [`WIDE_NS`] of a tick's period in which most gaps begin, and their share.
fn densest(gaps: &[Gap], tick_ns: u64) -> (u64, f64) {
    let mut at: Vec<u64> = gaps.iter().map(|gap| gap.at.as_ns() % tick_ns).collect();
    at.sort_unstable();
    let n = at.len();
    let wrapped = |index: usize| at[index % n] + if index >= n { tick_ns } else { 0 };
    let mut end = 0;
    let mut best = (0, 0);
    for (first, &from) in at.iter().enumerate() {
        end = end.max(first);
        while end < first + n && wrapped(end) - from <= WIDE_NS {
            end += 1;
        }
        if end - first > best.1 {
            best = (wrapped((first + end) / 2) % tick_ns, end - first);
        }
    }
    (best.0, best.1 as f64 / n as f64)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(us: u64) -> Period {
        Period::from_ns(us * 1_000).expect("positive")
    }

    fn gaps(at: impl IntoIterator<Item = u64>) -> Vec<Gap> {
        let gap = |at| Gap { at: Instant::from_ns(at), length: Span::from_us(3) };
        at.into_iter().map(gap).collect()
    }

    /// A tick of 4 ms at 1.2 ms, give or take 5 µs, and as much noise anywhere.
    fn noisy() -> Vec<Gap> {
        let tick = (0..200u64).map(|k| k * 4_000_000 + 1_200_000 + k * 7_919 % 5_000);
        gaps(tick.chain((0..200u64).map(|k| k * 3_971_987 + k * k * 1_003)))
    }

    #[test]
    fn a_grid_is_placed_between_the_ticks() {
        let quiet = place(&noisy(), period(1_000)).expect("a tick");
        assert_eq!(quiet.tick_ns, 4_000_000);
        assert!((1_199_000..1_206_000).contains(&quiet.tick_phase_ns), "{quiet:?}");
        assert!((699_000..706_000).contains(&quiet.phase_ns), "{quiet:?}");
        assert_eq!(quiet.clear_ns, 500_000);
        let quiet = place(&noisy(), period(500)).expect("a tick");
        assert!((449_000..456_000).contains(&quiet.phase_ns), "{quiet:?}");
        // 10 ms and 4 ms come within 1 ms of each other at any phase.
        assert_eq!(place(&noisy(), period(10_000)).map(|quiet| quiet.clear_ns), Some(1_000_000));
    }

    #[test]
    fn each_tick_is_told_from_its_multiples() {
        for tick_ns in TICKS_NS {
            let quiet = place(&gaps((5..50).map(|k| k * tick_ns + 333)), period(tick_ns / 1_000));
            if tick_ns != 3_333_333 {
                assert_eq!(quiet.map(|quiet| quiet.tick_ns), Some(tick_ns));
            }
        }
    }

    #[test]
    fn without_a_tick_or_a_place_there_is_none() {
        assert_eq!(place(&[], period(1_000)), None);
        assert_eq!(
            place(&gaps((0..500u64).map(|k| k * 3_971_987 + k * k * 1_003)), period(1_000)),
            None
        );
        assert_eq!(place(&noisy(), period(7)), None);
        assert_eq!(place(&noisy(), period(80)), None);
    }
}
