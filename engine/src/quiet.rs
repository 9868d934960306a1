//! The place of stalls in the kernel's tick, and the phase that keeps a grid away from them.
//!
//! For whoever places a grid. The tick interrupts every CPU that is not kept free of it, at one
//! place in its own period; a release there waits for it. [`listen`] spins for a moment and keeps
//! the gaps, on the calling thread, with the CPU and policy that the loop will have; [`place`] and
//! [`moved`] are pure. The tick that a loop meets all the same is found by [`crate::comb`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Period, Span, gcd};
use punctual_core::wait::Spin;

/// The longest time that gaps are collected to find the kernel's tick: 75 ticks at 250 Hz, 30 at
/// 100 Hz. Where it is plain, or plainly absent, a third of that is enough.
pub const LISTEN: Span = Span::from_ms(300);

/// Periods of the tick that Linux can be built with: CONFIG_HZ of 1000, 300, 250 and 100.
pub(crate) const TICKS_NS: [u64; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];

/// Gaps that begin within this of each other are at one place, ns.
const WIDE_NS: u64 = 40_000;

/// The least number of its periods that show a tick, and the least share of them that have a gap at
/// its place: nothing is recorded for a tenth of the time. Gaps elsewhere, of whatever number, are
/// no argument: on a busy host most are not the tick's.
const PERIODS_MIN: u64 = 8;

const SHARE_MIN: f64 = 0.6;

/// A tick is plain that so many of its periods show, which are this long at least, in such a share
/// of them: a tenth of the time is rest.
const PLAIN_PERIODS: u64 = 20;
const PLAIN_AFTER: Span = Span::from_ms(80);
const PLAIN_SHARE: f64 = 0.85;

/// It is plainly absent where none is seen in more than such a share of its periods, for so long:
/// twelve periods of 100 Hz.
const ABSENT_AFTER: Span = Span::from_ms(120);
const ABSENT_SHARE: f64 = 0.25;

/// A loop sleeps until so long before its release, at most: the tick is kept from there too, ns.
const MARGIN_NS: u64 = 125_000;

/// Closer than this to a tick there is no quiet place, ns.
const CLEAR_MIN_NS: u64 = 40_000;

/// The length of each spin, and of the sleep after it, so that throttling and other tasks have
/// their share.
const SPIN_LENGTH: Span = Span::from_ms(20);

const REST: Span = Span::from_ms(2);

/// The most gaps that are kept.
const GAPS_MAX: usize = 4_096;

/// A place for a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quiet {
    /// The offset of the grid from multiples of its period on CLOCK_MONOTONIC, ns.
    pub phase_ns: u64,
    /// The time between a release, or the sleep's end before it, and the nearest tick, ns.
    pub clear_ns: u64,
    /// The tick's period, ns.
    pub tick_ns: u64,
    /// Offset of the tick from multiples of its period on CLOCK_MONOTONIC, ns.
    pub tick_phase_ns: u64,
    /// The share of the tick's periods that had a gap there; 0 where none was detected, so that the
    /// tick is taken to be where kernels from 6.4 on have it ([`place`]).
    pub share: f64,
}

impl Quiet {
    /// One so far from this tick; `None` where that is too near.
    fn at(phase_ns: u64, clear_ns: u64, tick: &KernelTick) -> Option<Self> {
        let KernelTick { period_ns: tick_ns, phase_ns: tick_phase_ns, share } = *tick;
        let quiet = Self { phase_ns, clear_ns, tick_ns, tick_phase_ns, share };
        (clear_ns >= CLEAR_MIN_NS).then_some(quiet)
    }

    /// The tick that it is away from.
    fn tick(&self) -> KernelTick {
        let Self { tick_ns: period_ns, tick_phase_ns: phase_ns, share, .. } = *self;
        KernelTick { period_ns, phase_ns, share }
    }

    /// Returns true where the tick was detected, not only taken to be where the kernel has it.
    ///
    /// # Real-time: in loop
    pub fn is_detected(&self) -> bool {
        self.share > 0.0
    }
}

/// The kernel's tick, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelTick {
    /// Its period, ns.
    pub period_ns: u64,
    /// Offset from multiples of its period on CLOCK_MONOTONIC, ns.
    pub phase_ns: u64,
    /// The share of its periods in which it was seen there, in [0, 1].
    pub share: f64,
}

/// The place of a tick that was not detected: Linux has it at multiples of its period on
/// CLOCK_MONOTONIC since 6.4 (kernel/time/tick-common.c, "Align tick period with the HZ tick"),
/// unless it is booted with skew_tick=1; and a millisecond divides its period, but for
/// CONFIG_HZ=300.
const UNDETECTED: KernelTick = KernelTick { period_ns: 1_000_000, phase_ns: 0, share: 0.0 };

/// Listens for about `length`, nine tenths of it spinning, or until `stop` is set or the gaps show
/// plainly that there is a tick, or none; the gaps of [`Spin::STALL`] or longer.
///
/// # Real-time: setup only
pub fn listen<C: Clock>(clock: &mut C, length: Span, stop: &AtomicBool) -> Vec<Gap> {
    let mut gaps = Vec::with_capacity(GAPS_MAX);
    let start = clock.now();
    let end = start + length;
    while clock.now() < end && !stop.load(Ordering::Relaxed) {
        let until = clock.wake() + SPIN_LENGTH;
        spin(clock, until, Spin::STALL, stop, |gap| {
            if gaps.len() < GAPS_MAX {
                gaps.push(gap);
            }
        });
        if is_plain(&gaps, clock.now() - start) {
            break;
        }
        let rest = clock.now() + REST;
        clock.sleep_until(rest);
    }
    gaps
}

/// The quiet place for a grid of `period`: where no tick falls on a release nor into the
/// 125 µs before it, in which a loop comes back from its sleep (less where periods are short).
/// Where the gaps show no tick, or one that the grid meets at any phase, the tick is taken to be at
/// multiples of its period: on a CPU without one that costs nothing. A tick that was detected may
/// be another's, such as that of the host, which drifts against this clock: a place beside it that
/// is near those multiples becomes one away from both. `None` when the grid comes near them at any
/// phase, and no other tick was detected.
///
/// # Real-time: setup only
pub fn place(gaps: &[Gap], period: Period) -> Option<Quiet> {
    let undetected = place_beside(&UNDETECTED, period);
    let Some(detected) = tick(gaps) else { return undetected };
    let Some(place) = place_beside(&detected, period) else { return undetected };
    let has_clear_ns = clear_ns(place.phase_ns, &UNDETECTED, period);
    match undetected.filter(|best| has_clear_ns < MARGIN_NS.min(best.clear_ns / 2)) {
        Some(multiples) => moved(&multiples, &detected, period).or(Some(place)),
        None => Some(place),
    }
}

/// The place for a grid of `period` beside this tick alone; `None` when it comes near it at any
/// phase.
///
/// # Real-time: setup only
pub fn place_beside(tick: &KernelTick, period: Period) -> Option<Quiet> {
    let (common, margin_ns) = common(tick, period);
    let clear_ns = (common - margin_ns) / 2;
    let phase_ns = (tick.phase_ns + margin_ns + clear_ns) % common;
    Quiet::at(phase_ns, clear_ns, tick)
}

/// The place for a grid of `period` that is away from what its releases met, and from the tick that
/// it was beside before; `None` when it comes near one of them at any phase.
///
/// # Real-time: setup only
pub fn moved(before: &Quiet, met: &KernelTick, period: Period) -> Option<Quiet> {
    let tick = before.tick();
    let clear =
        |phase_ns: u64| clear_ns(phase_ns, met, period).min(clear_ns(phase_ns, &tick, period));
    let (common, _) = common(met, period);
    let steps = (0..MOVES).map(|step| common * step / MOVES + met.phase_ns % common);
    let phase_ns = steps.max_by_key(|&phase_ns| clear(phase_ns))? % period.as_ns();
    Quiet::at(phase_ns, clear(phase_ns), met)
}

/// Words for releases that were moved away from the tick that they met.
///
/// # Real-time: setup only
pub fn moved_words(before: &Quiet, place: &Quiet) -> String {
    let span = |ns: u64| Span::from_ns(ns.cast_signed());
    format!(
        "releases {} after multiples of the period met what comes every {}, as the kernel's tick \
         does: they are {} after them now",
        span(before.phase_ns),
        span(place.tick_ns),
        span(place.phase_ns),
    )
}

/// Words for releases that meet the tick and stay where they are.
///
/// # Real-time: setup only
pub fn met_words(tick: &KernelTick) -> String {
    format!(
        "releases meet what comes every {}, as the kernel's tick does, and stay where they are: \
         Phase::Quiet keeps away from it where the period does not meet it at any phase",
        Span::from_ns(tick.period_ns.cast_signed()),
    )
}

/// The phases that are compared for a grid that is moved.
const MOVES: u64 = 64;

/// Releases and ticks are at all distances that are multiples of the first; the second is kept free
/// before a release.
fn common(tick: &KernelTick, period: Period) -> (u64, u64) {
    let common = gcd(period.as_ns().into(), tick.period_ns.into()) as u64;
    (common, MARGIN_NS.min(common / 3))
}

/// The time between releases at this phase, or the sleep's end before them, and the nearest tick,
/// ns.
fn clear_ns(phase_ns: u64, tick: &KernelTick, period: Period) -> u64 {
    let (common, margin_ns) = common(tick, period);
    let after_ns = (phase_ns + common - tick.phase_ns % common) % common;
    after_ns.saturating_sub(margin_ns).min(common - after_ns)
}

/// True where these gaps of so long a time show a tick beyond doubt, or that there is none.
fn is_plain(gaps: &[Gap], listened: Span) -> bool {
    let listened_ns = listened.as_ns().max(0).unsigned_abs();
    let is_present = listened >= PLAIN_AFTER
        && tick(gaps).is_some_and(|tick| {
            tick.share >= PLAIN_SHARE && listened_ns / tick.period_ns >= PLAIN_PERIODS
        });
    let is_absent = || {
        let absent = |tick: &KernelTick| tick.share <= ABSENT_SHARE;
        listened >= ABSENT_AFTER && ticks(gaps, listened_ns).iter().all(absent)
    };
    is_present || is_absent()
}

/// The tick that these gaps show.
fn tick(gaps: &[Gap]) -> Option<KernelTick> {
    let (first, last) = (gaps.first()?, gaps.last()?);
    let seen = ticks(gaps, u64::try_from((last.at - first.at).as_ns()).ok()?);
    let best = seen.iter().map(|tick| tick.share).fold(SHARE_MIN, f64::max);
    // Each multiple of a tick would do as well, and no part of one: the shortest is the one there.
    seen.into_iter().find(|tick| tick.share >= (best - SHARE_SPREAD).max(SHARE_MIN))
}

/// Each tick that there can be, as these gaps of so long a time show it.
fn ticks(gaps: &[Gap], observed_ns: u64) -> [KernelTick; TICKS_NS.len()] {
    TICKS_NS.map(|period_ns| {
        let periods = observed_ns / period_ns + 1;
        let (phase_ns, met) = steadiest(gaps, period_ns);
        let share = if periods >= PERIODS_MIN { met as f64 / periods as f64 } else { 0.0 };
        KernelTick { period_ns, phase_ns, share }
    })
}

/// Shares that are no further apart than this may be those of one tick and its multiple.
const SHARE_SPREAD: f64 = 0.15;

/// The middle of the [`WIDE_NS`] of a tick's period in which the most periods have a gap, and how
/// many have.
fn steadiest(gaps: &[Gap], tick_ns: u64) -> (u64, usize) {
    // By place in the period; which period it was, counted so that a window over the end is whole.
    let mut at: Vec<(u64, u64)> =
        gaps.iter().map(|gap| (gap.at.as_ns() % tick_ns, gap.at.as_ns() / tick_ns)).collect();
    at.sort_unstable();
    let n = at.len();
    at.extend_from_within(..);
    for (place, period) in &mut at[n..] {
        *place += tick_ns;
        *period = period.wrapping_sub(1);
    }
    let mut met: HashMap<u64, usize> = HashMap::new();
    let mut end = 0;
    let mut best = (0, 0);
    for first in 0..n {
        while end < first + n && at[end].0 - at[first].0 <= WIDE_NS {
            *met.entry(at[end].1).or_default() += 1;
            end += 1;
        }
        if met.len() > best.1 {
            best = (at[(first + end) / 2].0 % tick_ns, met.len());
        }
        if let Entry::Occupied(mut gone) = met.entry(at[first].1) {
            *gone.get_mut() -= 1;
            if *gone.get() == 0 {
                gone.remove();
            }
        }
    }
    best
}

/// A gap in a spin: the CPU was elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last read before it.
    pub at: Instant,
    /// From the read before it to the read after it.
    pub length: Span,
}

/// The length of a spin, and the number of its reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spun {
    /// From its first to its last read.
    pub length: Span,
    /// Reads of the clock after the first one.
    pub reads: u64,
}

/// Spins until `end`, or until `stop` is set. Two reads that are `threshold` or more apart are a
/// gap; one that lasts beyond the end is measured whole. Allocates nothing, makes no system call.
/// No pause instruction stands between two reads: in a guest it can make the host take the CPU
/// away.
///
/// # Real-time: in loop
#[inline]
pub fn spin<C: Clock>(
    clock: &mut C,
    end: Instant,
    threshold: Span,
    stop: &AtomicBool,
    mut found: impl FnMut(Gap),
) -> Spun {
    let first = clock.now();
    let (mut last, mut reads) = (first, 0);
    while last < end && !stop.load(Ordering::Relaxed) {
        let now = clock.poll();
        let length = now - last;
        if length >= threshold {
            found(Gap { at: last, length });
        }
        (last, reads) = (now, reads + 1);
    }
    Spun { length: last - first, reads }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::time::Instant;
    use punctual_testkit::sim::SimClock;

    fn period(us: u64) -> Period {
        Period::from_ns(us * 1_000).expect("positive")
    }

    fn gaps(at: impl IntoIterator<Item = u64>) -> Vec<Gap> {
        let gap = |at| Gap { at: Instant::from_ns(at), length: Span::from_us(3) };
        let mut gaps: Vec<Gap> = at.into_iter().map(gap).collect();
        gaps.sort_by_key(|gap| gap.at);
        gaps
    }

    /// This many gaps at places that mean nothing, over 75 periods of 4 ms.
    fn noise(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(move |k| k * 300_000_000 / n + k * k * 7_919_003 % 3_970_007)
    }

    /// A tick of 4 ms at 1.2 ms, give or take 5 µs, a tenth of it undetected, and eight times as
    /// much noise anywhere.
    fn noisy() -> Vec<Gap> {
        let observed = (0..75u64).filter(|k| k % 10 != 3);
        let tick = observed.map(|k| k * 4_000_000 + 1_200_000 + k * 7_919 % 5_000);
        gaps(tick.chain(noise(600)))
    }

    #[test]
    fn a_detected_tick_does_not_drive_a_grid_onto_the_kernels_own() {
        for host_us in (0..1_000).step_by(25) {
            // A host's, of 1 ms, wherever it is at the moment; the kernel's own, at multiples of
            // 4 ms, is not detected for it.
            let host = gaps((0..300).map(|k| k * 1_000_000 + host_us * 1_000));
            let quiet = place(&host, period(1_000)).expect("a tick");
            assert_eq!((quiet.tick_ns, quiet.is_detected()), (1_000_000, true));
            for tick in [quiet.tick(), UNDETECTED] {
                let clear_ns = clear_ns(quiet.phase_ns, &tick, period(1_000));
                assert!(clear_ns >= 125_000 && quiet.clear_ns >= 125_000, "{host_us} {quiet:?}");
            }
        }
    }

    #[test]
    fn a_grid_is_placed_between_the_ticks() {
        let quiet = place(&noisy(), period(1_000)).expect("a tick");
        assert_eq!((quiet.tick_ns, quiet.is_detected()), (4_000_000, true));
        assert!((1_180_000..1_225_000).contains(&quiet.tick_phase_ns), "{quiet:?}");
        let after = (quiet.phase_ns + 1_000_000 - quiet.tick_phase_ns % 1_000_000) % 1_000_000;
        assert_eq!((after, quiet.clear_ns), (562_500, 437_500));
        let quiet = place(&noisy(), period(500)).expect("a tick");
        let after = (quiet.phase_ns + 500_000 - quiet.tick_phase_ns % 500_000) % 500_000;
        // Half a period after it is where Linux has its own.
        assert_eq!((after, quiet.clear_ns), (210_937, 85_937));
        // 10 ms and 4 ms come within 2 ms of each other at any phase.
        assert_eq!(place(&noisy(), period(10_000)).map(|quiet| quiet.clear_ns), Some(937_500));
        // Short periods leave a third to the margin.
        assert_eq!(place(&noisy(), period(160)).map(|quiet| quiet.clear_ns), Some(53_333));
    }

    #[test]
    fn each_tick_is_distinguished_from_its_multiples() {
        for tick_ns in TICKS_NS {
            let ticks = gaps((5..50).map(|k| k * tick_ns + 333));
            let quiet = place(&ticks, Period::from_ns(tick_ns).expect("positive"));
            assert_eq!(quiet.map(|quiet| quiet.tick_ns), Some(tick_ns));
        }
    }

    #[test]
    fn a_tick_at_the_end_of_its_period_is_one_place() {
        let ticks = gaps((5..60).map(|k| k * 4_000_000 + k * 11_003 % 30_000 - 15_000));
        let quiet = place(&ticks, period(1_000)).expect("a tick");
        assert!(quiet.share > 0.99, "{quiet:?}");
        let from_end = (quiet.tick_phase_ns + 20_000) % 4_000_000;
        assert!(from_end < 40_000, "{quiet:?}");
    }

    #[test]
    fn where_no_tick_is_detected_a_grid_keeps_away_from_where_the_kernel_has_it() {
        for undetected in [Vec::new(), gaps(noise(600)), gaps((0..6).map(|k| k * 4_000_000))] {
            let quiet = place(&undetected, period(1_000)).expect("a place");
            assert_eq!((quiet.phase_ns, quiet.clear_ns), (562_500, 437_500));
            assert_eq!((quiet.tick_phase_ns, quiet.is_detected()), (0, false));
        }
        assert_eq!(place(&[], period(10_000)).map(|quiet| quiet.phase_ns), Some(562_500));
    }

    #[test]
    fn noise_that_looks_like_a_tick_of_300_hz_does_not_hide_the_one_that_is_there() {
        // 0.63 of the periods of 3.33 ms have a gap at one place; all of 4 ms do.
        let false_tick = (0..90u64).filter(|k| k % 8 < 5).map(|k| k * 3_333_333 + 700_000);
        let tick = (0..75u64).map(|k| k * 4_000_000 + 1_200_000);
        let both = gaps(false_tick.clone().chain(tick));
        let quiet = place(&both, period(1_000)).expect("a place");
        assert_eq!((quiet.tick_ns, quiet.phase_ns), (4_000_000, 762_500));
        // Alone it leaves no place for 1 ms; where the kernel has its tick is no place either.
        let quiet = place(&gaps(false_tick), period(1_000)).expect("a place");
        assert_eq!((quiet.phase_ns, quiet.is_detected()), (562_500, false));
    }

    #[test]
    fn without_a_place_there_is_none() {
        for detected in [Vec::new(), noisy()] {
            assert_eq!(place(&detected, period(7)), None);
            assert_eq!(place(&detected, period(80)), None);
        }
    }

    #[test]
    fn a_grid_on_the_tick_is_moved_away_from_it_and_from_what_it_was_beside() {
        let mistaken = gaps((0..75).map(|k| k * 4_000_000 + 437_500));
        let mistaken = tick(&mistaken).expect("a tick");
        let before = place_beside(&mistaken, period(1_000)).expect("a place");
        assert_eq!(before.phase_ns, 0);
        let met = KernelTick { period_ns: 4_000_000, phase_ns: 0, share: 1.0 };
        // Away from both: 125 µs before a release are kept free too.
        let moved = moved(&before, &met, period(1_000)).expect("a place");
        assert_eq!((moved.phase_ns, moved.clear_ns), (781_250, 218_750));
        let words = moved_words(&before, &moved);
        assert!(words.starts_with("releases 0 ns after multiples of the period met"), "{words}");
    }

    /// A simulated clock whose reads take what a script says, then 20 ns each.
    struct Scripted(SimClock<std::iter::Empty<punctual_testkit::sim::SleepNoise>>, Vec<i64>);

    impl Scripted {
        fn new(begin_ns: u64, mut steps_ns: Vec<i64>) -> Self {
            steps_ns.reverse();
            Self(SimClock::new(Instant::from_ns(begin_ns), std::iter::empty()), steps_ns)
        }
    }

    impl Clock for Scripted {
        fn now(&mut self) -> Instant {
            self.0.now()
        }

        fn poll(&mut self) -> Instant {
            self.0.poll_cost = Span::from_ns(self.1.pop().unwrap_or(20));
            self.0.poll()
        }

        fn sleep_until(&mut self, at: Instant) {
            self.0.sleep_until(at);
        }

        fn wake(&mut self) -> Instant {
            self.0.wake()
        }

        fn relax(&mut self) {}
    }

    /// The slow way: all instants at which the clock was read, then every pair of neighbours.
    fn model(begin_ns: u64, steps_ns: &[i64], end_ns: u64, threshold_ns: i64) -> (Vec<Gap>, Spun) {
        let mut instants = vec![begin_ns];
        let mut steps = steps_ns.iter().copied().chain(std::iter::repeat(20));
        while instants.last().is_some_and(|&last| last < end_ns) {
            let step = steps.next().expect("endless");
            instants.push(instants.last().expect("one at least") + step.unsigned_abs());
        }
        let gaps = instants.windows(2).filter(|pair| (pair[1] - pair[0]) as i64 >= threshold_ns);
        let gap = |pair: &[u64]| Gap {
            at: Instant::from_ns(pair[0]),
            length: Span::from_ns((pair[1] - pair[0]) as i64),
        };
        let length = Span::from_ns((instants.last().expect("one") - begin_ns) as i64);
        (gaps.map(gap).collect(), Spun { length, reads: instants.len() as u64 - 1 })
    }

    /// Reads of the clock, one in nine of which takes long.
    fn steps() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec(prop_oneof![8 => 15..60i64, 1 => 900..90_000i64], 0..400)
    }

    proptest! {
        #[test]
        fn it_finds_what_the_slow_way_finds(
            steps_ns in steps(),
            end_ns in 1_000..40_000u64,
            threshold_ns in 50..3_000i64,
        ) {
            let begin_ns = 1_000;
            let mut clock = Scripted::new(begin_ns, steps_ns.clone());
            let mut found = Vec::new();
            let (end, threshold) = (Instant::from_ns(end_ns), Span::from_ns(threshold_ns));
            let spun = spin(&mut clock, end, threshold, &AtomicBool::new(false), |gap| {
                found.push(gap);
            });
            prop_assert_eq!((found, spun), model(begin_ns, &steps_ns, end_ns, threshold_ns));
        }
    }

    /// A clock with coarse reads, on which some of the ticks take 5 µs from whoever spins.
    struct Ticks {
        now_ns: u64,
        tick_ns: u64,
        is_seen: fn(u64) -> bool,
    }

    impl Clock for Ticks {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.now_ns)
        }

        fn poll(&mut self) -> Instant {
            let before = self.now_ns / self.tick_ns;
            self.now_ns += 900;
            let tick = self.now_ns / self.tick_ns;
            if tick > before && (self.is_seen)(tick) {
                self.now_ns += 5_000;
            }
            self.now()
        }

        fn sleep_until(&mut self, at: Instant) {
            self.now_ns = self.now_ns.max(at.as_ns());
        }

        fn wake(&mut self) -> Instant {
            self.now()
        }

        fn relax(&mut self) {}
    }

    #[test]
    fn what_is_plain_ends_the_listening_and_what_is_not_goes_on_to_its_end() {
        let listened_ms = |tick_ns, is_seen| {
            let mut clock = Ticks { now_ns: 77, tick_ns, is_seen };
            let _gaps = listen(&mut clock, LISTEN, &AtomicBool::new(false));
            clock.now_ns / 1_000_000
        };
        assert!((80..110).contains(&listened_ms(4_000_000, |_| true)), "250 Hz");
        assert!((80..110).contains(&listened_ms(1_000_000, |_| true)), "1000 Hz");
        assert!((200..250).contains(&listened_ms(10_000_000, |_| true)), "100 Hz");
        assert!((120..150).contains(&listened_ms(4_000_000, |_| false)), "no tick");
        assert!(listened_ms(4_000_000, |tick| tick % 3 > 0) >= 300, "two of three");
    }

    #[test]
    fn a_stop_ends_the_listening_with_the_spin_that_runs() {
        let listened = |stop| {
            let mut clock = Scripted::new(0, vec![20, 5_000, 20]);
            let gaps = listen(&mut clock, LISTEN, &AtomicBool::new(stop));
            (clock.now(), gaps.len())
        };
        assert_eq!(listened(true), (Instant::from_ns(0), 0));
        let (end, gaps) = listened(false);
        assert!(end >= Instant::from_ns(0) + ABSENT_AFTER && gaps == 1, "{end:?} {gaps}");
    }

    #[test]
    fn a_gap_over_the_end_is_whole_and_a_stop_ends_at_once() {
        let mut clock = Scripted::new(0, vec![20, 20, 500_000]);
        let mut found = Vec::new();
        let (end, us) = (Instant::from_ns(100), Span::from_us(1));
        let spun = spin(&mut clock, end, us, &AtomicBool::new(false), |gap| found.push(gap));
        assert_eq!(found, [Gap { at: Instant::from_ns(40), length: Span::from_us(500) }]);
        assert_eq!(spun, Spun { length: Span::from_ns(500_040), reads: 3 });
        let stopped =
            spin(&mut clock, Instant::from_ns(u64::MAX), us, &AtomicBool::new(true), |_| ());
        assert_eq!(stopped, Spun { length: Span::ZERO, reads: 0 });
    }
}
