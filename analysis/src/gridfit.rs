//! The grid that the wakes themselves follow: least squares over (k, wake), in one pass.
//!
//! A wake is `epoch + k·nominal + deviation`; fitting a line to the deviation over k gives period,
//! drift and phase (NIST, "Timing jitter of real-time Linux", section 2). Sums are exact integers,
//! the peak-to-peak about the *final* line is exact by convex hulls, and a robust line is fitted
//! too. Constant memory. Never counts k itself: see [`crate::release`].
//!
//! Where the releases are not known ([`GridFit::of_instants`]), lateness is measured from a line
//! that late wakes do not tilt, the earliest line: lateness is one-sided, so the slope is that of a
//! Theil–Sen line over the earliest wake of each block. A line of least squares is tilted by one
//! stall that is caught up slowly, and then every other wake is late.

mod hull;
mod sums;

use std::collections::VecDeque;

use punctual_core::time::Period;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hull::Hull;
use sums::Sums;

/// Binary digits after the point of a [`Line`].
const FRACTION_BITS: u32 = 40;
const ONE: f64 = (1u64 << FRACTION_BITS) as f64;

/// The grid that fits the wakes best. Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grid {
    /// Fitted period.
    pub period_ns: f64,
    /// (fitted / nominal − 1)·10⁹.
    pub drift_ppb: f64,
    /// Fitted wake of the first recorded cycle minus its nominal release.
    pub phase_ns: f64,
    /// Largest minus smallest deviation from the fitted grid (NIST's measure).
    pub jitter_pp_ns: f64,
    /// False when the deviations bent so smoothly that hulls of 65 536 points do not hold them;
    /// the peak-to-peak is then a lower bound. Left out when true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub jitter_pp_exact: bool,
    /// Root mean square of the deviations from the fitted grid (divisor n).
    pub rms_ns: f64,
    /// A line that outliers do not affect.
    pub robust: Option<Robust>,
}

/// A Theil–Sen line over the medians of at most 243 blocks of neighbouring cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robust {
    /// Fitted period, ns.
    pub period_ns: f64,
    /// (fitted / nominal − 1)·10⁹.
    pub drift_ppb: f64,
    /// Typical (median) wake of the first recorded cycle minus its nominal release, ns.
    pub phase_ns: f64,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

/// A wake below the earliest line by more than one part in so many of the period is none of its
/// release: the lowest of thousands scatter by less.
const BELOW_PART: i64 = 64;

/// A fitted line to measure deviations from, in fixed point so that no rounding depends on k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Cycle at which the line stands at `offset`.
    origin: u64,
    /// ns per cycle, scaled by 2⁴⁰.
    slope: i128,
    /// Smallest deviation of a sample from the line through the origin, scaled by 2⁴⁰.
    lowest: i128,
    /// As [`Self::bend_ns`] gives it.
    bend_ns: i64,
}

impl Line {
    /// The deviation of a wake above the *earliest* wake about this line. `lateness_ns` is about
    /// the nominal grid. Rounded to the nearest ns, saturating. Never negative for the samples that
    /// the line was fitted to; of instants for those that follow on others without a gap
    /// ([`GridFit::of_instants`]).
    #[inline]
    pub fn above_earliest_ns(&self, cycle: u64, lateness_ns: i64) -> i64 {
        let x = i128::from(cycle) - i128::from(self.origin);
        let scaled = (i128::from(lateness_ns) << FRACTION_BITS)
            .saturating_sub(self.slope.saturating_mul(x))
            .saturating_sub(self.lowest);
        let rounded = scaled.saturating_add(1 << (FRACTION_BITS - 1)) >> FRACTION_BITS;
        rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Drift of this line, where the nominal period is `period`: (fitted / nominal − 1)·10⁹.
    pub fn drift_ppb(&self, period: Period) -> f64 {
        self.slope as f64 / ONE / period.as_ns() as f64 * 1e9
    }

    /// Returns true where the fitted period is none, 0 ns to the nearest, of a nominal `period`:
    /// the instants do not advance.
    pub fn is_still(&self, period: Period) -> bool {
        self.spacing_ns(i64::try_from(period.as_ns()).unwrap_or(i64::MAX)) == 0
    }

    /// How far above those of another third of the recording the earliest wakes of one third lie,
    /// ns: so doubtful is the line, and lateness about it. 0 where their scatter explains it, and
    /// of a line of least squares.
    pub fn bend_ns(&self) -> i64 {
        self.bend_ns
    }

    /// The cycle and the deviation of a wake behind cycle `after`. One that came before the release
    /// it was counted for is a late one of the release before, where that has no wake.
    pub(super) fn placed(
        &self,
        (cycle, deviation_ns): (u64, i64),
        after: Option<u64>,
        period: Period,
    ) -> (u64, i64) {
        let period_ns = i64::try_from(period.as_ns()).unwrap_or(i64::MAX);
        let is_free = after.is_some_and(|after| after.saturating_add(1) < cycle);
        let above_ns = self.above_earliest_ns(cycle, deviation_ns);
        match is_free && above_ns < -(period_ns / BELOW_PART) {
            true => (cycle - 1, deviation_ns.saturating_add(period_ns)),
            false => (cycle, deviation_ns),
        }
    }

    /// The fitted period, to the nearest ns, where the nominal one is `period_ns`.
    pub(super) fn spacing_ns(&self, period_ns: i64) -> i64 {
        let slope = self.slope.saturating_add(1 << (FRACTION_BITS - 1)) >> FRACTION_BITS;
        let fitted = i128::from(period_ns).saturating_add(slope);
        i64::try_from(fitted).unwrap_or(period_ns).max(0)
    }
}

/// The accumulator of a fit.
///
/// Sound for 10⁹ cycles of 1 s with deviations of seconds and drifts of 1000 ppm; sums that would
/// overflow (no real recording) end the fit with `None`, they never wrap.
#[derive(Clone, Debug)]
pub struct GridFit {
    nominal: Period,
    sums: Sums,
    hull: Hull,
    blocks: Blocks,
    /// The earliest wakes, where the line is the earliest line.
    earliest: Option<Earliest>,
}

impl GridFit {
    /// An empty fit about a nominal period.
    pub fn new(nominal: Period) -> Self {
        let (sums, hull) = (Sums::default(), Hull::default());
        Self { nominal, sums, hull, blocks: Blocks::of(Merging::Median), earliest: None }
    }

    /// An empty fit of wakes whose releases are not known: its [`Line`] is the earliest line. The
    /// [`Grid`] is the same.
    pub fn of_instants(nominal: Period) -> Self {
        Self { earliest: Some(Earliest::new()), ..Self::new(nominal) }
    }

    /// Takes in one wake: its cycle and its deviation from the nominal grid in ns. Cycles must not
    /// decrease; one that does is left out and counted by [`Self::left_out`].
    #[inline]
    pub fn push(&mut self, cycle: u64, deviation_ns: i64) {
        let Some(x) = self.sums.push(cycle, deviation_ns) else { return };
        self.hull.push(x, deviation_ns);
        self.blocks.push(x, deviation_ns);
        if let Some(earliest) = &mut self.earliest {
            earliest.push(x, deviation_ns);
        }
    }

    /// Takes in wakes of neighbouring cycles with a magnitude below 2²⁶ ns, at most 256 of them.
    #[inline]
    pub(super) fn extend_near(&mut self, first_cycle: u64, deviations_ns: &[i64]) {
        let at_once = self.earliest.is_none();
        let taken = || self.sums.extend_near(first_cycle, deviations_ns);
        let Some(x) = at_once.then(taken).flatten() else {
            let cycles = first_cycle..;
            return cycles.zip(deviations_ns).for_each(|(cycle, &ns)| self.push(cycle, ns));
        };
        self.hull.extend(x, deviations_ns);
        (x..).zip(deviations_ns).for_each(|(x, &ns)| self.blocks.push(x, ns));
    }

    /// Wakes that were left out because their cycle stood before the previous one.
    pub fn left_out(&self) -> u64 {
        self.sums.left_out()
    }

    /// The grid, and the line from which lateness is measured: that of the grid, or the earliest
    /// line ([`Self::of_instants`]); `None` with fewer than two distinct cycles or on overflow.
    pub fn finish(&self) -> Option<(Grid, Line)> {
        let fit = self.sums.fit(FRACTION_BITS)?;
        let extremes = self.hull.extremes_about(fit.slope, FRACTION_BITS)?;
        let nominal = self.nominal.as_ns() as f64;
        let slope_ns = fit.slope as f64 / ONE;
        let robust = self.blocks.fit().map(|(slope_ns, phase_ns)| Robust {
            period_ns: nominal + slope_ns,
            drift_ppb: slope_ns / nominal * 1e9,
            phase_ns,
        });
        let grid = Grid {
            period_ns: nominal + slope_ns,
            drift_ppb: slope_ns / nominal * 1e9,
            phase_ns: fit.offset_ns,
            jitter_pp_ns: (extremes.highest - extremes.lowest) as f64 / ONE,
            jitter_pp_exact: self.hull.is_exact(),
            rms_ns: fit.rms_ns,
            robust,
        };
        let lowest = extremes.lowest;
        let line = Line { origin: fit.origin, slope: fit.slope, lowest, bend_ns: 0 };
        Some((grid, self.earliest_line(fit.origin).unwrap_or(line)))
    }

    /// The earliest line; `None` where it is not wanted, or too few wakes give one.
    fn earliest_line(&self, origin: u64) -> Option<Line> {
        let earliest = self.earliest.as_ref()?;
        let slope_ns = earliest.blocks.slope()?;
        let slope = (slope_ns * ONE).round() as i128;
        let in_a_row = earliest.in_a_row.extremes_about(slope, FRACTION_BITS);
        let lowest = in_a_row.or_else(|| self.hull.extremes_about(slope, FRACTION_BITS))?.lowest;
        Some(Line { origin, slope, lowest, bend_ns: earliest.blocks.bend_ns(slope_ns) as i64 })
    }
}

/// A wake counts for the height of the earliest line once so many followed each other up to it.
const ROW: usize = 16;

/// The earliest wakes: what the earliest line is made of.
///
/// A wake that is late by most of a period looks early for the release after its own, and is
/// counted for that one where that one was missed. Such wakes stand behind a gap, a few of them at
/// most, and would have the line as low as the latest of them is late: its height is that of the
/// lowest of those that followed others without a gap.
#[derive(Clone, Debug)]
struct Earliest {
    /// The earliest wake of each block, for the slope.
    blocks: Blocks,
    /// Those that follow others without a gap, for the height.
    in_a_row: Hull,
    /// The first ones of the recording, until they are [`ROW`]; `None` from there on, and from a
    /// gap before on.
    first: Option<Vec<(u64, i64)>>,
    /// The one before, and how many followed each other up to it.
    previous: Option<u64>,
    row: usize,
}

impl Earliest {
    fn new() -> Self {
        Self {
            blocks: Blocks::of(Merging::Earliest),
            in_a_row: Hull::default(),
            first: Some(Vec::with_capacity(ROW)),
            previous: None,
            row: 0,
        }
    }

    fn push(&mut self, x: u64, d: i64) {
        self.blocks.push(x, d);
        let follows = self.previous.is_none_or(|previous| x <= previous.saturating_add(1));
        self.previous = Some(x);
        if !follows {
            (self.row, self.first) = (0, None);
        }
        self.row = self.row.saturating_add(1);
        match self.first.as_mut().filter(|_| self.row < ROW) {
            Some(first) => first.push((x, d)),
            None if self.row >= ROW => {
                // Nothing was missed before the first ones.
                let first = self.first.take().into_iter().flatten();
                first.chain([(x, d)]).for_each(|(x, d)| self.in_a_row.push(x, d));
            }
            None => {}
        }
    }
}

/// 3⁵, so that merging threes never leaves a rest.
const BLOCKS_MAX: usize = 243;
/// 3^32 samples a block are more than any recording has.
const LEVELS_MAX: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Middle of the cycles in it, or the cycle that was kept.
    x: u64,
    /// Their median deviation, or that of the cycle that was kept, ns.
    d: i64,
}

/// What three neighbouring blocks leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merging {
    /// The middle x, the middle deviation.
    Median,
    /// The one that lies lowest about the slope so far.
    Earliest,
}

/// Up to two blocks of one size that wait for a third.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    blocks: [Block; 2],
    len: usize,
}

/// The medians, or the earliest wakes, so far.
///
/// A line that outliers do not affect: Theil–Sen over the medians of neighbouring cycles. At most
/// 243 are held; when they are full, three neighbours become one (the middle one: a remedian,
/// Rousseeuw and Bassett 1990), so that memory stays constant while the blocks coarsen. A median
/// of medians, not the median: good to a fraction of the scatter. Of the earliest wakes the result
/// is the same, but that late wakes, however many, are left out where one in a block was not.
/// Up to 29 % of the blocks may be off the line (Theil–Sen's breakdown point).
#[derive(Clone, Debug)]
struct Blocks {
    merging: Merging,
    /// The slope so far, ns per cycle, by which the earliest of three is known under drift: that of
    /// all blocks when they coarsened last.
    slope_ns: f64,
    done: Vec<Block>,
    /// Blocks hold 3^level samples.
    level: usize,
    pending: [Pending; LEVELS_MAX],
}

impl Blocks {
    /// None yet.
    fn of(merging: Merging) -> Self {
        let pending = [Pending::default(); LEVELS_MAX];
        Self { merging, slope_ns: 0.0, done: Vec::new(), level: 0, pending }
    }

    /// One block of three neighbours.
    #[inline]
    fn merged(merging: Merging, slope_ns: f64, [a, b, c]: [Block; 3]) -> Block {
        match merging {
            Merging::Median => middle(a, b, c),
            Merging::Earliest => lower(lower(a, b, slope_ns), c, slope_ns),
        }
    }

    /// Takes in one sample; x must not decrease.
    #[inline]
    fn push(&mut self, x: u64, d: i64) {
        let mut block = Block { x, d };
        for pending in &mut self.pending[..self.level] {
            if pending.len < 2 {
                pending.blocks[pending.len] = block;
                pending.len += 1;
                return;
            }
            let three = [pending.blocks[0], pending.blocks[1], block];
            block = Self::merged(self.merging, self.slope_ns, three);
            pending.len = 0;
        }
        self.close(block);
    }

    fn close(&mut self, block: Block) {
        self.done.push(block);
        if self.done.len() == BLOCKS_MAX && self.level + 1 < LEVELS_MAX {
            if self.merging == Merging::Earliest {
                self.slope_ns = self.slope().unwrap_or(self.slope_ns);
            }
            for third in 0..BLOCKS_MAX / 3 {
                let three = [0, 1, 2].map(|i| self.done[third * 3 + i]);
                self.done[third] = Self::merged(self.merging, self.slope_ns, three);
            }
            self.done.truncate(BLOCKS_MAX / 3);
            self.level += 1;
        }
    }

    /// Slope (ns per cycle) and level at x = 0 (ns); `None` with fewer than three blocks or without
    /// two different x.
    fn fit(&self) -> Option<(f64, f64)> {
        let slope_ns = self.slope()?;
        Some((slope_ns, median(&mut self.levels_about(slope_ns))?))
    }

    /// The level of each block at x = 0, ns.
    fn levels_about(&self, slope_ns: f64) -> Vec<f64> {
        self.done.iter().map(|block| block.d as f64 - slope_ns * block.x as f64).collect()
    }

    /// How far apart the medians of the thirds lie about a line, ns; 0 where that is within
    /// [`SCATTERS`] times the typical step from one block to the next.
    fn bend_ns(&self, slope_ns: f64) -> f64 {
        let levels = self.levels_about(slope_ns);
        let mut steps: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let third = levels.len() / 3;
        let (Some(step), true) = (median(&mut steps), third >= 3) else { return 0.0 };
        let thirds = [&levels[..third], &levels[third..2 * third], &levels[2 * third..]];
        let medians = thirds.map(|third| median(&mut third.to_vec()).unwrap_or_default());
        let bend = medians.iter().copied().fold(f64::MIN, f64::max)
            - medians.iter().copied().fold(f64::MAX, f64::min);
        if bend > SCATTERS * step { bend } else { 0.0 }
    }

    /// The median of the slopes between any two blocks, ns per cycle.
    fn slope(&self) -> Option<f64> {
        if self.done.len() < 3 {
            return None;
        }
        let mut slopes = Vec::with_capacity(self.done.len() * self.done.len() / 2);
        for (i, a) in self.done.iter().enumerate() {
            for b in &self.done[i + 1..] {
                if b.x > a.x {
                    let rise = i128::from(b.d) - i128::from(a.d);
                    slopes.push(rise as f64 / (b.x - a.x) as f64);
                }
            }
        }
        median(&mut slopes)
    }
}

/// The medians of three thirds of nine blocks scatter by less than this many steps; of more blocks
/// by far less.
const SCATTERS: f64 = 4.0;

/// The one of two blocks that lies lower about a slope; of equals the first.
#[inline]
fn lower(a: Block, b: Block, slope_ns: f64) -> Block {
    let rise_ns = (i128::from(b.d) - i128::from(a.d)) as f64;
    if rise_ns < slope_ns * (b.x - a.x) as f64 { b } else { a }
}

/// One block of three neighbours: the middle x, the middle d.
#[inline]
fn middle(a: Block, b: Block, c: Block) -> Block {
    let d = a.d.min(b.d).max(a.d.max(b.d).min(c.d));
    Block { x: b.x, d }
}

fn median(values: &mut [f64]) -> Option<f64> {
    let at = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// The number of later wakes that can push a count down: the longest catch-up burst that is
/// understood.
pub const LOOK_AHEAD: usize = 1024;

/// Share of a wake's place within the period that moves the tracked phase, and the rate.
const PHASE_GAIN: f64 = 1.0 / 32.0;
const RATE_GAIN: f64 = PHASE_GAIN * PHASE_GAIN / 4.0;
/// The tracked rate stays within this of nominal: beyond, the nominal period is wrong.
const RATE_MAX: f64 = 0.05;

/// A wake with the release it was assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedWake {
    /// k, counted from the first wake (which is 0).
    pub cycle: u64,
    /// The instant that was pushed, ns.
    pub wake_ns: u64,
}

/// Counts k from wake to wake. Push instants in order, take [`NumberedWake`] out with a delay of
/// [`LOOK_AHEAD`] wakes, then call [`Counter::finish`].
///
/// For recordings of instants alone. The distance to the previous wake, less where that stood
/// within its period, is rounded to periods. The place within the period is tracked (phase and
/// rate), so a drifting clock is drift and never a miss. A late wake followed by one that looks
/// early is no miss either: k must rise with each wake, so a count that ran ahead is pushed down
/// by what follows (a stall with its catch-up burst included). Streaming, constant memory.
#[derive(Clone, Debug)]
pub struct Counter {
    period_ns: f64,
    /// (true period / nominal) − 1, tracked.
    rate: f64,
    /// Where the last wake stood within its period, ns, about the tracked phase.
    place_ns: f64,
    previous: Option<u64>,
    /// Cumulated rounded count of the last wake, before pushing down.
    count: i64,
    pushed: u64,
    waiting: VecDeque<u64>,
    /// (index, count − index) of waiting wakes, rising in both: the front is the window's minimum.
    lowest: VecDeque<(u64, i64)>,
    /// (k before the base is taken off) of the last wake that left.
    last_out: Option<i64>,
    base: i64,
    left: u64,
}

impl Counter {
    /// A counter for a nominal period.
    pub fn new(period: Period) -> Self {
        Self {
            period_ns: period.as_ns() as f64,
            rate: 0.0,
            place_ns: 0.0,
            previous: None,
            count: 0,
            pushed: 0,
            waiting: VecDeque::with_capacity(LOOK_AHEAD + 1),
            lowest: VecDeque::with_capacity(LOOK_AHEAD + 1),
            last_out: None,
            base: 0,
            left: 0,
        }
    }

    /// Takes in the next wake, and gives the one that [`LOOK_AHEAD`] wakes have followed. An
    /// instant before the previous one counts as equal to it.
    pub fn push(&mut self, wake_ns: u64) -> Option<NumberedWake> {
        let elapsed_ns = wake_ns.saturating_sub(self.previous.unwrap_or(wake_ns)) as f64;
        self.previous = Some(self.previous.map_or(wake_ns, |previous| previous.max(wake_ns)));
        self.count = self.count.saturating_add(self.periods_in(elapsed_ns));

        let ahead = self.count.saturating_sub_unsigned(self.pushed);
        while self.lowest.back().is_some_and(|&(_, waiting)| waiting >= ahead) {
            self.lowest.pop_back();
        }
        self.lowest.push_back((self.pushed, ahead));
        self.pushed += 1;
        self.waiting.push_back(wake_ns);
        if self.waiting.len() > LOOK_AHEAD { self.finish() } else { None }
    }

    /// Gives the oldest wake still waiting; call until `None` once all are pushed.
    pub fn finish(&mut self) -> Option<NumberedWake> {
        let wake_ns = self.waiting.pop_front()?;
        let &(at, ahead) = self.lowest.front()?;
        let mut k = ahead.saturating_add_unsigned(self.left);
        if at == self.left {
            self.lowest.pop_front();
        }
        match self.last_out {
            Some(last) => k = k.max(last.saturating_add(1)),
            None => self.base = k,
        }
        self.last_out = Some(k);
        self.left += 1;
        Some(NumberedWake { cycle: k.abs_diff(self.base), wake_ns })
    }

    /// Whole periods in what elapsed since the previous wake; follows phase and rate.
    fn periods_in(&mut self, elapsed_ns: f64) -> i64 {
        let period_ns = self.period_ns * (1.0 + self.rate);
        let place_ns = self.place_ns + elapsed_ns;
        let periods = (place_ns / period_ns).round();
        let place_ns = place_ns - periods * period_ns;
        self.place_ns = place_ns * (1.0 - PHASE_GAIN);
        self.rate = (self.rate + RATE_GAIN * place_ns / period_ns).clamp(-RATE_MAX, RATE_MAX);
        periods as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fitted(nominal_ns: u64, points: &[(u64, i64)]) -> Option<(Grid, Line)> {
        let mut fit = GridFit::new(Period::from_ns(nominal_ns).unwrap());
        points.iter().for_each(|&(k, d)| fit.push(k, d));
        fit.finish()
    }

    /// A line fitted to points, and how far they lie about it, ns.
    struct Fitted {
        slope: f64,
        offset: f64,
        rms: f64,
        peak_to_peak: f64,
    }

    /// The slow model: two passes in exact rationals of the normal equations, then doubles.
    fn two_passes(points: &[(u64, i64)]) -> Fitted {
        let n = points.len() as i128;
        let x = |k: u64| i128::from(k) - i128::from(points[0].0);
        let sum = |f: &dyn Fn(i128, i128) -> i128| -> i128 {
            points.iter().map(|&(k, d)| f(x(k), i128::from(d))).sum()
        };
        let (sx, sd) = (sum(&|x, _| x), sum(&|_, d| d));
        let slope =
            (n * sum(&|x, d| x * d) - sx * sd) as f64 / (n * sum(&|x, _| x * x) - sx * sx) as f64;
        let offset = (sd as f64 - slope * sx as f64) / n as f64;
        let residuals: Vec<f64> =
            points.iter().map(|&(k, d)| d as f64 - offset - slope * x(k) as f64).collect();
        let rms = (residuals.iter().map(|r| r * r).sum::<f64>() / n as f64).sqrt();
        let most = residuals.iter().copied().fold(f64::MIN, f64::max);
        let least = residuals.iter().copied().fold(f64::MAX, f64::min);
        Fitted { slope, offset, rms, peak_to_peak: most - least }
    }

    #[test]
    fn two_distinct_cycles_are_needed() {
        assert!(fitted(1_000, &[]).is_none());
        assert!(fitted(1_000, &[(5, 3)]).is_none());
        assert!(fitted(1_000, &[(5, 3), (5, 9)]).is_none());
        let (grid, _) = fitted(1_000, &[(5, 3), (6, 3)]).unwrap();
        assert_eq!((grid.period_ns, grid.drift_ppb, grid.jitter_pp_ns), (1_000.0, 0.0, 0.0));
    }

    #[test]
    fn sound_for_a_billion_seconds_of_drift() {
        // 1000 ppm over 10⁹ cycles of 1 s, with a deviation of ± 1 s and a known residual.
        let points: Vec<(u64, i64)> = (0..1_000u64)
            .map(|i| {
                let k = (1 << 33) + i * 1_000_000;
                let wobble = [0, 1_000_000_000, 0, -1_000_000_000][i as usize % 4];
                (k, (i * 1_000_000) as i64 * 1_000_000 + wobble)
            })
            .collect();
        let (grid, _) = fitted(1_000_000_000, &points).unwrap();
        assert!((grid.drift_ppb - 1e6).abs() < 1e-2, "{}", grid.drift_ppb);
        assert!((grid.rms_ns - 1e9 / 2f64.sqrt()).abs() < 1e5, "{}", grid.rms_ns);
        assert!((grid.jitter_pp_ns - 2e9).abs() < 1e7, "{}", grid.jitter_pp_ns);
    }

    #[test]
    fn rms_of_nanoseconds_survives_a_million_seconds_of_drift() {
        let points: Vec<(u64, i64)> = (0..4_000u64)
            .map(|i| (i * 250_000, (i * 250_000) as i64 * 1_000_000 + (i % 2) as i64 * 2))
            .collect();
        let (grid, line) = fitted(1_000_000_000, &points).unwrap();
        assert!((grid.rms_ns - 1.0).abs() < 1e-3, "{}", grid.rms_ns);
        assert!((grid.jitter_pp_ns - 2.0).abs() < 1e-2, "{}", grid.jitter_pp_ns);
        assert!(points.iter().all(|&(k, d)| (0..=2).contains(&line.above_earliest_ns(k, d))));
    }

    #[test]
    fn absurd_numbers_give_none_or_a_number_but_never_wrap() {
        let far = punctual_core::sample::CYCLE_MAX;
        for points in [
            vec![(0, i64::MIN), (far, i64::MAX)],
            vec![(0, i64::MAX); 3],
            (0..4_000).map(|i| (far - 4_000 + i, i64::MIN)).chain([(far, i64::MAX)]).collect(),
            (0..2_000).map(|i| (i * (far / 2_000), [i64::MIN, i64::MAX][i as usize % 2])).collect(),
        ] {
            if let Some((grid, _)) = fitted(1, &points) {
                assert!(grid.jitter_pp_ns >= 0.0 && grid.rms_ns >= 0.0);
            }
        }
    }

    #[test]
    fn the_robust_line_ignores_what_the_least_squares_line_follows() {
        let points: Vec<(u64, i64)> = (0..30_000u64)
            .map(|k| {
                let noise = (k * 7_919 % 101) as i64 - 50;
                let outlier = if k > 25_000 && k % 10 == 0 { 1_000_000 } else { 0 };
                (k, 3 * k as i64 + noise + outlier)
            })
            .collect();
        let (grid, _) = fitted(1_000_000, &points).unwrap();
        let robust = grid.robust.unwrap();
        assert!((robust.drift_ppb - 3_000.0).abs() < 20.0, "{}", robust.drift_ppb);
        assert!(robust.phase_ns.abs() < 30.0, "{}", robust.phase_ns);
        assert!((grid.drift_ppb - 3_000.0).abs() > 500.0, "{}", grid.drift_ppb);
    }

    fn recordings() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let step = prop_oneof![8 => Just(1u64), 1 => 1u64..50, 1 => Just(0u64)];
        let deviation = prop_oneof![-500i64..5_000, -2_000_000_000i64..2_000_000_000];
        (0u64..1 << 40, -1_000i64..1_000, prop::collection::vec((step, deviation), 3..300))
            .prop_map(|(start, drift, steps)| {
                let mut k = start;
                let wakes = steps.into_iter().map(|(step, deviation)| {
                    k += step;
                    (k, deviation + drift * (k - start) as i64)
                });
                wakes.collect()
            })
    }

    proptest! {
        #[test]
        fn streaming_agrees_with_two_passes(points in recordings()) {
            prop_assume!(points[0].0 != points[points.len() - 1].0);
            let (grid, line) = fitted(1_000_000, &points).unwrap();
            let Fitted { slope, offset, rms, peak_to_peak } = two_passes(&points);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1_000.0);
            prop_assert!(near(grid.drift_ppb, slope / 1e6 * 1e9), "{} {}", grid.drift_ppb, slope);
            prop_assert!(near(grid.phase_ns, offset), "{} {}", grid.phase_ns, offset);
            prop_assert!(near(grid.rms_ns, rms), "{} {}", grid.rms_ns, rms);
            let pp_ns = grid.jitter_pp_ns;
            prop_assert!(near(pp_ns, peak_to_peak), "{} {}", pp_ns, peak_to_peak);
            let above: Vec<i64> =
                points.iter().map(|&(k, d)| line.above_earliest_ns(k, d)).collect();
            prop_assert_eq!(above.iter().min(), Some(&0));
            let span = *above.iter().max().unwrap() as f64;
            prop_assert!((span - peak_to_peak).abs() <= 1.0 + 1e-6 * peak_to_peak);
        }
    }

    #[test]
    fn a_clean_line_is_found_at_any_length() {
        for n in [3u64, 10, 242, 243, 244, 729, 100_000] {
            let mut blocks = Blocks::of(Merging::Median);
            (0..n).for_each(|x| blocks.push(x, 40 - 2 * x as i64));
            assert_eq!(blocks.fit(), Some((-2.0, 40.0)), "{n}");
            assert!(blocks.done.len() < BLOCKS_MAX);
        }
    }

    #[test]
    fn too_little_gives_nothing() {
        let mut blocks = Blocks::of(Merging::Median);
        blocks.push(1, 1);
        blocks.push(2, 1);
        assert_eq!(blocks.fit(), None);
        let mut still = Blocks::of(Merging::Median);
        (0..9).for_each(|d| still.push(5, d));
        assert_eq!(still.fit(), None);
    }

    #[test]
    fn a_fifth_of_outliers_does_not_move_it() {
        let mut blocks = Blocks::of(Merging::Median);
        for x in 0..50_000u64 {
            let outlier = if x * 2_654_435_761 % 5 == 0 { 1 << 40 } else { 0 };
            blocks.push(x, 7 * x as i64 + outlier);
        }
        let (slope, level) = blocks.fit().unwrap();
        assert!((slope - 7.0).abs() < 0.01 && level.abs() < 500.0, "{slope} {level}");
    }

    /// The line of wakes whose releases are not known.
    fn earliest_line(points: &[(u64, i64)]) -> (Grid, Line) {
        let mut fit = GridFit::of_instants(Period::from_ns(1_000_000).unwrap());
        points.iter().for_each(|&(k, d)| fit.push(k, d));
        fit.finish().expect("a line")
    }

    /// 1 kHz with 4 µs of jitter and a drift, and a stall of 20 ms at cycle `at` of which each
    /// later cycle makes up for `caught_up_ns`.
    fn stalled(cycles: u64, drift: i64, at: u64, caught_up_ns: i64) -> Vec<(u64, i64)> {
        let wake = |k: u64| {
            let delay = if k < at { 0 } else { 20_000_000 - caught_up_ns * (k - at) as i64 };
            let jitter = 3_000 + (k * 7_919 % 4_001) as i64;
            (k, drift * k as i64 + jitter + delay.max(0))
        };
        (0..cycles).map(wake).collect()
    }

    #[test]
    fn a_stall_that_is_caught_up_tilts_no_earliest_line() {
        for drift in [0, 200, -200, 1_000] {
            for at in [0, 1_000, 3_200, 9_000, 9_990] {
                for caught_up_ns in [100_000, 900_000, 20_000_000] {
                    let points = stalled(10_000, drift, at, caught_up_ns);
                    let (_, line) = earliest_line(&points);
                    let above = |&(k, d): &(u64, i64)| line.above_earliest_ns(k, d);
                    let late = points.iter().filter(|point| above(point) > 25_000).count();
                    let truly = |&&(k, d): &&(u64, i64)| d - drift * k as i64 > 25_000;
                    assert_eq!(late, points.iter().filter(truly).count(), "{drift} {at}");
                    let mut lateness: Vec<i64> = points.iter().map(above).collect();
                    lateness.sort_unstable();
                    let median = lateness[5_000];
                    assert!((1_900..2_300).contains(&median), "{drift} {at}: {median}");
                    assert_eq!((lateness[0], line.bend_ns()), (0, 0), "{drift} {at}");
                }
            }
        }
        // What least squares make of it, which the grid keeps.
        let points = stalled(10_000, 0, 9_000, 100_000);
        let (grid, line) = earliest_line(&points);
        assert!(grid.drift_ppb > 50_000.0, "{}", grid.drift_ppb);
        let drift_ppb = line.drift_ppb(Period::from_ns(1_000_000).unwrap());
        assert!(drift_ppb.abs() < 20.0, "{drift_ppb}");
        let (measured, _) = fitted(1_000_000, &points).unwrap();
        assert_eq!(measured, grid);
    }

    #[test]
    fn late_wakes_tilt_no_earliest_line_however_many_they_are() {
        // Nine of ten wakes late by up to 500 µs in the second half, none in the first.
        let wake = |k: u64| {
            let late =
                if k >= 50_000 && !k.is_multiple_of(10) { (k * 7_919 % 500_000) as i64 } else { 0 };
            (k, 40 * k as i64 + late)
        };
        let points: Vec<(u64, i64)> = (0..100_000).map(wake).collect();
        let (_, line) = earliest_line(&points);
        let above = |&(k, d): &(u64, i64)| line.above_earliest_ns(k, d) - (d - 40 * k as i64);
        assert!(points.iter().map(above).all(|off| off.abs() <= 1));
    }

    #[test]
    fn a_late_wake_that_was_counted_for_the_next_release_lowers_no_earliest_line() {
        // Of every hundred cycles one is 650 µs late, and the one after it so late that a release
        // passes: the first is counted for that one, and looks 350 µs early.
        let period = Period::from_ns(1_000_000).unwrap();
        let late_ns = |k: u64| match k % 100 {
            50 => 650_000,
            51 => 1_200_000,
            _ => (k * 7_919 % 4_001) as i64,
        };
        let ran = (0..10_000u64).filter(|k| k % 100 != 52);
        let mut counter = Counter::new(period);
        let wakes = ran.map(|k| (k, k * 1_000_000 + late_ns(k).unsigned_abs()));
        let (mut cycles, mut counted) = (Vec::new(), Vec::new());
        for (cycle, wake_ns) in wakes {
            cycles.push(cycle);
            counted.extend(counter.push(wake_ns));
        }
        counted.extend(std::iter::from_fn(|| counter.finish()));
        let deviation = |wake: &NumberedWake| {
            (wake.cycle, wake.wake_ns.cast_signed() - (wake.cycle * 1_000_000).cast_signed())
        };
        let points: Vec<(u64, i64)> = counted.iter().map(deviation).collect();
        let early = points.iter().filter(|point| point.1 < -300_000).count();
        assert_eq!(early, 100, "they are counted for the release after their own");
        let (_, line) = earliest_line(&points);
        let mut after = None;
        for (point, cycle) in points.into_iter().zip(cycles) {
            let (placed, deviation_ns) = line.placed(point, after, period);
            let above_ns = line.above_earliest_ns(placed, deviation_ns);
            // The release that passes is one of two that look alike from the wakes alone.
            let late_ns = late_ns(cycle);
            let own = if late_ns > 1_000_000 {
                (cycle + 1, late_ns - 1_000_000)
            } else {
                (cycle, late_ns)
            };
            assert_eq!(placed, own.0);
            assert!((above_ns - own.1).abs() <= 20, "{cycle}: {above_ns} {}", own.1);
            after = Some(placed);
        }
        // A wake that is early by less is of its release, and so is one behind a wake.
        let at = |above_ns: i64| (20_000, deviation_at(&line, 20_000, above_ns));
        assert_eq!(line.placed(at(-10_000), Some(3), period), at(-10_000));
        assert_eq!(line.placed(at(-400_000), Some(19_999), period), at(-400_000));
        assert_eq!(line.placed(at(-400_000), None, period), at(-400_000));
    }

    /// The deviation of a wake that lies so far above a line.
    fn deviation_at(line: &Line, cycle: u64, above_ns: i64) -> i64 {
        above_ns - line.above_earliest_ns(cycle, 0)
    }

    #[test]
    fn instants_that_do_not_advance_have_no_period() {
        let period = Period::from_ns(1_000).unwrap();
        let is_still = |step_ns: i64| {
            let points: Vec<(u64, i64)> =
                (0..100).map(|k: u64| (k, (step_ns - 1_000) * k.cast_signed())).collect();
            let mut fit = GridFit::of_instants(period);
            points.iter().for_each(|&(k, d)| fit.push(k, d));
            fit.finish().is_some_and(|(_, line)| line.is_still(period))
        };
        assert_eq!([0, 1, 1_000, 2_000].map(is_still), [true, false, false, false]);
    }

    #[test]
    fn a_line_that_bends_is_doubtful() {
        // A third of the wakes 50 µs later than the others: late, or by another clock.
        let step = |k: u64| (k, if k >= 20_000 { 50_000 } else { 0 } + (k * 7_919 % 4_001) as i64);
        let (_, line) = earliest_line(&(0..30_000).map(step).collect::<Vec<_>>());
        assert!(line.bend_ns() > 20_000, "{}", line.bend_ns());
        let (_, few) = earliest_line(&[(0, 0), (1, 900), (2, 0), (3, 900)]);
        assert_eq!(few.bend_ns(), 0);
    }

    fn counted(period_ns: u64, wakes: &[u64]) -> Vec<u64> {
        let mut counter = Counter::new(Period::from_ns(period_ns).unwrap());
        let mut out: Vec<NumberedWake> =
            wakes.iter().filter_map(|&wake| counter.push(wake)).collect();
        out.extend(std::iter::from_fn(|| counter.finish()));
        assert_eq!(out.iter().map(|c| c.wake_ns).collect::<Vec<_>>(), wakes);
        out.into_iter().map(|c| c.cycle).collect()
    }

    #[test]
    fn a_late_wake_before_an_early_looking_one_is_no_miss() {
        assert_eq!(counted(100, &[0, 100, 260, 300, 400]), [0, 1, 2, 3, 4]);
        assert_eq!(counted(100, &[0, 160, 270, 300, 400]), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_catch_up_burst_is_no_miss_and_a_skip_is_one() {
        let burst = [
            0, 100, 200, 1_200, 1_201, 1_202, 1_203, 1_204, 1_205, 1_206, 1_207, 1_208, 1_209,
            1_300,
        ];
        assert_eq!(counted(100, &burst), (0..14).collect::<Vec<_>>());
        assert_eq!(counted(100, &[0, 100, 200, 1_200, 1_300]), [0, 1, 2, 12, 13]);
    }

    #[test]
    fn a_drifting_clock_is_no_miss() {
        for ppm in [-1_000i64, -20, 1_000] {
            let period = 500_000i64;
            let wakes: Vec<u64> = (0..1_000_000i64)
                .map(|k| (k * (period + period * ppm / 1_000_000) + (k * 7_919 % 40_000)) as u64)
                .collect();
            let ks = counted(500_000, &wakes);
            assert!(ks.iter().enumerate().all(|(i, &k)| i as u64 == k), "{ppm}");
        }
    }

    #[test]
    fn more_wakes_than_releases_still_rise() {
        let ks = counted(1_000_000, &vec![5; 3_000]);
        assert!(ks.is_sorted_by(|a, b| a < b));
        assert_eq!(ks.len(), 3_000);
    }

    proptest! {
        #[test]
        fn any_instants_give_rising_counts(
            mut wakes in prop::collection::vec(any::<u64>(), 1..3_000),
            period in 1u64..=Period::MAX_NS,
        ) {
            wakes.sort_unstable();
            let ks = counted(period, &wakes);
            prop_assert_eq!(ks[0], 0);
            // Rising strictly, except where the range of counts itself ends.
            prop_assert!(ks.is_sorted());
        }

        /// Releases skipped at random, lateness up to 30 % of the period, any rate within 500 ppm:
        /// the count is the truth. (The tracked rate is uncertain by some 0.1 %, which a gap of 20
        /// periods makes 2 % of one: what lateness may take up is a half less all that.)
        #[test]
        fn known_releases_are_recovered(
            steps in prop::collection::vec(
                (prop_oneof![20 => Just(1u64), 1 => 2u64..20], 0u64..300),
                2..2_000,
            ),
            rate in -500i64..500,
        ) {
            let (mut k, mut truth, mut wakes) = (0u64, vec![], vec![]);
            for (step, lateness) in steps {
                truth.push(k);
                wakes.push(k * 1_000 + ((k as i64 * rate) / 1_000 + 2_000) as u64 + lateness);
                k += step;
            }
            prop_assert_eq!(counted(1_000, &wakes), truth);
        }
    }
}
